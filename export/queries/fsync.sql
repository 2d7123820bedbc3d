-- SPDX-License-Identifier: Apache-2.0
-- calls that wait until a file is on its disk
SELECT max(x.ts) AS ts, coalesce(c.name, '') AS container, sum(x.calls) AS [sonde_fsyncs_total], sum(x.us) AS [sonde_fsync_seconds_total]
FROM sync_row x LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts
 AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM sync_row y WHERE y.run = h.by AND y.process = x.process))
WHERE h.run IS NULL AND NOT coalesce(p.self, 0) AND x.ts >= :from AND x.ts < :to
GROUP BY 2
