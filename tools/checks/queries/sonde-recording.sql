-- SPDX-License-Identifier: Apache-2.0
-- sonde-recording: the background recorder was killed, or has stopped storing data
-- level = critical
-- threshold = 5: minutes without data
-- for = 5: minutes
-- window = 1440: minutes
-- unit = min
-- next = sonde status
SELECT family AS subject, round((:to - max(to_ns) / 1e9) / 60, 1) AS value, 'it is ' || state AS text
FROM runs WHERE bucket_s = 10 AND to_ns / 1000000000 >= :from AND from_ns / 1000000000 < :to GROUP BY family -- one that goes on may have stored more than :to
HAVING state <> 'ended' AND :to - max(to_ns) / 1e9 >= 60 * :threshold;
