-- SPDX-License-Identifier: Apache-2.0
-- memory-pressure: threads wait for memory
-- level = warning
-- threshold = 5: percent of the time in which some thread waited for memory
-- for = 5: minutes
-- unit = %
-- needs = host
-- next = sonde timeline --of pressure
SELECT subject, min(share) AS value, '' AS text FROM (
  SELECT 'host' AS subject, ts / 60 AS minute, 100.0 * sum(psi_mem_us) / 60e6 AS share FROM host_stats
  WHERE ts >= :from AND ts < :to GROUP BY ts / 60
  UNION ALL
  SELECT iif(kind = 'container', container, unit), ts / 60, 100.0 * sum(psi_mem_us) / 60e6 FROM cgroup_stats
  WHERE kind IN ('container', 'unit') AND psi_mem_us IS NOT NULL AND ts >= :from AND ts < :to GROUP BY cgroup, ts / 60)
WHERE share >= :threshold GROUP BY subject HAVING count(*) >= :for;
