-- SPDX-License-Identifier: Apache-2.0
-- Migration 57: single waits of threads of Java programs, so that they can be found by thread and time. The table is declared in schema/facts/java.h.

CREATE TABLE java_wait_log_row( -- single waits of java_wait_row for monitors and locks; bounded
  ts INTEGER NOT NULL, -- start of the bucket in which they ended, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id
  id INTEGER NOT NULL, -- its own
  tid INTEGER, -- gauge: thread that waited
  at_us INTEGER, -- gauge, us: when it began, since 1970
  ns INTEGER, -- gauge, ns: how long it took, within the recording
  kind INTEGER NOT NULL, -- text.id: as java_wait_row.kind
  class INTEGER NOT NULL, -- text.id: as java_wait_row.class
  owner INTEGER NOT NULL, -- text.id: as java_wait_row.owner
  place INTEGER NOT NULL, -- text.id: as java_wait_row.place
  PRIMARY KEY(ts, run, process, id)
) STRICT, WITHOUT ROWID;

CREATE VIEW java_wait_log AS -- single waits of threads of Java programs for monitors and locks: those of 1 ms or longer, the first 200 a second of each program
  SELECT datetime(x.at_us / 1000000, 'unixepoch') AS time, x.at_us / 1000000 AS ts, x.at_us * 1000 AS at_ns, coalesce(c.name, '') AS container,
         p.comm, p.pid, x.tid, x.ns, coalesce(k.value, '') AS kind, coalesce(m.value, '') AS class, coalesce(o.value, '') AS owner,
         coalesce(w.value, '') AS place, x.process AS process_id, x.run AS run_id
  FROM java_wait_log_row x JOIN meta t0 ON t0.key = 't0'
  LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text k ON k.id = x.kind LEFT JOIN text m ON m.id = x.class LEFT JOIN text o ON o.id = x.owner LEFT JOIN text w ON w.id = x.place;
