-- SPDX-License-Identifier: Apache-2.0
-- Java's virtual machines: sums only, for what each holds has a row only where it moved
SELECT max(x.ts) AS ts, coalesce(c.name, '') AS container, coalesce(u.value, '') AS unit,
 sum(x.young_gcs) AS [sonde_jvm_collections_total{kind="young"}],
 sum(x.full_gcs) AS [sonde_jvm_collections_total{kind="full"}],
 sum(x.concurrent_gcs) AS [sonde_jvm_collections_total{kind="concurrent"}],
 sum(x.young_gc_us) AS [sonde_jvm_collection_seconds_total{kind="young"}],
 sum(x.full_gc_us) AS [sonde_jvm_collection_seconds_total{kind="full"}],
 sum(x.concurrent_gc_us) AS [sonde_jvm_collection_seconds_total{kind="concurrent"}],
 sum(x.safepoints) AS [sonde_jvm_safepoints_total],
 sum(x.safepoint_us) AS [sonde_jvm_safepoint_seconds_total]
FROM jvm_row x JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container LEFT JOIN text u ON u.id = p.unit
LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts
 AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM jvm_row y WHERE y.run = h.by AND y.process = x.process))
WHERE h.run IS NULL AND x.ts >= :from AND x.ts < :to
GROUP BY 2, 3
