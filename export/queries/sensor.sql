-- SPDX-License-Identifier: Apache-2.0
-- temperatures
SELECT max(x.ts) AS ts, coalesce(n.value, '') AS sensor, x.temperature_m AS [sonde_sensor_temperature_celsius]
FROM sensor_row x LEFT JOIN text n ON n.id = x.sensor
LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts
WHERE h.run IS NULL AND x.ts >= :from AND x.ts < :to
GROUP BY 2
