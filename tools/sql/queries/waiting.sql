-- SPDX-License-Identifier: Apache-2.0
-- waiting: what programs wait for, exact totals (off-CPU family)
-- n = 20: how many rows
-- comm = '': only this command
-- from = 0: not before this time
-- to = 9e18: before this time
SELECT comm, pid, state, reason, sum(count) AS count, round(sum(total_ns) / 1e9, 3) AS total_s, round(max(max_ns) / 1e6, 3) AS max_ms
FROM wait_totals WHERE NOT self AND state <> 'running' AND ts >= :from AND ts < :to AND (:comm = '' OR comm = :comm)
GROUP BY process_id, state, reason ORDER BY sum(total_ns) DESC, pid LIMIT :n;
