-- SPDX-License-Identifier: Apache-2.0
-- what threads did: running, blocked, ready. First by numbers, of which there are many rows, then by names
SELECT max(x.ts) AS ts, coalesce(c.name, '') AS container, CASE coalesce(w.state, 2) WHEN 1 THEN 'running' WHEN 3 THEN 'ready' ELSE 'blocked' END AS state,
 coalesce(w.name, 'other') AS reason, sum(x.total_ns) AS [sonde_thread_seconds_total], sum(x.n) AS [sonde_thread_changes_total]
FROM (SELECT max(x.ts) AS ts, p.container, x.class, sum(x.total_ns) AS total_ns, sum(x.n) AS n
      FROM wait_row x JOIN task t ON t.id = x.task JOIN process p ON p.id = t.process
      LEFT JOIN run_hidden h ON h.run = t.run AND h.process = t.process AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts
      WHERE h.run IS NULL AND NOT p.self AND x.ts >= :from AND x.ts < :to GROUP BY x.class, p.container) x
LEFT JOIN containers c ON c.id = x.container LEFT JOIN wait_class w ON w.id = x.class
GROUP BY 2, 3, 4
