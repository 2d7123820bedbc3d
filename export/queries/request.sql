-- SPDX-License-Identifier: Apache-2.0
-- requests; of an operation its first word, where that is one
SELECT max(x.ts) AS ts, coalesce(c.name, '') AS container, CASE x.side WHEN 1 THEN 'client' WHEN 2 THEN 'server' ELSE 'capture' END AS side,
 r.value AS protocol,
 CASE WHEN o.value GLOB '[A-Za-z]*' AND instr(o.value || ' ', ' ') <= 17 AND NOT substr(o.value, 1, instr(o.value || ' ', ' ') - 1) GLOB '*[^A-Za-z_-]*'
      THEN upper(substr(o.value, 1, instr(o.value || ' ', ' ') - 1)) ELSE 'other' END AS operation,
 CASE x.result WHEN 0 THEN 'ok' WHEN 1 THEN 'error' WHEN 2 THEN 'one-way' WHEN 3 THEN 'opened' WHEN 4 THEN 'no-answer' ELSE 'blind' END AS reason,
 sum(x.n) AS [sonde_requests_total]
FROM request_row x JOIN text r ON r.id = x.protocol JOIN text o ON o.id = x.operation
LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
WHERE x.ts >= :from AND x.ts < :to
GROUP BY 2, 3, 4, 5, 6
