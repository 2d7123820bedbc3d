-- SPDX-License-Identifier: Apache-2.0
-- Migration 3: source files, lines, inlined functions.
--
-- A function that was inlined is a frame of its own, at the same place as the function it was inlined into: `outer` leads
-- there, step by step, to the physical function. A stack names the innermost only, and the views put the others before
-- it: so a place costs one number in each stack, and a frame can gain inlined functions later (`sonde symbolize`) while
-- no stack changes. Paths of source files are long and few: functions share them.

CREATE TABLE source(       -- source files
  id INTEGER PRIMARY KEY,  -- number within this file
  hash INTEGER NOT NULL,   -- as in container
  path TEXT NOT NULL       -- as the debug information has it
) STRICT;
CREATE INDEX source_by_hash ON source(hash);

-- function.source: source.id, 0: not known (then function.file tells, in files that are older than this migration)
ALTER TABLE function ADD COLUMN source /* source.id, 0: see file */ INTEGER NOT NULL DEFAULT 0;
-- frame.outer: frame.id of the frame that this one was inlined into, 0: it is the physical function
-- frame.flags: 1 inlined, 2 a leaf folded to its function or line, 4 no return address but the interrupted instruction
ALTER TABLE frame ADD COLUMN outer /* frame.id of what this was inlined into, 0 none */ INTEGER NOT NULL DEFAULT 0;

DROP VIEW functions;
CREATE VIEW functions AS
  SELECT f.id, f.name AS function, coalesce(i.name, '') AS module, coalesce(s.path, f.file) AS file, f.line,
         coalesce(i.path, '') AS path, coalesce(i.build_id, '') AS build_id
  FROM function f LEFT JOIN image i ON i.id = f.image LEFT JOIN source s ON s.id = f.source;

DROP VIEW frames;
CREATE VIEW frames AS
  SELECT r.id, coalesce(f.name, printf('%s+0x%x', coalesce(i.name, '[unknown]'), r.offset)) AS function,
         coalesce(i.name, '') AS module, coalesce(s.path, f.file, '') AS file, r.line, r.offset, r.flags & 1 AS inlined,
         f.name IS NOT NULL AS named, coalesce(i.path, '') AS path, coalesce(i.build_id, '') AS build_id,
         r.outer AS inlined_into
  FROM frame r LEFT JOIN function f ON f.id = r.function LEFT JOIN image i ON i.id = r.image
  LEFT JOIN source s ON s.id = f.source;

DROP VIEW stack_list;
CREATE VIEW stack_list AS -- stacks that have samples, their frames as a JSON list, root first
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
  FROM stack_part k WHERE k.id IN (SELECT stack FROM series);

CREATE VIEW stack_place AS -- for each stack that has samples, each frame in it; innermost: 1 for the last one
  WITH RECURSIVE
  part(stack, base, keep, own, upto) AS (
    SELECT k.id, k.base, k.keep, k.own, 1 << 30 FROM stack_part k WHERE k.id IN (SELECT stack FROM series)
    UNION ALL
    SELECT p.stack, s.base, s.keep, s.own, min(p.upto, p.keep) FROM part p JOIN stack_part s ON s.id = p.base),
  place(stack, frame, innermost, up) AS (
    SELECT p.stack, j.value, p.upto = 1 << 30 AND j.key = json_array_length(p.own) - 1, 0
    FROM part p JOIN json_each(p.own) j WHERE p.keep + j.key < p.upto
    UNION ALL
    SELECT l.stack, f.outer, 0, up + 1 FROM place l JOIN frame f ON f.id = l.frame WHERE f.outer <> 0 AND up < 64)
  SELECT stack AS stack_id, frame, innermost FROM place;

DROP VIEW functions_top;
CREATE VIEW functions_top AS
  WITH
  used(container, stack, samples, cpu_ns) AS MATERIALIZED (
    SELECT container, stack_id, sum(samples), sum(cpu_ns) FROM cpu_samples WHERE NOT self GROUP BY 1, 2),
  inside(stack, function, module, is_leaf, file) AS MATERIALIZED (
    SELECT p.stack_id, f.function, f.module, max(p.innermost), max(f.file)
    FROM stack_place p JOIN frames f ON f.id = p.frame GROUP BY 1, 2, 3)
  SELECT i.function, i.module, u.container,
         sum(u.samples * i.is_leaf) AS self, sum(u.samples) AS total,
         sum(u.cpu_ns * i.is_leaf) AS self_ns, sum(u.cpu_ns) AS total_ns, max(i.file) AS file
  FROM used u JOIN inside i ON i.stack = u.stack
  GROUP BY 1, 2, 3 ORDER BY self DESC, total DESC;

CREATE VIEW lines_top AS
  WITH
  used(container, stack, samples, cpu_ns) AS MATERIALIZED (
    SELECT container, stack_id, sum(samples), sum(cpu_ns) FROM cpu_samples WHERE NOT self GROUP BY 1, 2),
  inside(stack, function, module, file, line, is_leaf) AS MATERIALIZED (
    SELECT p.stack_id, f.function, f.module, f.file, f.line, max(p.innermost)
    FROM stack_place p JOIN frames f ON f.id = p.frame WHERE f.line <> 0 GROUP BY 1, 2, 3, 4, 5)
  SELECT i.function, i.file, i.line, i.module, u.container,
         sum(u.samples * i.is_leaf) AS self, sum(u.samples) AS total,
         sum(u.cpu_ns * i.is_leaf) AS self_ns, sum(u.cpu_ns) AS total_ns
  FROM used u JOIN inside i ON i.stack = u.stack
  GROUP BY 1, 2, 3, 4, 5 ORDER BY self DESC, total DESC;
