-- SPDX-License-Identifier: Apache-2.0
-- steal: the hypervisor takes CPU time away
-- level = warning
-- threshold = 10: percent of all CPUs
-- for = 10: minutes
-- unit = %
-- needs = host
-- next = sonde sql 'SELECT time, steal_us FROM host_stats ORDER BY ts DESC LIMIT 60'
SELECT 'host' AS subject, min(share) AS value, '' AS text FROM (
  SELECT 100.0 * sum(steal_us) / 60e6 / max(cpus) AS share,
         100.0 * sum(iif(ts < :from + 10 OR ts >= :to - 10, steal_us, NULL)) / 10e6 / max(cpus) AS edge
  FROM host_stats WHERE ts >= :from AND ts < :to GROUP BY (:to - 1 - ts) / 60)
WHERE share >= :threshold AND coalesce(edge, share) >= :threshold / 2.0 HAVING count(*) >= :for;
