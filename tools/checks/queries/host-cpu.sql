-- SPDX-License-Identifier: Apache-2.0
-- host-cpu: the host's CPUs are busy
-- level = warning
-- threshold = 90: percent of all CPUs
-- for = 10: minutes
-- unit = %
-- needs = host
-- next = sonde top --last 15m
SELECT 'host' AS subject, min(share) AS value, '' AS text FROM (
  SELECT 100.0 * sum(user_us + nice_us + system_us + irq_us + softirq_us) / 60e6 / max(cpus) AS share
  FROM host_stats WHERE ts >= :from AND ts < :to GROUP BY ts / 60)
WHERE share >= :threshold HAVING count(*) >= :for;
