-- SPDX-License-Identifier: Apache-2.0
-- Migration 46: how far sums by stack may lie from what happened.
--
-- Where stacks are taken of some waits only, each of these counts for w waits, w being one by the probability that it was
-- drawn. Sums of w, and of w times a length, are estimates without bias. The variance of such a sum is estimated by the sum of
-- w * (w - 1) * length^2 over the waits that were drawn (of a count: of w * (w - 1)), so that variances add up over rows. The
-- root of a sum's variance is its standard error: 19 of 20 sums lie within two of it.

CREATE TABLE amount_error_row( -- of rows of amount that are estimates; one that is not here is exact
  ts INTEGER NOT NULL,     -- as amount.ts
  series INTEGER NOT NULL, -- as amount.series
  n_variance INTEGER NOT NULL, -- of amount.n
  value_variance INTEGER NOT NULL, -- of amount.value, in square microseconds
  PRIMARY KEY(ts, series)
) STRICT, WITHOUT ROWID;

DROP VIEW waits;

CREATE VIEW waits AS -- by stack; where stacks were taken of some waits only, counts and sums are estimates, with their variances
  WITH error(ts, series, n_variance, value_variance) AS MATERIALIZED (
    SELECT ts, series, n_variance, value_variance FROM amount_error_row)
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, coalesce(c.name, '') AS container, p.comm,
         p.pid, t.thread, t.tid, coalesce(w.name, 'class ' || e.label) AS reason,
         coalesce(f.function, '[no stack]') AS function, coalesce(f.module, '') AS module, e.stack AS stack_id,
         x.n AS count, x.value AS total_ns, x.max AS max_ns, x.hist, t.process AS process_id, t.run AS run_id, p.self,
         coalesce(v.n_variance, 0) AS count_variance, coalesce(v.value_variance, 0) AS total_us_variance
  FROM amount x JOIN meta t0 ON t0.key = 't0' JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task
  JOIN process p ON p.id = t.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN wait_class w ON w.id = e.label
  LEFT JOIN stack k ON k.id = e.stack LEFT JOIN frames f ON f.id = k.leaf
  LEFT JOIN run_hidden h ON h.run = t.run AND h.process = t.process AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  LEFT JOIN error v ON v.ts = x.ts AND v.series = x.series
  WHERE t.kind = 2
    AND h.run IS NULL;
