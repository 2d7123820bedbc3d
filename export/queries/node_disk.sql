-- SPDX-License-Identifier: Apache-2.0
-- disks under the names that node_exporter has for the same, so that dashboards for it work
SELECT max(x.ts) AS ts, coalesce(d.value, '') AS device,
 sum(x.read_bytes) AS [node_disk_read_bytes_total],
 sum(x.write_bytes) AS [node_disk_written_bytes_total],
 sum(x.reads) AS [node_disk_reads_completed_total],
 sum(x.writes) AS [node_disk_writes_completed_total],
 sum(x.read_us) AS [node_disk_read_time_seconds_total],
 sum(x.write_us) AS [node_disk_write_time_seconds_total],
 sum(x.busy_us) AS [node_disk_io_time_seconds_total],
 sum(x.wait_us) AS [node_disk_io_time_weighted_seconds_total],
 x.in_flight AS [node_disk_io_now]
FROM disk_row x LEFT JOIN text d ON d.id = x.disk
LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts
WHERE h.run IS NULL AND x.ts >= :from AND x.ts < :to
GROUP BY 2
