-- SPDX-License-Identifier: Apache-2.0
-- inodes: a file system has hardly any inodes left
-- level = critical
-- threshold = 5: percent of its inodes that are free
-- for = 3: minutes
-- window = 10: minutes
-- unit = %
-- needs = host
-- next = sonde sql @full
WITH reading AS (SELECT mount, ts, inodes_free, inodes, 100.0 * inodes_free / inodes AS share FROM filesystem_stats
                 WHERE inodes > 0 AND inodes_free IS NOT NULL AND read_only = 0 AND ts >= :from AND ts < :to),
good AS (SELECT mount, max(ts) AS ts FROM reading WHERE share >= :threshold GROUP BY mount)
SELECT r.mount AS subject, max(share) AS value, printf('%d of %d left', min(inodes_free), max(inodes)) AS text
FROM reading r LEFT JOIN good g ON g.mount = r.mount WHERE r.ts > coalesce(g.ts, 0)
GROUP BY r.mount HAVING min(r.ts) <= :to - 60 * :for AND max(r.ts) >= :to - 130;
