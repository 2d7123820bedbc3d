-- SPDX-License-Identifier: Apache-2.0
-- Migration 59: of kept windows of the flight ring, messages of logs by the second. They are in no sum of `logs` and `log_patterns`, which have them too.

CREATE TABLE log_second_row( -- messages of logs by the second, of kept windows of the flight ring
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  source INTEGER NOT NULL, -- text.id: as in log_row
  container INTEGER NOT NULL, -- container.id: as in log_row
  level INTEGER NOT NULL, -- text.id: as in log_row
  pattern INTEGER NOT NULL, -- text.id: as in log_pattern_row; 0: all messages of this level
  messages INTEGER, -- counter: messages
  PRIMARY KEY(ts, run, source, container, level, pattern)
) STRICT, WITHOUT ROWID;

CREATE VIEW log_seconds AS -- messages of logs by the second, of kept windows of the flight ring; pattern '': all of that level
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, coalesce(s.value, '') AS source,
         coalesce(c.name, '') AS container, coalesce(l.value, '') AS level, coalesce(w.value, '') AS pattern,
         coalesce(x.messages, 0) AS messages, x.run AS run_id
  FROM log_second_row x JOIN meta t0 ON t0.key = 't0'
  LEFT JOIN text s ON s.id = x.source LEFT JOIN text l ON l.id = x.level LEFT JOIN text w ON w.id = x.pattern
  LEFT JOIN containers c ON c.id = x.container;
