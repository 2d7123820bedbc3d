-- SPDX-License-Identifier: Apache-2.0
-- which image a container is of
SELECT max(x.ts) AS ts, c.name AS container, c.image AS image, c.project AS project, c.service AS service, 1 AS [sonde_container_info]
FROM cgroup_row x JOIN containers c ON c.id = x.container
LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts
WHERE h.run IS NULL AND x.ts >= :from AND x.ts < :to AND x.container <> 0
GROUP BY 2
