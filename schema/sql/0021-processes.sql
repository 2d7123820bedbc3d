-- SPDX-License-Identifier: Apache-2.0
-- Migration 21: containers, processes, and how processes ended.

CREATE TABLE container(    -- containers
  id INTEGER PRIMARY KEY,  -- number within this file
  hash INTEGER NOT NULL,   -- 31 bits of the content's hash, for look-up by writers
  name TEXT NOT NULL,      -- '' if not known
  runtime TEXT NOT NULL,   -- 'docker', 'containerd', 'podman', ...
  runtime_id TEXT NOT NULL,    -- full id, '' if none
  image TEXT NOT NULL,     -- '' if not known
  cgroup TEXT NOT NULL,     -- path of its cgroup
  project TEXT NOT NULL DEFAULT '', -- of compose, or the pod
  service TEXT NOT NULL DEFAULT '', -- of compose
  labels TEXT NOT NULL DEFAULT '', -- a JSON object, '' if none are known
  started TEXT NOT NULL DEFAULT '', -- when its runtime started it last: tells its instances apart
  restarts INTEGER NOT NULL DEFAULT 0 -- how often its runtime has restarted it by itself
) STRICT;
CREATE INDEX container_by_hash ON container(hash);

CREATE TABLE process(      -- processes that had samples; an exec begins a new one
  id INTEGER PRIMARY KEY,  -- number within this file
  pid INTEGER NOT NULL,    -- in the host's pid namespace
  ppid INTEGER NOT NULL,   -- its parent's
  uid INTEGER NOT NULL,    -- user id
  exec_id INTEGER NOT NULL,    -- the kernel's count of execs
  start_ns INTEGER NOT NULL,   -- start, UTC
  start_ticks INTEGER NOT NULL,  -- start on the boot clock, ns
  comm TEXT NOT NULL,      -- command name
  exe INTEGER NOT NULL,    -- text.id of the executable's path, 0 none
  args_base INTEGER NOT NULL,  -- text.id of a command line like this one, 0 none. The command line (masked) is:
  args_keep INTEGER NOT NULL,  -- this many first characters of that,
  args TEXT NOT NULL,      -- then this,
  args_end INTEGER NOT NULL,   -- then this many last characters of that
  cgroup INTEGER NOT NULL, -- text.id of the cgroup's path, 0 none
  unit INTEGER NOT NULL,   -- text.id of the systemd unit, 0 none
  container INTEGER NOT NULL,  -- container.id, 0 none
  self INTEGER NOT NULL,    -- 1: one of sonde's own
  end_ns INTEGER NOT NULL DEFAULT 0, -- when it ended, UTC; 0: it is not known to have ended
  how INTEGER NOT NULL DEFAULT 0, -- end_kind.id
  status INTEGER NOT NULL DEFAULT 0, -- its exit code, or the signal that ended it
  lang INTEGER NOT NULL DEFAULT 0, -- text.id of its language, 0: not known
  runtime INTEGER NOT NULL DEFAULT 0, -- text.id of its runtime with the version, 0: not known
  linking INTEGER NOT NULL DEFAULT 0, -- 0 not known, 1 static, 2 dynamic
  libc INTEGER NOT NULL DEFAULT 0 -- 0 not known, 1 glibc, 2 musl
) STRICT;
CREATE INDEX process_by_pid ON process(pid);

CREATE TABLE process_note(  -- what a family knows about a process in addition to its amounts; the last one is valid
  run INTEGER NOT NULL,     -- run.id
  process INTEGER NOT NULL, -- process.id
  key TEXT NOT NULL,        -- what it is: 'version', 'state', 'reason', ...
  value INTEGER NOT NULL,   -- text.id
  PRIMARY KEY(run, process, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE end_kind(     -- how; the same as schema/store/model/stored.h, never renumbered
  id INTEGER PRIMARY KEY,  -- process.how, end_row.how
  name TEXT NOT NULL       -- as views and tools say it
) STRICT;
INSERT INTO end_kind VALUES
  (0, ''),
  (1, 'exit'),
  (2, 'signal'),
  (3, 'out of memory'),
  (4, 'exec'),
  (5, 'unknown');

CREATE TABLE end_row(      -- how many processes ended
  ts INTEGER NOT NULL,     -- start of the ten seconds, seconds since t0
  run INTEGER NOT NULL,    -- run.id
  comm INTEGER NOT NULL,   -- text.id of the command name; 0: names beyond the limit
  container INTEGER NOT NULL,  -- container.id, 0 none
  how INTEGER NOT NULL,    -- end_kind.id
  status INTEGER NOT NULL, -- as in process
  n INTEGER NOT NULL,      -- processes
  PRIMARY KEY(ts, run, comm, container, how, status)
) STRICT, WITHOUT ROWID;

CREATE VIEW containers AS
  SELECT id, iif(name = '', substr(runtime_id, 1, 12), name) AS name, runtime, runtime_id, image, cgroup, project, service,
         labels, started, restarts
  FROM container;

CREATE VIEW processes AS
  SELECT p.id, p.pid, p.ppid, p.uid, p.comm, coalesce(e.value, '') AS exe,
         replace(substr(coalesce(a.value, ''), 1, p.args_keep)
                 || substr(p.args, iif(instr(substr(p.args, 2), char(31)), instr(substr(p.args, 2), char(31)) + 2, 1))
                 || substr(coalesce(a.value, ''), coalesce(length(a.value), 0) - p.args_end + 1),
                 char(31), substr(p.args, 2, instr(substr(p.args, 2), char(31)) - 1)) AS args,
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

CREATE VIEW process_notes AS
  SELECT n.run AS run_id, r.family, n.process AS process_id, p.pid, p.comm, n.key, coalesce(t.value, '') AS value
  FROM process_note n JOIN run r ON r.id = n.run JOIN process p ON p.id = n.process LEFT JOIN text t ON t.id = n.value;

CREATE VIEW process_ends AS -- of two captures at once that which counted more
  SELECT datetime(ts, 'unixepoch') AS time, ts, container, comm, how, status, max(n) AS n
  FROM (SELECT x.ts + t0.value AS ts, x.run, coalesce(c.name, '') AS container, coalesce(t.value, '') AS comm,
               coalesce(k.name, '') AS how, x.status, sum(x.n) AS n
        FROM end_row x JOIN meta t0 ON t0.key = 't0' LEFT JOIN containers c ON c.id = x.container
        LEFT JOIN text t ON t.id = x.comm LEFT JOIN end_kind k ON k.id = x.how
        GROUP BY 1, 2, 3, 4, 5, 6)
  GROUP BY ts, container, comm, how, status;
