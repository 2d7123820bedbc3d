-- SPDX-License-Identifier: Apache-2.0
-- Migration 58: frames of Erlang and Elixir have their runtime's name.

DROP VIEW frames;
CREATE VIEW frames AS
  SELECT r.id, coalesce(f.name, printf('%s+0x%x', coalesce(i.name, '[unknown]'), r.offset)) AS function,
         coalesce(i.name, '') AS module, coalesce(s.path, f.file, '') AS file, r.line, r.offset, r.flags & 1 AS inlined,
         f.name IS NOT NULL AS named, coalesce(i.path, '') AS path, coalesce(i.build_id, '') AS build_id,
         r.outer AS inlined_into,
         CASE i.kind WHEN 17 THEN 'python' WHEN 18 THEN 'ruby' WHEN 19 THEN 'php' WHEN 20 THEN 'javascript' WHEN 21 THEN 'java'
           WHEN 22 THEN 'perl' WHEN 23 THEN 'erlang' ELSE '' END AS runtime
  FROM frame r LEFT JOIN function f ON f.id = r.function LEFT JOIN image i ON i.id = r.image
  LEFT JOIN source s ON s.id = f.source;
