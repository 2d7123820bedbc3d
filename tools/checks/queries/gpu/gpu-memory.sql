-- SPDX-License-Identifier: Apache-2.0
-- gpu-memory: the memory of a GPU is nearly full
-- level = warning
-- threshold = 95: percent of its memory
-- for = 10: minutes
-- unit = %
-- needs = gpu
-- next = sonde ps --sort gpu --last 15m
SELECT 'GPU ' || gpu AS subject, round(min(share), 1) AS value, printf('%s has %d MiB left', name, min(left_mib)) AS text FROM (
  SELECT uuid, gpu, name, 100.0 * min(mem_used) / max(mem_total) AS share, (max(mem_total) - min(mem_used)) / 1048576 AS left_mib FROM gpu_stats
  WHERE mem_total > 0 AND mem_used IS NOT NULL AND ts >= :from AND ts < :to GROUP BY uuid, (:to - 1 - ts) / 60)
WHERE share >= :threshold GROUP BY uuid HAVING count(*) >= :for;
SELECT comm, pid, container, max(mem) / 1048576 AS mem_mib FROM gpu_process_stats WHERE 'GPU ' || gpu = :subject
GROUP BY process_id ORDER BY 4 DESC LIMIT 5;
