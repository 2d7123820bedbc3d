-- SPDX-License-Identifier: Apache-2.0
-- oom: a process was killed because memory ran out
-- level = critical
-- threshold = 1: kills
-- for = 60: minutes
-- unit = kills
-- next = sonde oom --last 1h
SELECT iif(container <> '', container, name) AS subject, sum(n) AS value, max(detail) AS text FROM events
WHERE kind = 'oom kill' AND ts >= :from AND ts < :to GROUP BY 1 HAVING sum(n) >= :threshold;
SELECT time, comm, pid, detail FROM events WHERE kind = 'oom kill' AND iif(container <> '', container, name) = :subject ORDER BY ts DESC LIMIT 5;
