-- SPDX-License-Identifier: Apache-2.0
-- CPU time by samples
SELECT max(last_ts) - :t0 AS ts, container, sum(cpu_ns) AS [sonde_profile_cpu_seconds_total], sum(samples) AS [sonde_profile_samples_total]
FROM sonde_totals(:from + :t0, min(:to + :t0, 1 << 34))
WHERE NOT self
GROUP BY 2
