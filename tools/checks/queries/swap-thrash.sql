-- SPDX-License-Identifier: Apache-2.0
-- swap-thrash: memory is swapped out and in all the time
-- level = warning
-- threshold = 100: pages per second in each direction
-- for = 5: minutes
-- unit = pages/s
-- needs = host
-- next = sonde ps --sort mem --last 15m
SELECT 'host' AS subject, min(rate) AS value, '' AS text FROM (
  SELECT min(sum(swap_in), sum(swap_out)) / 60.0 AS rate, min(sum(iif(ts < :from + 10 OR ts >= :to - 10, swap_in, NULL)),
         sum(iif(ts < :from + 10 OR ts >= :to - 10, swap_out, NULL))) / 10.0 AS edge
  FROM host_stats WHERE ts >= :from AND ts < :to GROUP BY (:to - 1 - ts) / 60)
WHERE rate >= :threshold AND coalesce(edge, rate) >= :threshold / 2.0 HAVING count(*) >= :for;
SELECT min(time) AS time, sum(swap_in) AS pages_in, sum(swap_out) AS pages_out FROM host_stats GROUP BY ts / 60 ORDER BY 1 DESC LIMIT 5;
