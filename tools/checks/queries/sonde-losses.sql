-- SPDX-License-Identifier: Apache-2.0
-- sonde-losses: sonde lost many events
-- level = warning
-- threshold = 5000: events lost
-- for = 60: minutes
-- unit = lost
-- next = sonde status
SELECT family AS subject, sum(lost) AS value, max(reason) AS text FROM loss WHERE ts >= :from AND ts < :to
GROUP BY family HAVING sum(lost) >= :threshold;
SELECT time, reason, lost FROM loss WHERE family = :subject ORDER BY ts DESC LIMIT 5;
