-- SPDX-License-Identifier: Apache-2.0
-- read-only: a file system became read-only (for example, after a disk error)
-- level = critical
-- threshold = 1: times
-- for = 1440: minutes
-- unit = times
-- needs = host
-- next = sonde events --kind read-only --last 24h
SELECT name AS subject, count(*) AS value, max(time) AS text FROM events e WHERE kind = 'read-only' AND ts >= :from AND ts < :to
AND NOT EXISTS (SELECT 1 FROM events w WHERE w.name = e.name AND w.kind = 'writable' AND w.ts >= e.ts AND w.ts < :to) GROUP BY name HAVING count(*) >= :threshold;
