-- SPDX-License-Identifier: Apache-2.0
-- how long requests lay in their server's socket
SELECT max(x.ts) AS ts, coalesce(c.name, '') AS container, r.value AS protocol,
 sum(x.total_ns) AS [sonde_request_queue_seconds_sum], hist_all(x.hist, 8, x.n) AS [sonde_request_queue_seconds]
FROM request_phase_row x JOIN text r ON r.id = x.protocol
LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
WHERE x.ts >= :from AND x.ts < :to AND x.phase = 2
GROUP BY 2, 3
