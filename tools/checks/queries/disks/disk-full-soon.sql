-- SPDX-License-Identifier: Apache-2.0
-- disk-full-soon: a file system will be full in a few days at its current growth
-- level = warning
-- threshold = 3: days
-- for = 60: minutes
-- window = 1440: minutes
-- unit = days
-- needs = host
-- next = sonde sql @fills
WITH reading AS (
  SELECT mount, (ts - :from) / 86400.0 AS day, available / 1048576.0 AS mib, ts FROM filesystem_stats
  WHERE size > 0 AND read_only = 0 AND available IS NOT NULL AND ts >= :from AND ts < :to),
line AS (
  SELECT mount, count(*) AS n, min(ts) AS first, max(ts) AS last,
         (count(*) * sum(day * mib) - sum(day) * sum(mib)) / nullif(count(*) * sum(day * day) - sum(day) * sum(day), 0) AS slope
  FROM reading GROUP BY mount)
SELECT l.mount AS subject, round(r.mib / -l.slope, 2) AS value,
       printf('%s left, %s less %s: full in %s', iif(r.mib >= 10240, printf('%.0f GiB', r.mib / 1024), printf('%.0f MiB', r.mib)),
              iif(day.n >= 10240, printf('%.0f GiB', day.n / 1024), printf('%.0f MiB', day.n)), day.name,
              CASE WHEN r.mib / -l.slope < 2 / 24.0 THEN printf('%.0f min', 1440 * r.mib / -l.slope) WHEN r.mib / -l.slope < 2 THEN printf('%.0f h', 24 * r.mib / -l.slope)
                   ELSE printf('%.1f days', r.mib / -l.slope) END) AS text
FROM line l JOIN reading r ON r.mount = l.mount AND r.ts = l.last
JOIN (SELECT mount, iif(slope < -102400, 'an hour', 'a day') AS name, iif(slope < -102400, -slope / 24, -slope) AS n FROM line) day ON day.mount = l.mount
WHERE l.n >= 30 AND l.first <= :to - 60 * :for AND l.slope < 0 AND r.mib / -l.slope < :threshold
  AND r.mib < (SELECT b.mib FROM reading b WHERE b.mount = l.mount AND b.ts <= :to - 60 * :for + 60 ORDER BY b.ts DESC LIMIT 1) -- it still grows
GROUP BY l.mount;
SELECT min(time) AS time, min(available) >> 20 AS available_mib FROM filesystem_stats WHERE mount = :subject AND available IS NOT NULL
GROUP BY ts / 14400 ORDER BY min(ts);
