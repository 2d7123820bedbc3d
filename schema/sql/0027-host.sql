-- SPDX-License-Identifier: Apache-2.0
-- Migration 27: family host: what the host, its disks, file systems and interfaces, cgroups and processes used, as wide rows by
-- entity that schema/facts declares; and what happened to them. Counters are differences over the bucket, gauges how things were at
-- its last reading, NULL: not measured. Rows are counted in run_count as kind 0. The view `events` adds what other tables have:
-- how processes ended, and when the clock was set.

CREATE TABLE host_row( -- the host: CPU time by mode, load, memory, pressure
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  cpus INTEGER, -- gauge: CPUs online
  user_us INTEGER, -- counter, us: CPU time of programs
  nice_us INTEGER, -- counter, us: the same at a lower priority
  system_us INTEGER, -- counter, us: CPU time in the kernel
  irq_us INTEGER, -- counter, us: CPU time of interrupts
  softirq_us INTEGER, -- counter, us: CPU time of soft interrupts
  idle_us INTEGER, -- counter, us: idle, all CPUs together
  iowait_us INTEGER, -- counter, us: idle while a disk was waited for
  steal_us INTEGER, -- counter, us: taken by the hypervisor
  forks INTEGER, -- counter: processes and threads made
  switches INTEGER, -- counter: context switches
  running INTEGER, -- gauge: threads that could run
  blocked INTEGER, -- gauge: threads that waited for a disk
  load1_m INTEGER, -- gauge, thousandths: load average of a minute
  load5_m INTEGER, -- gauge, thousandths: of five minutes
  load15_m INTEGER, -- gauge, thousandths: of a quarter of an hour
  mem_total INTEGER, -- gauge, bytes: memory of the host
  mem_free INTEGER, -- gauge, bytes: unused
  mem_available INTEGER, -- gauge, bytes: what programs could still get
  anon INTEGER, -- gauge, bytes: programs' own memory
  cached INTEGER, -- gauge, bytes: files in memory, shared memory too
  buffers INTEGER, -- gauge, bytes: block devices in memory
  shmem INTEGER, -- gauge, bytes: shared memory and tmpfs
  slab INTEGER, -- gauge, bytes: the kernel's objects
  dirty INTEGER, -- gauge, bytes: written, not on the disk yet
  swap_total INTEGER, -- gauge, bytes: swap space
  swap_free INTEGER, -- gauge, bytes: unused swap space
  majflt INTEGER, -- counter: page faults that read from a disk
  swap_in INTEGER, -- counter, pages: read back from swap
  swap_out INTEGER, -- counter, pages: written to swap
  oom_kills INTEGER, -- counter: processes killed because memory ran out, in containers too
  psi_cpu_us INTEGER, -- counter, us: some thread waited for a CPU
  psi_mem_us INTEGER, -- counter, us: some thread waited for memory
  psi_mem_full_us INTEGER, -- counter, us: all that could run waited for memory
  psi_io_us INTEGER, -- counter, us: some thread waited for a disk
  psi_io_full_us INTEGER, -- counter, us: all that could run waited for a disk
  uptime_s INTEGER, -- gauge, s: since boot
  PRIMARY KEY(ts, run)
) STRICT, WITHOUT ROWID;

CREATE TABLE disk_row( -- disks and their partitions
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  disk INTEGER NOT NULL, -- text.id: sda, nvme0n1, dm-0, loop0
  reads INTEGER, -- counter: completed reads
  read_bytes INTEGER, -- counter, bytes: read
  read_us INTEGER, -- counter, us: time of the reads, summed
  writes INTEGER, -- counter: completed writes
  write_bytes INTEGER, -- counter, bytes: written
  write_us INTEGER, -- counter, us: time of the writes, summed
  busy_us INTEGER, -- counter, us: something was under way
  wait_us INTEGER, -- counter, us: the same times how much was under way
  in_flight INTEGER, -- gauge: requests under way
  PRIMARY KEY(ts, run, disk)
) STRICT, WITHOUT ROWID;

CREATE TABLE fs_row( -- file systems: how full
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  mount INTEGER NOT NULL, -- text.id: where it is mounted
  source INTEGER NOT NULL, -- text.id: its device or server
  fstype INTEGER NOT NULL, -- text.id: ext4, btrfs, overlay, nfs4, ...
  size INTEGER, -- gauge, bytes: all of it
  free INTEGER, -- gauge, bytes: unused
  available INTEGER, -- gauge, bytes: unused, and not kept for root
  inodes INTEGER, -- gauge: files that it can have; 0: no limit
  inodes_free INTEGER, -- gauge: of those, unused
  read_only INTEGER, -- gauge: 1: nothing can be written
  hangs INTEGER, -- gauge: 1: it did not answer in time; its sizes are NULL
  PRIMARY KEY(ts, run, mount)
) STRICT, WITHOUT ROWID;

CREATE TABLE nic_row( -- network interfaces, of the host and of containers
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  interface INTEGER NOT NULL, -- text.id: eth0, wlan0, docker0, veth12ab
  container INTEGER NOT NULL, -- container.id: in whose namespace it is; 0: the host's
  rx_bytes INTEGER, -- counter, bytes: received
  rx_packets INTEGER, -- counter: packets received
  rx_errors INTEGER, -- counter: packets received damaged
  rx_drops INTEGER, -- counter: packets received and dropped
  tx_bytes INTEGER, -- counter, bytes: sent
  tx_packets INTEGER, -- counter: packets sent
  tx_errors INTEGER, -- counter: packets that could not be sent
  tx_drops INTEGER, -- counter: packets dropped instead of sent
  PRIMARY KEY(ts, run, interface, container)
) STRICT, WITHOUT ROWID;

CREATE TABLE sensor_row( -- temperatures
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  sensor INTEGER NOT NULL, -- text.id: x86_pkg_temp, acpitz, ...
  temperature_m INTEGER, -- gauge, thousandths of a degree Celsius: temperature
  PRIMARY KEY(ts, run, sensor)
) STRICT, WITHOUT ROWID;

CREATE TABLE cgroup_row( -- containers, units, slices and other cgroups, each with all that is below it
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  cgroup INTEGER NOT NULL, -- text.id: its path in the hierarchy
  container INTEGER NOT NULL, -- container.id, if it is a container's; 0: none
  unit INTEGER NOT NULL, -- text.id: systemd unit, if it is a unit's; 0: none
  user_us INTEGER, -- counter, us: CPU time of programs
  system_us INTEGER, -- counter, us: CPU time in the kernel
  periods INTEGER, -- counter: periods of its CPU limit in which it ran
  throttled INTEGER, -- counter: of those, in which it was stopped
  throttled_us INTEGER, -- counter, us: stopped, all CPUs together
  cpu_limit_m INTEGER, -- gauge, thousandths of a CPU: limit; NULL: none
  mem INTEGER, -- gauge, bytes: memory with files that are kept in memory
  working INTEGER, -- gauge, bytes: the same without files not used lately
  anon INTEGER, -- gauge, bytes: programs' own memory, and shared memory and tmpfs: what the kernel cannot reclaim
  file INTEGER, -- gauge, bytes: files in memory
  kernel INTEGER, -- gauge, bytes: the kernel's memory for it
  swap INTEGER, -- gauge, bytes: in swap
  mem_limit INTEGER, -- gauge, bytes: limit of mem; NULL: none
  swap_limit INTEGER, -- gauge, bytes: limit of swap; NULL: none
  majflt INTEGER, -- counter: page faults that read from a disk
  mem_high INTEGER, -- counter: times it was slowed down at its upper mark
  mem_max INTEGER, -- counter: times it reached its limit
  oom_kills INTEGER, -- counter: processes killed because memory ran out
  psi_cpu_us INTEGER, -- counter, us: some thread waited for a CPU
  psi_mem_us INTEGER, -- counter, us: some thread waited for memory
  psi_mem_full_us INTEGER, -- counter, us: all that could run waited for memory
  psi_io_us INTEGER, -- counter, us: some thread waited for a disk
  psi_io_full_us INTEGER, -- counter, us: all that could run waited for a disk
  read_bytes INTEGER, -- counter, bytes: read from disks
  write_bytes INTEGER, -- counter, bytes: written to disks
  reads INTEGER, -- counter: reads from disks
  writes INTEGER, -- counter: writes to disks
  rx_bytes INTEGER, -- counter, bytes: received in its network namespace; NULL: it is the host's
  rx_packets INTEGER, -- counter: packets received
  rx_drops INTEGER, -- counter: packets received damaged or thrown away
  tx_bytes INTEGER, -- counter, bytes: sent
  tx_packets INTEGER, -- counter: packets sent
  tx_drops INTEGER, -- counter: packets not sent
  pids INTEGER, -- gauge: processes and threads
  pids_limit INTEGER, -- gauge: limit; NULL: none
  PRIMARY KEY(ts, run, cgroup)
) STRICT, WITHOUT ROWID;

CREATE TABLE cgroup_disk_row( -- what cgroups read and wrote, by disk; only where something was
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  cgroup INTEGER NOT NULL, -- text.id: its path in the hierarchy
  disk INTEGER NOT NULL, -- text.id: as in disk_row
  read_bytes INTEGER, -- counter, bytes: read
  write_bytes INTEGER, -- counter, bytes: written
  reads INTEGER, -- counter: reads
  writes INTEGER, -- counter: writes
  PRIMARY KEY(ts, run, cgroup, disk)
) STRICT, WITHOUT ROWID;

CREATE TABLE process_row( -- processes, in buckets with changes
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id
  user_us INTEGER, -- counter, us: CPU time in user mode
  system_us INTEGER, -- counter, us: CPU time in the kernel
  runq_us INTEGER, -- counter, us: could run and waited for a CPU; NULL: it has more threads than one
  minflt INTEGER, -- counter: page faults that read from no disk
  majflt INTEGER, -- counter: page faults that read from a disk
  read_bytes INTEGER, -- counter, bytes: read from disks
  write_bytes INTEGER, -- counter, bytes: to be written to disks
  rss INTEGER, -- gauge, bytes: memory in use, what is shared too
  swap INTEGER, -- gauge, bytes: in swap
  threads INTEGER, -- gauge: threads
  fds INTEGER, -- gauge: open files
  PRIMARY KEY(ts, run, process)
) STRICT, WITHOUT ROWID;

CREATE VIEW fact_hidden AS -- buckets (seconds since 1970, both included) for which the rows of another run, `by`, are used: rules 1, 2 of migration 2
  SELECT coarse AS run, fine AS by, fine_scope AS by_scope,
         iif(coarse_from >= fine_from, 0, (fine_from + 999999999) / 1000000000) AS first_ts,
         iif(coarse_to <= fine_to, 1 << 40, (fine_to - coarse_width) / 1000000000) AS last_ts
  FROM run_pair
  UNION ALL
  SELECT fine, coarse, coarse_scope, (edge_from - fine_width) / 1000000000 + 1, (edge_to - 1) / 1000000000
  FROM run_edge p
  WHERE NOT EXISTS (SELECT 1 FROM run_pair g WHERE g.coarse = p.coarse AND g.fine_from <= p.edge_from AND g.fine_to >= p.edge_to);

CREATE VIEW host_stats AS -- the host by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds, x.cpus, x.user_us,
         x.nice_us, x.system_us, x.irq_us, x.softirq_us, x.idle_us, x.iowait_us, x.steal_us, x.forks, x.switches,
         x.running, x.blocked, x.load1_m, x.load5_m, x.load15_m, x.mem_total, x.mem_free, x.mem_available, x.anon,
         x.cached, x.buffers, x.shmem, x.slab, x.dirty, x.swap_total, x.swap_free, x.majflt, x.swap_in, x.swap_out,
         x.oom_kills, x.psi_cpu_us, x.psi_mem_us, x.psi_mem_full_us, x.psi_io_us, x.psi_io_full_us, x.uptime_s,
         x.run AS run_id
  FROM host_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

CREATE VIEW disk_stats AS -- disks by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(d.value, '') AS disk, x.reads, x.read_bytes, x.read_us, x.writes, x.write_bytes, x.write_us, x.busy_us,
         x.wait_us, x.in_flight, x.run AS run_id
  FROM disk_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN text d ON d.id = x.disk
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

CREATE VIEW filesystem_stats AS -- file systems by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(m.value, '') AS mount, coalesce(s.value, '') AS source, coalesce(y.value, '') AS fstype, x.size, x.free,
         x.available, x.inodes, x.inodes_free, x.read_only, x.hangs, x.run AS run_id
  FROM fs_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN text m ON m.id = x.mount LEFT JOIN text s ON s.id = x.source LEFT JOIN text y ON y.id = x.fstype
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

CREATE VIEW net_stats AS -- network interfaces by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, coalesce(n.value, '') AS interface, x.rx_bytes, x.rx_packets, x.rx_errors,
         x.rx_drops, x.tx_bytes, x.tx_packets, x.tx_errors, x.tx_drops, x.run AS run_id
  FROM nic_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN text n ON n.id = x.interface LEFT JOIN containers c ON c.id = x.container
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

CREATE VIEW sensor_stats AS -- temperatures by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(n.value, '') AS sensor, x.temperature_m, x.run AS run_id
  FROM sensor_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN text n ON n.id = x.sensor
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

CREATE VIEW cgroup_stats AS -- cgroups by bucket: containers, units, slices and others, each with all that is below it
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds, CASE WHEN x.container THEN
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

CREATE VIEW container_stats AS -- containers by bucket
  SELECT time, ts, seconds, container, container_id, cgroup, user_us, system_us, periods, throttled, throttled_us, cpu_limit_m, mem, working,
         anon, file, kernel, swap, mem_limit, swap_limit, majflt, mem_high, mem_max, oom_kills, psi_cpu_us, psi_mem_us,
         psi_mem_full_us, psi_io_us, psi_io_full_us, read_bytes, write_bytes, reads, writes, rx_bytes, rx_packets,
         rx_drops, tx_bytes, tx_packets, tx_drops, pids, pids_limit, run_id
  FROM cgroup_stats WHERE kind = 'container';

CREATE VIEW cgroup_disk_stats AS -- what cgroups read and wrote by bucket and disk
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(g.value, '') AS cgroup, coalesce(d.value, '') AS disk, x.read_bytes, x.write_bytes, x.reads, x.writes,
         x.run AS run_id
  FROM cgroup_disk_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN text g ON g.id = x.cgroup LEFT JOIN text d ON d.id = x.disk
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

CREATE VIEW process_stats AS -- processes by bucket in which something moved
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, p.comm, p.pid, x.user_us, x.system_us, x.runq_us, x.minflt, x.majflt,
         x.read_bytes, x.write_bytes, x.rss, x.swap, x.threads, x.fds, x.process AS process_id, x.run AS run_id, p.self
  FROM process_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM process_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;

CREATE TABLE event_row( -- what happened to containers, cgroups, file systems and the host
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  kind INTEGER NOT NULL, -- text.id: what happened: started, stopped, throttled, full, ...
  subject INTEGER NOT NULL, -- text.id: to what: container, unit, cgroup, file system, process, host
  name INTEGER NOT NULL, -- text.id: its name
  detail INTEGER NOT NULL, -- text.id: details in words
  which INTEGER NOT NULL, -- text.id: id of the container, path of the cgroup, source of the file system
  process INTEGER NOT NULL, -- process.id: a container's first one, who was killed; 0: none
  caused_by INTEGER NOT NULL, -- text.id: the cause
  n INTEGER, -- counter: how often
  at_us INTEGER, -- gauge, us: when, for the last time, since 1970
  PRIMARY KEY(ts, run, kind, subject, name, detail)
) STRICT, WITHOUT ROWID;

CREATE TABLE oom_row( -- out-of-memory kills, as the kernel explains them
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  victim INTEGER NOT NULL, -- process.id: who was killed
  cgroup INTEGER NOT NULL, -- text.id: whose limit was reached; empty: the host had no memory left
  victim_cgroup INTEGER NOT NULL, -- text.id: in which cgroup it was
  asked_by INTEGER NOT NULL, -- text.id: command that asked for the memory
  mem_limit INTEGER, -- gauge, bytes: the limit; NULL: unknown
  mem INTEGER, -- gauge, bytes: memory of the cgroup
  anon INTEGER, -- gauge, bytes: private memory of the victim
  file INTEGER, -- gauge, bytes: files in the victim's memory
  shmem INTEGER, -- gauge, bytes: shared memory of the victim
  at_us INTEGER, -- gauge, us: when, since 1970
  PRIMARY KEY(ts, run, victim)
) STRICT, WITHOUT ROWID;

CREATE TABLE oom_task_row( -- processes that held memory at such a kill, as the kernel lists them
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

CREATE TABLE fds_row( -- processes with at least half as many files open as allowed
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id
  fds INTEGER, -- gauge: open files
  fds_limit INTEGER, -- gauge: how many it may have (RLIMIT_NOFILE, the soft one)
  PRIMARY KEY(ts, run, process)
) STRICT, WITHOUT ROWID;

CREATE VIEW descriptor_stats AS -- processes with at least half as many files open as allowed, by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, p.comm, p.pid, x.fds, x.fds_limit, x.process AS process_id, x.run AS run_id
  FROM fds_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

CREATE VIEW oom_kills AS -- out-of-memory kills, as the kernel explains them
  SELECT datetime(x.at_us / 1000000, 'unixepoch') AS time, x.at_us / 1000000 AS ts, x.at_us * 1000 AS at_ns, p.comm, p.pid,
         coalesce(c.name, '') AS container, coalesce(g.value, '') AS cgroup, coalesce(o.value, '') AS victim_cgroup,
         coalesce(a.value, '') AS asked_by, x.mem_limit, x.mem, x.anon, x.file, x.shmem, x.victim AS process_id, x.run AS run_id
  FROM oom_row x JOIN meta t0 ON t0.key = 't0' JOIN process p ON p.id = x.victim
  LEFT JOIN containers c ON c.id = p.container LEFT JOIN text g ON g.id = x.cgroup LEFT JOIN text o ON o.id = x.victim_cgroup
  LEFT JOIN text a ON a.id = x.asked_by
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

CREATE VIEW oom_tasks AS -- who held memory at an out-of-memory kill
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
