-- SPDX-License-Identifier: Apache-2.0
-- requests-slow: a service answers slowly (mean of each minute)
-- level = warning
-- threshold = 1000: ms of mean latency
-- for = 5: minutes
-- unit = ms
-- needs = l7
-- next = sonde requests --slowest
WITH asked AS (SELECT * FROM requests WHERE ts >= :from AND ts < :to AND side <> 'client' AND result IN ('ok', 'error')),
begins AS (SELECT service, operation, 1.0 * sum(total_ns) / sum(requests) AS ns FROM request_phases
           WHERE ts >= :from AND ts < :to AND side <> 'client' AND phase <> 'queue' AND protocol GLOB 'http*' GROUP BY 1, 2),
stream AS ( -- as tools/requests/reqstream.c: they last until the client leaves
  SELECT a.service, a.operation FROM asked a LEFT JOIN begins b ON b.service = a.service AND b.operation = a.operation GROUP BY 1, 2
  HAVING max(a.protocol = 'websocket' OR a.protocol GLOB 'http*' AND a.status = '101'
    OR a.protocol = 'http' AND a.operation GLOB 'GET */events' AND (a.service GLOB '*.sock*' OR a.operation GLOB '*/v1.*')
    OR a.protocol = 'http' AND (a.operation GLOB 'GET */containers/*/stats' OR a.operation GLOB 'GET */containers/*/logs'
      OR a.operation GLOB 'GET */services/*/logs' OR a.operation GLOB '* */containers/*/attach' OR a.operation GLOB '* */containers/*/attach/ws'
      OR a.operation GLOB 'POST */containers/*/wait' OR a.operation GLOB 'POST */exec/*/start')
    OR a.protocol GLOB 'http*' AND (a.operation GLOB '* */api/v1/watch/*' OR a.operation GLOB '* */apis/*/watch/*')
    OR a.protocol = 'http2' AND (a.operation GLOB '*.*/Watch*' OR a.operation GLOB '*.*/Subscribe*' OR a.operation GLOB '*.*/Stream*'
      OR a.operation GLOB '*.*/LeaseKeepAlive' OR a.operation GLOB '*.Events/*')
    OR a.protocol = 'redis' AND (a.operation GLOB 'BL[MP]*' OR a.operation GLOB 'BRPOP*' OR a.operation GLOB 'BZ*POP*' OR a.operation GLOB 'XREAD*'
      OR a.operation GLOB 'WAIT*' OR a.operation GLOB '*SUBSCRIBE*' OR a.operation GLOB 'MONITOR*' OR a.operation GLOB '*SYNC*')
    OR a.protocol = 'postgres' AND (a.operation GLOB 'LISTEN*' OR a.operation GLOB 'START_REPLICATION*')
    OR a.protocol = 'mysql' AND a.operation GLOB '*BINLOG*DUMP*' OR a.protocol = 'mongodb' AND (a.operation GLOB 'getMore*' OR a.operation GLOB 'hello*')
    OR a.protocol = 'kafka' AND (a.operation GLOB 'Fetch*' OR a.operation GLOB 'JoinGroup*' OR a.operation GLOB 'SyncGroup*'))
    OR sum(a.total_ns) >= 10e9 * sum(a.requests) AND 10 * max(b.ns) <= sum(a.total_ns) / sum(a.requests)),
minute AS (SELECT service, sum(requests) AS n, sum(total_ns) / 1e6 AS ms,
                  sum(iif(ts < :from + 10 OR ts >= :to - 10, total_ns, NULL)) / 1e6 / sum(iif(ts < :from + 10 OR ts >= :to - 10, requests, NULL)) AS edge
           FROM asked WHERE (service, operation) NOT IN (SELECT service, operation FROM stream) GROUP BY service, (:to - 1 - ts) / 60)
SELECT service AS subject, round(sum(ms) / sum(n), 1) AS value,
       printf('%s took %.0f ms on average for each of %d requests%s', service, sum(ms) / sum(n), sum(n),
         iif(service IN (SELECT service FROM stream), ', without streams (sonde requests --slowest --streams)', '')) AS text
FROM minute GROUP BY service
HAVING sum(n) >= 20 AND count(*) >= :for AND min(ms / n) >= :threshold AND coalesce(min(edge), :threshold) >= :threshold / 2.0;
SELECT operation, sum(requests) AS requests, round(sum(total_ns) / 1e6 / sum(requests), 1) AS mean_ms, max(max_ns) / 1000000 AS max_ms FROM requests
WHERE ts >= :from AND ts < :to AND service = :subject AND side <> 'client' AND result IN ('ok', 'error') GROUP BY 1 ORDER BY sum(total_ns) DESC LIMIT 5;
