-- SPDX-License-Identifier: Apache-2.0
-- requests-slow: a service answers slowly (mean of each minute)
-- level = warning
-- threshold = 1000: ms of mean latency
-- for = 5: minutes
-- unit = ms
-- needs = l7
-- next = sonde requests --slowest
WITH each AS MATERIALIZED (
  SELECT service, operation, protocol, (:to - 1 - ts) / 60 AS minute, max(status = '101') AS upgraded, sum(requests) AS n, sum(total_ns) AS ns,
         sum(iif(ts < :from + 10 OR ts >= :to - 10, requests, NULL)) AS edge_n, sum(iif(ts < :from + 10 OR ts >= :to - 10, total_ns, NULL)) AS edge_ns
  FROM requests WHERE ts >= :from AND ts < :to AND side <> 'client' AND result IN ('ok', 'error') GROUP BY 1, 2, 3, 4),
begins AS (SELECT service, operation, sum(total_ns) / sum(requests) / 1000 AS us FROM request_phases
           WHERE ts >= :from AND ts < :to AND side <> 'client' AND phase <> 'queue' AND protocol GLOB 'http*' GROUP BY 1, 2),
asked AS (SELECT service, operation, protocol, iif(max(upgraded), '101', '') AS status, sum(ns) / sum(n) / 1000 AS us FROM each GROUP BY 1, 2, 3),
stream AS ( -- they last until the client leaves
  SELECT a.service, a.operation FROM asked a LEFT JOIN begins b ON b.service = a.service AND b.operation = a.operation
  WHERE is_stream(a.protocol, a.service, a.operation, a.status, '', b.us, a.us)),
minute AS (SELECT service, sum(n) AS n, sum(ns) / 1e6 AS ms, sum(edge_ns) / 1e6 / sum(edge_n) AS edge
           FROM each WHERE (service, operation) NOT IN (SELECT service, operation FROM stream) GROUP BY service, minute)
SELECT service AS subject, round(sum(ms) / sum(n), 1) AS value,
       printf('%s took %.0f ms on average for each of %d requests%s', service, sum(ms) / sum(n), sum(n),
         iif(service IN (SELECT service FROM stream), ', without streams (sonde requests --slowest --streams)', '')) AS text
FROM minute GROUP BY service
HAVING sum(n) >= 20 AND count(*) >= :for AND min(ms / n) >= :threshold AND coalesce(min(edge), :threshold) >= :threshold / 2.0;
SELECT operation, sum(requests) AS requests, round(sum(total_ns) / 1e6 / sum(requests), 1) AS mean_ms, max(max_ns) / 1000000 AS max_ms FROM requests
WHERE ts >= :from AND ts < :to AND service = :subject AND side <> 'client' AND result IN ('ok', 'error') GROUP BY 1 ORDER BY sum(total_ns) DESC LIMIT 5;
