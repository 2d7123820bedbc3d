-- SPDX-License-Identifier: Apache-2.0
-- file systems
SELECT max(x.ts) AS ts, coalesce(m.value, '') AS mount, coalesce(f.value, '') AS fstype,
 x.size AS [sonde_filesystem_bytes{kind="size"}],
 x.free AS [sonde_filesystem_bytes{kind="free"}],
 x.available AS [sonde_filesystem_bytes{kind="available"}],
 x.inodes AS [sonde_filesystem_inodes{kind="all"}],
 x.inodes_free AS [sonde_filesystem_inodes{kind="free"}],
 x.read_only AS [sonde_filesystem_read_only],
 x.hangs AS [sonde_filesystem_hangs]
FROM fs_row x LEFT JOIN text m ON m.id = x.mount LEFT JOIN text f ON f.id = x.fstype
LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts
WHERE h.run IS NULL AND x.ts >= :from AND x.ts < :to
GROUP BY 2, 3
