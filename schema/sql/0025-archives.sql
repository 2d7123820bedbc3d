-- SPDX-License-Identifier: Apache-2.0
-- Migration 25: what an archive has instead of rows.
--
-- The tables that packed_table names are virtual ones of module sonde_packed there (schema/store/packed/module.h), which `sonde` and its
-- extension have: the same names, columns and rows, out of packed_column and packed_block. A question about ten minutes decodes
-- the blocks of these ten minutes.

CREATE TABLE packed_table( -- tables that are packed; empty: all are rows
  name TEXT PRIMARY KEY,   -- of the virtual table
  rows INTEGER NOT NULL,   -- how many it has
  sql TEXT NOT NULL,        -- what makes the table and its indexes, to hold rows
  block_rows INTEGER NOT NULL DEFAULT 0 -- rows of each block but the last one; 0: all in one
) STRICT, WITHOUT ROWID;

CREATE TABLE packed_column(  -- their columns
  id INTEGER PRIMARY KEY,  -- number within this file
  "table" TEXT NOT NULL,   -- packed_table.name
  number INTEGER NOT NULL, -- place among the table's columns, from 0
  name TEXT NOT NULL,      -- the column's
  type TEXT NOT NULL       -- its declared type
) STRICT;

CREATE TABLE packed_block(   -- of each column the values of some rows, in order
  id INTEGER PRIMARY KEY,    -- packed_column.id << 20 | number of the block, from 0
  first INTEGER,             -- of the first column of a table in several blocks: its value in the block's first row
  last INTEGER,              -- and in its last one
  data BLOB NOT NULL         -- its values, as schema/store/packed/column.h tells
) STRICT;

CREATE TABLE packed_view(    -- what made the views of an archive (to parse them takes longer than most questions, so who needs them makes them: schema/store/packed/module.h) and its packed tables
  id INTEGER PRIMARY KEY,    -- in the order in which they were made
  name TEXT NOT NULL,        -- of the view or table
  sql TEXT NOT NULL          -- what made it
) STRICT;

CREATE TABLE run_ending(   -- run_unwound with the names of programs and images
  run INTEGER NOT NULL,    -- run.id
  executable TEXT NOT NULL, -- path, '' if not known
  module TEXT NOT NULL,    -- name of the image that the stack ended in, '' where none was mapped
  reason INTEGER NOT NULL, -- unwinding_reason.reason
  n INTEGER NOT NULL,      -- samples
  PRIMARY KEY(run, executable, module, reason)
) STRICT, WITHOUT ROWID;

CREATE TABLE run_named(    -- how much of each run's last hour has names: an archive's dictionary takes too long to read for that
  run INTEGER PRIMARY KEY, -- run.id
  samples INTEGER NOT NULL, -- of the run's last hour that has some
  named INTEGER NOT NULL   -- of them, those whose innermost function is known
) STRICT;
