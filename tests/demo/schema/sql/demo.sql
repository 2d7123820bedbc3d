-- SPDX-License-Identifier: Apache-2.0
-- Family demo: stacks of page faults, and what schema/facts/demo.h declares.

INSERT INTO kind VALUES (16, 'fault', 'counter', 'events', 'events');

CREATE TABLE resident_row( -- memory of each process
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id
  resident INTEGER, -- gauge, pages: of it in memory
  PRIMARY KEY(ts, run, process)
) STRICT, WITHOUT ROWID;

CREATE VIEW resident_memory AS -- memory of processes, by bucket
  SELECT x.ts + t0.value AS ts, r.bucket_s AS seconds, p.comm, p.pid, x.resident, x.process AS process_id, x.run AS run_id, p.self
  FROM resident_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run JOIN process p ON p.id = x.process;
