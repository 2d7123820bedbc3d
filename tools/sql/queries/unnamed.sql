-- SPDX-License-Identifier: Apache-2.0
-- unnamed: files whose functions have no names, by the CPU time in them
-- n = 20: how many rows
SELECT module, comm, round(sum(cpu_ns) / 1e9, 3) AS cpu_s, count(DISTINCT function) AS places
FROM sonde_totals WHERE NOT self AND function GLOB module || '+0x*'
GROUP BY 1, 2 ORDER BY sum(cpu_ns) DESC, 1, 2 LIMIT :n;
