-- SPDX-License-Identifier: Apache-2.0
-- incomplete: programs whose stacks do not reach their root, and why
-- n = 20: how many rows
SELECT executable, reason, module, sum(samples) AS samples
FROM unwinding WHERE NOT complete GROUP BY 1, 2, 3 ORDER BY 4 DESC, 1 LIMIT :n;
