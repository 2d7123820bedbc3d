-- SPDX-License-Identifier: Apache-2.0
-- GPUs
SELECT max(x.ts) AS ts, coalesce(n.value, '') AS gpu, coalesce(m.value, '') AS model,
 sum(x.busy_us) AS [sonde_gpu_busy_seconds_total],
 sum(x.mem_busy_us) AS [sonde_gpu_memory_busy_seconds_total],
 sum(x.encoder_us) AS [sonde_gpu_video_seconds_total{mode="encode"}],
 sum(x.decoder_us) AS [sonde_gpu_video_seconds_total{mode="decode"}],
 x.mem_total AS [sonde_gpu_memory_bytes{kind="total"}],
 x.mem_used AS [sonde_gpu_memory_bytes{kind="used"}],
 x.power_mw AS [sonde_gpu_power_watts],
 x.power_limit_mw AS [sonde_gpu_power_limit_watts],
 sum(x.energy_mj) AS [sonde_gpu_energy_joules_total],
 x.temperature_m AS [sonde_gpu_temperature_celsius],
 x.fan_percent AS [sonde_gpu_fan_ratio],
 x.clock_mhz * 1000000 AS [sonde_gpu_clock_hertz{kind="processors"}],
 x.mem_clock_mhz * 1000000 AS [sonde_gpu_clock_hertz{kind="memory"}],
 sum(x.hot_us) AS [sonde_gpu_throttled_seconds_total{reason="hot"}],
 sum(x.capped_us) AS [sonde_gpu_throttled_seconds_total{reason="power limit"}],
 sum(x.ecc_errors) AS [sonde_gpu_memory_errors_total]
FROM gpu_row x LEFT JOIN text n ON n.id = x.gpu LEFT JOIN text m ON m.id = x.name
LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts
WHERE h.run IS NULL AND x.ts >= :from AND x.ts < :to
GROUP BY 2, 3
