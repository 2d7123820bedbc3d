-- SPDX-License-Identifier: Apache-2.0
-- disk-space: a file system is nearly full
-- level = critical
-- threshold = 5: percent of space that programs can still use
-- for = 3: minutes
-- window = 10: minutes
-- unit = %
-- needs = host
-- next = sonde sql @full
SELECT mount AS subject, max(100.0 * available / size) AS value, printf('%.0f of %.0f MiB left', min(available) / 1048576.0, max(size) / 1048576.0) AS text
FROM filesystem_stats WHERE size > 0 AND read_only = 0 AND ts >= :from AND ts < :to
GROUP BY mount HAVING max(100.0 * available / size) < :threshold AND max(ts) - min(ts) >= 60 * (:for - 1);
SELECT time, available >> 20 AS available_mib, size >> 20 AS size_mib FROM filesystem_stats WHERE mount = :subject AND size IS NOT NULL
ORDER BY ts DESC LIMIT 5;
