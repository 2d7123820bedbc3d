-- SPDX-License-Identifier: Apache-2.0
-- memory-limit: a container or unit uses nearly all of its memory limit
-- level = warning
-- threshold = 90: percent of its limit, without recently unused files
-- for = 5: minutes
-- window = 10: minutes
-- unit = %
-- needs = host
-- next = sonde timeline --of mem
SELECT subject, value, printf('%.0f of %.0f MiB', mem / 1048576.0, mem_limit / 1048576.0) AS text FROM (
  SELECT iif(kind = 'container', container, unit) AS subject, min(100.0 * working / mem_limit) AS value, working AS mem, mem_limit,
         max(ts) - min(ts) AS span
  FROM cgroup_stats WHERE kind IN ('container', 'unit') AND mem_limit > 0 AND working IS NOT NULL AND ts >= :to - 60 * (:for + 2) AND ts < :to
  GROUP BY cgroup)
WHERE value >= :threshold AND span >= 60 * (:for - 2);
SELECT time, working >> 20 AS mem_mib, mem_limit >> 20 AS limit_mib, mem_max AS met_limit FROM cgroup_stats
WHERE iif(kind = 'container', container, unit) = :subject AND ts < :to AND working IS NOT NULL ORDER BY ts DESC LIMIT 5;
