-- SPDX-License-Identifier: Apache-2.0
-- Migration 45: family disk: requests of disks by who asked, single slow ones, calls that wait for a disk, opens that failed. The tables are
-- declared in schema/facts/disk.h.

CREATE TABLE block_row( -- requests of disks, by who asked
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  disk INTEGER NOT NULL, -- text.id: the whole disk, as in disk_row: sda, nvme0n1, dm-0, loop0
  op INTEGER NOT NULL, -- text.id: read, write, flush, discard, erase, zero, other
  process INTEGER NOT NULL, -- process.id: who asked; 0: none was seen, or of those past the limit
  container INTEGER NOT NULL, -- container.id of the process
  requests INTEGER, -- counter: requests that the device has answered
  bytes INTEGER, -- counter, bytes: their size
  errors INTEGER, -- counter: of them, those that failed
  queue_us INTEGER, -- counter, us: from when they were made to when the device got them, summed
  device_us INTEGER, -- counter, us: from then to its answer, summed
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
  PRIMARY KEY(ts, run, disk, op, process)
) STRICT, WITHOUT ROWID;

CREATE TABLE device_row( -- disks that family disk watched
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  disk INTEGER NOT NULL, -- text.id: as in block_row
  under INTEGER NOT NULL, -- text.id: the disks that it lies on, with commas; empty: it lies on none
  busy_us INTEGER, -- counter, us: time in which it had a request at hand
  in_flight INTEGER, -- gauge: requests at hand at the last reading
  PRIMARY KEY(ts, run, disk)
) STRICT, WITHOUT ROWID;

CREATE TABLE slow_row( -- single requests of disks: slow ones, and the slowest of each minute; bounded
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  disk INTEGER NOT NULL, -- text.id: as in block_row
  op INTEGER NOT NULL, -- text.id: as in block_row
  process INTEGER NOT NULL, -- process.id: who asked; 0: none was seen
  sector INTEGER NOT NULL, -- where it began on the disk, in 512 bytes
  at_us INTEGER NOT NULL, -- when the device answered, in us since 1970
  container INTEGER NOT NULL, -- container.id of the process
  thread INTEGER NOT NULL, -- text.id: name of the thread that asked
  bytes INTEGER, -- gauge, bytes: its size
  queue_us INTEGER, -- gauge, us: from when it was made to when the device got it
  device_us INTEGER, -- gauge, us: from then to its answer
  failed INTEGER, -- gauge: 1: it failed
  PRIMARY KEY(ts, run, disk, op, process, sector, at_us)
) STRICT, WITHOUT ROWID;

CREATE TABLE sync_row( -- calls that wait until a file is on its disk
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id: who called
  file INTEGER NOT NULL, -- text.id: its path, of a container's file as the container sees it; where it was closed before that was read, its last four names at most; ~other: of those past the limit
  call INTEGER NOT NULL, -- text.id: fsync, fdatasync, sync_file_range, syncfs
  container INTEGER NOT NULL, -- container.id of the process
  calls INTEGER, -- counter: calls that returned
  errors INTEGER, -- counter: of them, those that failed
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

CREATE TABLE open_row( -- opens of files that failed
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id: who called, of several of one command and container one of them; 0: of those past the limit
  path INTEGER NOT NULL, -- text.id: as the program gave it, cut if it is long; ~other: of those past the limit
  error INTEGER NOT NULL, -- text.id: ENOENT, EACCES, ...
  container INTEGER NOT NULL, -- container.id of the process
  opens INTEGER, -- counter: opens that failed so
  PRIMARY KEY(ts, run, process, path, error)
) STRICT, WITHOUT ROWID;

CREATE VIEW block_stats AS -- requests of disks by bucket, operation and who asked
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, coalesce(p.comm, '') AS comm, p.pid, coalesce(d.value, '') AS disk, coalesce(o.value, '') AS op, x.requests,
         x.bytes, x.errors, x.queue_us, x.device_us,
         x.below_8us, x.us_8, x.us_16, x.us_32, x.us_64, x.us_128, x.us_256, x.us_512, x.us_1024, x.us_2048, x.us_4096,
         x.us_8192, x.us_16384, x.us_32768, x.us_65536, x.us_131072, x.us_262144, x.us_524288, x.us_1048576,
         x.us_2097152, x.us_4194304, x.us_8388608,
         nullif(x.process, 0) AS process_id, x.run AS run_id, coalesce(p.self, 0) AS self
  FROM block_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text d ON d.id = x.disk LEFT JOIN text o ON o.id = x.op
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM block_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;

CREATE VIEW block_devices AS -- disks that family disk watched, by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(d.value, '') AS disk, coalesce(u.value, '') AS under, x.busy_us, x.in_flight, x.run AS run_id
  FROM device_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN text d ON d.id = x.disk LEFT JOIN text u ON u.id = x.under
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM device_row y WHERE y.run = h.by AND y.disk = x.disk))
  WHERE h.run IS NULL;

CREATE VIEW slow_blocks AS -- single requests of disks: slow ones, and the slowest of each minute; bounded
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, coalesce(p.comm, '') AS comm, p.pid, coalesce(n.value, '') AS thread,
         coalesce(d.value, '') AS disk, coalesce(o.value, '') AS op, x.sector, x.at_us, x.bytes, x.queue_us, x.device_us,
         x.queue_us + x.device_us AS us, x.failed, nullif(x.process, 0) AS process_id, x.run AS run_id, coalesce(p.self, 0) AS self
  FROM slow_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text d ON d.id = x.disk LEFT JOIN text o ON o.id = x.op LEFT JOIN text n ON n.id = x.thread
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM slow_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;

CREATE VIEW fsyncs AS -- calls that wait until a file is on its disk, by bucket, file and process
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, coalesce(p.comm, '') AS comm, p.pid, coalesce(f.value, '') AS file, coalesce(k.value, '') AS call, x.calls, x.errors, x.us,
         x.below_8us, x.us_8, x.us_16, x.us_32, x.us_64, x.us_128, x.us_256, x.us_512, x.us_1024, x.us_2048, x.us_4096,
         x.us_8192, x.us_16384, x.us_32768, x.us_65536, x.us_131072, x.us_262144, x.us_524288, x.us_1048576,
         x.us_2097152, x.us_4194304, x.us_8388608,
         nullif(x.process, 0) AS process_id, x.run AS run_id, coalesce(p.self, 0) AS self
  FROM sync_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text f ON f.id = x.file LEFT JOIN text k ON k.id = x.call
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM sync_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;

CREATE VIEW failed_opens AS -- opens of files that failed, by bucket, path and process
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, coalesce(p.comm, '') AS comm, p.pid, coalesce(f.value, '') AS path, coalesce(k.value, '') AS error, x.opens,
         nullif(x.process, 0) AS process_id, x.run AS run_id, coalesce(p.self, 0) AS self
  FROM open_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text f ON f.id = x.path LEFT JOIN text k ON k.id = x.error
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM open_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;
