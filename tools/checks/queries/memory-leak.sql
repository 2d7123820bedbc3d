-- SPDX-License-Identifier: Apache-2.0
-- memory-leak: the memory of a container or unit only grows
-- level = warning
-- threshold = 5: percent of its limit per hour; without a limit 50 MiB per hour
-- for = 60: minutes
-- window = 62: minutes
-- unit = MiB/h
-- needs = host
-- next = sonde heap --growth --last 1h
WITH reading AS (
  SELECT cgroup, iif(kind = 'container', container, unit) AS subject, ts, held / 1048576.0 AS mib, mem_limit / 1048576.0 AS limit_mib,
         lag(held) OVER (PARTITION BY cgroup ORDER BY ts) / 1048576.0 AS before
  FROM (SELECT cgroup, kind, container, unit, ts, mem_limit, coalesce(anon + coalesce(kernel, 0), working) AS held FROM cgroup_stats) -- files' pages can be given back
  WHERE kind IN ('container', 'unit') AND held IS NOT NULL AND ts >= :from AND ts < :to),
began AS ( -- restarted if half of it disappeared at once
  SELECT cgroup, max(ts) AS ts FROM reading WHERE mib < before / 2 GROUP BY cgroup),
kept AS (
  SELECT r.cgroup, r.subject, r.ts, r.mib, r.limit_mib, max(r.ts) OVER (PARTITION BY r.cgroup) AS last,
         min(r.ts) OVER (PARTITION BY r.cgroup) AS first
  FROM reading r LEFT JOIN began b ON b.cgroup = r.cgroup WHERE b.ts IS NULL OR r.ts >= b.ts),
line AS (
  SELECT cgroup, subject, max(limit_mib) AS limit_mib, count(*) AS n, max(last) - min(first) AS span, slope((ts - first) / 3600.0, mib) AS slope
  FROM kept GROUP BY cgroup),
late AS ( -- of the last quarter: a full cache no longer grows
  SELECT cgroup, slope((ts - first) / 3600.0, mib) AS slope FROM kept WHERE ts >= last - (last - first) / 4 GROUP BY cgroup),
early AS ( -- of the first third: it has grown all the time
  SELECT cgroup, slope((ts - first) / 3600.0, mib) AS slope FROM kept WHERE ts <= first + (last - first) / 3 GROUP BY cgroup)
SELECT l.subject, round(l.slope, 1) AS value, printf('grows by %.0f MiB an hour', l.slope) AS text FROM line l JOIN late e ON e.cgroup = l.cgroup JOIN early b ON b.cgroup = l.cgroup
WHERE l.n >= 10 AND l.span >= 60 * :for - 10 AND b.slope >= 0.3 * l.slope AND l.slope >= iif(l.limit_mib > 0, l.limit_mib * :threshold / 100, 50) AND e.slope >= 0.3 * l.slope;
SELECT min(time) AS time, round(avg(coalesce(anon + coalesce(kernel, 0), working)) / 1048576.0, 1) AS mem_mib FROM cgroup_stats
WHERE iif(kind = 'container', container, unit) = :subject AND working IS NOT NULL GROUP BY ts / 900 ORDER BY min(ts);
