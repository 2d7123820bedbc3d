-- SPDX-License-Identifier: Apache-2.0
-- opens-failing: a program tries again and again to open files that it cannot
-- level = warning
-- threshold = 200: opens per second
-- for = 5: minutes
-- unit = opens/s
-- needs = disk
-- next = sonde disk --opens --last 15m
WITH minute AS (SELECT iif(container <> '', container || ': ', '') || comm AS who, sum(opens) / 60.0 AS rate,
                       sum(iif(ts < :from + 10 OR ts >= :to - 10, opens, NULL)) / 10.0 AS edge
                FROM failed_opens WHERE ts >= :from AND ts < :to AND comm <> '' GROUP BY 1, (:to - 1 - ts) / 60)
SELECT who AS subject, round(min(rate), 1) AS value, '' AS text FROM minute
WHERE rate >= :threshold AND coalesce(edge, rate) >= :threshold / 2.0 GROUP BY who HAVING count(*) >= :for;
SELECT path, error, sum(opens) AS opens FROM failed_opens
WHERE ts >= :from AND ts < :to AND iif(container <> '', container || ': ', '') || comm = :subject GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 5;
