-- SPDX-License-Identifier: Apache-2.0
-- Migration 54: reads and writes of files as programs ask for them, waits for locks of files, sequential requests, and files as containers see them.
-- The tables are declared in schema/facts/disk.h.

CREATE TABLE call_row( -- reads and writes of files as programs ask for them
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id: who called
  file INTEGER NOT NULL, -- text.id: as in file_row, of a file in an overlay that of its layer; ~other: of those past the limit
  call INTEGER NOT NULL, -- text.id: read, write: system calls; ring_read, ring_write: by io_uring; resize: fallocate, ftruncate
  container INTEGER NOT NULL, -- container.id of the process
  calls INTEGER, -- counter: calls that returned
  errors INTEGER, -- counter: of them, those that failed
  bytes INTEGER, -- counter, bytes: what they moved
  us INTEGER, -- counter, us: how long they took, summed
  below_8us INTEGER, -- counter: those that took less than 8 us
  us_8 INTEGER, -- counter: 8 to 15 us
  us_16 INTEGER, -- counter: 16 to 31 us
  us_32 INTEGER, -- counter: 32 to 63 us
  us_64 INTEGER, -- counter: 64 to 127 us
  us_128 INTEGER, -- counter: 128 to 255 us
  us_256 INTEGER, -- counter: 256 to 511 us
  us_512 INTEGER, -- counter: 512 to 1023 us
  us_1024 INTEGER, -- counter: 1024 to 2047 us
  us_2048 INTEGER, -- counter: 2048 to 4095 us
  us_4096 INTEGER, -- counter: 4096 to 8191 us
  us_8192 INTEGER, -- counter: 8192 to 16383 us
  us_16384 INTEGER, -- counter: 16384 to 32767 us
  us_32768 INTEGER, -- counter: 32768 to 65535 us
  us_65536 INTEGER, -- counter: 65536 to 131071 us
  us_131072 INTEGER, -- counter: 131072 to 262143 us
  us_262144 INTEGER, -- counter: 262144 to 524287 us
  us_524288 INTEGER, -- counter: 524288 to 1048575 us
  us_1048576 INTEGER, -- counter: 1048576 to 2097151 us
  us_2097152 INTEGER, -- counter: 2097152 to 4194303 us
  us_4194304 INTEGER, -- counter: 4194304 to 8388607 us
  us_8388608 INTEGER, -- counter: 8388608 us or more
  PRIMARY KEY(ts, run, process, file, call)
) STRICT, WITHOUT ROWID;

CREATE TABLE lock_row( -- waits for locks of files, and who had them
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id: who waited
  file INTEGER NOT NULL, -- text.id: as in call_row
  lock INTEGER NOT NULL, -- text.id: flock; posix: by fcntl or lockf; ofd: of an open file, by fcntl
  holder INTEGER NOT NULL, -- process.id: who had it when the wait began; 0: not known
  container INTEGER NOT NULL, -- container.id of the process
  waits INTEGER, -- counter: waits that are over
  errors INTEGER, -- counter: of them, those that ended without the lock: by a signal or a deadlock
  us INTEGER, -- counter, us: how long they took, summed
  longest_us INTEGER, -- gauge, us: the longest of the last reading
  lasting_us INTEGER, -- gauge, us: how long the longest wait that is not over had lasted, of a second or more
  PRIMARY KEY(ts, run, process, file, lock, holder)
) STRICT, WITHOUT ROWID;

CREATE TABLE block_order_row( -- how many of the requests of block_row were sequential
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  disk INTEGER NOT NULL, -- text.id: as in block_row
  op INTEGER NOT NULL, -- text.id: as in block_row
  process INTEGER NOT NULL, -- process.id: as in block_row
  container INTEGER NOT NULL, -- container.id of the process
  sequential INTEGER, -- counter: requests that began where the one before of these keys ended, within 128 KiB
  PRIMARY KEY(ts, run, disk, op, process)
) STRICT, WITHOUT ROWID;

CREATE TABLE place_row( -- where containers see the files of file_row and call_row
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id: who used the file
  file INTEGER NOT NULL, -- text.id: as in file_row and call_row
  container INTEGER NOT NULL, -- container.id of the process
  seen INTEGER NOT NULL, -- text.id: the file's path as the container sees it
  PRIMARY KEY(ts, run, process, file)
) STRICT, WITHOUT ROWID;

CREATE VIEW file_calls AS -- reads and writes of files as programs ask for them, by bucket, file and process
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, coalesce(p.comm, '') AS comm, p.pid, coalesce(f.value, '') AS file, coalesce(s.value, '') AS seen, coalesce(k.value, '') AS call,
         x.calls, x.errors, x.bytes, x.us,
         x.below_8us, x.us_8, x.us_16, x.us_32, x.us_64, x.us_128, x.us_256, x.us_512, x.us_1024, x.us_2048, x.us_4096,
         x.us_8192, x.us_16384, x.us_32768, x.us_65536, x.us_131072, x.us_262144, x.us_524288, x.us_1048576, x.us_2097152, x.us_4194304, x.us_8388608,
         nullif(x.process, 0) AS process_id, x.run AS run_id, coalesce(p.self, 0) AS self
  FROM call_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text f ON f.id = x.file LEFT JOIN text k ON k.id = x.call
  LEFT JOIN place_row w ON w.ts = x.ts AND w.run = x.run AND w.process = x.process AND w.file = x.file LEFT JOIN text s ON s.id = w.seen
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM call_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;

CREATE VIEW lock_waits AS -- waits for locks of files, and who had them, by bucket, file and process
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, coalesce(p.comm, '') AS comm, p.pid, coalesce(f.value, '') AS file, coalesce(s.value, '') AS seen, coalesce(k.value, '') AS lock,
         coalesce(o.comm, '') AS holder, o.pid AS holder_pid, x.waits, x.errors, x.us, x.longest_us, x.lasting_us, nullif(x.holder, 0) AS holder_id,
         nullif(x.process, 0) AS process_id, x.run AS run_id, coalesce(p.self, 0) AS self
  FROM lock_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text f ON f.id = x.file LEFT JOIN text k ON k.id = x.lock LEFT JOIN process o ON o.id = x.holder
  LEFT JOIN place_row w ON w.ts = x.ts AND w.run = x.run AND w.process = x.process AND w.file = x.file LEFT JOIN text s ON s.id = w.seen
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM lock_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;

CREATE VIEW block_order AS -- how many requests of disks were sequential, by bucket, disk and process
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, coalesce(p.comm, '') AS comm, p.pid, coalesce(d.value, '') AS disk, coalesce(o.value, '') AS op, x.sequential,
         nullif(x.process, 0) AS process_id, x.run AS run_id, coalesce(p.self, 0) AS self
  FROM block_order_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text d ON d.id = x.disk LEFT JOIN text o ON o.id = x.op
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM block_order_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;

DROP VIEW disk_files;
CREATE VIEW disk_files AS -- files that disks read and wrote, and who made their pages dirty, by bucket, process and disk
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, coalesce(p.comm, '') AS comm, p.pid, coalesce(f.value, '') AS file, coalesce(s.value, '') AS seen, coalesce(d.value, '') AS disk,
         x.reads, x.read_bytes, x.writes, x.write_bytes, x.dirty_bytes, x.grown_bytes, x.shrunk_bytes,
         nullif(x.process, 0) AS process_id, x.run AS run_id, coalesce(p.self, 0) AS self
  FROM file_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text f ON f.id = x.file LEFT JOIN text d ON d.id = x.disk
  LEFT JOIN place_row w ON w.ts = x.ts AND w.run = x.run AND w.process = x.process AND w.file = x.file LEFT JOIN text s ON s.id = w.seen
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM file_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;
