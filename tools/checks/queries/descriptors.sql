-- SPDX-License-Identifier: Apache-2.0
-- descriptors: a process has nearly reached its limit of open files
-- level = warning
-- threshold = 80: percent of its limit
-- for = 5: minutes
-- window = 10: minutes
-- unit = %
-- needs = host
-- next = sonde ps --comm {subject} --last 15m
WITH reading AS (SELECT process_id, container, comm, pid, fds, fds_limit, ts, 100.0 * fds / fds_limit AS share FROM descriptor_stats
                 WHERE fds_limit > 0 AND ts >= :from AND ts < :to),
good AS (SELECT process_id, max(ts) AS ts FROM reading WHERE share < :threshold GROUP BY process_id)
SELECT iif(container <> '', container || ': ', '') || comm AS subject, round(max(share), 1) AS value, printf('pid %d: %d of %d', pid, fds, fds_limit) AS text
FROM reading r LEFT JOIN good g ON g.process_id = r.process_id WHERE r.ts > coalesce(g.ts, 0)
GROUP BY r.process_id HAVING min(r.ts) <= :to - 60 * :for AND max(r.ts) >= :to - 70;
