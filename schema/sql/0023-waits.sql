-- SPDX-License-Identifier: Apache-2.0
-- Migration 23: waiting: what family offcpu counts beside amounts by stack (kinds offcpu and runqueue, whose series.label is the class of the wait).
--
-- wait_row is exact and needs no stack: each thread's time is running, blocked or ready, and the three add up to the time
-- that it was watched. A stretch of time counts in the bucket in which it ended. What began before the capture, or still
-- lasted at its end, is in rows of its own (flags) and holds the part inside the capture only.

CREATE TABLE wait_class(   -- why; the same as schema/store/model/stored.h, never renumbered
  id INTEGER PRIMARY KEY,  -- wait_row.class, series.label
  name TEXT NOT NULL,      -- reason, as views and tools say it
  state INTEGER NOT NULL   -- 1 running, 2 blocked, 3 ready: what it is a class of
) STRICT;
INSERT INTO wait_class VALUES
  (0, 'other', 2),
  (1, 'lock', 2),
  (2, 'disk', 2),
  (3, 'network', 2),
  (4, 'pipe', 2),
  (5, 'poll', 2),
  (6, 'sleep', 2),
  (7, 'page fault', 2),
  (8, 'stop', 2),
  (9, 'child', 2),
  (16, 'woken', 3),
  (17, 'preempted', 3),
  (18, 'yielded', 3),
  (32, 'running', 1);

CREATE TABLE wait_row(     -- each thread's time, exactly
  ts INTEGER NOT NULL,     -- start of the bucket that it ended in, seconds since t0
  task INTEGER NOT NULL,   -- task.id, of kind 2
  class INTEGER NOT NULL,  -- wait_class.id
  flags INTEGER NOT NULL,  -- 1 began before the capture, 2 still lasted at its end, 4 could not be interrupted, 8 waited for I/O
  n INTEGER NOT NULL,      -- stretches of time
  total_ns INTEGER NOT NULL,   -- their sum
  max_ns INTEGER NOT NULL, -- the longest, 0: not known
  hist TEXT,               -- how long they were, as amount.hist; NULL: not known
  PRIMARY KEY(ts, task, class, flags)
) STRICT, WITHOUT ROWID;

CREATE TABLE wake_row(     -- who ended the waits
  ts INTEGER NOT NULL,     -- as in wait_row
  task INTEGER NOT NULL,   -- task.id of who waited, of kind 2
  class INTEGER NOT NULL,  -- wait_class.id of the wait
  waker INTEGER NOT NULL,  -- task.id of the thread on the CPU that woke it, of kind 2; 0: none (the CPU was idle, or it was an interrupt and buckets are of 10 s)
  context INTEGER NOT NULL, -- 0 the thread itself, 1 an interrupt (a soft one, too) while that thread was on the CPU
  stack INTEGER NOT NULL,  -- stack.id of the waker, of a sample of the wake-ups; 0: not sampled
  n INTEGER NOT NULL,      -- wake-ups
  total_ns INTEGER NOT NULL,   -- how long the waits were that they ended
  PRIMARY KEY(ts, task, class, waker, context, stack)
) STRICT, WITHOUT ROWID;

CREATE TABLE culprit_row(  -- who had the CPU while a thread was ready
  ts INTEGER NOT NULL,     -- as in wait_row
  task INTEGER NOT NULL,   -- task.id of who was ready, of kind 2
  culprit INTEGER NOT NULL, -- task.id of who ran, of kind 2; 0: see kind
  kind INTEGER NOT NULL,   -- 0 a thread; 1 the CPU was idle; 2 unknown: it was on another CPU, or too long ago
  n INTEGER NOT NULL,      -- stretches of time
  total_ns INTEGER NOT NULL,   -- their sum
  PRIMARY KEY(ts, task, culprit, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE wait_on_row(  -- weighted, as amounts by stack are
  ts INTEGER NOT NULL,     -- as in wait_row
  task INTEGER NOT NULL,   -- task.id of who waited, of kind 2
  class INTEGER NOT NULL,  -- wait_class.id of the wait
  object INTEGER NOT NULL, -- text.id: a path, '10.0.0.5:5432', 'futex 0x7f...'
  waker INTEGER NOT NULL,  -- task.id of the thread that ended the wait, of kind 2; 0: an interrupt did, or it is not known
  stack INTEGER NOT NULL,  -- stack.id of who waited
  n INTEGER NOT NULL,      -- waits
  total_ns INTEGER NOT NULL,   -- how long they were
  PRIMARY KEY(ts, task, class, object, waker, stack)
) STRICT, WITHOUT ROWID;

CREATE TABLE throttle_row( -- CPU quota of cgroups: held back, not contended
  ts INTEGER NOT NULL,     -- start of the bucket, seconds since t0
  run INTEGER NOT NULL,    -- run.id
  cgroup INTEGER NOT NULL, -- text.id of its path
  periods INTEGER NOT NULL,    -- periods in which it wanted to run
  throttled INTEGER NOT NULL,  -- of those, periods in which its quota was used up
  throttled_ns INTEGER NOT NULL, -- how long its CPUs were held back, summed over CPUs
  PRIMARY KEY(ts, run, cgroup)
) STRICT, WITHOUT ROWID;

CREATE TABLE steal_row(    -- time that the hypervisor gave to others
  ts INTEGER NOT NULL,     -- start of the bucket, seconds since t0
  run INTEGER NOT NULL,    -- run.id
  steal_ns INTEGER NOT NULL,   -- all CPUs together
  idle_ns INTEGER NOT NULL,    -- idle, waiting for I/O included
  cpu_ns INTEGER NOT NULL, -- CPUs x time
  PRIMARY KEY(ts, run)
) STRICT, WITHOUT ROWID;

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

CREATE VIEW runqueue AS -- ready, and not running
  SELECT time, ts, container, comm, pid, thread, tid, reason, began_before, unfinished, count, total_ns, max_ns, hist,
         process_id, run_id, self
  FROM wait_totals WHERE state = 'ready';

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

CREATE VIEW standing AS -- blocked threads as they stood
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, coalesce(c.name, '') AS container, p.comm,
         p.pid, t.thread, t.tid, coalesce(w.name, 'class ' || e.label) AS reason,
         coalesce(f.function, '[no stack]') AS function, coalesce(f.module, '') AS module, e.stack AS stack_id,
         x.n AS threads, x.value AS waited_ns, t.process AS process_id, t.run AS run_id, p.self
  FROM amount x JOIN meta t0 ON t0.key = 't0' JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task
  JOIN process p ON p.id = t.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN wait_class w ON w.id = e.label
  LEFT JOIN stack k ON k.id = e.stack LEFT JOIN frames f ON f.id = k.leaf
  WHERE t.kind = 8;

CREATE VIEW throttling AS
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, coalesce(g.value, '') AS cgroup,
         x.periods, x.throttled, x.throttled_ns, x.run AS run_id
  FROM throttle_row x JOIN meta t0 ON t0.key = 't0' LEFT JOIN text g ON g.id = x.cgroup;

CREATE VIEW steal AS
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, x.steal_ns, x.idle_ns, x.cpu_ns,
         x.run AS run_id
  FROM steal_row x JOIN meta t0 ON t0.key = 't0';
