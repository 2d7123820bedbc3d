-- SPDX-License-Identifier: Apache-2.0
-- fills: what fills the disks: how much less is left, who wrote, and in which folders and files (host family)
-- n = 20: how many rows of each kind
-- from = 0: not before this time
-- to = 9e18: before this time
WITH
space AS (
  SELECT mount, first_value(available) OVER w - last_value(available) OVER w AS less, last_value(available) OVER w AS available
  FROM filesystem_stats WHERE available IS NOT NULL AND coalesce(read_only, 0) = 0 AND ts >= :from AND ts < :to
  WINDOW w AS (PARTITION BY mount ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)),
found AS ( -- as it was looked through last in that time, and before that
  SELECT *, iif(:to - :from <= 3700, hour, iif(:to - :from <= 21700, hours, iif(:to - :from <= 86500, day, week))) AS late,
         first_value(bytes) OVER w AS was, first_value(ts) OVER w AS was_ts, max(ts) OVER (PARTITION BY mount) AS last
  FROM fill_stats WHERE ts >= :from AND ts < :to WINDOW w AS (PARTITION BY mount, kind, path, container ORDER BY ts)),
wrote AS (
  SELECT process_id, comm, pid, container, sum(write_bytes) AS bytes FROM process_stats WHERE write_bytes > 0 AND ts >= :from AND ts < :to GROUP BY process_id),
handed AS ( -- the kernel adds what a process wrote to its parent's when that waits for its end
  SELECT h.process_id, sum(w.bytes) AS bytes
  FROM wrote w JOIN processes c ON c.id = w.process_id JOIN processes p ON p.pid = c.ppid JOIN wrote h ON h.process_id = p.id
  WHERE c.end_ns > 0 AND p.start_ns <= c.start_ns AND (p.end_ns = 0 OR p.end_ns >= c.end_ns) AND h.bytes >= w.bytes GROUP BY 1),
own AS (SELECT w.*, w.bytes - coalesce(h.bytes, 0) AS own FROM wrote w LEFT JOIN handed h ON h.process_id = w.process_id),
boxes AS ( -- where a cgroup counted nothing, its processes did
  SELECT container, sum(write_bytes) AS bytes FROM container_stats WHERE write_bytes > 0 AND ts >= :from AND ts < :to GROUP BY 1
  UNION ALL SELECT container, sum(own) FROM own WHERE container <> '' AND own > 0 GROUP BY 1),
told AS (
  SELECT 1 AS place, 'file system' AS kind, mount AS name, less AS bytes, sonde_size(available) || ' left' AS text
  FROM space GROUP BY mount HAVING less > 0
  UNION ALL
  SELECT 2, 'container', container, max(bytes), 'written' FROM boxes GROUP BY container
  UNION ALL
  SELECT 3, 'process', comm || ' (' || pid || ')', sum(own), 'written' || iif(container = '', '', ' in ' || container) FROM own WHERE own > 0 GROUP BY pid, comm, container
  UNION ALL
  SELECT 4, kind, iif(kind = 'deleted', '', mount || ': ') || path, iif(kind = 'deleted', bytes, late),
         iif(kind = 'deleted', 'deleted, open in ' || coalesce(comm || ' (' || pid || ')', 'a process'), 'written to, of ' || sonde_size(bytes) || ' in it')
         || iif(container = '', '', ' of ' || container) || iif(was_ts < ts, iif(bytes < was, ', -', ', +') || sonde_size(abs(bytes - was)) || ' since ' || strftime('%H:%M', was_ts, 'unixepoch', 'localtime'), '')
  FROM found WHERE ts = last AND (kind = 'deleted' OR late > 0)
  UNION ALL
  SELECT 0, 'found', name, NULL, detail FROM events WHERE kind = 'fills' AND ts >= :from AND ts < :to GROUP BY name, detail),
ranked AS (SELECT *, row_number() OVER (PARTITION BY place ORDER BY bytes DESC, name, text) AS nth FROM told)
SELECT kind, name, sonde_size(bytes) AS size, text, bytes FROM ranked WHERE nth <= :n ORDER BY place, nth;
