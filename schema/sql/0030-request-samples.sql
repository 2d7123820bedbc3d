-- SPDX-License-Identifier: Apache-2.0
-- Migration 30: which samples belong to which request. The tables are declared in schema/facts/l7.h. The two stand in the files of different
-- captures: a tag and a process's number say which belong together.

CREATE TABLE request_tag_row( -- single requests of request_log_row that were answered here: how their samples are found
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id of who served it
  tag INTEGER NOT NULL, -- what its samples have
  operation INTEGER NOT NULL, -- text.id
  result INTEGER NOT NULL, -- text.id: ok, error
  total_us INTEGER, -- gauge, us: to the last byte of its answer
  PRIMARY KEY(ts, run, process, tag)
) STRICT, WITHOUT ROWID;

CREATE TABLE request_sample_row( -- CPU samples and waits of threads while they served a request
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  tag INTEGER NOT NULL, -- of the request that the thread served: request_tag_row.tag of the same process
  series INTEGER NOT NULL, -- series.id that they are counted in, too
  n INTEGER, -- counter: samples, or waits: only those whose stack was taken, unweighted
  value INTEGER, -- counter, ns: their sum
  PRIMARY KEY(ts, run, tag, series)
) STRICT, WITHOUT ROWID;
