-- SPDX-License-Identifier: Apache-2.0
-- jvm-gc: Java spends its time in garbage collections
-- level = warning
-- threshold = 20: percent of the time, pauses of young and full collections
-- for = 5: minutes
-- unit = %
-- needs = host
-- next = sonde timeline --of gc
SELECT iif(container <> '', container || ': ', '') || comm || ' ' || pid AS subject, round(min(share), 1) AS value,
       printf('%s, old generation %d of %d MiB', collector, max(used), max(most)) AS text FROM (
  SELECT process_id, container, comm, pid, collector, 100.0 * sum(coalesce(young_gc_us, 0) + coalesce(full_gc_us, 0)) / 60e6 AS share,
         max(old_used) / 1048576 AS used, max(old_max) / 1048576 AS most FROM jvm_stats WHERE ts >= :from AND ts < :to GROUP BY process_id, (:to - 1 - ts) / 60)
WHERE share >= :threshold GROUP BY process_id HAVING count(*) >= :for;
SELECT min(time) AS time, sum(young_gcs) AS young, sum(full_gcs) AS full, max(old_used) / 1048576 AS old_mib, max(old_max) / 1048576 AS of_mib FROM jvm_stats
WHERE iif(container <> '', container || ': ', '') || comm || ' ' || pid = :subject GROUP BY ts / 60 ORDER BY 1 DESC LIMIT 5;
