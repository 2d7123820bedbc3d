-- SPDX-License-Identifier: Apache-2.0
-- full: file systems, the fullest first (host family)
-- n = 20: how many rows
-- from = 0: not before this time
-- to = 9e18: before this time
SELECT mount, fstype, round(size / 1073741824.0, 2) AS gib, round(available / 1073741824.0, 2) AS left_gib,
       round(100.0 * (size - available) / size, 1) AS percent, round(100.0 * (inodes - inodes_free) / nullif(inodes, 0), 1) AS inodes_percent,
       datetime(max(ts), 'unixepoch', 'localtime') AS seen
FROM filesystem_stats WHERE size > 0 AND ts >= :from AND ts < :to
GROUP BY 1 ORDER BY 5 DESC, 1 LIMIT :n;
