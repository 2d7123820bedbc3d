-- SPDX-License-Identifier: Apache-2.0
-- Migration 9: what was waited on, beside why: of waits whose stack was taken.

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

CREATE VIEW wait_objects AS -- what was waited on; of locks, who ended the wait: as a rule the one who held it
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, coalesce(c.name, '') AS container, p.comm,
         p.pid, t.thread, t.tid, coalesce(w.name, 'class ' || x.class) AS reason, coalesce(o.value, '') AS object,
         coalesce(d.name, '') AS by_container, coalesce(q.comm, '') AS by_comm, coalesce(q.pid, 0) AS by_pid,
         coalesce(b.thread, '') AS by_thread, coalesce(b.tid, 0) AS by_tid, x.stack AS stack_id, x.n AS count, x.total_ns,
         t.process AS process_id, b.process AS by_process_id, t.run AS run_id, p.self
  FROM wait_on_row x JOIN meta t0 ON t0.key = 't0' JOIN task t ON t.id = x.task JOIN process p ON p.id = t.process
  LEFT JOIN containers c ON c.id = p.container LEFT JOIN wait_class w ON w.id = x.class LEFT JOIN text o ON o.id = x.object
  LEFT JOIN task b ON b.id = x.waker LEFT JOIN process q ON q.id = b.process LEFT JOIN containers d ON d.id = q.container
  WHERE NOT EXISTS (SELECT 1 FROM run_hidden h WHERE h.run = t.run AND h.process = t.process
                    AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts);
