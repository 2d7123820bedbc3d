-- SPDX-License-Identifier: Apache-2.0
-- log-errors: a program logs many more errors than it did in the hour before
-- level = warning
-- threshold = 10: errors a minute
-- for = 3: minutes
-- window = 63: minutes
-- unit = a minute
-- needs = logs
-- next = sonde logs --level error --last 1h
WITH minute AS (SELECT source, (:to - 1 - ts) / 60 AS ago, sum(messages) AS n FROM logs
                WHERE ts >= :from AND ts < :to AND level IN ('error', 'fatal') GROUP BY 1, 2),
     now AS (SELECT source, sum(n) AS n, min(n) AS least, count(*) AS minutes FROM minute WHERE ago < :for GROUP BY 1),
     -- errors that go on for half an hour must not become what is usual: the first half of the hour counts alone, too
     before AS (SELECT source, sum(n) AS n, min(sum(n) / 60.0, sum(iif(ago >= :for + 30, n, 0)) / 30.0) AS rate FROM minute WHERE ago >= :for GROUP BY 1),
     recorded AS (SELECT sum(min(to_ns / 1000000000, :to) - max(from_ns / 1000000000, :from)) AS seconds FROM runs
                  WHERE family = 'logs' AND to_ns / 1000000000 > :from AND from_ns / 1000000000 < :to)
SELECT now.source AS subject, round(1.0 * now.n / :for, 1) AS value,
       printf('%s logged %d errors in %d minutes, and %d in the hour before', now.source, now.n, :for, coalesce(before.n, 0)) AS text
FROM now LEFT JOIN before USING (source)
WHERE (SELECT seconds FROM recorded) >= 60 * 50 -- else it is not known what is usual
  AND now.minutes >= :for AND now.least >= :threshold AND now.n / (1.0 * :for) >= 5 * coalesce(before.rate, 0);
SELECT level, pattern, sum(messages) AS messages FROM log_patterns
WHERE ts >= :to - 60 * 3 AND ts < :to AND source = :subject AND level IN ('error', 'fatal') GROUP BY 1, 2 ORDER BY messages DESC LIMIT 5;
