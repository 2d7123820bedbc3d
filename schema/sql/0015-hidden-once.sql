-- SPDX-License-Identifier: Apache-2.0
-- Migration 15: the views of waiting ask once what another run stands for. run_hidden was worked out anew for each row,
-- before it was known whether the row was asked for; as the right side of a LEFT JOIN it is worked out once, and looked up.

DROP VIEW waits;
CREATE VIEW waits AS -- by stack; above the rate limit of stacks counts are weighted
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, coalesce(c.name, '') AS container, p.comm,
         p.pid, t.thread, t.tid, coalesce(w.name, 'class ' || e.label) AS reason,
         coalesce(f.function, '[no stack]') AS function, coalesce(f.module, '') AS module, e.stack AS stack_id,
         x.n AS count, x.value AS total_ns, x.max AS max_ns, x.hist, t.process AS process_id, t.run AS run_id, p.self
  FROM amount x JOIN meta t0 ON t0.key = 't0' JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task
  JOIN process p ON p.id = t.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN wait_class w ON w.id = e.label
  LEFT JOIN stack k ON k.id = e.stack LEFT JOIN frames f ON f.id = k.leaf
  LEFT JOIN run_hidden h ON h.run = t.run AND h.process = t.process AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE t.kind = 2
    AND h.run IS NULL;

DROP VIEW wait_totals;
CREATE VIEW wait_totals AS -- exact, without stacks
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, coalesce(c.name, '') AS container, p.comm,
         p.pid, t.thread, t.tid,
         CASE coalesce(w.state, 2) WHEN 1 THEN 'running' WHEN 3 THEN 'ready' ELSE 'blocked' END AS state,
         coalesce(w.name, 'class ' || x.class) AS reason, x.flags & 1 AS began_before, (x.flags >> 1) & 1 AS unfinished,
         (x.flags >> 2) & 1 AS uninterruptible, (x.flags >> 3) & 1 AS iowait, x.n AS count, x.total_ns, x.max_ns, x.hist,
         t.process AS process_id, t.run AS run_id, t.id AS task_id, p.self
  FROM wait_row x JOIN meta t0 ON t0.key = 't0' JOIN task t ON t.id = x.task JOIN process p ON p.id = t.process
  LEFT JOIN containers c ON c.id = p.container LEFT JOIN wait_class w ON w.id = x.class
  LEFT JOIN run_hidden h ON h.run = t.run AND h.process = t.process AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

DROP VIEW neighbours;
CREATE VIEW neighbours AS -- who had the CPU while a thread was ready
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, coalesce(c.name, '') AS container, p.comm,
         p.pid, t.thread, t.tid,
         CASE x.kind WHEN 0 THEN 'thread' WHEN 1 THEN 'idle' ELSE 'unknown' END AS who,
         coalesce(d.name, '') AS by_container, coalesce(q.comm, '') AS by_comm, coalesce(q.pid, 0) AS by_pid,
         coalesce(b.thread, '') AS by_thread, coalesce(b.tid, 0) AS by_tid, x.n AS count, x.total_ns,
         t.process AS process_id, b.process AS by_process_id, t.run AS run_id, p.self
  FROM culprit_row x JOIN meta t0 ON t0.key = 't0' JOIN task t ON t.id = x.task JOIN process p ON p.id = t.process
  LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN task b ON b.id = x.culprit LEFT JOIN process q ON q.id = b.process LEFT JOIN containers d ON d.id = q.container
  LEFT JOIN run_hidden h ON h.run = t.run AND h.process = t.process AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

DROP VIEW wakers;
CREATE VIEW wakers AS -- who ended the waits
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, coalesce(c.name, '') AS container, p.comm,
         p.pid, t.thread, t.tid, coalesce(w.name, 'class ' || x.class) AS reason,
         iif(x.context, 'interrupt', 'thread') AS context,
         coalesce(d.name, '') AS by_container, coalesce(q.comm, '') AS by_comm, coalesce(q.pid, 0) AS by_pid,
         coalesce(b.thread, '') AS by_thread, coalesce(b.tid, 0) AS by_tid, x.stack AS by_stack_id, x.n AS count,
         x.total_ns, t.process AS process_id, b.process AS by_process_id, t.run AS run_id, p.self
  FROM wake_row x JOIN meta t0 ON t0.key = 't0' JOIN task t ON t.id = x.task JOIN process p ON p.id = t.process
  LEFT JOIN containers c ON c.id = p.container LEFT JOIN wait_class w ON w.id = x.class
  LEFT JOIN task b ON b.id = x.waker LEFT JOIN process q ON q.id = b.process LEFT JOIN containers d ON d.id = q.container
  LEFT JOIN run_hidden h ON h.run = t.run AND h.process = t.process AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

DROP VIEW wait_objects;
CREATE VIEW wait_objects AS -- what was waited on; of locks, who ended the wait: as a rule the one who held it
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, coalesce(c.name, '') AS container, p.comm,
         p.pid, t.thread, t.tid, coalesce(w.name, 'class ' || x.class) AS reason, coalesce(o.value, '') AS object,
         coalesce(d.name, '') AS by_container, coalesce(q.comm, '') AS by_comm, coalesce(q.pid, 0) AS by_pid,
         coalesce(b.thread, '') AS by_thread, coalesce(b.tid, 0) AS by_tid, x.stack AS stack_id, x.n AS count, x.total_ns,
         t.process AS process_id, b.process AS by_process_id, t.run AS run_id, p.self
  FROM wait_on_row x JOIN meta t0 ON t0.key = 't0' JOIN task t ON t.id = x.task JOIN process p ON p.id = t.process
  LEFT JOIN containers c ON c.id = p.container LEFT JOIN wait_class w ON w.id = x.class LEFT JOIN text o ON o.id = x.object
  LEFT JOIN task b ON b.id = x.waker LEFT JOIN process q ON q.id = b.process LEFT JOIN containers d ON d.id = q.container
  LEFT JOIN run_hidden h ON h.run = t.run AND h.process = t.process AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;
