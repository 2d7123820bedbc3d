-- SPDX-License-Identifier: Apache-2.0
-- Migration 22: what is counted by stack: CPU samples, amounts of other kinds, and how stacks ended.
--
-- A series is of one kind (task.kind). Kind 1, cpu, is counted in `sample`; all others in `amount`. A counter's and a
-- duration's rows add up; a gauge's do not: a row says how it stands from that bucket on, until the next row of its
-- series. Values are stored as measured. Counts may be weighted (where a stack was taken of one event in ten only, it counts
-- ten): n and value are then estimates without bias, rounded to whole numbers.

CREATE TABLE kind(         -- what a number can be; the same as schema/store/model/kinds.c, never renumbered
  id INTEGER PRIMARY KEY,  -- task.kind
  name TEXT NOT NULL,      -- as in --type
  class TEXT NOT NULL,     -- counter, gauge or duration
  unit_n TEXT NOT NULL,    -- what n counts: samples, events, objects
  unit_value TEXT NOT NULL -- what value is in: ns, bytes
) STRICT;
INSERT INTO kind VALUES
  (1, 'cpu', 'counter', 'samples', 'ns'),
  (2, 'offcpu', 'duration', 'events', 'ns'),
  (3, 'runqueue', 'duration', 'events', 'ns'),
  (4, 'alloc', 'counter', 'objects', 'bytes'),
  (5, 'inuse', 'gauge', 'objects', 'bytes'),
  (6, 'mutex', 'counter', 'events', 'ns'),
  (7, 'block', 'counter', 'events', 'ns'),
  (8, 'standing', 'gauge', 'events', 'ns'),
  (9, 'goroutine', 'gauge', 'objects', 'objects'),
  (10, 'threadcreate', 'counter', 'objects', 'objects');

CREATE TABLE task(         -- whose samples: a thread of a process in a run
  id INTEGER PRIMARY KEY,  -- number within this file
  run INTEGER NOT NULL,    -- run.id
  process INTEGER NOT NULL,    -- process.id
  tid INTEGER NOT NULL,    -- thread id
  kind INTEGER NOT NULL,   -- 1 counter of CPU samples
  thread TEXT NOT NULL     -- thread name
) STRICT;
CREATE INDEX task_by_run ON task(run, process);

CREATE TABLE series(       -- what is counted: a task in a stack
  id INTEGER PRIMARY KEY,  -- number within this file
  task INTEGER NOT NULL,   -- task.id
  stack INTEGER NOT NULL,   -- stack.id of the leaf, 0: no frame
  label INTEGER NOT NULL DEFAULT 0 -- by kind: bytes of one object, class of a wait; 0: none
) STRICT;

CREATE TABLE sample(       -- the counts
  ts INTEGER NOT NULL,     -- start of the bucket, seconds since t0
  series INTEGER NOT NULL, -- series.id
  n INTEGER NOT NULL,      -- samples in this bucket
  PRIMARY KEY(ts, series)
) STRICT, WITHOUT ROWID;

CREATE TABLE amount(       -- amounts by bucket
  ts INTEGER NOT NULL,     -- start of the bucket, seconds since t0
  series INTEGER NOT NULL, -- series.id
  n INTEGER NOT NULL,      -- events or objects
  value INTEGER NOT NULL,  -- their sum: ns or bytes
  max INTEGER NOT NULL,    -- the largest, 0: not known
  hist TEXT,               -- how they spread, as a JSON list: k, then how many were in place k, in k + 1, ..., see amount_spread; NULL: not known
  PRIMARY KEY(ts, series)
) STRICT, WITHOUT ROWID;

CREATE TABLE rate_row(     -- values sampled by size (Go's heap profile): one in this many bytes
  run INTEGER NOT NULL,    -- run.id
  process INTEGER NOT NULL, -- process.id
  ts INTEGER NOT NULL,     -- from this bucket on, seconds since t0
  rate INTEGER NOT NULL,   -- mean bytes from one sampled object to the next; 0: not known
  PRIMARY KEY(run, process, ts)
) STRICT, WITHOUT ROWID;

CREATE VIEW kinds AS SELECT id, name, class, unit_n, unit_value FROM kind;

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
  LEFT JOIN run_hidden h ON h.run = t.run AND h.process = t.process AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE t.kind = 1
    AND h.run IS NULL;

CREATE VIEW amounts AS
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts,
         coalesce(c.name, '') AS container, p.comm, p.pid, t.thread, t.tid, y.name AS type,
         coalesce(f.function, '[no stack]') AS function, coalesce(f.module, '') AS module,
         coalesce(f.file, '') AS file, coalesce(f.line, 0) AS line, x.n, x.value, x.max, x.hist, e.label,
         coalesce((SELECT r.rate FROM rate_row r WHERE r.run = t.run AND r.process = t.process AND r.ts <= x.ts
                   ORDER BY r.ts DESC LIMIT 1), 0) AS rate,
         e.stack AS stack_id, t.process AS process_id, t.run AS run_id, p.self, e.id AS series_id
  FROM amount x JOIN meta t0 ON t0.key = 't0' JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task
  JOIN kind y ON y.id = t.kind JOIN process p ON p.id = t.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN stack k ON k.id = e.stack LEFT JOIN frames f ON f.id = k.leaf
  LEFT JOIN run_hidden h ON h.run = t.run AND h.process = t.process AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

CREATE VIEW amount_spread AS -- the histograms: how many lay in [low, 2 * low); the first also holds 0
  SELECT x.ts + t0.value AS ts, x.series AS series_id, 1 << (json_extract(x.hist, '$[0]') + j.key - 1) AS low,
         j.value AS n
  FROM amount x JOIN meta t0 ON t0.key = 't0' JOIN json_each(x.hist) j WHERE j.key > 0 AND j.value > 0;

CREATE VIEW functions_top AS
  WITH
  used(container, stack, samples, cpu_ns) AS MATERIALIZED (
    SELECT container, stack_id, sum(samples), sum(cpu_ns) FROM cpu_samples WHERE NOT self GROUP BY 1, 2),
  inside(stack, function, module, is_leaf, file) AS MATERIALIZED (
    SELECT p.stack_id, f.function, f.module, max(p.innermost), max(f.file)
    FROM stack_place p JOIN frames f ON f.id = p.frame GROUP BY 1, 2, 3)
  SELECT i.function, i.module, u.container,
         sum(u.samples * i.is_leaf) AS self, sum(u.samples) AS total,
         sum(u.cpu_ns * i.is_leaf) AS self_ns, sum(u.cpu_ns) AS total_ns, max(i.file) AS file
  FROM used u JOIN inside i ON i.stack = u.stack
  GROUP BY 1, 2, 3 ORDER BY self DESC, total DESC;

CREATE VIEW lines_top AS
  WITH
  used(container, stack, samples, cpu_ns) AS MATERIALIZED (
    SELECT container, stack_id, sum(samples), sum(cpu_ns) FROM cpu_samples WHERE NOT self GROUP BY 1, 2),
  inside(stack, function, module, file, line, is_leaf) AS MATERIALIZED (
    SELECT p.stack_id, f.function, f.module, f.file, f.line, max(p.innermost)
    FROM stack_place p JOIN frames f ON f.id = p.frame WHERE f.line <> 0 GROUP BY 1, 2, 3, 4, 5)
  SELECT i.function, i.file, i.line, i.module, u.container,
         sum(u.samples * i.is_leaf) AS self, sum(u.samples) AS total,
         sum(u.cpu_ns * i.is_leaf) AS self_ns, sum(u.cpu_ns) AS total_ns
  FROM used u JOIN inside i ON i.stack = u.stack
  GROUP BY 1, 2, 3, 4, 5 ORDER BY self DESC, total DESC;

CREATE TABLE unwound_row(  -- user stacks by how they end
  ts INTEGER NOT NULL,     -- start of the minute, seconds since t0
  run INTEGER NOT NULL,    -- run.id
  exe INTEGER NOT NULL,    -- text.id of the path of the process's executable, 0 not known
  image INTEGER NOT NULL,  -- image.id of what the outermost frame lies in; 0: none, or the stack is complete
  reason INTEGER NOT NULL, -- see unwinding_reason
  n INTEGER NOT NULL,      -- samples
  PRIMARY KEY(ts, run, exe, image, reason)
) STRICT, WITHOUT ROWID;

CREATE VIEW unwinding_reason AS
  SELECT column1 AS reason, column2 AS words FROM (VALUES
    (1, 'complete'), (2, 'its mappings were not known'), (3, 'the caller lies in no mapped code'),
    (4, 'the file''s rows were not there yet'), (5, 'a rule that cannot be expressed'),
    (6, 'the stack could not be read'), (7, 'a rule led to an impossible place'),
    (8, 'the chain of frame pointers ended'), (9, 'deeper than the limit'), (10, 'a file was replaced meanwhile'),
    (11, '32-bit code'), (12, 'its registers could not be read'), (13, 'the copy of the stack was too short'),
    (14, 'its memory was gone, by exec or exit'));

CREATE VIEW unwinding AS
  WITH summed AS (
    SELECT u.run, coalesce(t.value, '') AS executable, coalesce(i.name, '') AS module, u.reason, sum(u.n) AS samples
    FROM unwound_row u LEFT JOIN text t ON t.id = u.exe LEFT JOIN image i ON i.id = u.image
    GROUP BY 1, 2, 3, 4)
  SELECT s.run AS run_id, s.executable, s.module, coalesce(w.words, 'reason ' || s.reason) AS reason,
         iif(s.reason = 14, NULL, s.reason = 1) AS complete, s.samples,
         1.0 * s.samples / sum(s.samples) OVER (PARTITION BY s.run, s.executable) AS share
  FROM summed s LEFT JOIN unwinding_reason w ON w.reason = s.reason;

CREATE TABLE run_unwound(  -- unwound_row over all time
  run INTEGER NOT NULL,    -- run.id
  exe INTEGER NOT NULL,    -- as in unwound_row
  image INTEGER NOT NULL,  -- as in unwound_row
  reason INTEGER NOT NULL, -- as in unwound_row
  n INTEGER NOT NULL,      -- samples
  PRIMARY KEY(run, exe, image, reason)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER unwound_row_new AFTER INSERT ON unwound_row BEGIN
  INSERT INTO run_unwound(run, exe, image, reason, n) VALUES(new.run, new.exe, new.image, new.reason, new.n)
  ON CONFLICT DO UPDATE SET n = n + excluded.n;
END;

CREATE TRIGGER unwound_row_more AFTER UPDATE ON unwound_row BEGIN
  UPDATE run_unwound SET n = n + new.n - old.n
  WHERE run = new.run AND exe = new.exe AND image = new.image AND reason = new.reason;
END;
