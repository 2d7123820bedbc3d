-- SPDX-License-Identifier: Apache-2.0
-- growth: functions whose memory in use grew, from their process's first reading to the last (heap families)
-- n = 20: how many rows
-- comm = '': only this command
WITH
readings AS (
  SELECT comm, function, file, line, value, ts, min(ts) OVER (PARTITION BY process_id) AS began,
         row_number() OVER (PARTITION BY series_id ORDER BY ts DESC) AS age,
         row_number() OVER (PARTITION BY series_id ORDER BY ts) AS place
  FROM amounts WHERE type = 'inuse' AND (:comm = '' OR comm = :comm))
SELECT comm, function, file, line,
       sum(value * (age = 1) - value * (place = 1 AND ts = began)) AS grew_bytes, sum(value * (age = 1)) AS inuse_bytes
FROM readings GROUP BY 1, 2, 3, 4 HAVING grew_bytes > 0 ORDER BY grew_bytes DESC, 1, 2 LIMIT :n;
