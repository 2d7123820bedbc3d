-- SPDX-License-Identifier: Apache-2.0
-- file systems under the names that node_exporter has for the same
SELECT max(x.ts) AS ts, coalesce(s.value, '') AS device, coalesce(f.value, '') AS fstype, coalesce(m.value, '') AS mountpoint,
 x.size AS [node_filesystem_size_bytes],
 x.free AS [node_filesystem_free_bytes],
 x.available AS [node_filesystem_avail_bytes],
 x.inodes AS [node_filesystem_files],
 x.inodes_free AS [node_filesystem_files_free],
 x.read_only AS [node_filesystem_readonly]
FROM fs_row x LEFT JOIN text m ON m.id = x.mount LEFT JOIN text f ON f.id = x.fstype LEFT JOIN text s ON s.id = x.source
LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts
WHERE h.run IS NULL AND x.ts >= :from AND x.ts < :to
GROUP BY 2, 3, 4
