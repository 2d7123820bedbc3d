-- SPDX-License-Identifier: Apache-2.0
-- restarts: containers that began more than once, and how their processes ended
-- n = 20: how many rows
WITH
instances AS (
  SELECT name, max(image) AS image, count(DISTINCT runtime_id || ' ' || started) AS instances, max(restarts) AS restarts,
         min(started) AS first, max(started) AS last
  FROM containers WHERE name <> '' GROUP BY 1),
endings AS (
  SELECT container, group_concat(times || ' x ' || what, ', ') AS ends
  FROM (SELECT container, how || iif(how IN ('exit', 'signal'), ' ' || status, '') AS what, sum(n) AS times
        FROM process_ends WHERE how NOT IN ('exec', '') AND NOT (how = 'exit' AND status = 0)
        GROUP BY 1, 2 ORDER BY 3 DESC, 2) GROUP BY 1)
SELECT i.name AS container, i.image, i.instances, i.restarts, i.first, i.last, coalesce(e.ends, '') AS ends
FROM instances i LEFT JOIN endings e ON e.container = i.name
WHERE i.instances > 1 OR i.restarts > 0 ORDER BY max(i.instances - 1, i.restarts) DESC, 1 LIMIT :n;
