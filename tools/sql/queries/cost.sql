-- SPDX-License-Identifier: Apache-2.0
-- cost: what sonde itself used, program by program
SELECT program, round(sum(cpu_ns) / 1e9, 3) AS cpu_s, sum(runs) AS runs, round(max(private_bytes) / 1e6, 1) AS private_mb,
       round(max(map_bytes) / 1e6, 1) AS map_mb
FROM cost GROUP BY 1 ORDER BY sum(cpu_ns) DESC, 1;
