-- SPDX-License-Identifier: Apache-2.0
-- Migration 53: family java: what Java's flight recorder says of allocations, monitors, parked threads and exceptions. The table is declared in
-- schema/facts/java.h.

INSERT INTO kind VALUES
  (24, 'java-alloc', 'counter', 'samples', 'bytes'),
  (25, 'java-lock', 'duration', 'events', 'ns'),
  (26, 'java-park', 'duration', 'events', 'ns'),
  (27, 'java-exception', 'counter', 'events', 'events');

CREATE TABLE java_wait_row( -- what threads of Java programs waited for, and who had it
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id
  kind INTEGER NOT NULL, -- text.id: monitor: for one that another thread had; park: of java.util.concurrent; wait: to be notified
  class INTEGER NOT NULL, -- text.id: class of the monitor, or of what it was parked on
  owner INTEGER NOT NULL, -- text.id: thread that had the monitor when the wait began; empty: not known
  place INTEGER NOT NULL, -- text.id: function:line that waited, the innermost that is not of the Java library
  n INTEGER, -- counter: waits of 1 ms or longer that ended
  ns INTEGER, -- counter, ns: how long they took, within the recording
  PRIMARY KEY(ts, run, process, kind, class, owner, place)
) STRICT, WITHOUT ROWID;

CREATE VIEW java_waits AS -- what threads of Java programs waited for, and who had it, by bucket: waits of 1 ms or longer
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, p.comm, p.pid, coalesce(k.value, '') AS kind, coalesce(m.value, '') AS class,
         coalesce(o.value, '') AS owner, coalesce(w.value, '') AS place, x.n, x.ns,
         x.process AS process_id, x.run AS run_id, coalesce(p.self, 0) AS self
  FROM java_wait_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text k ON k.id = x.kind LEFT JOIN text m ON m.id = x.class LEFT JOIN text o ON o.id = x.owner LEFT JOIN text w ON w.id = x.place;

CREATE VIEW java_recorded AS -- every Java program that family java was asked to record: whether it did, and why not
  SELECT coalesce(c.name, '') AS container, p.comm, p.pid,
         max(iif(n.key = 'version', n.value, '')) AS version, max(iif(n.key = 'state', n.value, '')) AS state,
         max(iif(n.key = 'reason', n.value, '')) AS reason, max(iif(n.key = 'mode', n.value, '')) AS mode,
         max(iif(n.key = 'left_out', n.value, '')) AS left_out, n.process_id, n.run_id, p.self
  FROM process_notes n JOIN process p ON p.id = n.process_id LEFT JOIN containers c ON c.id = p.container
  WHERE n.family = 'java' GROUP BY n.run_id, n.process_id HAVING max(n.key = 'state');
