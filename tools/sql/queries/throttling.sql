-- SPDX-License-Identifier: Apache-2.0
-- throttling: cgroups that were held back by their CPU quota (off-CPU family)
-- n = 20: how many rows
-- from = 0: not before this time
-- to = 9e18: before this time
SELECT coalesce(c.name, '') AS container, t.cgroup, sum(t.throttled) AS throttled, sum(t.periods) AS periods,
       round(100.0 * sum(t.throttled) / sum(t.periods), 1) AS percent, round(sum(t.throttled_ns) / 1e9, 3) AS lost_s
FROM throttling t LEFT JOIN (SELECT cgroup, max(name) AS name FROM containers WHERE cgroup <> '' GROUP BY 1) c ON c.cgroup = t.cgroup
WHERE t.ts >= :from AND t.ts < :to
GROUP BY 2 HAVING sum(t.throttled) > 0 ORDER BY sum(t.throttled_ns) DESC, 2 LIMIT :n;
