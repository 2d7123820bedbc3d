-- SPDX-License-Identifier: Apache-2.0
-- inodes: a file system has hardly any inodes left
-- level = critical
-- threshold = 5: percent of its inodes that are free
-- for = 3: minutes
-- window = 10: minutes
-- unit = %
-- needs = host
-- next = sonde sql @full
SELECT mount AS subject, max(100.0 * inodes_free / inodes) AS value, printf('%d of %d left', min(inodes_free), max(inodes)) AS text
FROM filesystem_stats WHERE inodes > 0 AND read_only = 0 AND ts >= :from AND ts < :to
GROUP BY mount HAVING max(100.0 * inodes_free / inodes) < :threshold AND max(ts) - min(ts) >= 60 * (:for - 1);
