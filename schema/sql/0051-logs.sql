-- SPDX-License-Identifier: Apache-2.0
-- Migration 51: family logs: lines of logs by who wrote them and level, and messages by their words. The tables are declared in
-- schema/facts/logs.h.

CREATE TABLE log_row( -- lines of logs, by who wrote them and level
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  source INTEGER NOT NULL, -- text.id: who wrote: the container's name, the unit, NAMESPACE/POD/CONTAINER, a path
  container INTEGER NOT NULL, -- container.id; 0: it is in none, or no process of it was seen
  level INTEGER NOT NULL, -- text.id: fatal, error, warning, info, debug, unknown: as the line says it
  kind INTEGER NOT NULL, -- text.id: where the lines were read: docker, podman, cri, journal, file
  lines INTEGER, -- counter: lines
  messages INTEGER, -- counter: messages: a line with those that continue it, as the lines of a trace do
  bytes INTEGER, -- counter, bytes: their text, without line ends
  cuts INTEGER, -- counter: how often its file was truncated, or rotated too fast to follow: lines from just before may be missing here
  burst INTEGER, -- gauge: 1: it wrote far more than usual, and so its messages of all levels have patterns
  PRIMARY KEY(ts, run, source, container, level)
) STRICT, WITHOUT ROWID;

CREATE TABLE log_pattern_row( -- messages of logs by their words: warnings and worse, others in a burst; bounded
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  source INTEGER NOT NULL, -- text.id: as in log_row
  container INTEGER NOT NULL, -- container.id: as in log_row
  level INTEGER NOT NULL, -- text.id: as in log_row
  pattern INTEGER NOT NULL, -- text.id: the words that stay, * for those that change; ~other: of those past a limit
  sample INTEGER NOT NULL, -- text.id: the first message of this pattern, secrets masked, cut after 1000 bytes
  messages INTEGER, -- counter: messages
  first_us INTEGER, -- gauge, us: when the first of them was written, in us since 1970
  last_us INTEGER, -- gauge, us: when the last one was
  process INTEGER NOT NULL, -- process.id: who wrote the last one, where the journal says it; else 0
  PRIMARY KEY(ts, run, source, container, level, pattern)
) STRICT, WITHOUT ROWID;

CREATE VIEW logs AS -- lines of logs by bucket, who wrote them and level: exact
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(s.value, '') AS source, coalesce(k.value, '') AS kind, coalesce(c.name, '') AS container, coalesce(l.value, '') AS level,
         coalesce(x.lines, 0) AS lines, coalesce(x.messages, 0) AS messages, coalesce(x.bytes, 0) AS bytes, coalesce(x.cuts, 0) AS cuts,
         coalesce(x.burst, 0) AS burst, x.run AS run_id
  FROM log_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN text s ON s.id = x.source LEFT JOIN text k ON k.id = x.kind LEFT JOIN text l ON l.id = x.level
  LEFT JOIN containers c ON c.id = x.container;

CREATE VIEW log_patterns AS -- messages of logs by bucket, who wrote them, level and words; the messages of a source's warnings and errors add up to those of logs
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(s.value, '') AS source, coalesce(c.name, '') AS container, coalesce(l.value, '') AS level, coalesce(w.value, '') AS pattern,
         coalesce(e.value, '') AS sample, coalesce(x.messages, 0) AS messages, x.first_us, x.last_us, coalesce(p.comm, '') AS comm, p.pid,
         nullif(x.process, 0) AS process_id, x.run AS run_id
  FROM log_pattern_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN text s ON s.id = x.source LEFT JOIN text l ON l.id = x.level LEFT JOIN text w ON w.id = x.pattern LEFT JOIN text e ON e.id = x.sample
  LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = x.container;
