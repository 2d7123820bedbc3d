-- SPDX-License-Identifier: Apache-2.0
-- host-memory: the host has hardly any memory left
-- level = critical
-- threshold = 5: percent of memory still available to programs
-- for = 3: minutes
-- window = 5: minutes
-- unit = %
-- needs = host
-- next = sonde ps --sort mem --last 15m
SELECT 'host' AS subject, max(100.0 * mem_available / mem_total) AS value, printf('%.0f MiB left', min(mem_available) / 1048576.0) AS text
FROM host_stats WHERE mem_total > 0 AND ts >= :to - 60 * (:for + 1) AND ts < :to
HAVING count(*) AND max(100.0 * mem_available / mem_total) < :threshold AND max(ts) - min(ts) >= 60 * (:for - 1);
SELECT time, mem_available >> 20 AS available_mib, swap_free >> 20 AS swap_free_mib FROM host_stats ORDER BY ts DESC LIMIT 5;
