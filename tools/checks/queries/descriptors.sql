-- SPDX-License-Identifier: Apache-2.0
-- descriptors: a process has nearly reached its limit of open files
-- level = warning
-- threshold = 80: percent of its limit
-- for = 5: minutes
-- window = 15: minutes
-- unit = %
-- needs = host
-- next = sonde ps --comm {subject} --last 15m
SELECT iif(container <> '', container || ': ', '') || comm AS subject, round(max(100.0 * fds / fds_limit), 1) AS value,
       printf('pid %d: %d of %d', pid, fds, fds_limit) AS text
FROM descriptor_stats WHERE fds_limit > 0 AND ts >= :from AND ts < :to GROUP BY process_id
HAVING min(100.0 * fds / fds_limit) >= :threshold AND max(ts) >= :to - 60 * :for;
