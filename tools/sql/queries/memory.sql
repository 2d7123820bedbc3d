-- SPDX-License-Identifier: Apache-2.0
-- memory: memory of containers that the kernel cannot reclaim, most at once, with their limit (host family)
-- n = 20: how many rows
-- from = 0: not before this time
-- to = 9e18: before this time
SELECT container, round(max(coalesce(anon + coalesce(kernel, 0), working) + coalesce(swap, 0)) / 1048576.0, 1) AS held_mib, round(max(working) / 1048576.0, 1) AS most_mib, round(max(mem_limit) / 1048576.0, 1) AS limit_mib,
       round(100.0 * max(working) / max(mem_limit), 1) AS percent, sum(mem_max) AS met_limit, sum(oom_kills) AS oom_kills,
       round(sum(psi_mem_us) / 1e6, 3) AS waited_s
FROM container_stats WHERE ts >= :from AND ts < :to
GROUP BY 1 ORDER BY max(coalesce(anon + coalesce(kernel, 0), working) + coalesce(swap, 0)) DESC, 1 LIMIT :n;
