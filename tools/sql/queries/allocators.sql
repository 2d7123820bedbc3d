-- SPDX-License-Identifier: Apache-2.0
-- allocators: functions by what they allocated, as sampled (heap families)
-- n = 20: how many rows
-- comm = '': only this command
SELECT comm, function, file, line, sum(n) AS objects, sum(value) AS bytes
FROM amounts WHERE type = 'alloc' AND (:comm = '' OR comm = :comm)
GROUP BY 1, 2, 3, 4 ORDER BY bytes DESC, 1, 2 LIMIT :n;
