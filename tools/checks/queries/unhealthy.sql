-- SPDX-License-Identifier: Apache-2.0
-- unhealthy: a container's health check fails
-- level = critical
-- threshold = 1: times
-- for = 1440: minutes
-- unit = times
-- needs = host
-- next = sonde events {subject} --last 24h
SELECT name AS subject, count(*) AS value, max(detail) AS text FROM events e WHERE kind = 'unhealthy' AND ts >= :from AND ts < :to
AND NOT EXISTS (SELECT 1 FROM events w WHERE w.which = e.which AND w.kind IN ('healthy', 'removed', 'stopped') AND w.ts >= e.ts AND w.ts < :to)
GROUP BY name HAVING count(*) >= :threshold;
