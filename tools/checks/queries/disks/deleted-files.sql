-- SPDX-License-Identifier: Apache-2.0
-- deleted-files: a program keeps deleted files open, and they take much of a disk
-- level = warning
-- threshold = 1024: MiB
-- for = 2: minutes
-- window = 10: minutes
-- unit = MiB
-- needs = disk
-- next = sonde disk --deleted
WITH look AS (SELECT iif(container <> '', container || ': ', '') || coalesce(nullif(comm, ''), 'a process') AS who, ts, sum(bytes) / 1048576.0 AS mib, count(DISTINCT ino) AS n,
                     max(pid) AS pid, max(mount) AS mount
              FROM held_files WHERE ts >= :from AND ts < :to GROUP BY 1, 2)
SELECT who AS subject, round(max(mib), 1) AS value, printf('%d deleted files of %.0f MiB are open in pid %d%s%s: free once it closes them', n, mib, pid, iif(mount = '', '', ' on '), mount) AS text
FROM look WHERE mib >= :threshold GROUP BY who HAVING min(ts) <= :to - 60 * :for AND max(ts) >= :to - 130;
SELECT time, file, bytes >> 20 AS mib, comm, pid FROM held_files WHERE iif(container <> '', container || ': ', '') || coalesce(nullif(comm, ''), 'a process') = :subject
ORDER BY ts DESC, bytes DESC LIMIT 5;
