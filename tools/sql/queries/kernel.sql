-- SPDX-License-Identifier: Apache-2.0
-- kernel: who makes the kernel work, by its innermost function
-- n = 20: how many rows
-- from = 0: not before this time
-- to = 9e18: before this time
SELECT comm, function, module, round(sum(cpu_ns) / 1e9, 3) AS cpu_s
FROM sonde_totals(:from, :to) WHERE NOT self AND module LIKE '[%' AND module NOT IN ('[jit]', '[anon]', '[unknown]', '[vdso]')
GROUP BY 1, 2, 3 ORDER BY sum(cpu_ns) DESC, 1, 2 LIMIT :n;
