-- SPDX-License-Identifier: Apache-2.0
-- Migration 2: the views. Their names and columns are stable; docs/SCHEMA.md has a query for each.
--
-- Two runs at once: each (process, bucket) is taken from one run only. Runs of a family are put in an order, finest
-- first: bucket width, period (the smallest it had), id. E is what a bucket really holds: the bucket cut to its run's
-- [from, to). A run covers a process if it covers the whole host, or is narrowed and has that process.
--   1. A bucket is hidden where a finer run covered its process for the whole of E.
--   2. A finer run's bucket is hidden where it touches the E of a coarser run's bucket that rule 1 leaves standing.
--   3. A run that covers no process wholly (scope 2) is hidden wherever it touches a run that covers the process;
--      towards others of its kind it follows 1 and 2, as if it covered the processes that it has.
-- schema/store/choice.c does the same in C; a test compares the two.

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

CREATE VIEW run_hidden AS -- buckets (seconds since 1970, both included) of a process that another run stands for
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

CREATE VIEW containers AS
  SELECT id, iif(name = '', substr(runtime_id, 1, 12), name) AS name, runtime, runtime_id, image, cgroup
  FROM container;

CREATE VIEW processes AS
  SELECT p.id, p.pid, p.ppid, p.uid, p.comm, coalesce(e.value, '') AS exe,
         substr(coalesce(a.value, ''), 1, p.args_keep) || p.args
           || substr(coalesce(a.value, ''), length(a.value) - p.args_end + 1) AS args,
         coalesce(c.name, '') AS container,
         coalesce(c.runtime_id, '') AS container_id, coalesce(g.value, '') AS cgroup, coalesce(u.value, '') AS unit,
         datetime(p.start_ns / 1000000000, 'unixepoch') AS start, p.start_ns, p.exec_id, p.self
  FROM process p LEFT JOIN containers c ON c.id = p.container LEFT JOIN text e ON e.id = p.exe
  LEFT JOIN text g ON g.id = p.cgroup LEFT JOIN text u ON u.id = p.unit
  LEFT JOIN text a ON a.id = p.args_base;

CREATE VIEW functions AS
  SELECT f.id, f.name AS function, coalesce(i.name, '') AS module, f.file, f.line, coalesce(i.path, '') AS path,
         coalesce(i.build_id, '') AS build_id
  FROM function f LEFT JOIN image i ON i.id = f.image;

CREATE VIEW frames AS
  SELECT r.id, coalesce(f.name, printf('%s+0x%x', coalesce(i.name, '[unknown]'), r.offset)) AS function,
         coalesce(i.name, '') AS module, coalesce(f.file, '') AS file, r.line, r.offset, r.flags & 1 AS inlined,
         f.name IS NOT NULL AS named, coalesce(i.path, '') AS path, coalesce(i.build_id, '') AS build_id
  FROM frame r LEFT JOIN function f ON f.id = r.function LEFT JOIN image i ON i.id = r.image;

CREATE VIEW stack_part AS -- what a stack adds to its base, as a JSON list of frames
  SELECT id, base, keep, '[' || tail || iif(tail = '', '', ',') || leaf || ']' AS own FROM stack;

CREATE VIEW stack_list AS -- stacks that have samples, their frames as a JSON list, root first
  SELECT k.id AS stack_id,
         (WITH RECURSIVE part(base, keep, own, upto) AS (
            SELECT k.base, k.keep, k.own, 1 << 30
            UNION ALL
            SELECT s.base, s.keep, s.own, min(part.upto, part.keep) FROM part JOIN stack_part s ON s.id = part.base)
          SELECT json_group_array(frame)
          FROM (SELECT j.value AS frame FROM part JOIN json_each(part.own) j WHERE part.keep + j.key < part.upto
                ORDER BY part.keep + j.key)) AS frames
  FROM stack_part k WHERE k.id IN (SELECT stack FROM series);

CREATE VIEW stack_frames AS
  SELECT k.stack_id, j.key AS depth, f.function, f.module, f.file, f.line, f.offset, f.inlined
  FROM stack_list k JOIN json_each(k.frames) j JOIN frames f ON f.id = j.value;

CREATE VIEW stacks AS
  SELECT k.stack_id AS id, json_array_length(k.frames) AS depth,
         (SELECT group_concat(name, ';')
          FROM (SELECT replace(f.function, ';', ':') AS name FROM json_each(k.frames) j JOIN frames f ON f.id = j.value
                ORDER BY j.key)) AS folded
  FROM stack_list k;

CREATE VIEW cpu_samples AS
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts,
         coalesce(c.name, '') AS container, p.comm, p.pid, t.thread, t.tid,
         coalesce(f.function, '[no stack]') AS function, coalesce(f.module, '') AS module,
         coalesce(f.file, '') AS file, coalesce(f.line, 0) AS line, x.n AS samples,
         x.n * (SELECT period_ns FROM run_period d
                WHERE d.run = t.run AND d.from_ns <= (x.ts + t0.value) * 1000000000
                ORDER BY d.from_ns DESC LIMIT 1) AS cpu_ns,
         e.stack AS stack_id, t.process AS process_id, t.run AS run_id, p.self
  FROM sample x JOIN meta t0 ON t0.key = 't0' JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task
  JOIN process p ON p.id = t.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN stack k ON k.id = e.stack LEFT JOIN frames f ON f.id = k.leaf
  WHERE t.kind = 1
    AND NOT EXISTS (SELECT 1 FROM run_hidden h WHERE h.run = t.run AND h.process = t.process
                    AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts);

CREATE VIEW functions_top AS
  WITH RECURSIVE
  used(container, stack, samples, cpu_ns) AS MATERIALIZED (
    SELECT container, stack_id, sum(samples), sum(cpu_ns) FROM cpu_samples WHERE NOT self GROUP BY 1, 2),
  part(stack, base, keep, own, upto) AS (
    SELECT k.id, k.base, k.keep, k.own, 1 << 30 FROM stack_part k WHERE k.id IN (SELECT stack FROM used)
    UNION ALL
    SELECT p.stack, s.base, s.keep, s.own, min(p.upto, p.keep) FROM part p JOIN stack_part s ON s.id = p.base),
  inside(stack, function, module, is_leaf) AS MATERIALIZED (
    SELECT p.stack, f.function, f.module,
           max(p.upto = 1 << 30 AND j.key = json_array_length(p.own) - 1)
    FROM part p JOIN json_each(p.own) j JOIN frames f ON f.id = j.value WHERE p.keep + j.key < p.upto
    GROUP BY 1, 2, 3)
  SELECT i.function, i.module, u.container,
         sum(u.samples * i.is_leaf) AS self, sum(u.samples) AS total,
         sum(u.cpu_ns * i.is_leaf) AS self_ns, sum(u.cpu_ns) AS total_ns
  FROM used u JOIN inside i ON i.stack = u.stack
  GROUP BY 1, 2, 3 ORDER BY self DESC, total DESC;

CREATE VIEW loss AS
  SELECT datetime(l.ts + t0.value, 'unixepoch') AS time, l.ts + t0.value AS ts, l.run AS run_id, r.family, l.reason,
         l.n AS lost
  FROM loss_row l JOIN meta t0 ON t0.key = 't0' LEFT JOIN run r ON r.id = l.run;

CREATE VIEW cost AS
  SELECT datetime(c.ts + t0.value, 'unixepoch') AS time, c.ts + t0.value AS ts, c.run AS run_id, c.program, c.cpu_ns,
         c.runs, c.rss_bytes, c.private_bytes, c.map_bytes
  FROM cost_row c JOIN meta t0 ON t0.key = 't0';
