-- SPDX-License-Identifier: Apache-2.0
-- gpu-throttled: a GPU is throttled by heat or by its hardware
-- level = warning
-- threshold = 50: percent of the readings; the power limit alone does not count
-- for = 5: minutes
-- unit = %
-- needs = gpu
-- next = sonde timeline --of gpu
SELECT 'GPU ' || gpu AS subject, min(share) AS value, max(why) AS text FROM (
  SELECT uuid, gpu, 100.0 * avg(throttle_reasons & 232 <> 0) AS share, max(throttled_by) AS why,
         100.0 * avg(iif(ts < :from + 10 OR ts >= :to - 10, throttle_reasons & 232 <> 0, NULL)) AS edge
  FROM gpu_stats WHERE throttle_reasons IS NOT NULL AND ts >= :from AND ts < :to GROUP BY uuid, (:to - 1 - ts) / 60)
WHERE share >= :threshold AND coalesce(edge, share) >= :threshold / 2.0 GROUP BY uuid HAVING count(*) >= :for;
SELECT min(time) AS time, max(throttled_by) AS why, max(temperature_m) / 1000 AS degrees, min(clock_mhz) AS mhz FROM gpu_stats
WHERE 'GPU ' || gpu = :subject GROUP BY ts / 60 ORDER BY 1 DESC LIMIT 5;
