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
         100.0 * sum(user_us + system_us) / 60e6 / (max(cpu_limit_m) / 1e3) AS share,
         100.0 * sum(iif(ts < :from + 10 OR ts >= :to - 10, user_us + system_us, NULL)) / 10e6 / (max(cpu_limit_m) / 1e3) AS edge
  FROM cgroup_stats WHERE kind IN ('container', 'unit') AND cpu_limit_m > 0 AND ts >= :from AND ts < :to GROUP BY cgroup, (:to - 1 - ts) / 60)
WHERE share >= :threshold AND coalesce(edge, share) >= :threshold / 2.0 GROUP BY cgroup HAVING count(*) >= :for;
