-- SPDX-License-Identifier: Apache-2.0
-- file-system-hangs: a file system does not respond (for example, its server is gone)
-- level = critical
-- threshold = 1: readings
-- for = 3: minutes
-- window = 10: minutes
-- unit = readings
-- needs = host
-- next = sonde events --last 1h
SELECT mount AS subject, count(*) AS value, fstype || ' of ' || source AS text FROM filesystem_stats WHERE ts >= :from AND ts < :to
GROUP BY mount HAVING min(hangs) = 1 AND count(*) >= :threshold;
