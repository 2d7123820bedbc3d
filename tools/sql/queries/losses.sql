-- SPDX-License-Identifier: Apache-2.0
-- losses: what was lost, by family and reason
SELECT family, reason, sum(lost) AS lost, min(time) AS first, max(time) AS last
FROM loss WHERE lost > 0 GROUP BY 1, 2 ORDER BY 3 DESC;
