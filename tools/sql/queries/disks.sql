-- SPDX-License-Identifier: Apache-2.0
-- disks: how busy disks were, and how long a request took (host family)
-- n = 20: how many rows
-- from = 0: not before this time
-- to = 9e18: before this time
SELECT disk, round(sum(read_bytes) / 1048576.0, 1) AS read_mib, round(sum(write_bytes) / 1048576.0, 1) AS written_mib,
       round(max(1e-4 * busy_us / seconds), 1) AS busiest_percent, round(1e-3 * sum(read_us) / nullif(sum(reads), 0), 2) AS ms_a_read,
       round(1e-3 * sum(write_us) / nullif(sum(writes), 0), 2) AS ms_a_write
FROM disk_stats WHERE ts >= :from AND ts < :to
GROUP BY 1 ORDER BY sum(busy_us) DESC, 1 LIMIT :n;
