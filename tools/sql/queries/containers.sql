-- SPDX-License-Identifier: Apache-2.0
-- containers: CPU time by container, and how many processes it was
-- n = 20: how many rows
-- from = 0: not before this time
-- to = 9e18: before this time
SELECT t.container, max(c.image) AS image, count(DISTINCT t.process_id) AS processes, round(sum(t.cpu_ns) / 1e9, 3) AS cpu_s,
       datetime(min(t.first_ts), 'unixepoch', 'localtime') AS first_seen, datetime(max(t.last_ts), 'unixepoch', 'localtime') AS last_seen
FROM sonde_totals(:from, :to) t LEFT JOIN (SELECT name, max(image) AS image FROM containers GROUP BY 1) c ON c.name = t.container
WHERE NOT t.self AND t.container <> ''
GROUP BY 1 ORDER BY sum(t.cpu_ns) DESC, 1 LIMIT :n;
