-- SPDX-License-Identifier: Apache-2.0
-- minutes: cores used minute by minute, and by whom most
-- from = 0: not before this time
-- to = 9e18: before this time
SELECT minute, round(sum(ns) / 6e10, 2) AS cores, comm AS mostly, round(max(ns) / 6e10, 2) AS its_cores
FROM (SELECT strftime('%Y-%m-%d %H:%M', ts, 'unixepoch', 'localtime') AS minute, comm, sum(cpu_ns) AS ns
      FROM sonde_steps(60, :from, :to) WHERE NOT self GROUP BY 1, 2)
GROUP BY 1 ORDER BY 1;
