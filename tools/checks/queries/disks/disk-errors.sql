-- SPDX-License-Identifier: Apache-2.0
-- disk-errors: requests of a disk failed
-- level = critical
-- threshold = 1: requests
-- for = 60: minutes
-- unit = requests
-- needs = disk
-- next = sonde disk --slow --last 1h
SELECT disk AS subject, sum(errors) AS value, printf('%d of %d requests failed', sum(errors), sum(requests)) AS text FROM block_stats
WHERE ts >= :from AND ts < :to GROUP BY disk HAVING sum(errors) >= :threshold;
SELECT time, op, comm, pid, requests, errors FROM block_stats WHERE disk = :subject AND errors > 0 AND ts >= :from AND ts < :to ORDER BY ts DESC LIMIT 5;
