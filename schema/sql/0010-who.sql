-- SPDX-License-Identifier: Apache-2.0
-- Migration 10: who was there: how processes ended, what they are programs of, and what a container's runtime says of it.
--
-- A process that had samples has its end in its own row. Of all others only those that ended badly have a row; end_row
-- counts every end, whole: two captures of one host count the same ends, each for itself. Its buckets are ten seconds for
-- all runs, so that they can be compared.

ALTER TABLE process ADD COLUMN end_ns INTEGER NOT NULL DEFAULT 0;  -- when it ended, UTC; 0: not known to have ended
ALTER TABLE process ADD COLUMN how INTEGER NOT NULL DEFAULT 0;     -- end_kind.id
ALTER TABLE process ADD COLUMN status INTEGER NOT NULL DEFAULT 0;  -- its exit code, or the signal that ended it
ALTER TABLE process ADD COLUMN lang INTEGER NOT NULL DEFAULT 0;    -- text.id of its language, 0: not known
ALTER TABLE process ADD COLUMN runtime INTEGER NOT NULL DEFAULT 0; -- text.id of its runtime with the version, 0: not known
ALTER TABLE process ADD COLUMN linking INTEGER NOT NULL DEFAULT 0; -- 0 not known, 1 static, 2 dynamic
ALTER TABLE process ADD COLUMN libc INTEGER NOT NULL DEFAULT 0;    -- 0 not known, 1 glibc, 2 musl

ALTER TABLE container ADD COLUMN project TEXT NOT NULL DEFAULT ''; -- of compose, or the pod
ALTER TABLE container ADD COLUMN service TEXT NOT NULL DEFAULT ''; -- of compose
ALTER TABLE container ADD COLUMN labels TEXT NOT NULL DEFAULT '';  -- a JSON object, '' if none are known
ALTER TABLE container ADD COLUMN started TEXT NOT NULL DEFAULT ''; -- when its runtime started it last: tells its instances apart
ALTER TABLE container ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0; -- how often its runtime has restarted it by itself

CREATE TABLE end_kind(     -- how; the same as schema/store/writer.h, never renumbered
  id INTEGER PRIMARY KEY,  -- process.how, end_row.how
  name TEXT NOT NULL       -- as views and tools say it
) STRICT;
INSERT INTO end_kind(id, name) VALUES (0, ''), (1, 'exit'), (2, 'signal'), (3, 'out of memory'), (4, 'exec'), (5, 'unknown');

CREATE TABLE end_row(      -- how many processes ended
  ts INTEGER NOT NULL,     -- start of the ten seconds, seconds since t0
  run INTEGER NOT NULL,    -- run.id
  comm INTEGER NOT NULL,   -- text.id of the command name; 0: of more names than are told apart
  container INTEGER NOT NULL,  -- container.id, 0 none
  how INTEGER NOT NULL,    -- end_kind.id
  status INTEGER NOT NULL, -- as in process
  n INTEGER NOT NULL,      -- processes
  PRIMARY KEY(ts, run, comm, container, how, status)
) STRICT, WITHOUT ROWID;

DROP VIEW containers;
CREATE VIEW containers AS
  SELECT id, iif(name = '', substr(runtime_id, 1, 12), name) AS name, runtime, runtime_id, image, cgroup, project, service,
         labels, started, restarts
  FROM container;

DROP VIEW processes;
CREATE VIEW processes AS
  SELECT p.id, p.pid, p.ppid, p.uid, p.comm, coalesce(e.value, '') AS exe,
         substr(coalesce(a.value, ''), 1, p.args_keep) || p.args
           || substr(coalesce(a.value, ''), length(a.value) - p.args_end + 1) AS args,
         coalesce(c.name, '') AS container,
         coalesce(c.runtime_id, '') AS container_id, coalesce(g.value, '') AS cgroup, coalesce(u.value, '') AS unit,
         datetime(p.start_ns / 1000000000, 'unixepoch') AS start, p.start_ns, p.exec_id, p.self,
         iif(p.end_ns, datetime(p.end_ns / 1000000000, 'unixepoch'), '') AS "end", p.end_ns,
         coalesce(k.name, '') AS how, p.status,
         coalesce(l.value, '') AS lang, coalesce(r.value, '') AS runtime,
         CASE p.linking WHEN 1 THEN 'static' WHEN 2 THEN 'dynamic' ELSE '' END AS linking,
         CASE p.libc WHEN 1 THEN 'glibc' WHEN 2 THEN 'musl' ELSE '' END AS libc
  FROM process p LEFT JOIN containers c ON c.id = p.container LEFT JOIN text e ON e.id = p.exe
  LEFT JOIN text g ON g.id = p.cgroup LEFT JOIN text u ON u.id = p.unit
  LEFT JOIN text a ON a.id = p.args_base LEFT JOIN end_kind k ON k.id = p.how LEFT JOIN text l ON l.id = p.lang
  LEFT JOIN text r ON r.id = p.runtime;

CREATE VIEW process_ends AS -- of two captures at once that which counted more
  SELECT datetime(ts, 'unixepoch') AS time, ts, container, comm, how, status, max(n) AS n
  FROM (SELECT x.ts + t0.value AS ts, x.run, coalesce(c.name, '') AS container, coalesce(t.value, '') AS comm,
               coalesce(k.name, '') AS how, x.status, sum(x.n) AS n
        FROM end_row x JOIN meta t0 ON t0.key = 't0' LEFT JOIN containers c ON c.id = x.container
        LEFT JOIN text t ON t.id = x.comm LEFT JOIN end_kind k ON k.id = x.how
        GROUP BY 1, 2, 3, 4, 5, 6)
  GROUP BY ts, container, comm, how, status;
