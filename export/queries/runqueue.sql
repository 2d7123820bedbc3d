-- SPDX-License-Identifier: Apache-2.0
-- how long threads that could have run waited for a CPU
SELECT max(x.ts) AS ts, coalesce(c.name, '') AS container, sum(x.total_ns) AS [sonde_runqueue_wait_seconds_sum], hist_all(x.hist, 1, x.n) AS [sonde_runqueue_wait_seconds]
FROM wait_row x JOIN task t ON t.id = x.task JOIN process p ON p.id = t.process JOIN wait_class w ON w.id = x.class AND w.state = 3
LEFT JOIN containers c ON c.id = p.container
LEFT JOIN run_hidden h ON h.run = t.run AND h.process = t.process AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts
WHERE h.run IS NULL AND NOT p.self AND x.ts >= :from AND x.ts < :to
GROUP BY 2
