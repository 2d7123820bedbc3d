-- SPDX-License-Identifier: Apache-2.0
-- oom: what was killed because memory ran out, and how often
-- n = 20: how many rows
-- from = 0: not before this time
-- to = 9e18: before this time
SELECT container, comm, sum(n) AS times, min(time) AS first, max(time) AS last
FROM process_ends WHERE how = 'out of memory' AND ts >= :from AND ts < :to
GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT :n;
