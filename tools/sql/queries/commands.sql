-- SPDX-License-Identifier: Apache-2.0
-- commands: CPU time by command, however many processes it was
-- n = 20: how many rows
-- from = 0: not before this time
-- to = 9e18: before this time
SELECT comm, container, count(DISTINCT pid) AS processes, round(sum(cpu_ns) / 1e9, 3) AS cpu_s
FROM sonde_totals(:from, :to) WHERE NOT self
GROUP BY 1, 2 ORDER BY sum(cpu_ns) DESC, 1 LIMIT :n;
