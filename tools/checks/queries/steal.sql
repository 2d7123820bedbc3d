-- SPDX-License-Identifier: Apache-2.0
-- steal: the hypervisor takes CPU time away
-- level = warning
-- threshold = 10: percent of all CPUs
-- for = 10: minutes
-- unit = %
-- needs = host
-- next = sonde sql 'SELECT time, steal_us FROM host_stats ORDER BY ts DESC LIMIT 60'
SELECT 'host' AS subject, min(share) AS value, '' AS text FROM (
  SELECT 100.0 * sum(steal_us) / 60e6 / max(cpus) AS share FROM host_stats WHERE ts >= :from AND ts < :to GROUP BY ts / 60)
WHERE share >= :threshold HAVING count(*) >= :for;
