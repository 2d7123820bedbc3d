-- SPDX-License-Identifier: Apache-2.0
-- Migration 8: stacks of those who wake others (wake_row.stack, view wakers' by_stack_id) have frames in `stacks` too. A wake-up
-- stands in one row: that of its stack where one was taken, else that of stack 0; the rows together are all of them.

DROP VIEW stack_list;
CREATE VIEW stack_list AS -- stacks that have samples, or woke somebody, their frames as a JSON list, root first
  SELECT k.id AS stack_id,
         (WITH RECURSIVE part(base, keep, own, upto) AS (
            SELECT k.base, k.keep, k.own, 1 << 30
            UNION ALL
            SELECT s.base, s.keep, s.own, min(part.upto, part.keep) FROM part JOIN stack_part s ON s.id = part.base),
          place(at, up, frame) AS ( -- up: how far out of the innermost function; 64 bounds what a damaged file says
            SELECT part.keep + j.key, 0, j.value FROM part JOIN json_each(part.own) j WHERE part.keep + j.key < part.upto
            UNION ALL
            SELECT at, up + 1, f.outer FROM place JOIN frame f ON f.id = place.frame WHERE f.outer <> 0 AND up < 64)
          SELECT json_group_array(frame) FROM (SELECT frame FROM place ORDER BY at, up DESC)) AS frames
  FROM stack_part k WHERE k.id IN (SELECT stack FROM series UNION ALL SELECT stack FROM wake_row);
