-- SPDX-License-Identifier: Apache-2.0
-- throttled: a CPU limit throttles a container or unit again and again
-- level = warning
-- threshold = 25: percent of the periods in which it ran
-- for = 5: minutes
-- unit = %
-- needs = host
-- next = sonde containers --sort throttled --last 15m
SELECT subject, min(share) AS value, printf('stopped for %.1f s', sum(us) / 1e6) AS text FROM (
  SELECT iif(kind = 'container', container, unit) AS subject, cgroup, ts / 60 AS minute, 100.0 * sum(throttled) / sum(periods) AS share,
         sum(throttled_us) AS us
  FROM cgroup_stats WHERE kind IN ('container', 'unit') AND periods > 0 AND ts >= :from AND ts < :to GROUP BY cgroup, ts / 60)
WHERE share >= :threshold GROUP BY cgroup HAVING count(*) >= :for;
SELECT min(time) AS time, sum(periods) AS periods, sum(throttled) AS throttled, sum(throttled_us) / 1000 AS throttled_ms FROM cgroup_stats
WHERE iif(kind = 'container', container, unit) = :subject GROUP BY ts / 60 ORDER BY 1 DESC LIMIT 5;
