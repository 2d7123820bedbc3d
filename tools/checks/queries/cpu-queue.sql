-- SPDX-License-Identifier: Apache-2.0
-- cpu-queue: many more threads want to run than there are CPUs
-- level = warning
-- threshold = 5: threads that run or wait for a CPU, for each CPU
-- for = 3: minutes
-- unit = threads
-- needs = host
-- next = sonde top --last 5m
SELECT 'host' AS subject, min(threads) AS value, 'for ' || max(cpus) || ' CPUs' AS text FROM (
  SELECT avg(running) AS threads, max(cpus) AS cpus, avg(iif(ts < :from + 10 OR ts >= :to - 10, running, NULL)) AS edge
  FROM host_stats WHERE running IS NOT NULL AND cpus > 0 AND ts >= :from AND ts < :to GROUP BY (:to - 1 - ts) / 60)
WHERE threads >= :threshold * cpus AND coalesce(edge, threads) >= :threshold * cpus / 2.0 HAVING count(*) >= :for;
SELECT min(time) AS time, round(avg(running), 1) AS threads, max(cpus) AS cpus FROM host_stats GROUP BY ts / 60 ORDER BY 1 DESC LIMIT 5;
