-- SPDX-License-Identifier: Apache-2.0
-- who: processes by CPU time, those that have ended too
-- n = 20: how many rows
-- from = 0: not before this time
-- to = 9e18: before this time
SELECT comm, pid, container, round(sum(cpu_ns) / 1e9, 3) AS cpu_s,
       datetime(min(first_ts), 'unixepoch', 'localtime') AS first_seen, datetime(max(last_ts), 'unixepoch', 'localtime') AS last_seen
FROM sonde_totals(:from, :to) WHERE NOT self
GROUP BY process_id ORDER BY sum(cpu_ns) DESC, pid LIMIT :n;
