-- SPDX-License-Identifier: Apache-2.0
-- what was not seen
SELECT max(x.ts) AS ts, coalesce(r.family, '') AS family, x.reason AS reason, sum(x.n) AS [sonde_lost_total]
FROM loss_row x LEFT JOIN run r ON r.id = x.run
WHERE x.ts >= :from AND x.ts < :to
GROUP BY 2, 3
