-- SPDX-License-Identifier: Apache-2.0
-- network interfaces of the host
SELECT max(x.ts) AS ts, coalesce(n.value, '') AS interface,
 sum(x.rx_bytes) AS [sonde_interface_bytes_total{direction="received"}],
 sum(x.tx_bytes) AS [sonde_interface_bytes_total{direction="sent"}],
 sum(x.rx_packets) AS [sonde_interface_packets_total{direction="received"}],
 sum(x.tx_packets) AS [sonde_interface_packets_total{direction="sent"}],
 sum(x.rx_errors) AS [sonde_interface_errors_total{direction="received"}],
 sum(x.tx_errors) AS [sonde_interface_errors_total{direction="sent"}],
 sum(x.rx_drops) AS [sonde_interface_dropped_packets_total{direction="received"}],
 sum(x.tx_drops) AS [sonde_interface_dropped_packets_total{direction="sent"}]
FROM nic_row x LEFT JOIN text n ON n.id = x.interface
LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts
WHERE h.run IS NULL AND x.ts >= :from AND x.ts < :to AND x.container = 0 AND n.value NOT LIKE 'veth%'
GROUP BY 2
