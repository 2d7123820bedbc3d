-- SPDX-License-Identifier: Apache-2.0
-- lines: source lines by their own CPU time, without their callees'
-- n = 20: how many rows
-- comm = '': only this command
-- from = 0: not before this time
-- to = 9e18: before this time
SELECT file, line, function, sum(samples) AS samples, round(sum(cpu_ns) / 1e9, 3) AS cpu_s
FROM sonde_totals(:from, :to) WHERE NOT self AND line > 0 AND (:comm = '' OR comm = :comm)
GROUP BY 1, 2, 3 ORDER BY sum(cpu_ns) DESC, 1, 2 LIMIT :n;
