-- SPDX-License-Identifier: Apache-2.0
-- file-system-hangs: a file system does not respond (for example, its server is gone)
-- level = critical
-- threshold = 1: readings
-- for = 3: minutes
-- window = 10: minutes
-- unit = readings
-- needs = host
-- next = sonde events --last 1h
WITH reading AS (SELECT mount, fstype, source, ts, hangs FROM filesystem_stats WHERE ts >= :from AND ts < :to),
good AS (SELECT mount, max(ts) AS ts FROM reading WHERE coalesce(hangs, 0) = 0 GROUP BY mount)
SELECT r.mount AS subject, count(*) AS value, fstype || ' of ' || source AS text
FROM reading r LEFT JOIN good g ON g.mount = r.mount WHERE r.ts > coalesce(g.ts, 0)
GROUP BY r.mount HAVING count(*) >= :threshold AND min(r.ts) <= :to - 60 * :for AND max(r.ts) >= :to - 130;
