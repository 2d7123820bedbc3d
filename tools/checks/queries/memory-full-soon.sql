-- SPDX-License-Identifier: Apache-2.0
-- memory-full-soon: at the rate of the last hour a container, unit or the host has no memory left soon, or a container or unit at that of five minutes within 30
-- level = warning
-- threshold = 24: hours until its limit is reached, or the host's memory is used
-- for = 60: minutes
-- window = 62: minutes
-- unit = h
-- needs = host
-- lines = memory
-- next = sonde heap --growth --last 1h
WITH reading AS (
  SELECT cgroup, subject, ts, held / 1048576.0 AS mib, most / 1048576.0 AS limit_mib, lag(held) OVER (PARTITION BY cgroup ORDER BY ts) / 1048576.0 AS before
  FROM (SELECT cgroup, iif(kind = 'container', container, unit) AS subject, ts, coalesce(anon + coalesce(kernel, 0), working) AS held, mem_limit AS most
        FROM cgroup_stats WHERE kind IN ('container', 'unit') AND mem_limit > 0 -- files' pages can be given back
        UNION ALL SELECT '', 'host', ts, mem_total - mem_available, mem_total FROM host_stats WHERE mem_total > 0)
  WHERE held IS NOT NULL AND ts >= :from AND ts < :to),
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
  SELECT cgroup, slope((ts - first) / 3600.0, mib) AS slope FROM kept WHERE ts <= first + (last - first) / 3 GROUP BY cgroup),
now AS (SELECT cgroup, mib, max(ts) FROM kept GROUP BY cgroup),
found AS (
  SELECT l.cgroup, l.subject, l.slope, n.mib, l.limit_mib
  FROM line l JOIN late e ON e.cgroup = l.cgroup JOIN early b ON b.cgroup = l.cgroup JOIN now n ON n.cgroup = l.cgroup
  WHERE l.n >= 10 AND l.span >= 60 * :for - 10 AND l.slope > l.limit_mib / 200 AND b.slope >= 0.3 * l.slope AND e.slope >= 0.3 * l.slope
    AND (l.limit_mib - n.mib) / l.slope <= :threshold),
recent AS ( -- an hour is too late where a container is full in minutes
  SELECT k.*, :to - 300 AS since FROM kept k WHERE cgroup <> '' AND ts >= :to - 300 AND first <= :to - 290),
quick AS (
  SELECT cgroup, subject, count(*) AS n, slope((ts - since) / 3600.0, mib) AS slope, max(limit_mib) AS limit_mib FROM recent GROUP BY cgroup),
third AS (
  SELECT cgroup, min(slope) AS slope FROM (SELECT cgroup, slope((ts - since) / 3600.0, mib) AS slope FROM recent GROUP BY cgroup, (ts - since) / 100 HAVING count(*) >= 5)
  GROUP BY cgroup HAVING count(*) = 3),
quickly AS (
  SELECT q.cgroup, q.subject, q.slope, n.mib, q.limit_mib FROM quick q JOIN third t ON t.cgroup = q.cgroup JOIN now n ON n.cgroup = q.cgroup
  WHERE q.n >= 20 AND t.slope >= 0.5 * q.slope AND q.slope > 0 AND (q.limit_mib - n.mib) / q.slope <= 0.5 AND q.cgroup NOT IN (SELECT cgroup FROM found))
SELECT subject, round((limit_mib - mib) / slope, 1) AS value,
       printf('%.0f of %.0f MiB, %.0f MiB more each hour: full at about %s', mib, limit_mib, slope,
              strftime('%Y-%m-%d %H:%M UTC', :to + 3600 * (limit_mib - mib) / slope, 'unixepoch')) AS text
FROM found
UNION ALL SELECT subject, round((limit_mib - mib) / slope, 2),
       printf('%.0f of %.0f MiB, %.0f MiB more each minute in the last five: full at about %s', mib, limit_mib, slope / 60,
              strftime('%Y-%m-%d %H:%M UTC', :to + 3600 * (limit_mib - mib) / slope, 'unixepoch'))
FROM quickly;
SELECT min(time) AS time, round(avg(held) / 1048576.0, 1) AS mem_mib FROM (
  SELECT iif(kind = 'container', container, unit) AS subject, ts, time, coalesce(anon + coalesce(kernel, 0), working) AS held FROM cgroup_stats
  UNION ALL SELECT 'host', ts, time, mem_total - mem_available FROM host_stats)
WHERE subject = :subject AND held IS NOT NULL GROUP BY ts / 900 ORDER BY min(ts);
