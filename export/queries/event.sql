-- SPDX-License-Identifier: Apache-2.0
-- what happened
SELECT max(x.ts) AS ts, s.value AS subject, k.value AS reason, coalesce(c.name, iif(s.value = 'container', n.value, '')) AS container,
 sum(x.n) AS [sonde_events_total]
FROM event_row x JOIN text k ON k.id = x.kind JOIN text s ON s.id = x.subject LEFT JOIN text n ON n.id = x.name
LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts
WHERE h.run IS NULL AND x.ts >= :from AND x.ts < :to
GROUP BY 2, 3, 4
