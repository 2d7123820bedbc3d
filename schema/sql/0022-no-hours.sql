-- SPDX-License-Identifier: Apache-2.0
-- Migration 22: a packed day has no second account of itself.
--
-- Nothing of a sealed day is cut off any more, and functions and lines have no sums by the hour of their own: they took a sixth of the
-- file. The views of a packed day answer where module sonde_packed is known: in `sonde sql`, and in `sqlite3` with sonde.so loaded.

DROP VIEW hour_lines;
DROP VIEW hour_functions;
DROP VIEW hour_sum;
DROP VIEW hour_samples;
DROP TABLE hour_row;
DROP TABLE hour_place;
DROP TABLE hour_who;
DROP TABLE packed_view;
DROP TABLE rare_hour;
DROP TABLE rare_row;

CREATE TABLE run_named(    -- of a packed day, whose dictionary takes too long to read for it: how much of its last hour has names
  run INTEGER PRIMARY KEY, -- run.id
  samples INTEGER NOT NULL, -- of the run's last hour that has some
  named INTEGER NOT NULL   -- of them, those whose innermost function is known
) STRICT;
