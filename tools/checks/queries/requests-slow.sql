-- SPDX-License-Identifier: Apache-2.0
-- requests-slow: a service answers slowly (mean of each minute)
-- level = warning
-- threshold = 1000: ms of mean latency
-- for = 5: minutes
-- unit = ms
-- needs = l7
-- next = sonde requests --slowest
WITH minute AS (SELECT service, sum(requests) AS n, sum(total_ns) / 1e6 AS ms,
                       sum(iif(ts < :from + 10 OR ts >= :to - 10, total_ns, NULL)) / 1e6 / sum(iif(ts < :from + 10 OR ts >= :to - 10, requests, NULL)) AS edge
                FROM requests WHERE ts >= :from AND ts < :to AND side <> 'client' AND result IN ('ok', 'error')
                GROUP BY service, (:to - 1 - ts) / 60)
SELECT service AS subject, round(sum(ms) / sum(n), 1) AS value,
       printf('%s took %.0f ms on average for each of %d requests', service, sum(ms) / sum(n), sum(n)) AS text
FROM minute GROUP BY service
HAVING sum(n) >= 20 AND count(*) >= :for AND min(ms / n) >= :threshold AND coalesce(min(edge), :threshold) >= :threshold / 2.0;
SELECT operation, sum(requests) AS requests, round(sum(total_ns) / 1e6 / sum(requests), 1) AS mean_ms, max(max_ns) / 1000000 AS max_ms FROM requests
WHERE ts >= :from AND ts < :to AND service = :subject AND side <> 'client' AND result IN ('ok', 'error') GROUP BY 1 ORDER BY sum(total_ns) DESC LIMIT 5;
