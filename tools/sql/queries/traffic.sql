-- SPDX-License-Identifier: Apache-2.0
-- traffic: what containers read and wrote, received and sent (host family)
-- n = 20: how many rows
-- from = 0: not before this time
-- to = 9e18: before this time
SELECT container, round(sum(read_bytes) / 1048576.0, 1) AS read_mib, round(sum(write_bytes) / 1048576.0, 1) AS written_mib,
       round(sum(rx_bytes) / 1048576.0, 1) AS received_mib, round(sum(tx_bytes) / 1048576.0, 1) AS sent_mib, sum(rx_drops) + sum(tx_drops) AS drops
FROM container_stats WHERE ts >= :from AND ts < :to
GROUP BY 1 ORDER BY coalesce(sum(read_bytes), 0) + coalesce(sum(write_bytes), 0) + coalesce(sum(rx_bytes), 0) + coalesce(sum(tx_bytes), 0) DESC, 1 LIMIT :n;
