-- SPDX-License-Identifier: Apache-2.0
-- Migration 45: labels of imported samples, and the kinds of value that only other profilers have.

INSERT INTO kind VALUES
  (16, 'wallclock', 'counter', 'samples', 'ns'),
  (17, 'exception', 'counter', 'events', 'events');

CREATE TABLE task_label(   -- what another profiler said of its samples; tasks that differ in it alone are two
  task INTEGER PRIMARY KEY, -- task.id
  labels TEXT NOT NULL     -- a JSON object: texts and numbers by key; the unit of number KEY is KEY_unit
) STRICT;

CREATE VIEW labelled_samples AS -- samples and amounts that have labels, of every kind: one row for each bucket, thread, stack and set of labels
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts,
         coalesce(c.name, '') AS container, p.comm, p.pid, t.thread, t.tid, y.name AS type,
         coalesce(f.function, '[no stack]') AS function, coalesce(f.module, '') AS module,
         coalesce(f.file, '') AS file, coalesce(f.line, 0) AS line, x.n,
         coalesce(x.value, x.n * (SELECT period_ns FROM run_period d WHERE d.run = t.run ORDER BY d.from_ns DESC LIMIT 1)) AS value,
         b.labels, e.stack AS stack_id, t.process AS process_id, t.run AS run_id, p.self
  FROM (SELECT ts, series, n, value FROM amount UNION ALL SELECT ts, series, n, NULL FROM sample) x
  JOIN meta t0 ON t0.key = 't0' JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task JOIN task_label b ON b.task = t.id
  JOIN kind y ON y.id = t.kind JOIN process p ON p.id = t.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN stack k ON k.id = e.stack LEFT JOIN frames f ON f.id = k.leaf;
