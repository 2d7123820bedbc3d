-- SPDX-License-Identifier: Apache-2.0
-- cpu-limit: a container or unit uses nearly all of its CPU limit
-- level = warning
-- threshold = 90: percent of its limit
-- for = 5: minutes
-- unit = %
-- needs = host
-- next = sonde flame --container {subject} --last 15m
SELECT subject, min(share) AS value, printf('of %.2f CPUs', max(cpus)) AS text FROM (
  SELECT iif(kind = 'container', container, unit) AS subject, cgroup, max(cpu_limit_m) / 1e3 AS cpus,
         100.0 * sum(user_us + system_us) / 60e6 / (max(cpu_limit_m) / 1e3) AS share
  FROM cgroup_stats WHERE kind IN ('container', 'unit') AND cpu_limit_m > 0 AND ts >= :from AND ts < :to GROUP BY cgroup, ts / 60)
WHERE share >= :threshold GROUP BY cgroup HAVING count(*) >= :for;
