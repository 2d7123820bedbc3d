-- SPDX-License-Identifier: Apache-2.0
-- Migration 24: Go's heap as views over amounts.

CREATE VIEW go_readings AS -- each reading of a process, and the time it covers
  SELECT ts, run_id, process_id,
         ts - lag(ts) OVER (PARTITION BY run_id, process_id ORDER BY ts) AS seconds
  FROM amounts WHERE type = 'inuse' AND label = 0;

CREATE VIEW go_amounts AS -- allocations and memory in use, as read, with the factor that undoes the sampling
  SELECT ts, container, comm, pid, type, function, module, file, line, label AS object_bytes, n, value, rate,
         iif(rate > 1, 1 / (1 - exp(-1.0 * label / rate)), 1.0) AS factor, stack_id, process_id, run_id, self
  FROM amounts WHERE type IN ('alloc', 'inuse') AND label > 0;

CREATE VIEW go_heap AS -- by process, stack and size: all that was allocated, and what is in use at the last reading
  WITH part AS (
    SELECT max(ts) AS ts, container, comm, pid, function, module, file, line, stack_id, object_bytes, process_id, run_id, self,
           sum(n * factor) AS alloc_objects, sum(value * factor) AS alloc_bytes, 0 AS inuse_objects, 0 AS inuse_bytes,
           sum(n) AS alloc_objects_raw, sum(value) AS alloc_bytes_raw, 0 AS inuse_objects_raw, 0 AS inuse_bytes_raw
    FROM go_amounts WHERE type = 'alloc' GROUP BY run_id, process_id, stack_id, object_bytes
    UNION ALL
    SELECT max(ts), container, comm, pid, function, module, file, line, stack_id, object_bytes, process_id, run_id, self,
           0, 0, n * factor, value * factor, 0, 0, n, value
    FROM go_amounts WHERE type = 'inuse' GROUP BY run_id, process_id, stack_id, object_bytes)
  SELECT datetime(max(ts), 'unixepoch') AS time, max(ts) AS ts, container, comm, pid, function, module, file, line,
         stack_id, object_bytes,
         CAST(sum(alloc_objects) AS INTEGER) AS alloc_objects, CAST(sum(alloc_bytes) AS INTEGER) AS alloc_bytes,
         CAST(sum(inuse_objects) AS INTEGER) AS inuse_objects, CAST(sum(inuse_bytes) AS INTEGER) AS inuse_bytes,
         sum(alloc_objects_raw) AS alloc_objects_raw, sum(alloc_bytes_raw) AS alloc_bytes_raw,
         sum(inuse_objects_raw) AS inuse_objects_raw, sum(inuse_bytes_raw) AS inuse_bytes_raw,
         process_id, run_id, self
  FROM part GROUP BY run_id, process_id, stack_id, object_bytes;

CREATE VIEW go_heap_growth AS -- by process and stack: how memory in use changed from the first reading to the last
  WITH ends AS (
    SELECT run_id, process_id, min(ts) AS first_ts, max(ts) AS last_ts FROM go_readings GROUP BY 1, 2),
  first AS (
    SELECT a.run_id, a.process_id, a.stack_id, sum(a.value * a.factor) AS bytes
    FROM go_amounts a JOIN ends e ON e.run_id = a.run_id AND e.process_id = a.process_id AND a.ts = e.first_ts
    WHERE a.type = 'inuse' GROUP BY 1, 2, 3),
  last AS (
    SELECT max(ts) AS ts, container, comm, pid, function, module, file, line, stack_id, process_id, run_id, self,
           sum(inuse_bytes) AS bytes, sum(inuse_objects) AS objects
    FROM go_heap GROUP BY run_id, process_id, stack_id)
  SELECT l.container, l.comm, l.pid, l.function, l.module, l.file, l.line, l.stack_id,
         CAST(coalesce(f.bytes, 0) AS INTEGER) AS first_bytes, l.bytes AS last_bytes,
         CAST(l.bytes - coalesce(f.bytes, 0) AS INTEGER) AS growth_bytes,
         iif(e.last_ts > e.first_ts, (l.bytes - coalesce(f.bytes, 0)) / (e.last_ts - e.first_ts), 0.0) AS bytes_per_s,
         e.first_ts, e.last_ts, l.process_id, l.run_id, l.self
  FROM last l JOIN ends e ON e.run_id = l.run_id AND e.process_id = l.process_id
  LEFT JOIN first f ON f.run_id = l.run_id AND f.process_id = l.process_id AND f.stack_id = l.stack_id;

CREATE VIEW go_alloc_rate AS -- by process and reading
  WITH sums AS (
    SELECT run_id, process_id, ts, sum(n * factor) AS objects, sum(value * factor) AS bytes
    FROM go_amounts WHERE type = 'alloc' GROUP BY 1, 2, 3)
  SELECT datetime(r.ts, 'unixepoch') AS time, r.ts, coalesce(c.name, '') AS container, p.comm, p.pid, r.seconds,
         CAST(coalesce(s.objects, 0) AS INTEGER) AS objects, CAST(coalesce(s.bytes, 0) AS INTEGER) AS bytes,
         coalesce(s.bytes, 0) / r.seconds AS bytes_per_s, coalesce(s.objects, 0) / r.seconds AS objects_per_s,
         r.process_id, r.run_id, p.self
  FROM go_readings r JOIN process p ON p.id = r.process_id LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN sums s ON s.run_id = r.run_id AND s.process_id = r.process_id AND s.ts = r.ts
  WHERE r.seconds > 0;

CREATE VIEW go_processes AS -- every Go process, also those that could not be read
  SELECT coalesce(c.name, '') AS container, p.comm, p.pid,
         max(iif(n.key = 'version', n.value, '')) AS version, max(iif(n.key = 'main', n.value, '')) AS main,
         max(iif(n.key = 'cgo', n.value, '')) AS cgo, max(iif(n.key = 'state', n.value, '')) AS state,
         max(iif(n.key = 'reason', n.value, '')) AS reason,
         CAST(max(iif(n.key = 'buckets', n.value, 0)) AS INTEGER) AS buckets,
         coalesce((SELECT rate FROM rate_row d WHERE d.run = n.run_id AND d.process = n.process_id
                   ORDER BY d.ts DESC LIMIT 1), 0) AS rate,
         max(iif(n.key = 'last', n.value, '')) AS last, n.process_id, n.run_id, p.self
  FROM process_notes n JOIN process p ON p.id = n.process_id LEFT JOIN containers c ON c.id = p.container
  WHERE n.family = 'goheap' GROUP BY n.run_id, n.process_id;
