-- SPDX-License-Identifier: Apache-2.0
-- processes that ended; of two captures at once that which counted more, as in view process_ends
SELECT max(ts) AS ts, container, reason, sum(n) AS [sonde_process_ends_total]
FROM (SELECT ts, container, comm, reason, status, max(n) AS n
      FROM (SELECT x.ts, x.run, coalesce(c.name, '') AS container, coalesce(t.value, '') AS comm, coalesce(k.name, '') AS reason, x.status, sum(x.n) AS n
            FROM end_row x LEFT JOIN containers c ON c.id = x.container LEFT JOIN text t ON t.id = x.comm LEFT JOIN end_kind k ON k.id = x.how
            WHERE x.ts >= :from AND x.ts < :to GROUP BY 1, 2, 3, 4, 5, 6)
      GROUP BY 1, 2, 3, 4, 5)
GROUP BY 2, 3
