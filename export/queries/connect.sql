-- SPDX-License-Identifier: Apache-2.0
-- how long opening connections took
SELECT max(x.ts) AS ts, coalesce(c.name, '') AS container, sum(x.connect_us) AS [sonde_connect_seconds_sum],
 sum(x.connect_1ms) AS [sonde_connect_seconds_bucket{le="0.001"}],
 sum(x.connect_1ms + x.connect_10ms) AS [sonde_connect_seconds_bucket{le="0.01"}],
 sum(x.connect_1ms + x.connect_10ms + x.connect_100ms) AS [sonde_connect_seconds_bucket{le="0.1"}],
 sum(x.connect_1ms + x.connect_10ms + x.connect_100ms + x.connect_1s) AS [sonde_connect_seconds_bucket{le="1"}],
 sum(x.connect_1ms + x.connect_10ms + x.connect_100ms + x.connect_1s + x.connect_long) AS [sonde_connect_seconds_bucket{le="+Inf"}]
FROM flow_row x JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container JOIN text sd ON sd.id = x.side AND sd.value = 'client'
LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts
 AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM flow_row y WHERE y.run = h.by AND y.process = x.process))
WHERE h.run IS NULL AND NOT p.self AND x.ts >= :from AND x.ts < :to AND x.connect_1ms IS NOT NULL
GROUP BY 2
