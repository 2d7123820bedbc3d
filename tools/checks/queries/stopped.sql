-- SPDX-License-Identifier: Apache-2.0
-- stopped: a container ended badly and has not started again
-- level = warning
-- threshold = 2: minutes since its end
-- for = 1440: minutes
-- unit = min
-- needs = host
-- next = sonde events {subject} --last 24h
SELECT e.name AS subject, CAST((:to - e.ts) / 60 AS INTEGER) AS value, printf('%s, at %s UTC', e.detail, strftime('%Y-%m-%d %H:%M', e.ts, 'unixepoch')) AS text
FROM events e WHERE e.kind = 'stopped' AND e.subject = 'container' AND e.ts >= :from AND e.ts < :to
AND e.detail NOT IN ('', 'exit 0', 'exit 130', 'exit 143') AND e.detail NOT LIKE 'signal 15%' AND e.detail NOT LIKE 'signal 2 %'
AND (e.caused_by = '' OR e.detail NOT LIKE 'signal 9%') -- it was killed on purpose
AND NOT EXISTS (SELECT 1 FROM events w WHERE w.name = e.name AND w.subject = 'container' AND w.ts < :to AND w.at_ns > e.at_ns AND w.kind IN ('started', 'restarted', 'removed', 'stopped'))
GROUP BY e.name HAVING CAST((:to - max(e.ts)) / 60 AS INTEGER) >= :threshold;
SELECT time, kind, detail, caused_by FROM events WHERE name = :subject AND subject = 'container' ORDER BY ts DESC LIMIT 8;
