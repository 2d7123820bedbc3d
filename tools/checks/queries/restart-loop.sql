-- SPDX-License-Identifier: Apache-2.0
-- restart-loop: a container restarts again and again
-- level = critical
-- threshold = 3: starts
-- for = 30: minutes
-- unit = starts
-- needs = host
-- next = sonde events {subject} --last 1h
WITH start AS (SELECT name, ts, n, ts - lag(ts) OVER (PARTITION BY name ORDER BY ts) AS gap FROM events
               WHERE kind = 'restarted' AND subject = 'container' AND ts >= :from AND ts < :to)
SELECT name AS subject, sum(n) AS value,
       coalesce((SELECT detail FROM events s WHERE s.name = e.name AND s.kind = 'stopped' AND s.ts < :to ORDER BY ts DESC LIMIT 1), '') AS text
FROM start e GROUP BY name HAVING sum(n) >= :threshold AND max(ts) >= :to - max(120, 2 * coalesce(max(gap), 0));
SELECT time, kind, detail, caused_by FROM events WHERE name = :subject AND subject = 'container' ORDER BY ts DESC LIMIT 8;
