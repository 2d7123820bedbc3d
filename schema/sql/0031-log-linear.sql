-- SPDX-License-Identifier: Apache-2.0
-- Migration 31: amount.hist and wait_row.hist in steps of an eighth of a power of two, as request_row.hist has them. Lists keep their form, and what
-- was stored stays what it is: places 0 to 63 are powers of two, steps stand from place 64 on (schema/store/model/hist.h).

DROP VIEW amount_spread;
CREATE VIEW amount_spread AS -- the histograms: how many lay in [low, high), an eighth wide at most; of older rows [low, 2 * low), where the first also holds 0
  SELECT ts, series_id, CASE WHEN k < 64 THEN 1 << k WHEN k < 72 THEN k - 64 ELSE (8 + k % 8) << (k / 8 - 9) END AS low,
         CASE WHEN k < 64 THEN 2 << k WHEN k < 72 THEN k - 63 ELSE (9 + k % 8) << (k / 8 - 9) END AS high, n
  FROM (SELECT x.ts + t0.value AS ts, x.series AS series_id, json_extract(x.hist, '$[0]') + j.key - 1 AS k, j.value AS n
        FROM amount x JOIN meta t0 ON t0.key = 't0' JOIN json_each(x.hist) j WHERE j.key > 0 AND j.value > 0);
