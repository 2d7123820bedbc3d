-- SPDX-License-Identifier: Apache-2.0
-- what sonde itself took; programs of the recorder
SELECT max(x.ts) AS ts, x.program AS program, sum(x.cpu_ns) AS [sonde_self_cpu_seconds_total], x.private_bytes AS [sonde_self_memory_bytes]
FROM cost_row x
WHERE x.ts >= :from AND x.ts < :to
GROUP BY 2
