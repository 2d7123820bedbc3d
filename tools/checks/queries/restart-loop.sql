-- SPDX-License-Identifier: Apache-2.0
-- restart-loop: a container restarts again and again
-- level = critical
-- threshold = 3: starts
-- for = 30: minutes
-- unit = starts
-- needs = host
-- next = sonde events {subject} --last 1h
SELECT name AS subject, sum(n) AS value,
       coalesce((SELECT detail FROM events s WHERE s.name = e.name AND s.kind = 'stopped' ORDER BY ts DESC LIMIT 1), '') AS text
FROM events e WHERE kind = 'restarted' AND ts >= :from AND ts < :to GROUP BY name HAVING sum(n) >= :threshold;
SELECT time, kind, detail, caused_by FROM events WHERE name = :subject AND subject = 'container' ORDER BY ts DESC LIMIT 8;
