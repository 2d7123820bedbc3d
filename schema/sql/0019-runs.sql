-- SPDX-License-Identifier: Apache-2.0
-- Migration 19: captures, what each lost and cost, and how a moment that two of them saw counts once.
--
-- Two runs at once: each (process, bucket) is taken from one run only. Runs of a family are put in an order, finest
-- first: bucket width, period (the smallest it had), id. E is what a bucket really holds: the bucket cut to its run's
-- [from, to). A run covers a process if it covers the whole host, or is narrowed and has that process.
--   1. A bucket is hidden where a finer run covered its process for the whole of E.
--   2. A finer run's bucket is hidden where it touches the E of a coarser run's bucket that rule 1 leaves standing.
--   3. A run that covers no process wholly (scope 2) is hidden wherever it touches a run that covers the process;
--      towards others of its kind it follows 1 and 2, as if it covered the processes that it has.
-- schema/store/model/choice.c does the same in C; a test compares the two.
--
-- run_count, run_loss, run_cost and run_unwound hold what each run has in this file, summed as it is written: `sonde status` reads
-- these few rows, however long the file is. Losses, costs and endings come a few at a time: triggers sum them. Samples and amounts
-- come by the thousand: a writer adds each batch at once (schema/store/write/commit_sum.c).

CREATE TABLE meta(         -- facts about this segment
  key TEXT PRIMARY KEY,    -- schema_version, t0 (seconds since 1970), created_ns, host, kernel, boot_id, cpus
  value ANY                -- number or text
) STRICT, WITHOUT ROWID;

CREATE TABLE clock(            -- how kernel stamps became UTC: one row at the start and at each change of the wall clock
  utc_ns INTEGER PRIMARY KEY,  -- from when
  boot_offset_ns INTEGER NOT NULL  -- UTC minus CLOCK_BOOTTIME
) STRICT;

CREATE TABLE run(          -- one capture of one family
  id INTEGER PRIMARY KEY,  -- number within this file
  token INTEGER NOT NULL,  -- random; a capture that goes on in the next segment has the same token there
  family TEXT NOT NULL,    -- 'cpu'
  options TEXT NOT NULL,   -- the command line as typed
  scope INTEGER NOT NULL,  -- 0 whole host, 1 narrowed: covers wholly each process that it has, 2 covers none wholly
  bucket_s INTEGER NOT NULL,   -- width of its buckets in seconds
  cpus INTEGER NOT NULL,   -- CPUs that it watched
  from_ns INTEGER NOT NULL,    -- its data holds from here
  to_ns INTEGER NOT NULL,  -- up to here (as of the last commit)
  state INTEGER NOT NULL,  -- 0 going on, 1 ended, 2 was killed, 3 goes on in the next segment
  pid INTEGER NOT NULL,    -- of the program that wrote it
  accounted INTEGER NOT NULL,   -- events stored or booked as lost so far, over all segments
  recording INTEGER NOT NULL DEFAULT 0 -- the same for runs that were begun together (one for each family), 0: it was begun alone
) STRICT;

CREATE TABLE run_period(   -- sampling period; may change during a run
  run INTEGER NOT NULL,    -- run.id
  from_ns INTEGER NOT NULL,    -- for buckets that begin here or later; 0 for the first
  period_ns INTEGER NOT NULL,  -- CPU time of one sample; 0: the value is itself
  PRIMARY KEY(run, from_ns)
) STRICT, WITHOUT ROWID;

CREATE VIEW run_order AS -- runs and what their order needs
  SELECT id, family, scope, scope = 2 AS partial, bucket_s, from_ns, to_ns,
         (SELECT min(period_ns) FROM run_period p WHERE p.run = r.id) AS period_ns
  FROM run r;

CREATE VIEW run_pair AS -- two runs of a family that overlap, the finer one first
  SELECT a.id AS fine, a.scope AS fine_scope, a.partial AS fine_partial, a.from_ns AS fine_from, a.to_ns AS fine_to,
         a.bucket_s * 1000000000 AS fine_width,
         b.id AS coarse, b.scope AS coarse_scope, b.partial AS coarse_partial, b.from_ns AS coarse_from,
         b.to_ns AS coarse_to, b.bucket_s * 1000000000 AS coarse_width
  FROM run_order a JOIN run_order b
    ON +b.family = a.family AND b.id <> a.id AND a.from_ns < b.to_ns AND b.from_ns < a.to_ns
   AND (a.bucket_s, a.period_ns, a.id) < (b.bucket_s, b.period_ns, b.id);

CREATE VIEW run_edge AS -- the E of a coarse bucket that the finer run covers in part: at its two ends
  SELECT *, max(bucket, coarse_from) AS edge_from, min(bucket + coarse_width, coarse_to) AS edge_to
  FROM (SELECT *, fine_from / coarse_width * coarse_width AS bucket FROM run_pair
        UNION ALL
        SELECT *, (fine_to - 1) / coarse_width * coarse_width FROM run_pair)
  WHERE max(bucket, coarse_from) < fine_to AND min(bucket + coarse_width, coarse_to) > fine_from
    AND (max(bucket, coarse_from) < fine_from OR min(bucket + coarse_width, coarse_to) > fine_to);

CREATE VIEW run_hidden AS -- buckets (seconds since 1970, both included) of a process for which another run's rows are used
  SELECT p.coarse AS run, k.process AS process, -- rule 1
         iif(p.coarse_from >= p.fine_from, 0, (p.fine_from + 999999999) / 1000000000) AS first_ts,
         iif(p.coarse_to <= p.fine_to, 1 << 40, (p.fine_to - p.coarse_width) / 1000000000) AS last_ts
  FROM run_pair p JOIN task k ON k.run = p.coarse
  WHERE p.fine_partial = p.coarse_partial
    AND (p.fine_scope = 0 OR EXISTS (SELECT 1 FROM task c WHERE c.run = p.fine AND c.process = k.process))
  UNION ALL
  SELECT p.fine, k.process, (p.edge_from - p.fine_width) / 1000000000 + 1, (p.edge_to - 1) / 1000000000 -- rule 2
  FROM run_edge p JOIN task k ON k.run = p.fine
  WHERE p.fine_partial = p.coarse_partial
    AND (p.coarse_scope = 0 OR EXISTS (SELECT 1 FROM task c WHERE c.run = p.coarse AND c.process = k.process))
    AND NOT EXISTS (SELECT 1 FROM run_pair g
                    WHERE g.coarse = p.coarse AND g.fine_partial = p.coarse_partial
                      AND g.fine_from <= p.edge_from AND g.fine_to >= p.edge_to
                      AND (g.fine_scope = 0
                           OR EXISTS (SELECT 1 FROM task c WHERE c.run = g.fine AND c.process = k.process)))
  UNION ALL
  SELECT r.id, k.process, (x.from_ns - r.bucket_s * 1000000000) / 1000000000 + 1, (x.to_ns - 1) / 1000000000 -- rule 3
  FROM run r JOIN run x ON +x.family = r.family AND x.scope <> 2 AND x.from_ns < r.to_ns AND r.from_ns < x.to_ns
  JOIN task k ON k.run = r.id
  WHERE r.scope = 2
    AND (x.scope = 0 OR EXISTS (SELECT 1 FROM task c WHERE c.run = x.id AND c.process = k.process));

CREATE VIEW runs AS
  SELECT r.id, r.family, r.options,
         CASE r.scope WHEN 0 THEN 'host' WHEN 1 THEN 'narrow' ELSE 'partial' END AS scope,
         CASE r.state WHEN 0 THEN 'going on' WHEN 1 THEN 'ended' WHEN 2 THEN 'killed'
         ELSE 'continued' END AS state,
         datetime(r.from_ns / 1000000000, 'unixepoch') AS "from", datetime(r.to_ns / 1000000000, 'unixepoch') AS "to",
         r.from_ns, r.to_ns, r.bucket_s, r.cpus, r.pid, r.token,
         (SELECT period_ns FROM run_period p WHERE p.run = r.id ORDER BY p.from_ns DESC LIMIT 1) AS period_ns
  FROM run r;

CREATE TABLE loss_row(     -- events that were lost, by reason
  ts INTEGER NOT NULL,     -- start of the bucket, seconds since t0
  run INTEGER NOT NULL,    -- run.id
  reason TEXT NOT NULL,    -- 'ring', 'maps', 'store' (the disk), 'killed' (held by a program that was killed), ...
  n INTEGER NOT NULL,      -- events
  PRIMARY KEY(ts, run, reason)
) STRICT, WITHOUT ROWID;

CREATE VIEW loss AS
  SELECT datetime(l.ts + t0.value, 'unixepoch') AS time, l.ts + t0.value AS ts, l.run AS run_id, r.family, l.reason,
         l.n AS lost
  FROM loss_row l JOIN meta t0 ON t0.key = 't0' LEFT JOIN run r ON r.id = l.run;

CREATE TABLE cost_row(     -- what measuring cost
  ts INTEGER NOT NULL,     -- start of the bucket, seconds since t0
  run INTEGER NOT NULL,    -- run.id
  program TEXT NOT NULL,   -- 'sonde-cpu', 'sonde-maps', or 'bpf:NAME' for a program in the kernel
  cpu_ns INTEGER NOT NULL, -- CPU time used in this bucket
  runs INTEGER NOT NULL,   -- how often it ran, where that is counted
  rss_bytes INTEGER NOT NULL,      -- resident memory, latest
  private_bytes INTEGER NOT NULL,  -- private memory, latest
  map_bytes INTEGER NOT NULL,      -- BPF maps, latest
  PRIMARY KEY(ts, run, program)
) STRICT, WITHOUT ROWID;

CREATE VIEW cost AS
  SELECT datetime(c.ts + t0.value, 'unixepoch') AS time, c.ts + t0.value AS ts, c.run AS run_id, c.program, c.cpu_ns,
         c.runs, c.rss_bytes, c.private_bytes, c.map_bytes
  FROM cost_row c JOIN meta t0 ON t0.key = 't0';

CREATE TABLE run_count(    -- samples and amounts of a run
  run INTEGER NOT NULL,    -- run.id
  kind INTEGER NOT NULL,   -- kind.id
  n INTEGER NOT NULL,      -- sum of n; of a gauge how many rows there are
  PRIMARY KEY(run, kind)
) STRICT, WITHOUT ROWID;

CREATE VIEW run_counted AS -- what run_count is to be, from the rows
  SELECT t.run, t.kind, sum(iif(k.class = 'gauge', x.rows, x.n)) AS n
  FROM (SELECT series, count(*) AS rows, sum(n) AS n FROM sample GROUP BY series
        UNION ALL SELECT series, count(*), sum(n) FROM amount GROUP BY series) x
  JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task JOIN kind k ON k.id = t.kind GROUP BY 1, 2;

CREATE TABLE run_loss(     -- loss_row over all time
  run INTEGER NOT NULL,    -- run.id
  reason TEXT NOT NULL,    -- as in loss_row
  n INTEGER NOT NULL,      -- events
  PRIMARY KEY(run, reason)
) STRICT, WITHOUT ROWID;

CREATE TABLE run_cost(     -- cost_row over all time
  run INTEGER NOT NULL,    -- run.id
  program TEXT NOT NULL,   -- as in cost_row
  cpu_ns INTEGER NOT NULL, -- CPU time
  private_bytes INTEGER NOT NULL,  -- private memory, at most
  map_bytes INTEGER NOT NULL,      -- BPF maps, at most
  PRIMARY KEY(run, program)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER loss_row_new AFTER INSERT ON loss_row BEGIN
  INSERT INTO run_loss(run, reason, n) VALUES(new.run, new.reason, new.n) ON CONFLICT DO UPDATE SET n = n + excluded.n;
END;

CREATE TRIGGER loss_row_more AFTER UPDATE ON loss_row BEGIN
  UPDATE run_loss SET n = n + new.n - old.n WHERE run = new.run AND reason = new.reason;
END;

CREATE TRIGGER cost_row_new AFTER INSERT ON cost_row BEGIN
  INSERT INTO run_cost(run, program, cpu_ns, private_bytes, map_bytes)
  VALUES(new.run, new.program, new.cpu_ns, new.private_bytes, new.map_bytes)
  ON CONFLICT DO UPDATE SET cpu_ns = cpu_ns + excluded.cpu_ns, private_bytes = max(private_bytes, excluded.private_bytes),
                            map_bytes = max(map_bytes, excluded.map_bytes);
END;

CREATE TRIGGER cost_row_more AFTER UPDATE ON cost_row BEGIN
  UPDATE run_cost SET cpu_ns = cpu_ns + new.cpu_ns - old.cpu_ns, private_bytes = max(private_bytes, new.private_bytes),
                      map_bytes = max(map_bytes, new.map_bytes) WHERE run = new.run AND program = new.program;
END;

CREATE TABLE slowed_row(   -- buckets in which family offcpu took fewer stacks; its sums are as exact as ever
  ts INTEGER NOT NULL,     -- start of the bucket, seconds since t0
  run INTEGER NOT NULL,    -- run.id
  step INTEGER NOT NULL,   -- how often its rate had been lessened; the largest in the bucket
  stack_rate INTEGER NOT NULL, -- stacks a second on each CPU, at most, from then on; 0: none, [no stack] has the sums
  PRIMARY KEY(ts, run)
) STRICT, WITHOUT ROWID;

CREATE VIEW slowed AS -- buckets with fewer stacks than asked for, because sonde was over its limit of CPU time
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.family, x.step, x.stack_rate, x.run AS run_id
  FROM slowed_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run;
