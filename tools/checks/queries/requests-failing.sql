-- SPDX-License-Identifier: Apache-2.0
-- requests-failing: too many requests to a service fail
-- level = warning
-- threshold = 5: percent of its requests
-- for = 5: minutes
-- unit = %
-- needs = l7
-- next = sonde requests --failed
WITH minute AS (SELECT service, sum(requests) AS n, sum(errors) AS failed,
                       100.0 * sum(iif(ts < :from + 10 OR ts >= :to - 10, errors, NULL)) / sum(iif(ts < :from + 10 OR ts >= :to - 10, requests, NULL)) AS edge
                FROM requests WHERE ts >= :from AND ts < :to AND side <> 'client' GROUP BY service, (:to - 1 - ts) / 60)
SELECT service AS subject, round(100.0 * sum(failed) / sum(n), 1) AS value,
       printf('%d of %d requests to %s failed', sum(failed), sum(n), service) AS text
FROM minute GROUP BY service
HAVING sum(n) >= 20 AND count(*) >= :for AND min(100.0 * failed / n) >= :threshold AND coalesce(min(edge), :threshold) >= :threshold / 2.0;
SELECT operation, status, sum(requests) AS requests, sum(errors) AS failed FROM requests
WHERE ts >= :from AND ts < :to AND service = :subject AND side <> 'client' AND errors > 0 GROUP BY 1, 2 ORDER BY failed DESC LIMIT 5;
