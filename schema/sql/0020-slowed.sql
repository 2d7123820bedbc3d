-- SPDX-License-Identifier: Apache-2.0
-- Migration 20: when a recording did less than it can, so that all of sonde stays within its limit of CPU time.

CREATE TABLE slowed_row(   -- buckets in which family offcpu took fewer stacks; its sums are as exact as ever
  ts INTEGER NOT NULL,     -- start of the bucket, seconds since t0
  run INTEGER NOT NULL,    -- run.id
  step INTEGER NOT NULL,   -- how often its rate had been lessened; the largest in the bucket
  stack_rate INTEGER NOT NULL, -- stacks a second on each CPU, at most, from then on; 0: none, [no stack] has the sums
  PRIMARY KEY(ts, run)
) STRICT, WITHOUT ROWID;

CREATE VIEW slowed AS -- buckets with fewer stacks than asked for, because sonde was over its limit of CPU time
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.family, x.step, x.stack_rate, x.run AS run_id
  FROM slowed_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run;
