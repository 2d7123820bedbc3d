-- SPDX-License-Identifier: Apache-2.0
-- logs; lines of a container, a unit, or a file that the configuration names
SELECT max(x.ts) AS ts, coalesce(c.name, '') AS container, CASE WHEN x.container = 0 THEN coalesce(s.value, '') ELSE '' END AS source,
 coalesce(l.value, '') AS level,
 sum(x.lines) AS [sonde_log_lines_total],
 sum(x.messages) AS [sonde_log_messages_total],
 sum(x.bytes) AS [sonde_log_bytes_total]
FROM log_row x LEFT JOIN text s ON s.id = x.source LEFT JOIN text l ON l.id = x.level
LEFT JOIN containers c ON c.id = x.container
LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts
WHERE h.run IS NULL AND x.ts >= :from AND x.ts < :to
GROUP BY 2, 3, 4
