-- SPDX-License-Identifier: Apache-2.0
-- CPU time by samples. First by numbers, of which there are many rows, then by names
SELECT max(x.ts) AS ts, coalesce(c.name, '') AS container, sum(x.n) AS [sonde_profile_samples_total],
 sum(x.n * (SELECT period_ns FROM run_period d WHERE d.run = x.run AND d.from_ns <= (x.ts + :t0) * 1000000000 ORDER BY d.from_ns DESC LIMIT 1))
  AS [sonde_profile_cpu_seconds_total]
FROM (SELECT x.ts, t.run, p.container, sum(x.n) AS n
      FROM sample x JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task JOIN process p ON p.id = t.process
      LEFT JOIN run_hidden h ON h.run = t.run AND h.process = t.process AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts
      WHERE t.kind = 1 AND h.run IS NULL AND NOT p.self AND x.ts >= :from AND x.ts < :to GROUP BY x.ts, t.run, p.container) x
LEFT JOIN containers c ON c.id = x.container
GROUP BY 2
