-- SPDX-License-Identifier: Apache-2.0
-- systemd units
SELECT max(x.ts) AS ts, coalesce(u.value, '') AS unit,
 sum(x.user_us) AS [sonde_unit_cpu_seconds_total{mode="user"}],
 sum(x.system_us) AS [sonde_unit_cpu_seconds_total{mode="system"}],
 sum(x.periods) AS [sonde_unit_cpu_periods_total],
 sum(x.throttled) AS [sonde_unit_cpu_throttled_periods_total],
 sum(x.throttled_us) AS [sonde_unit_cpu_throttled_seconds_total],
 x.cpu_limit_m AS [sonde_unit_cpu_limit],
 x.mem AS [sonde_unit_memory_bytes{kind="all"}],
 x.working AS [sonde_unit_memory_bytes{kind="working"}],
 x.anon AS [sonde_unit_memory_bytes{kind="anon"}],
 x.file AS [sonde_unit_memory_bytes{kind="file"}],
 x.kernel AS [sonde_unit_memory_bytes{kind="kernel"}],
 x.swap AS [sonde_unit_memory_bytes{kind="swap"}],
 x.mem_limit AS [sonde_unit_memory_limit_bytes],
 x.swap_limit AS [sonde_unit_swap_limit_bytes],
 sum(x.majflt) AS [sonde_unit_major_faults_total],
 sum(x.mem_high) AS [sonde_unit_memory_events_total{reason="high"}],
 sum(x.mem_max) AS [sonde_unit_memory_events_total{reason="limit"}],
 sum(x.oom_kills) AS [sonde_unit_memory_events_total{reason="oom kill"}],
 sum(x.psi_cpu_us) AS [sonde_unit_pressure_seconds_total{resource="cpu",kind="some"}],
 sum(x.psi_mem_us) AS [sonde_unit_pressure_seconds_total{resource="memory",kind="some"}],
 sum(x.psi_mem_full_us) AS [sonde_unit_pressure_seconds_total{resource="memory",kind="full"}],
 sum(x.psi_io_us) AS [sonde_unit_pressure_seconds_total{resource="io",kind="some"}],
 sum(x.psi_io_full_us) AS [sonde_unit_pressure_seconds_total{resource="io",kind="full"}],
 sum(x.read_bytes) AS [sonde_unit_disk_bytes_total{direction="read"}],
 sum(x.write_bytes) AS [sonde_unit_disk_bytes_total{direction="write"}],
 sum(x.reads) AS [sonde_unit_disk_operations_total{direction="read"}],
 sum(x.writes) AS [sonde_unit_disk_operations_total{direction="write"}],
 x.pids AS [sonde_unit_tasks],
 x.pids_limit AS [sonde_unit_tasks_limit]
FROM cgroup_row x
LEFT JOIN text u ON u.id = x.unit
LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts
WHERE h.run IS NULL AND x.ts >= :from AND x.ts < :to AND x.container = 0 AND x.unit <> 0
GROUP BY 2
