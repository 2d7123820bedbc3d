-- SPDX-License-Identifier: Apache-2.0
-- Migration 20: strings, files, functions, frames and stacks.
--
-- A function that was inlined is a frame of its own, at the same place as the function it was inlined into: `outer` leads
-- there, step by step, to the physical function. A stack names the innermost only, and the views put the others before
-- it: so a place costs one number in each stack, and a frame can gain inlined functions later (`sonde symbolize`) while
-- no stack changes. Paths of source files are long and few: functions share them.

CREATE TABLE text(         -- long strings that processes share
  id INTEGER PRIMARY KEY,  -- number within this file
  value TEXT NOT NULL      -- the string
) STRICT;

CREATE TABLE image(        -- files (or substitutes for files) that contain frames
  id INTEGER PRIMARY KEY,  -- number within this file
  hash INTEGER NOT NULL,   -- as in container
  kind INTEGER NOT NULL,   -- 0 ELF file, 1 kernel, 2 vDSO, 3 JIT code, 4 BPF program, 5 kernel module, 6 unknown
  name TEXT NOT NULL,      -- what people see: 'libc.so.6', '[kernel]'
  path TEXT NOT NULL,      -- as the process saw it
  build_id TEXT NOT NULL,  -- hex, '' if none
  key TEXT NOT NULL        -- file name of its image index, '' if none
) STRICT;
CREATE INDEX image_by_hash ON image(hash);

CREATE TABLE source(       -- source files
  id INTEGER PRIMARY KEY,  -- number within this file
  hash INTEGER NOT NULL,   -- as in container
  path TEXT NOT NULL       -- as the debug information has it
) STRICT;
CREATE INDEX source_by_hash ON source(hash);

CREATE TABLE function(     -- functions by name
  id INTEGER PRIMARY KEY,  -- number within this file
  hash INTEGER NOT NULL,   -- as in container
  image INTEGER NOT NULL,  -- image.id of its module
  line INTEGER NOT NULL,   -- its first line, 0 if not known
  name TEXT NOT NULL,      -- demangled
  file TEXT NOT NULL,       -- source file, '' if not known
  source INTEGER NOT NULL DEFAULT 0 -- source.id, 0: see file
) STRICT;
CREATE INDEX function_by_hash ON function(hash);

CREATE TABLE frame(        -- places in code; two writers may have stored equal ones
  id INTEGER PRIMARY KEY,  -- number within this file
  image INTEGER NOT NULL,  -- image.id, 0 none
  offset INTEGER NOT NULL, -- within the file; an address where image is 0 or JIT code
  function INTEGER NOT NULL,   -- function.id, 0: has no name (yet)
  line INTEGER NOT NULL,   -- 0 if not known
  flags INTEGER NOT NULL,   -- 1 inlined, 2 a leaf folded to its function or line (offset is that of its first byte), 4 no return address but the interrupted instruction
  outer INTEGER NOT NULL DEFAULT 0 -- frame.id of the frame that this one was inlined into, 0: it is the physical function
) STRICT;

CREATE TABLE stack(        -- stacks, root first: the first `keep` frames of stack `base`, then `tail`, then `leaf`
  id INTEGER PRIMARY KEY,  -- number within this file
  base INTEGER NOT NULL,   -- stack.id of an earlier stack, 0: none
  keep INTEGER NOT NULL,   -- how many frames are the same as in base
  leaf INTEGER NOT NULL,   -- frame.id
  tail TEXT NOT NULL       -- frame.id of those between, with commas: '12,7,9'
) STRICT;

CREATE VIEW functions AS
  SELECT f.id, f.name AS function, coalesce(i.name, '') AS module, coalesce(s.path, f.file) AS file, f.line,
         coalesce(i.path, '') AS path, coalesce(i.build_id, '') AS build_id
  FROM function f LEFT JOIN image i ON i.id = f.image LEFT JOIN source s ON s.id = f.source;

CREATE VIEW frames AS
  SELECT r.id, coalesce(f.name, printf('%s+0x%x', coalesce(i.name, '[unknown]'), r.offset)) AS function,
         coalesce(i.name, '') AS module, coalesce(s.path, f.file, '') AS file, r.line, r.offset, r.flags & 1 AS inlined,
         f.name IS NOT NULL AS named, coalesce(i.path, '') AS path, coalesce(i.build_id, '') AS build_id,
         r.outer AS inlined_into,
         CASE i.kind WHEN 17 THEN 'python' WHEN 18 THEN 'ruby' WHEN 19 THEN 'php' WHEN 20 THEN 'javascript' WHEN 21 THEN 'java'
           ELSE '' END AS runtime
  FROM frame r LEFT JOIN function f ON f.id = r.function LEFT JOIN image i ON i.id = r.image
  LEFT JOIN source s ON s.id = f.source;

CREATE VIEW stack_part AS -- what a stack adds to its base, as a JSON list of frames
  SELECT id, base, keep, '[' || tail || iif(tail = '', '', ',') || leaf || ']' AS own FROM stack;

CREATE VIEW stack_list AS -- stacks that have samples, or that woke a thread, with their frames as a JSON list, root first
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

CREATE VIEW stack_frames AS
  SELECT k.stack_id, j.key AS depth, f.function, f.module, f.file, f.line, f.offset, f.inlined
  FROM stack_list k JOIN json_each(k.frames) j JOIN frames f ON f.id = j.value;

CREATE VIEW stacks AS
  SELECT k.stack_id AS id, json_array_length(k.frames) AS depth,
         (SELECT group_concat(name, ';')
          FROM (SELECT replace(f.function, ';', ':') AS name FROM json_each(k.frames) j JOIN frames f ON f.id = j.value
                ORDER BY j.key)) AS folded
  FROM stack_list k;

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
