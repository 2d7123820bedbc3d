-- SPDX-License-Identifier: Apache-2.0
-- Migration 48: family disk: files that disks read and wrote, who made their pages dirty, and deleted files that programs have open. The tables are
-- declared in schema/facts/disk.h.

CREATE TABLE file_row( -- files that disks read and wrote, and who made their pages dirty
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id: who asked, of what is written later the kernel's thread; of what was made dirty who did that; 0: none was seen
  file INTEGER NOT NULL, -- text.id: its path as the host sees it, of a file in sixteen folders or more the end of it; /dev/NAME: the device itself, such as a file system's metadata; empty: pages of no file (O_DIRECT, swap, metadata of xfs and btrfs, what was ciphered); ~other: of those past the limit
  disk INTEGER NOT NULL, -- text.id: of requests the disk, as in block_row; empty: of what was made dirty
  container INTEGER NOT NULL, -- container.id of the process
  reads INTEGER, -- counter: read requests that the disk has answered
  read_bytes INTEGER, -- counter, bytes: their size
  writes INTEGER, -- counter: write requests that the disk has answered
  write_bytes INTEGER, -- counter, bytes: their size
  dirty_bytes INTEGER, -- counter, bytes: pages of it that were as on the disk and were changed
  grown_bytes INTEGER, -- counter, bytes: by how much more it takes on the disk; with the process that changed most of it
  shrunk_bytes INTEGER, -- counter, bytes: by how much less
  PRIMARY KEY(ts, run, process, file, disk)
) STRICT, WITHOUT ROWID;

CREATE TABLE held_row( -- deleted files that programs have open, once a minute
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id: who has it open; of several the oldest
  file INTEGER NOT NULL, -- text.id: the path that it had, of a container's file as the container saw it
  ino INTEGER NOT NULL, -- the number of its inode
  container INTEGER NOT NULL, -- container.id of the process
  mount INTEGER NOT NULL, -- text.id: the file system, as in fs_row; empty: not known
  bytes INTEGER, -- gauge, bytes: what it takes on the disk, which is free once the last one closes it
  holders INTEGER, -- gauge: how many processes have it open
  PRIMARY KEY(ts, run, process, file, ino)
) STRICT, WITHOUT ROWID;

CREATE VIEW disk_files AS -- files that disks read and wrote, and who made their pages dirty, by bucket, process and disk
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, coalesce(p.comm, '') AS comm, p.pid, coalesce(f.value, '') AS file, coalesce(d.value, '') AS disk,
         x.reads, x.read_bytes, x.writes, x.write_bytes, x.dirty_bytes, x.grown_bytes, x.shrunk_bytes,
         nullif(x.process, 0) AS process_id, x.run AS run_id, coalesce(p.self, 0) AS self
  FROM file_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text f ON f.id = x.file LEFT JOIN text d ON d.id = x.disk
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM file_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;

CREATE VIEW held_files AS -- deleted files that programs have open, once a minute
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, coalesce(p.comm, '') AS comm, p.pid, coalesce(f.value, '') AS file, x.ino, coalesce(m.value, '') AS mount,
         x.bytes, x.holders, nullif(x.process, 0) AS process_id, x.run AS run_id, coalesce(p.self, 0) AS self
  FROM held_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text f ON f.id = x.file LEFT JOIN text m ON m.id = x.mount
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM held_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;
