-- SPDX-License-Identifier: Apache-2.0
-- how long it took to the first byte of an answer
SELECT max(x.ts) AS ts, coalesce(c.name, '') AS container, CASE x.side WHEN 1 THEN 'client' WHEN 2 THEN 'server' ELSE 'capture' END AS side,
 r.value AS protocol, sum(x.total_ns) AS [sonde_request_first_byte_seconds_sum], hist_all(x.hist, 8, x.n) AS [sonde_request_first_byte_seconds]
FROM request_phase_row x JOIN text r ON r.id = x.protocol
LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
WHERE x.ts >= :from AND x.ts < :to AND x.phase = 1
GROUP BY 2, 3, 4
