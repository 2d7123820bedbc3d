-- SPDX-License-Identifier: Apache-2.0
-- Migration 32: what processes used that no reading met (decision 0205). The table is declared in schema/facts/host.h.

CREATE TABLE ended_row( -- processes that lived between two readings, by cgroup and command
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  cgroup INTEGER NOT NULL, -- text.id: path in which they ended; of a container its own
  comm INTEGER NOT NULL, -- text.id: command at the end; empty: many different ones
  container INTEGER NOT NULL, -- container.id: whose they were; 0: of none
  self INTEGER, -- gauge: 1: they were sonde's own
  n INTEGER, -- counter: how many ended
  user_us INTEGER, -- counter, us: CPU time of their own code
  system_us INTEGER, -- counter, us: CPU time in the kernel
  runq_us INTEGER, -- counter, us: could run and waited for a CPU, those of one thread
  minflt INTEGER, -- counter: page faults that read from no disk
  majflt INTEGER, -- counter: page faults that read from a disk
  read_bytes INTEGER, -- counter, bytes: read from disks
  write_bytes INTEGER, -- counter, bytes: to be written to disks
  lived_us INTEGER, -- counter, us: from start to end, all together
  rss_max INTEGER, -- gauge, bytes: most memory that one of them had, as wait4(2) tells it
  PRIMARY KEY(ts, run, cgroup, comm)
) STRICT, WITHOUT ROWID;

CREATE VIEW ended_stats AS -- processes that lived between two readings, by bucket, cgroup and command
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, coalesce(g.value, '') AS cgroup, coalesce(m.value, '') AS comm, x.n, x.user_us,
         x.system_us, x.runq_us, x.minflt, x.majflt, x.read_bytes, x.write_bytes, x.lived_us, x.rss_max, x.run AS run_id,
         coalesce(x.self, 0) AS self
  FROM ended_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN text g ON g.id = x.cgroup LEFT JOIN text m ON m.id = x.comm LEFT JOIN containers c ON c.id = x.container
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts AND h.by_scope = 0
  WHERE h.run IS NULL;
