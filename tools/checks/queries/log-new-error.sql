-- SPDX-License-Identifier: Apache-2.0
-- log-new-error: a program logs an error that it did not log in the day before
-- level = warning
-- threshold = 1: messages
-- for = 10: minutes
-- window = 1440: minutes
-- unit = messages
-- needs = logs
-- next = sonde logs --new --level error --last 15m
WITH pattern AS (SELECT source, pattern, min(ts) AS first, sum(messages) AS n FROM log_patterns
                 WHERE ts >= :from AND ts < :to AND level IN ('error', 'fatal') AND pattern <> '~other' GROUP BY 1, 2),
     known AS (SELECT source, min(ts) AS first FROM logs WHERE ts >= :from AND ts < :to GROUP BY 1)
SELECT p.source AS subject, sum(p.n) AS value, printf('new in the log of %s: %s', p.source, substr(p.pattern, 1, 200)) AS text
FROM pattern p JOIN known USING (source)
WHERE p.first >= :to - 60 * :for AND known.first < :to - 3600 GROUP BY 1 HAVING sum(p.n) >= :threshold;
SELECT level, pattern, sum(messages) AS messages, max(sample) AS sample FROM log_patterns
WHERE ts >= :to - 600 AND ts < :to AND source = :subject AND level IN ('error', 'fatal') GROUP BY 1, 2 ORDER BY messages DESC LIMIT 5;
