-- SPDX-License-Identifier: Apache-2.0
-- Migration 46: which part of a process's memory the kernel can reclaim, and what fills file systems, by folder and file. The tables are declared in schema/facts/host.h.

CREATE TABLE process_mem_row( -- processes with 8 MiB or more of files and shared memory in theirs
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id
  file INTEGER, -- gauge, bytes: files in its memory, which the kernel can drop
  shmem INTEGER, -- gauge, bytes: shared memory and tmpfs in its memory
  PRIMARY KEY(ts, run, process)
) STRICT, WITHOUT ROWID;

CREATE VIEW process_mem_stats AS -- processes with files and shared memory in theirs, by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, iif(r.bucket_s < 60, r.bucket_s, min(r.bucket_s - (x.ts + t0.value) % r.bucket_s, max(1, (r.to_ns + 999999999) / 1000000000 - x.ts - t0.value))) AS seconds,
         coalesce(c.name, '') AS container, p.comm, p.pid, x.file, x.shmem, x.process AS process_id, x.run AS run_id
  FROM process_mem_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

CREATE TABLE fill_row( -- what fills file systems, each time one of them was looked through
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  mount INTEGER NOT NULL, -- text.id: the file system, as in fs_row
  kind INTEGER NOT NULL, -- text.id: folder, file, deleted
  path INTEGER NOT NULL, -- text.id: its path, of a container's file as the container sees it; cut in front if it is long
  container INTEGER NOT NULL, -- container.id: in whose layers it lies; 0: of none
  process INTEGER NOT NULL, -- process.id: of a deleted file who has it open; 0: not known
  bytes INTEGER, -- gauge, bytes: on the disk; of a folder what lies right in it
  hour INTEGER, -- gauge, bytes: of those, in files that were written to in the last hour
  hours INTEGER, -- gauge, bytes: the same of the last six hours
  day INTEGER, -- gauge, bytes: of the last day
  week INTEGER, -- gauge, bytes: of the last seven days
  PRIMARY KEY(ts, run, mount, kind, path, container)
) STRICT, WITHOUT ROWID;

CREATE VIEW fill_stats AS -- what fills file systems, each time one of them was looked through
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, coalesce(m.value, '') AS mount, coalesce(k.value, '') AS kind,
         coalesce(f.value, '') AS path, coalesce(c.name, '') AS container, coalesce(p.comm, '') AS comm, p.pid, x.bytes, x.hour, x.hours, x.day, x.week,
         nullif(x.process, 0) AS process_id, x.run AS run_id
  FROM fill_row x JOIN meta t0 ON t0.key = 't0' LEFT JOIN text m ON m.id = x.mount LEFT JOIN text k ON k.id = x.kind LEFT JOIN text f ON f.id = x.path
  LEFT JOIN containers c ON c.id = x.container LEFT JOIN process p ON p.id = x.process
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;
