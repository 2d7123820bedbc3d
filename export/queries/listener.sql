-- SPDX-License-Identifier: Apache-2.0
-- listening sockets
SELECT max(x.ts) AS ts, coalesce(c.name, '') AS container, sum(x.dropped) AS [sonde_listener_dropped_total], sum(x.repeated) AS [sonde_listener_repeated_answers_total]
FROM listener_row x JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts
 AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM listener_row y WHERE y.run = h.by AND y.process = x.process))
WHERE h.run IS NULL AND NOT p.self AND x.ts >= :from AND x.ts < :to
GROUP BY 2
