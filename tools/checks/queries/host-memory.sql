-- SPDX-License-Identifier: Apache-2.0
-- host-memory: the host has hardly any memory left
-- level = critical
-- threshold = 5: percent of memory still available to programs
-- for = 3: minutes
-- window = 10: minutes
-- unit = %
-- needs = host
-- next = sonde ps --sort mem --last 15m
WITH reading AS (SELECT ts, mem_available, 100.0 * mem_available / mem_total AS share FROM host_stats
                 WHERE mem_total > 0 AND mem_available IS NOT NULL AND ts >= :from AND ts < :to)
SELECT 'host' AS subject, max(share) AS value, printf('%.0f MiB left', min(mem_available) / 1048576.0) AS text
FROM reading WHERE ts > coalesce((SELECT max(ts) FROM reading WHERE share >= :threshold), 0)
HAVING min(ts) <= :to - 60 * :for AND max(ts) >= :to - 130;
SELECT time, mem_available >> 20 AS available_mib, swap_free >> 20 AS swap_free_mib FROM host_stats ORDER BY ts DESC LIMIT 5;
