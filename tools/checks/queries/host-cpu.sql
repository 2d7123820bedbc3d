-- SPDX-License-Identifier: Apache-2.0
-- host-cpu: the host's CPUs are busy
-- level = warning
-- threshold = 90: percent of all CPUs
-- for = 10: minutes
-- unit = %
-- needs = host
-- next = sonde top --last 15m
SELECT 'host' AS subject, min(share) AS value, '' AS text FROM (
  SELECT 100.0 * sum(busy) / 60e6 / max(cpus) AS share, 100.0 * sum(iif(ts < :from + 10 OR ts >= :to - 10, busy, NULL)) / 10e6 / max(cpus) AS edge
  FROM (SELECT ts, cpus, user_us + nice_us + system_us + irq_us + softirq_us AS busy FROM host_stats WHERE ts >= :from AND ts < :to)
  GROUP BY (:to - 1 - ts) / 60)
WHERE share >= :threshold AND coalesce(edge, share) >= :threshold / 2.0 HAVING count(*) >= :for;
