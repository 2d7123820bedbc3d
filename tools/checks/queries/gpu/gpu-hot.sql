-- SPDX-License-Identifier: Apache-2.0
-- gpu-hot: a GPU is close to the temperature at which it throttles
-- level = warning
-- threshold = 5: degrees Celsius below that temperature
-- for = 5: minutes
-- unit = °C
-- needs = gpu
-- next = sonde timeline --of gpu
SELECT 'GPU ' || gpu AS subject, min(hot) / 1000.0 AS value, printf('%s slows down at %d °C', name, temperature_limit_m / 1000) AS text FROM (
  SELECT uuid, gpu, name, max(temperature_m) AS hot, temperature_limit_m, max(iif(ts < :from + 10 OR ts >= :to - 10, temperature_m, NULL)) AS edge
  FROM gpu_stats WHERE temperature_m IS NOT NULL AND temperature_limit_m > 0 AND ts >= :from AND ts < :to GROUP BY uuid, (:to - 1 - ts) / 60)
WHERE hot >= temperature_limit_m - 1000 * :threshold AND coalesce(edge, hot) >= temperature_limit_m - 2000 * :threshold
GROUP BY uuid HAVING count(*) >= :for;
SELECT min(time) AS time, max(temperature_m) / 1000 AS degrees, max(fan_percent) AS fan_percent, max(power_mw) / 1000 AS watt FROM gpu_stats
WHERE 'GPU ' || gpu = :subject GROUP BY ts / 60 ORDER BY 1 DESC LIMIT 5;
