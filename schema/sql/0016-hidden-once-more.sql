-- SPDX-License-Identifier: Apache-2.0
-- Migration 16: cpu_samples and amounts ask once what another run stands for, as the views of waiting do since migration 15.

DROP VIEW cpu_samples;
CREATE VIEW cpu_samples AS
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts,
         coalesce(c.name, '') AS container, p.comm, p.pid, t.thread, t.tid,
         coalesce(f.function, '[no stack]') AS function, coalesce(f.module, '') AS module,
         coalesce(f.file, '') AS file, coalesce(f.line, 0) AS line, x.n AS samples,
         x.n * (SELECT period_ns FROM run_period d
                WHERE d.run = t.run AND d.from_ns <= (x.ts + t0.value) * 1000000000
                ORDER BY d.from_ns DESC LIMIT 1) AS cpu_ns,
         e.stack AS stack_id, t.process AS process_id, t.run AS run_id, p.self
  FROM sample x JOIN meta t0 ON t0.key = 't0' JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task
  JOIN process p ON p.id = t.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN stack k ON k.id = e.stack LEFT JOIN frames f ON f.id = k.leaf
  LEFT JOIN run_hidden h ON h.run = t.run AND h.process = t.process AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE t.kind = 1
    AND h.run IS NULL;

DROP VIEW amounts;
CREATE VIEW amounts AS
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts,
         coalesce(c.name, '') AS container, p.comm, p.pid, t.thread, t.tid, y.name AS type,
         coalesce(f.function, '[no stack]') AS function, coalesce(f.module, '') AS module,
         coalesce(f.file, '') AS file, coalesce(f.line, 0) AS line, x.n, x.value, x.max, x.hist, e.label,
         coalesce((SELECT r.rate FROM rate_row r WHERE r.run = t.run AND r.process = t.process AND r.ts <= x.ts
                   ORDER BY r.ts DESC LIMIT 1), 0) AS rate,
         e.stack AS stack_id, t.process AS process_id, t.run AS run_id, p.self, e.id AS series_id
  FROM amount x JOIN meta t0 ON t0.key = 't0' JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task
  JOIN kind y ON y.id = t.kind JOIN process p ON p.id = t.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN stack k ON k.id = e.stack LEFT JOIN frames f ON f.id = k.leaf
  LEFT JOIN run_hidden h ON h.run = t.run AND h.process = t.process AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;
