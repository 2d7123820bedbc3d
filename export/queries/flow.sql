-- SPDX-License-Identifier: Apache-2.0
-- connections
SELECT max(x.ts) AS ts, coalesce(c.name, '') AS container, coalesce(sd.value, '') AS side,
 sum(x.attempts) AS [sonde_connection_attempts_total],
 sum(x.opened) AS [sonde_connections_opened_total],
 sum(x.refused) AS [sonde_connection_failures_total{reason="refused"}],
 sum(x.timed_out) AS [sonde_connection_failures_total{reason="timed out"}],
 sum(x.unreachable) AS [sonde_connection_failures_total{reason="unreachable"}],
 sum(x.given_up) AS [sonde_connection_failures_total{reason="given up"}],
 sum(x.failed) AS [sonde_connection_failures_total{reason="other"}],
 sum(x.closed) AS [sonde_connections_ended_total{reason="closed"}],
 sum(x.reset_in) AS [sonde_connections_ended_total{reason="reset by the other end"}],
 sum(x.reset_out) AS [sonde_connections_ended_total{reason="reset by this end"}],
 sum(x.broken) AS [sonde_connections_ended_total{reason="broken"}],
 sum(x.tx_bytes) AS [sonde_connection_bytes_total{direction="sent"}],
 sum(x.rx_bytes) AS [sonde_connection_bytes_total{direction="received"}],
 sum(x.segs_out) AS [sonde_connection_segments_total{direction="sent"}],
 sum(x.segs_in) AS [sonde_connection_segments_total{direction="received"}],
 sum(x.retrans) AS [sonde_connection_retransmitted_segments_total],
 sum(x.rtt_sum_us) AS [sonde_connection_round_trip_seconds_total],
 sum(x.rtt_n) AS [sonde_connection_round_trips_total]
FROM flow_row x JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container LEFT JOIN text sd ON sd.id = x.side
LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts
 AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM flow_row y WHERE y.run = h.by AND y.process = x.process))
WHERE h.run IS NULL AND NOT p.self AND x.ts >= :from AND x.ts < :to
GROUP BY 2, 3
