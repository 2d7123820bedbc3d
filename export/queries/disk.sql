-- SPDX-License-Identifier: Apache-2.0
-- disks
SELECT max(x.ts) AS ts, coalesce(d.value, '') AS disk,
 sum(x.read_bytes) AS [sonde_disk_bytes_total{direction="read"}],
 sum(x.write_bytes) AS [sonde_disk_bytes_total{direction="write"}],
 sum(x.reads) AS [sonde_disk_operations_total{direction="read"}],
 sum(x.writes) AS [sonde_disk_operations_total{direction="write"}],
 sum(x.read_us) AS [sonde_disk_operation_seconds_total{direction="read"}],
 sum(x.write_us) AS [sonde_disk_operation_seconds_total{direction="write"}],
 sum(x.busy_us) AS [sonde_disk_busy_seconds_total],
 x.in_flight AS [sonde_disk_operations_in_flight]
FROM disk_row x LEFT JOIN text d ON d.id = x.disk
LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts
WHERE h.run IS NULL AND x.ts >= :from AND x.ts < :to
GROUP BY 2
