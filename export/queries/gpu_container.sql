-- SPDX-License-Identifier: Apache-2.0
-- who used GPUs; what is in no container, or is not known, has no name
SELECT max(x.ts) AS ts, coalesce(c.name, '') AS container, coalesce(n.value, '') AS gpu,
 sum(x.busy_us) AS [sonde_container_gpu_busy_seconds_total]
FROM gpu_process_row x LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container LEFT JOIN text n ON n.id = x.gpu
LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts
 AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM gpu_process_row y WHERE y.run = h.by AND y.process = x.process))
WHERE h.run IS NULL AND x.ts >= :from AND x.ts < :to
GROUP BY 2, 3
