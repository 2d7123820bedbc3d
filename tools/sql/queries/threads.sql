-- SPDX-License-Identifier: Apache-2.0
-- threads: CPU time by thread
-- n = 20: how many rows
-- comm = '': only this command
-- from = 0: not before this time
-- to = 9e18: before this time
SELECT comm, pid, thread, tid, round(sum(cpu_ns) / 1e9, 3) AS cpu_s
FROM sonde_totals(:from, :to) WHERE NOT self AND (:comm = '' OR comm = :comm)
GROUP BY process_id, thread, tid ORDER BY sum(cpu_ns) DESC, tid LIMIT :n;
