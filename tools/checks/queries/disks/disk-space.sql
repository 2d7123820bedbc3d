-- SPDX-License-Identifier: Apache-2.0
-- disk-space: a file system is nearly full
-- level = critical
-- threshold = 5: percent of space that programs can still use
-- for = 3: minutes
-- window = 10: minutes
-- unit = %
-- needs = host
-- next = sonde sql @fills
WITH reading AS (SELECT mount, ts, available, size, 100.0 * available / size AS share FROM filesystem_stats
                 WHERE size > 0 AND available IS NOT NULL AND read_only = 0 AND ts >= :from AND ts < :to),
good AS (SELECT mount, max(ts) AS ts FROM reading WHERE share >= :threshold GROUP BY mount)
SELECT r.mount AS subject, max(share) AS value, printf('%.0f of %.0f MiB left', min(available) / 1048576.0, max(size) / 1048576.0) AS text
FROM reading r LEFT JOIN good g ON g.mount = r.mount WHERE r.ts > coalesce(g.ts, 0)
GROUP BY r.mount HAVING min(r.ts) <= :to - 60 * :for AND max(r.ts) >= :to - 130;
SELECT time, available >> 20 AS available_mib, size >> 20 AS size_mib FROM filesystem_stats WHERE mount = :subject AND size IS NOT NULL
ORDER BY ts DESC LIMIT 5;
