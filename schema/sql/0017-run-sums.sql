-- SPDX-License-Identifier: Apache-2.0
-- Migration 17: what each run has in this file, summed as it is written. Whoever asks how a capture goes (`sonde status`) reads
-- these few rows, however long the file is. Losses, costs and endings come a few at a time: triggers sum them, whoever writes
-- them. Samples and amounts come by the thousand: a writer adds each batch at once (schema/store/commitsum.c).

CREATE TABLE run_count(    -- samples and amounts of a run
  run INTEGER NOT NULL,    -- run.id
  kind INTEGER NOT NULL,   -- kind.id
  n INTEGER NOT NULL,      -- sum of n; of a gauge how many rows there are
  PRIMARY KEY(run, kind)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE run_unwound(  -- unwound_row over all time
  run INTEGER NOT NULL,    -- run.id
  exe INTEGER NOT NULL,    -- as in unwound_row
  image INTEGER NOT NULL,  -- as in unwound_row
  reason INTEGER NOT NULL, -- as in unwound_row
  n INTEGER NOT NULL,      -- samples
  PRIMARY KEY(run, exe, image, reason)
) STRICT, WITHOUT ROWID;

CREATE VIEW run_counted AS -- what run_count is to be, from the rows; in a sealed day `sample` may have less (migration 12)
  SELECT t.run, t.kind, sum(iif(k.class = 'gauge', x.rows, x.n)) AS n
  FROM (SELECT series, count(*) AS rows, sum(n) AS n FROM sample GROUP BY series
        UNION ALL SELECT series, count(*), sum(n) FROM amount GROUP BY series) x
  JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task JOIN kind k ON k.id = t.kind GROUP BY 1, 2;

INSERT INTO run_count SELECT run, kind, n FROM run_counted;
INSERT INTO run_loss SELECT run, reason, sum(n) FROM loss_row GROUP BY 1, 2;
INSERT INTO run_cost SELECT run, program, sum(cpu_ns), max(private_bytes), max(map_bytes) FROM cost_row GROUP BY 1, 2;
INSERT INTO run_unwound SELECT run, exe, image, reason, sum(n) FROM unwound_row GROUP BY 1, 2, 3, 4;

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

CREATE TRIGGER unwound_row_new AFTER INSERT ON unwound_row BEGIN
  INSERT INTO run_unwound(run, exe, image, reason, n) VALUES(new.run, new.exe, new.image, new.reason, new.n)
  ON CONFLICT DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER unwound_row_more AFTER UPDATE ON unwound_row BEGIN
  UPDATE run_unwound SET n = n + new.n - old.n
  WHERE run = new.run AND exe = new.exe AND image = new.image AND reason = new.reason;
END;
