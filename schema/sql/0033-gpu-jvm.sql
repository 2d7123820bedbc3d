-- SPDX-License-Identifier: Apache-2.0
-- Migration 33: GPUs, Java's virtual machines, and what a container wrote last. The tables are declared in schema/facts/gpu.h, jvm.h and host.h.

CREATE TABLE event_log_row( -- the last output of containers before they ended badly; only if configured
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  which INTEGER NOT NULL, -- text.id: id of the container, as in event_row
  at_us INTEGER NOT NULL, -- when it ended, as in event_row
  nth INTEGER NOT NULL, -- which line, from 1 on: the last one is the newest
  line INTEGER NOT NULL, -- text.id: the line, secrets masked
  cut INTEGER, -- gauge: 1: it is longer than what is here
  PRIMARY KEY(ts, run, which, at_us, nth)
) STRICT, WITHOUT ROWID;

CREATE TABLE gpu_row( -- GPUs
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  uuid INTEGER NOT NULL, -- text.id: permanent id of the device from the driver
  gpu INTEGER NOT NULL, -- text.id: its number, as nvidia-smi has it; 0:1 is instance 1 of device 0
  name INTEGER NOT NULL, -- text.id: its model
  busy_us INTEGER, -- counter, us: time in which a kernel ran on it, by the driver's samples
  mem_busy_us INTEGER, -- counter, us: its memory was read or written
  encoder_us INTEGER, -- counter, us: the video encoder was busy
  decoder_us INTEGER, -- counter, us: the video decoder was busy
  mem_total INTEGER, -- gauge, bytes: memory of the device
  mem_used INTEGER, -- gauge, bytes: of it in use; for drivers before 510 including what the driver reserves
  power_mw INTEGER, -- gauge, mW: power draw
  power_limit_mw INTEGER, -- gauge, mW: power limit
  energy_mj INTEGER, -- counter, mJ: energy used
  temperature_m INTEGER, -- gauge, thousandths of a degree Celsius: temperature
  temperature_limit_m INTEGER, -- gauge, thousandths of a degree Celsius: temperature at which it throttles
  fan_percent INTEGER, -- gauge, percent: speed of its fan
  clock_mhz INTEGER, -- gauge, MHz: clock of its processors
  clock_max_mhz INTEGER, -- gauge, MHz: its maximum
  mem_clock_mhz INTEGER, -- gauge, MHz: clock of its memory
  throttle_reasons INTEGER, -- gauge: reasons for a lower clock: the driver's bits; gpu_stats has words
  hot_us INTEGER, -- counter, us: throttled because it was hot
  capped_us INTEGER, -- counter, us: throttled at its power limit
  ecc_errors INTEGER, -- counter: memory errors that could not be corrected
  PRIMARY KEY(ts, run, uuid)
) STRICT, WITHOUT ROWID;

CREATE TABLE gpu_process_row( -- processes that have something of a GPU
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  uuid INTEGER NOT NULL, -- text.id: as in gpu_row
  process INTEGER NOT NULL, -- process.id; 0: not known
  gpu INTEGER NOT NULL, -- text.id: as in gpu_row
  mem INTEGER, -- gauge, bytes: device memory it uses
  busy_us INTEGER, -- counter, us: time its kernels ran, by the driver's samples
  mem_busy_us INTEGER, -- counter, us: it read or wrote the device's memory
  encoder_us INTEGER, -- counter, us: it had the video encoder busy
  decoder_us INTEGER, -- counter, us: it had the video decoder busy
  PRIMARY KEY(ts, run, uuid, process)
) STRICT, WITHOUT ROWID;

CREATE TABLE jvm_row( -- Java virtual machines, in buckets with changes
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id
  collector INTEGER NOT NULL, -- text.id: its garbage collector, of the young and of all generations
  version INTEGER NOT NULL, -- text.id: of Java
  young_gcs INTEGER, -- counter: collections of the young generation
  young_gc_us INTEGER, -- counter, us: they took
  full_gcs INTEGER, -- counter: collections of all generations
  full_gc_us INTEGER, -- counter, us: they took
  concurrent_gcs INTEGER, -- counter: pauses and cycles of a concurrent collector
  concurrent_gc_us INTEGER, -- counter, us: they took
  safepoints INTEGER, -- counter: times that all its threads were stopped
  safepoint_us INTEGER, -- counter, us: they were stopped
  safepoint_sync_us INTEGER, -- counter, us: of it until the last one had stopped
  young_used INTEGER, -- gauge, bytes: young generation: in use, as of its last collection or later
  young_committed INTEGER, -- gauge, bytes: had from the system
  young_max INTEGER, -- gauge, bytes: what it may have
  old_used INTEGER, -- gauge, bytes: old generation, or the whole heap if it has no generations: in use, as above
  old_committed INTEGER, -- gauge, bytes: had from the system
  old_max INTEGER, -- gauge, bytes: what it may have
  metaspace_used INTEGER, -- gauge, bytes: classes' own data: in use
  metaspace_committed INTEGER, -- gauge, bytes: had from the system
  threads INTEGER, -- gauge: Java threads
  daemon_threads INTEGER, -- gauge: of them daemons
  classes INTEGER, -- gauge: classes loaded now
  classes_loaded INTEGER, -- counter: classes loaded
  classes_unloaded INTEGER, -- counter: classes unloaded
  PRIMARY KEY(ts, run, process)
) STRICT, WITHOUT ROWID;

CREATE VIEW gpu_stats AS -- GPUs by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         n.value AS gpu, coalesce(m.value, '') AS name, u.value AS uuid,
         x.busy_us, x.mem_busy_us, x.encoder_us, x.decoder_us, x.mem_total, x.mem_used, x.power_mw, x.power_limit_mw,
         x.energy_mj, x.temperature_m, x.temperature_limit_m, x.fan_percent, x.clock_mhz, x.clock_max_mhz,
         x.mem_clock_mhz, x.throttle_reasons, x.hot_us, x.capped_us, x.ecc_errors,
         iif(x.throttle_reasons IS NULL, NULL, substr(iif(x.throttle_reasons & 4, ', power limit', '') ||
         iif(x.throttle_reasons & 8, ', slowed by hardware', '') ||
         iif(x.throttle_reasons & 32, ', hot', '') ||
         iif(x.throttle_reasons & 64, ', hot (hardware)', '') ||
         iif(x.throttle_reasons & 128, ', power brake', '') ||
         iif(x.throttle_reasons & 2, ', clocks set', '') ||
         iif(x.throttle_reasons & 256, ', display clocks set', '') ||
         iif(x.throttle_reasons & 16, ', sync boost', ''), 3)) AS throttled_by, x.run AS run_id
  FROM gpu_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  JOIN text u ON u.id = x.uuid LEFT JOIN text n ON n.id = x.gpu LEFT JOIN text m ON m.id = x.name
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

CREATE VIEW gpu_process_stats AS -- processes that have something of a GPU, by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         n.value AS gpu, coalesce(c.name, '') AS container, coalesce(p.comm, '') AS comm, p.pid,
         x.mem, x.busy_us, x.mem_busy_us, x.encoder_us, x.decoder_us,
         u.value AS uuid, nullif(x.process, 0) AS process_id, x.run AS run_id
  FROM gpu_process_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  JOIN text u ON u.id = x.uuid LEFT JOIN text n ON n.id = x.gpu
  LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM gpu_process_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;

CREATE VIEW jvm_stats AS -- Java's virtual machines by bucket in which something moved
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, p.comm, p.pid, coalesce(g.value, '') AS collector, coalesce(v.value, '') AS version,
         x.young_gcs, x.young_gc_us, x.full_gcs, x.full_gc_us, x.concurrent_gcs, x.concurrent_gc_us, x.safepoints,
         x.safepoint_us, x.safepoint_sync_us, x.young_used, x.young_committed, x.young_max, x.old_used, x.old_committed,
         x.old_max, x.metaspace_used, x.metaspace_committed, x.threads, x.daemon_threads, x.classes, x.classes_loaded,
         x.classes_unloaded,
         x.process AS process_id, x.run AS run_id
  FROM jvm_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text g ON g.id = x.collector LEFT JOIN text v ON v.id = x.version
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM jvm_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;

CREATE VIEW event_logs AS -- what containers wrote last before they ended badly, line by line: of the event of the same which and at_ns
  SELECT datetime(x.at_us / 1000000, 'unixepoch') AS time, x.at_us / 1000000 AS ts, x.at_us * 1000 AS at_ns, w.value AS which, x.nth,
         coalesce(l.value, '') AS line, x.cut, x.run AS run_id
  FROM event_log_row x JOIN meta t0 ON t0.key = 't0' JOIN text w ON w.id = x.which LEFT JOIN text l ON l.id = x.line
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;
