-- SPDX-License-Identifier: Apache-2.0
-- Migration 13: rare stacks of a sealed day.
--
-- Where a day is sealed, stacks that end in a frame that is in fewer than 1 in 5000 of the samples of their executable,
-- container, run and hour are cut off behind the last frame that is in that many: they end in the function '[rare]' instead. What their functions had
-- below that is summed here: with it, each function's self and total of an hour stay exact.

CREATE TABLE rare_row(     -- samples of functions in stacks that end in '[rare]', below what is left of them
  ts INTEGER NOT NULL,     -- start of the hour, seconds since t0
  run INTEGER NOT NULL,    -- run.id
  exe INTEGER NOT NULL,    -- text.id of the executable's path, 0 none
  container INTEGER NOT NULL,  -- container.id, 0 none
  function INTEGER NOT NULL,   -- function.id, 0: it has no name
  frame INTEGER NOT NULL,  -- frame.id where it has no name, else 0
  self INTEGER NOT NULL,   -- samples in it
  total INTEGER NOT NULL,  -- samples in it or in what it called; a recursion counts once, and not where it is in what is left
  PRIMARY KEY(ts, run, exe, container, function, frame)
) STRICT, WITHOUT ROWID;

CREATE TABLE rare_hour(    -- hours of a sealed day whose stacks were looked at
  ts INTEGER PRIMARY KEY   -- start of the hour, seconds since t0
) STRICT;
