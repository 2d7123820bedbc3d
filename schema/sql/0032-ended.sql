-- SPDX-License-Identifier: Apache-2.0
-- Migration 32: what processes used that no reading met; and rows that say how wide they are where old ones are summed by minute (decision 0205).
-- The table is declared in schema/facts/host.h.

CREATE TABLE ended_row( -- processes that lived between two readings, by cgroup and command
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  cgroup INTEGER NOT NULL, -- text.id: path in which they ended; of a container its own
  comm INTEGER NOT NULL, -- text.id: command at the end; empty: many different ones
  container INTEGER NOT NULL, -- container.id: whose they were; 0: of none
  self INTEGER, -- gauge: 1: they were sonde's own
  n INTEGER, -- counter: how many ended
  user_us INTEGER, -- counter, us: CPU time in user mode
  system_us INTEGER, -- counter, us: CPU time in the kernel
  runq_us INTEGER, -- counter, us: could run and waited for a CPU, those of one thread
  minflt INTEGER, -- counter: page faults that read from no disk
  majflt INTEGER, -- counter: page faults that read from a disk
  read_bytes INTEGER, -- counter, bytes: read from disks
  write_bytes INTEGER, -- counter, bytes: to be written to disks
  lived_us INTEGER, -- counter, us: from start to end, summed
  rss_max INTEGER, -- gauge, bytes: highest memory use of one of them, as of wait4(2)
  PRIMARY KEY(ts, run, cgroup, comm)
) STRICT, WITHOUT ROWID;

CREATE VIEW ended_stats AS -- processes that lived between two readings, by bucket, cgroup and command
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, iif(r.bucket_s < 60, r.bucket_s, min(r.bucket_s - (x.ts + t0.value) % r.bucket_s, max(1, (r.to_ns + 999999999) / 1000000000 - x.ts - t0.value))) AS seconds,
         coalesce(c.name, '') AS container, coalesce(g.value, '') AS cgroup, coalesce(m.value, '') AS comm, x.n, x.user_us,
         x.system_us, x.runq_us, x.minflt, x.majflt, x.read_bytes, x.write_bytes, x.lived_us, x.rss_max, x.run AS run_id,
         coalesce(x.self, 0) AS self
  FROM ended_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN text g ON g.id = x.cgroup LEFT JOIN text m ON m.id = x.comm LEFT JOIN containers c ON c.id = x.container
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts AND h.by_scope = 0
  WHERE h.run IS NULL;

-- A minute that lies in two files begins, or ends, within the minute in each of them (schema/store/archive/minutes.h).

DROP VIEW host_stats;
CREATE VIEW host_stats AS -- the host by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, iif(r.bucket_s < 60, r.bucket_s, min(r.bucket_s - (x.ts + t0.value) % r.bucket_s, max(1, (r.to_ns + 999999999) / 1000000000 - x.ts - t0.value))) AS seconds, x.cpus, x.user_us,
         x.nice_us, x.system_us, x.irq_us, x.softirq_us, x.idle_us, x.iowait_us, x.steal_us, x.forks, x.switches,
         x.running, x.blocked, x.load1_m, x.load5_m, x.load15_m, x.mem_total, x.mem_free, x.mem_available, x.anon,
         x.cached, x.buffers, x.shmem, x.slab, x.dirty, x.swap_total, x.swap_free, x.majflt, x.swap_in, x.swap_out,
         x.oom_kills, x.psi_cpu_us, x.psi_mem_us, x.psi_mem_full_us, x.psi_io_us, x.psi_io_full_us, x.uptime_s,
         x.run AS run_id
  FROM host_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

DROP VIEW disk_stats;
CREATE VIEW disk_stats AS -- disks by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, iif(r.bucket_s < 60, r.bucket_s, min(r.bucket_s - (x.ts + t0.value) % r.bucket_s, max(1, (r.to_ns + 999999999) / 1000000000 - x.ts - t0.value))) AS seconds,
         coalesce(d.value, '') AS disk, x.reads, x.read_bytes, x.read_us, x.writes, x.write_bytes, x.write_us, x.busy_us,
         x.wait_us, x.in_flight, x.run AS run_id
  FROM disk_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN text d ON d.id = x.disk
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

DROP VIEW filesystem_stats;
CREATE VIEW filesystem_stats AS -- file systems by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, iif(r.bucket_s < 60, r.bucket_s, min(r.bucket_s - (x.ts + t0.value) % r.bucket_s, max(1, (r.to_ns + 999999999) / 1000000000 - x.ts - t0.value))) AS seconds,
         coalesce(m.value, '') AS mount, coalesce(s.value, '') AS source, coalesce(y.value, '') AS fstype, x.size, x.free,
         x.available, x.inodes, x.inodes_free, x.read_only, x.hangs, x.run AS run_id
  FROM fs_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN text m ON m.id = x.mount LEFT JOIN text s ON s.id = x.source LEFT JOIN text y ON y.id = x.fstype
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

DROP VIEW net_stats;
CREATE VIEW net_stats AS -- network interfaces by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, iif(r.bucket_s < 60, r.bucket_s, min(r.bucket_s - (x.ts + t0.value) % r.bucket_s, max(1, (r.to_ns + 999999999) / 1000000000 - x.ts - t0.value))) AS seconds,
         coalesce(c.name, '') AS container, coalesce(n.value, '') AS interface, x.rx_bytes, x.rx_packets, x.rx_errors,
         x.rx_drops, x.tx_bytes, x.tx_packets, x.tx_errors, x.tx_drops, x.run AS run_id
  FROM nic_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN text n ON n.id = x.interface LEFT JOIN containers c ON c.id = x.container
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

DROP VIEW sensor_stats;
CREATE VIEW sensor_stats AS -- temperatures by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, iif(r.bucket_s < 60, r.bucket_s, min(r.bucket_s - (x.ts + t0.value) % r.bucket_s, max(1, (r.to_ns + 999999999) / 1000000000 - x.ts - t0.value))) AS seconds,
         coalesce(n.value, '') AS sensor, x.temperature_m, x.run AS run_id
  FROM sensor_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN text n ON n.id = x.sensor
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

DROP VIEW cgroup_stats;
CREATE VIEW cgroup_stats AS -- cgroups by bucket: containers, units, slices and others, each with all that is below it
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, iif(r.bucket_s < 60, r.bucket_s, min(r.bucket_s - (x.ts + t0.value) % r.bucket_s, max(1, (r.to_ns + 999999999) / 1000000000 - x.ts - t0.value))) AS seconds, CASE WHEN x.container THEN
         'container' WHEN x.unit THEN 'unit' WHEN g.value LIKE '%.slice' THEN 'slice' ELSE 'other' END AS kind,
         coalesce(c.name, '') AS container, coalesce(c.runtime_id, '') AS container_id,
         coalesce(u.value, '') AS unit, coalesce(g.value, '') AS cgroup, x.user_us,
         x.system_us, x.periods, x.throttled, x.throttled_us, x.cpu_limit_m, x.mem, x.working, x.anon, x.file, x.kernel,
         x.swap, x.mem_limit, x.swap_limit, x.majflt, x.mem_high, x.mem_max, x.oom_kills, x.psi_cpu_us, x.psi_mem_us,
         x.psi_mem_full_us, x.psi_io_us, x.psi_io_full_us, x.read_bytes, x.write_bytes, x.reads, x.writes, x.rx_bytes,
         x.rx_packets, x.rx_drops, x.tx_bytes, x.tx_packets, x.tx_drops, x.pids, x.pids_limit, x.run AS run_id
  FROM cgroup_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN text g ON g.id = x.cgroup LEFT JOIN text u ON u.id = x.unit LEFT JOIN containers c ON c.id = x.container
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

DROP VIEW cgroup_disk_stats;
CREATE VIEW cgroup_disk_stats AS -- what cgroups read and wrote by bucket and disk
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, iif(r.bucket_s < 60, r.bucket_s, min(r.bucket_s - (x.ts + t0.value) % r.bucket_s, max(1, (r.to_ns + 999999999) / 1000000000 - x.ts - t0.value))) AS seconds,
         coalesce(g.value, '') AS cgroup, coalesce(d.value, '') AS disk, x.read_bytes, x.write_bytes, x.reads, x.writes,
         x.run AS run_id
  FROM cgroup_disk_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN text g ON g.id = x.cgroup LEFT JOIN text d ON d.id = x.disk
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

DROP VIEW process_stats;
CREATE VIEW process_stats AS -- processes by bucket in which something moved
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, iif(r.bucket_s < 60, r.bucket_s, min(r.bucket_s - (x.ts + t0.value) % r.bucket_s, max(1, (r.to_ns + 999999999) / 1000000000 - x.ts - t0.value))) AS seconds,
         coalesce(c.name, '') AS container, p.comm, p.pid, x.user_us, x.system_us, x.runq_us, x.minflt, x.majflt,
         x.read_bytes, x.write_bytes, x.rss, x.swap, x.threads, x.fds, x.process AS process_id, x.run AS run_id, p.self
  FROM process_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM process_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;

DROP VIEW descriptor_stats;
CREATE VIEW descriptor_stats AS -- processes with at least half as many files open as allowed, by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, iif(r.bucket_s < 60, r.bucket_s, min(r.bucket_s - (x.ts + t0.value) % r.bucket_s, max(1, (r.to_ns + 999999999) / 1000000000 - x.ts - t0.value))) AS seconds,
         coalesce(c.name, '') AS container, p.comm, p.pid, x.fds, x.fds_limit, x.process AS process_id, x.run AS run_id
  FROM fds_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;
