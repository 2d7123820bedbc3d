-- SPDX-License-Identifier: Apache-2.0
-- hottest: functions by their own CPU time, without their callees'
-- n = 20: how many rows
-- comm = '': only this command
-- from = 0: not before this time
-- to = 9e18: before this time
SELECT function, module, sum(samples) AS samples, round(sum(cpu_ns) / 1e9, 3) AS cpu_s,
       round(100.0 * sum(cpu_ns) / sum(sum(cpu_ns)) OVER (), 1) AS percent
FROM sonde_totals(:from, :to) WHERE NOT self AND (:comm = '' OR comm = :comm)
GROUP BY 1, 2 ORDER BY sum(cpu_ns) DESC, 1 LIMIT :n;
