-- SPDX-License-Identifier: Apache-2.0
-- disk-busy: a disk is busy nearly all the time, and its requests are slow
-- level = warning
-- threshold = 95: percent of the time
-- for = 10: minutes
-- unit = %
-- needs = host
-- next = sonde timeline --of io
SELECT disk AS subject, min(share) AS value, printf('%.0f ms a request', avg(ms)) AS text FROM (
  SELECT disk, 100.0 * sum(busy_us) / 60e6 AS share, 1e-3 * sum(read_us + write_us) / max(sum(reads + writes), 1) AS ms,
         100.0 * sum(iif(ts < :from + 10 OR ts >= :to - 10, busy_us, NULL)) / 10e6 AS edge
  FROM disk_stats WHERE ts >= :from AND ts < :to GROUP BY disk, (:to - 1 - ts) / 60)
WHERE share >= :threshold AND coalesce(edge, share) >= :threshold / 2.0 AND ms >= 10 GROUP BY disk HAVING count(*) >= :for;
