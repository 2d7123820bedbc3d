-- SPDX-License-Identifier: Apache-2.0
-- Family demo: page faults, as schema/facts/demo.h declares them.

CREATE TABLE fault_row( -- page faults of processes, in buckets in which there were any
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id
  faults INTEGER, -- counter: page faults of the program
  resident INTEGER, -- gauge, pages: of it in memory; NULL: it has ended
  PRIMARY KEY(ts, run, process)
) STRICT, WITHOUT ROWID;

CREATE VIEW page_faults AS -- page faults of processes, by bucket
  SELECT x.ts + t0.value AS ts, r.bucket_s AS seconds, p.comm, p.pid, x.faults, x.resident, x.process AS process_id, x.run AS run_id, p.self
  FROM fault_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run JOIN process p ON p.id = x.process;
