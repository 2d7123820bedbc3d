-- SPDX-License-Identifier: Apache-2.0
-- Migration 5: kinds of value, and amounts: what is not a count of samples.
--
-- A series is of one kind (task.kind). Kind 1, cpu, is counted in `sample`; all others in `amount`. A counter's and a
-- duration's rows add up; a gauge's do not: a row says how it stands from that bucket on, until the next row of its
-- series. Values stand as measured. Counts may be weighted (where a stack was taken of one event in ten only, it counts
-- ten): n and value are then estimates without bias, rounded to whole numbers.

CREATE TABLE kind(         -- what a number can be; the same as schema/store/kinds.c, never renumbered
  id INTEGER PRIMARY KEY,  -- task.kind
  name TEXT NOT NULL,      -- as in --type
  class TEXT NOT NULL,     -- counter, gauge or duration
  unit_n TEXT NOT NULL,    -- what n counts: samples, events, objects
  unit_value TEXT NOT NULL -- what value is in: ns, bytes
) STRICT;
INSERT INTO kind(id, name, class, unit_n, unit_value) VALUES
  (1, 'cpu', 'counter', 'samples', 'ns'), (2, 'offcpu', 'duration', 'events', 'ns'),
  (3, 'runqueue', 'duration', 'events', 'ns'), (4, 'alloc', 'counter', 'objects', 'bytes'),
  (5, 'inuse', 'gauge', 'objects', 'bytes'), (6, 'mutex', 'counter', 'events', 'ns'),
  (7, 'block', 'counter', 'events', 'ns');

CREATE TABLE amount(       -- amounts by bucket
  ts INTEGER NOT NULL,     -- start of the bucket, seconds since t0
  series INTEGER NOT NULL, -- series.id
  n INTEGER NOT NULL,      -- events or objects
  value INTEGER NOT NULL,  -- their sum: ns or bytes
  max INTEGER NOT NULL,    -- the largest, 0: not known
  hist TEXT,               -- how they spread, as a JSON list: k, then how many were in [2^k, 2^(k+1)), in [2^(k+1), ...), ...; NULL: not known
  PRIMARY KEY(ts, series)
) STRICT, WITHOUT ROWID;

CREATE TABLE rate_row(     -- where values are of a sample by size (Go's heap profile): one in so many bytes
  run INTEGER NOT NULL,    -- run.id
  process INTEGER NOT NULL, -- process.id
  ts INTEGER NOT NULL,     -- from this bucket on, seconds since t0
  rate INTEGER NOT NULL,   -- mean bytes from one sampled object to the next; 0: not known
  PRIMARY KEY(run, process, ts)
) STRICT, WITHOUT ROWID;

-- series.label: what else tells series of one task and stack apart. alloc and inuse: bytes of one object; offcpu: why
ALTER TABLE series ADD COLUMN label /* by kind: bytes of one object, class of a wait; 0: none */ INTEGER NOT NULL DEFAULT 0;

-- run.recording: runs that were begun together (one for each family) have the same number, 0: it was begun alone
ALTER TABLE run ADD COLUMN recording /* the same for runs begun together, 0: alone */ INTEGER NOT NULL DEFAULT 0;

CREATE VIEW kinds AS SELECT id, name, class, unit_n, unit_value FROM kind;

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
  WHERE NOT EXISTS (SELECT 1 FROM run_hidden h WHERE h.run = t.run AND h.process = t.process
                    AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts);

CREATE VIEW amount_spread AS -- the histograms: how many lay in [low, 2 * low); the first also holds 0
  SELECT x.ts + t0.value AS ts, x.series AS series_id, 1 << (json_extract(x.hist, '$[0]') + j.key - 1) AS low,
         j.value AS n
  FROM amount x JOIN meta t0 ON t0.key = 't0' JOIN json_each(x.hist) j WHERE j.key > 0 AND j.value > 0;
