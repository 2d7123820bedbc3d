-- SPDX-License-Identifier: Apache-2.0
-- fsync-slow: a program waits long until its files are on the disk
-- level = warning
-- threshold = 100: ms a call
-- for = 5: minutes
-- unit = ms
-- needs = disk
-- next = sonde disk --fsync --last 15m
WITH minute AS (SELECT iif(container <> '', container || ': ', '') || comm AS who, sum(calls) AS n, 1e-3 * sum(us) / sum(calls) AS ms,
                       1e-3 * sum(iif(ts < :from + 10 OR ts >= :to - 10, us, NULL)) / sum(iif(ts < :from + 10 OR ts >= :to - 10, calls, NULL)) AS edge
                FROM fsyncs WHERE ts >= :from AND ts < :to AND self = 0 AND comm <> '' GROUP BY 1, (:to - 1 - ts) / 60)
SELECT who AS subject, round(min(ms), 1) AS value, printf('%d calls, %.0f ms each', sum(n), sum(n * ms) / sum(n)) AS text FROM minute
GROUP BY who HAVING sum(n) >= 20 AND count(*) >= :for AND min(ms) >= :threshold AND coalesce(min(edge), :threshold) >= :threshold / 2.0;
SELECT file, call, sum(calls) AS calls, sum(us) / sum(calls) / 1000 AS ms_a_call FROM fsyncs
WHERE ts >= :from AND ts < :to AND iif(container <> '', container || ': ', '') || comm = :subject GROUP BY 1, 2 ORDER BY sum(us) DESC LIMIT 5;
