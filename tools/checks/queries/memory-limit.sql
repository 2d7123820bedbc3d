-- SPDX-License-Identifier: Apache-2.0
-- memory-limit: a container or unit uses nearly all of its memory limit
-- level = warning
-- threshold = 90: percent of its limit, without recently unused files
-- for = 5: minutes
-- window = 10: minutes
-- unit = %
-- needs = host
-- next = sonde timeline --of mem
WITH reading AS (SELECT cgroup, iif(kind = 'container', container, unit) AS subject, ts, working, mem_limit, 100.0 * working / mem_limit AS share
                 FROM cgroup_stats WHERE kind IN ('container', 'unit') AND mem_limit > 0 AND working IS NOT NULL AND ts >= :from AND ts < :to),
good AS (SELECT cgroup, max(ts) AS ts FROM reading WHERE share < :threshold GROUP BY cgroup)
SELECT subject, min(share) AS value, printf('%.0f of %.0f MiB', working / 1048576.0, mem_limit / 1048576.0) AS text
FROM reading r LEFT JOIN good g ON g.cgroup = r.cgroup WHERE r.ts > coalesce(g.ts, 0)
GROUP BY r.cgroup HAVING min(r.ts) <= :to - 60 * :for AND max(r.ts) >= :to - 130;
SELECT time, working >> 20 AS mem_mib, mem_limit >> 20 AS limit_mib, mem_max AS met_limit FROM cgroup_stats
WHERE iif(kind = 'container', container, unit) = :subject AND ts < :to AND working IS NOT NULL ORDER BY ts DESC LIMIT 5;
