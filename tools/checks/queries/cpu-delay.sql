-- SPDX-License-Identifier: Apache-2.0
-- cpu-delay: a container or unit waits for a CPU most of the time
-- level = warning
-- threshold = 50: percent of the time in which one of its threads was ready but had no CPU (pressure)
-- for = 5: minutes
-- unit = %
-- needs = host
-- next = sonde neighbours --last 15m
SELECT subject, min(share) AS value, '' AS text FROM (
  SELECT iif(kind = 'container', container, unit) AS subject, cgroup, 100.0 * sum(psi_cpu_us) / 60e6 AS share,
         100.0 * sum(iif(ts < :from + 10 OR ts >= :to - 10, psi_cpu_us, NULL)) / 10e6 AS edge
  FROM cgroup_stats WHERE kind IN ('container', 'unit') AND psi_cpu_us IS NOT NULL AND ts >= :from AND ts < :to
  GROUP BY cgroup, (:to - 1 - ts) / 60)
WHERE share >= :threshold AND coalesce(edge, share) >= :threshold / 2.0 GROUP BY cgroup HAVING count(*) >= :for;
SELECT min(time) AS time, sum(psi_cpu_us) / 1000 AS waited_ms, sum(user_us + system_us) / 1000 AS cpu_ms FROM cgroup_stats
WHERE iif(kind = 'container', container, unit) = :subject GROUP BY ts / 60 ORDER BY 1 DESC LIMIT 5;
