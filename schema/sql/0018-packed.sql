-- SPDX-License-Identifier: Apache-2.0
-- Migration 18: sealed days whose dictionary is most of the file (builds) hold it in columns.
--
-- There the tables that packed_table names are virtual ones of module sonde_packed (schema/store/packed.h), which `sonde` and its
-- extension have: the same names, columns and rows, out of packed_column. cpu_samples, functions_top and lines_top are
-- hour_samples, hour_functions and hour_lines then, so that plain sqlite3 answers by the hour; packed_view has what they were.

CREATE TABLE packed_table( -- tables that are packed; empty: all stand as rows
  name TEXT PRIMARY KEY,   -- of the virtual table
  rows INTEGER NOT NULL,   -- how many it has
  sql TEXT NOT NULL        -- what makes the table and its indexes, to hold rows
) STRICT, WITHOUT ROWID;

CREATE TABLE packed_column(  -- their columns
  id INTEGER PRIMARY KEY,  -- number within this file
  "table" TEXT NOT NULL,   -- packed_table.name
  number INTEGER NOT NULL, -- place among the table's columns, from 0
  name TEXT NOT NULL,      -- the column's
  type TEXT NOT NULL,      -- INTEGER or TEXT
  data BLOB NOT NULL       -- its values, as schema/store/column.h tells
) STRICT;

CREATE TABLE packed_view(  -- the views that answer by the hour meanwhile
  name TEXT PRIMARY KEY,   -- of the view
  sql TEXT NOT NULL        -- what made it
) STRICT, WITHOUT ROWID;

CREATE TABLE hour_who(     -- whose hours
  id INTEGER PRIMARY KEY,  -- number within this file
  container TEXT NOT NULL, -- its name, '' outside of containers
  comm TEXT NOT NULL,      -- command name
  own INTEGER NOT NULL     -- 1: one of sonde's own
) STRICT;

CREATE TABLE hour_place(   -- functions and lines of hours
  id INTEGER PRIMARY KEY,  -- number within this file
  kind INTEGER NOT NULL,   -- 0 function, 1 line, 2 no stack
  function TEXT NOT NULL,  -- 'MODULE+?': all that has no name there; '[other]': those below 1 in 200 of the program's hour, or 1 in 2000 of the hour
  module TEXT NOT NULL,    -- as in functions
  file TEXT NOT NULL,      -- source file, '' if not known
  line INTEGER NOT NULL    -- of kind 1
) STRICT;

CREATE TABLE hour_row(     -- samples by hour, program and function or line
  ts INTEGER NOT NULL,     -- as in sample
  run INTEGER NOT NULL,    -- run.id
  who INTEGER NOT NULL,    -- hour_who.id
  place INTEGER NOT NULL,  -- hour_place.id
  self INTEGER NOT NULL,   -- samples in it
  total INTEGER NOT NULL,  -- samples in it or in what it called, a recursion once
  PRIMARY KEY(ts, run, who, place)
) STRICT, WITHOUT ROWID;

CREATE VIEW hour_samples AS -- cpu_samples of a packed day
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, w.container, w.comm, 0 AS pid, '' AS thread,
         0 AS tid, p.function, p.module, p.file, 0 AS line, x.self AS samples,
         x.self * (SELECT period_ns FROM run_period d
                   WHERE d.run = x.run AND d.from_ns <= (x.ts + t0.value) * 1000000000
                   ORDER BY d.from_ns DESC LIMIT 1) AS cpu_ns,
         0 AS stack_id, 0 AS process_id, x.run AS run_id, w.own AS self
  FROM hour_row x JOIN meta t0 ON t0.key = 't0' JOIN hour_who w ON w.id = x.who JOIN hour_place p ON p.id = x.place
  WHERE p.kind <> 1 AND x.self > 0;

CREATE VIEW hour_sum AS -- by function or line and container, of all but sonde's own
  SELECT p.kind, p.function, p.module, w.container, p.file, p.line, x.self, x.total,
         (SELECT period_ns FROM run_period d
          WHERE d.run = x.run AND d.from_ns <= (x.ts + t0.value) * 1000000000
          ORDER BY d.from_ns DESC LIMIT 1) AS period_ns
  FROM hour_row x JOIN meta t0 ON t0.key = 't0' JOIN hour_who w ON w.id = x.who JOIN hour_place p ON p.id = x.place
  WHERE NOT w.own;

CREATE VIEW hour_functions AS -- functions_top of a packed day
  SELECT function, module, container, sum(self) AS self, sum(total) AS total, sum(self * period_ns) AS self_ns,
         sum(total * period_ns) AS total_ns, max(file) AS file
  FROM hour_sum WHERE kind = 0 GROUP BY 1, 2, 3 ORDER BY self DESC, total DESC;

CREATE VIEW hour_lines AS -- lines_top of a packed day
  SELECT function, file, line, module, container, sum(self) AS self, sum(total) AS total, sum(self * period_ns) AS self_ns,
         sum(total * period_ns) AS total_ns
  FROM hour_sum WHERE kind = 1 GROUP BY 1, 2, 3, 4, 5 ORDER BY self DESC, total DESC;
