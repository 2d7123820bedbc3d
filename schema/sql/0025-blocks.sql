-- SPDX-License-Identifier: Apache-2.0
-- Migration 25: columns of an archive in blocks of rows.
--
-- A question to ten minutes decodes the blocks of these ten minutes, and what a reader has decoded it forgets block by block.

CREATE TABLE packed_block(   -- of each column the values of some rows, in order
  id INTEGER PRIMARY KEY,    -- packed_column.id << 20 | number of the block, from 0
  first INTEGER,             -- of the first column of a table in several blocks: its value in the block's first row
  last INTEGER,              -- and in its last one
  data BLOB NOT NULL         -- its values, as schema/store/column.h tells
) STRICT;
INSERT INTO packed_block(id, data) SELECT id << 20, data FROM packed_column;
ALTER TABLE packed_column DROP COLUMN data;
ALTER TABLE packed_table ADD COLUMN block_rows INTEGER NOT NULL DEFAULT 0; -- rows of each block but the last one; 0: all in one

CREATE TABLE packed_view(    -- the views of an archive: to parse them takes longer than most questions, so who needs them makes them (schema/store/packed.h)
  id INTEGER PRIMARY KEY,    -- in the order in which they were made
  name TEXT NOT NULL,        -- of the view
  sql TEXT NOT NULL          -- what made it
) STRICT;

-- Days are no files of their own any more: each segment is archived by itself.
DROP TABLE sealed;
DROP TABLE sample_pack;
