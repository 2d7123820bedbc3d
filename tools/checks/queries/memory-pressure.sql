-- SPDX-License-Identifier: Apache-2.0
-- memory-pressure: threads wait for memory
-- level = warning
-- threshold = 5: percent of the time in which some thread waited for memory
-- for = 5: minutes
-- unit = %
-- needs = host
-- next = sonde timeline --of pressure
SELECT subject, min(share) AS value, '' AS text FROM (
  SELECT subject, which, 100.0 * sum(psi_mem_us) / 60e6 AS share,
         100.0 * sum(iif(ts < :from + 10 OR ts >= :to - 10, psi_mem_us, NULL)) / 10e6 AS edge FROM (
    SELECT 'host' AS subject, '' AS which, ts, psi_mem_us FROM host_stats WHERE psi_mem_us IS NOT NULL AND ts >= :from AND ts < :to
    UNION ALL
    SELECT iif(kind = 'container', container, unit), cgroup, ts, psi_mem_us FROM cgroup_stats
    WHERE kind IN ('container', 'unit') AND psi_mem_us IS NOT NULL AND ts >= :from AND ts < :to)
  GROUP BY subject, which, (:to - 1 - ts) / 60)
WHERE share >= :threshold AND coalesce(edge, share) >= :threshold / 2.0 GROUP BY subject, which HAVING count(*) >= :for;
