-- SPDX-License-Identifier: Apache-2.0
-- Migration 27: what happened (family host): to containers, units, cgroups, file systems and the host, and kills for want of memory as the
-- kernel explains them. The view `events` adds what is stored already: how processes ended, and when the clock was set.

CREATE TABLE event_row( -- what happened to containers, cgroups, file systems and the host
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  kind INTEGER NOT NULL, -- text.id: what happened: started, stopped, throttled, full, ...
  subject INTEGER NOT NULL, -- text.id: to what: container, unit, cgroup, file system, process, host
  name INTEGER NOT NULL, -- text.id: its name
  detail INTEGER NOT NULL, -- text.id: more of it in words
  which INTEGER NOT NULL, -- text.id: id of the container, path of the cgroup, source of the file system
  process INTEGER NOT NULL, -- process.id: a container's first one, who was killed; 0: none
  caused_by INTEGER NOT NULL, -- text.id: who did it
  n INTEGER, -- counter: how often
  at_us INTEGER, -- gauge, us: when, for the last time, since 1970
  PRIMARY KEY(ts, run, kind, subject, name, detail)
) STRICT, WITHOUT ROWID;

CREATE TABLE oom_row( -- kills for want of memory, as the kernel explains them
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  victim INTEGER NOT NULL, -- process.id: who was killed
  cgroup INTEGER NOT NULL, -- text.id: whose limit was met; empty: the host had none left
  victim_cgroup INTEGER NOT NULL, -- text.id: in which cgroup it was
  asked_by INTEGER NOT NULL, -- text.id: command that asked for the memory
  mem_limit INTEGER, -- gauge, bytes: the limit; NULL: the kernel did not tell
  mem INTEGER, -- gauge, bytes: what the cgroup had
  anon INTEGER, -- gauge, bytes: memory of the victim's own
  file INTEGER, -- gauge, bytes: files in the victim's memory
  shmem INTEGER, -- gauge, bytes: shared memory of the victim
  at_us INTEGER, -- gauge, us: when, since 1970
  PRIMARY KEY(ts, run, victim)
) STRICT, WITHOUT ROWID;

CREATE TABLE oom_task_row( -- who held memory at such a kill, as the kernel lists them
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  victim INTEGER NOT NULL, -- process.id: as in oom_row
  holder INTEGER NOT NULL, -- text.id: command and pid of who held memory then
  comm INTEGER NOT NULL, -- text.id: its command
  pid INTEGER, -- gauge: its pid
  rss INTEGER, -- gauge, bytes: memory in use
  swap INTEGER, -- gauge, bytes: in swap
  PRIMARY KEY(ts, run, victim, holder)
) STRICT, WITHOUT ROWID;

CREATE TABLE fds_row( -- processes that have half of the files open that they may have
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id
  fds INTEGER, -- gauge: open files
  fds_limit INTEGER, -- gauge: how many it may have (RLIMIT_NOFILE, the soft one)
  PRIMARY KEY(ts, run, process)
) STRICT, WITHOUT ROWID;

CREATE VIEW descriptor_stats AS -- processes that have half of the files open that they may have, by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, p.comm, p.pid, x.fds, x.fds_limit, x.process AS process_id, x.run AS run_id
  FROM fds_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

CREATE VIEW oom_kills AS -- kills for want of memory, as the kernel explains them
  SELECT datetime(x.at_us / 1000000, 'unixepoch') AS time, x.at_us / 1000000 AS ts, x.at_us * 1000 AS at_ns, p.comm, p.pid,
         coalesce(c.name, '') AS container, coalesce(g.value, '') AS cgroup, coalesce(o.value, '') AS victim_cgroup,
         coalesce(a.value, '') AS asked_by, x.mem_limit, x.mem, x.anon, x.file, x.shmem, x.victim AS process_id, x.run AS run_id
  FROM oom_row x JOIN meta t0 ON t0.key = 't0' JOIN process p ON p.id = x.victim
  LEFT JOIN containers c ON c.id = p.container LEFT JOIN text g ON g.id = x.cgroup LEFT JOIN text o ON o.id = x.victim_cgroup
  LEFT JOIN text a ON a.id = x.asked_by
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

CREATE VIEW oom_tasks AS -- who held memory at a kill for want of it
  SELECT k.at_ns, coalesce(m.value, '') AS comm, x.pid, x.rss, x.swap, x.victim AS process_id, x.run AS run_id
  FROM oom_task_row x JOIN oom_kills k ON k.process_id = x.victim AND k.run_id = x.run LEFT JOIN text m ON m.id = x.comm;

CREATE VIEW events AS -- what happened, and when
  SELECT datetime(x.at_us / 1000000, 'unixepoch') AS time, x.at_us / 1000000 AS ts, x.at_us * 1000 AS at_ns, k.value AS kind,
         s.value AS subject, coalesce(n.value, '') AS name, coalesce(d.value, '') AS detail, coalesce(w.value, '') AS which,
         coalesce(p.comm, '') AS comm, p.pid, coalesce(c.name, iif(s.value = 'container', n.value, '')) AS container,
         coalesce(b.value, '') AS caused_by, x.n, NULL AS lived_ns, nullif(x.process, 0) AS process_id, x.run AS run_id
  FROM event_row x JOIN meta t0 ON t0.key = 't0' JOIN text k ON k.id = x.kind JOIN text s ON s.id = x.subject
  LEFT JOIN text n ON n.id = x.name LEFT JOIN text d ON d.id = x.detail LEFT JOIN text w ON w.id = x.which
  LEFT JOIN text b ON b.id = x.caused_by LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL
  UNION ALL
  SELECT datetime(p.end_ns / 1000000000, 'unixepoch'), p.end_ns / 1000000000, p.end_ns,
         CASE p.how WHEN 3 THEN 'oom kill' WHEN 2 THEN 'killed' ELSE 'failed' END, 'process', p.comm,
         CASE p.how WHEN 3 THEN '' WHEN 2 THEN 'signal ' || p.status ELSE 'exit ' || p.status END, '', p.comm, p.pid,
         coalesce(c.name, ''), coalesce((SELECT t.value FROM process_note o JOIN text t ON t.id = o.value
                                         WHERE o.process = p.id AND o.key = 'signal_by' LIMIT 1), ''), 1, p.end_ns - p.start_ns, p.id, NULL
  FROM process p LEFT JOIN containers c ON c.id = p.container
  WHERE p.end_ns > 0 AND NOT p.self AND (p.how = 2 OR (p.how = 1 AND p.status <> 0) OR (p.how = 3
   AND NOT EXISTS (SELECT 1 FROM event_row e JOIN text t ON t.id = e.kind WHERE e.process = p.id AND t.value = 'oom kill')))
  UNION ALL
  SELECT datetime(utc_ns / 1000000000, 'unixepoch'), utc_ns / 1000000000, utc_ns, 'clock set', 'host', '',
         printf('%+.1f s', 1e-9 * (boot_offset_ns - was)), '', '', NULL, '', '', 1, NULL, NULL, NULL
  FROM (SELECT utc_ns, boot_offset_ns, lag(boot_offset_ns) OVER (ORDER BY utc_ns - boot_offset_ns) AS was FROM clock)
  WHERE abs(boot_offset_ns - was) > 500000000;
