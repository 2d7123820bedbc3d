-- SPDX-License-Identifier: Apache-2.0
-- Migration 50: where threads waited for single slow requests of disks, and calls for a disk that have not returned. The tables are declared in
-- schema/facts/disk.h.

CREATE TABLE slow_stack_row( -- where threads waited for the requests of slow_row
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  disk INTEGER NOT NULL, -- text.id: as in slow_row
  sector INTEGER NOT NULL, -- as in slow_row
  at_us INTEGER NOT NULL, -- as in slow_row
  stack INTEGER NOT NULL, -- text.id: kernel functions in which the thread that asked was waiting when the device answered, innermost first, with blanks
  PRIMARY KEY(ts, run, disk, sector, at_us)
) STRICT, WITHOUT ROWID;

DROP VIEW slow_blocks;
CREATE VIEW slow_blocks AS -- single requests of disks: slow ones, and the slowest of each minute; bounded
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, coalesce(p.comm, '') AS comm, p.pid, coalesce(n.value, '') AS thread,
         coalesce(d.value, '') AS disk, coalesce(o.value, '') AS op, x.sector, x.at_us, x.bytes, x.queue_us, x.device_us,
         x.queue_us + x.device_us AS us, x.failed, coalesce(s.value, '') AS stack, nullif(x.process, 0) AS process_id, x.run AS run_id, coalesce(p.self, 0) AS self
  FROM slow_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text d ON d.id = x.disk LEFT JOIN text o ON o.id = x.op LEFT JOIN text n ON n.id = x.thread
  LEFT JOIN slow_stack_row w ON w.ts = x.ts AND w.run = x.run AND w.disk = x.disk AND w.sector = x.sector AND w.at_us = x.at_us
  LEFT JOIN text s ON s.id = w.stack
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM slow_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;

CREATE TABLE sync_lasting_row( -- calls that wait for a disk and had not returned, at the end of a bucket; bounded
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id: who called
  file INTEGER NOT NULL, -- text.id: its path, of a container's file as the container sees it; empty: not known
  call INTEGER NOT NULL, -- text.id: as in sync_row
  container INTEGER NOT NULL, -- container.id of the process
  calls INTEGER, -- gauge: calls that had not returned after a second or more, at the last reading
  us INTEGER, -- gauge, us: how long the longest of them had lasted
  PRIMARY KEY(ts, run, process, file, call)
) STRICT, WITHOUT ROWID;

CREATE VIEW lasting_fsyncs AS -- calls that wait for a disk and had not returned, by bucket, file and process
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, coalesce(p.comm, '') AS comm, p.pid, coalesce(f.value, '') AS file, coalesce(k.value, '') AS call, x.calls, x.us,
         nullif(x.process, 0) AS process_id, x.run AS run_id, coalesce(p.self, 0) AS self
  FROM sync_lasting_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text f ON f.id = x.file LEFT JOIN text k ON k.id = x.call
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM sync_lasting_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;
