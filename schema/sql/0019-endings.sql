-- SPDX-License-Identifier: Apache-2.0
-- Migration 19: a packed day tells how stacks ended by name. Its names of programs are in columns (migration 18), and to read them for
-- the few rows that `sonde status` asks of each day takes longer than all the rest it does.

CREATE TABLE run_ending(   -- run_unwound of a packed day, with its names
  run INTEGER NOT NULL,    -- run.id
  executable TEXT NOT NULL, -- path, '' if not known
  module TEXT NOT NULL,    -- name of the image that the stack ended in, '' where none was mapped
  reason INTEGER NOT NULL, -- unwinding_reason.reason
  n INTEGER NOT NULL,      -- samples
  PRIMARY KEY(run, executable, module, reason)
) STRICT, WITHOUT ROWID;
