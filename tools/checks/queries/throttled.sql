-- SPDX-License-Identifier: Apache-2.0
-- throttled: a CPU limit throttles a container or unit again and again
-- level = warning
-- threshold = 25: percent of the periods in which it ran
-- for = 5: minutes
-- unit = %
-- needs = host
-- next = sonde containers --sort throttled --last 15m
SELECT subject, min(share) AS value, printf('stopped for %.1f s', sum(us) / 1e6) AS text FROM (
  SELECT iif(kind = 'container', container, unit) AS subject, cgroup, 100.0 * sum(throttled) / sum(periods) AS share, sum(throttled_us) AS us,
         100.0 * sum(iif(ts < :from + 10 OR ts >= :to - 10, throttled, NULL)) / sum(iif(ts < :from + 10 OR ts >= :to - 10, periods, NULL)) AS edge
  FROM cgroup_stats WHERE kind IN ('container', 'unit') AND periods > 0 AND ts >= :from AND ts < :to GROUP BY cgroup, (:to - 1 - ts) / 60)
WHERE share >= :threshold AND coalesce(edge, share) >= :threshold / 2.0 GROUP BY cgroup HAVING count(*) >= :for;
SELECT min(time) AS time, sum(periods) AS periods, sum(throttled) AS throttled, sum(throttled_us) / 1000 AS throttled_ms FROM cgroup_stats
WHERE iif(kind = 'container', container, unit) = :subject GROUP BY ts / 60 ORDER BY 1 DESC LIMIT 5;
