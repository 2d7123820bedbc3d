-- SPDX-License-Identifier: Apache-2.0
-- Migration 37: parts of how long requests took, spread as whole latencies are: to the first byte of the answer, and before they were read.

CREATE TABLE request_phase_row( -- parts of how long the requests of request_row took; none: not measured
  ts INTEGER NOT NULL,     -- as in request_row, and so are the others up to result
  run INTEGER NOT NULL,    -- run.id
  process INTEGER NOT NULL, -- process.id
  side INTEGER NOT NULL,   -- 0 on the way, 1 by who asked, 2 by who answered
  protocol INTEGER NOT NULL, -- text.id
  service INTEGER NOT NULL, -- text.id
  operation INTEGER NOT NULL, -- text.id
  status INTEGER NOT NULL, -- text.id; 0: the protocol has none
  result INTEGER NOT NULL, -- 0 ok, 1 error, 2 one-way, 3 opened, 4 no answer, 5 blind
  phase INTEGER NOT NULL,  -- 1 from the first byte of the request to that of the answer; 2 in the socket's buffer before it was read (queue)
  n INTEGER NOT NULL,      -- requests of which it was measured
  total_ns INTEGER NOT NULL, -- the sum of these times
  max_ns INTEGER NOT NULL, -- the longest
  hist TEXT,               -- how they spread, as request_row.hist
  PRIMARY KEY(ts, run, process, side, protocol, service, operation, status, result, phase)
) STRICT, WITHOUT ROWID;

CREATE VIEW request_phases AS -- parts of how long requests took, by bucket, process, side, service and operation
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         CASE x.side WHEN 1 THEN 'client' WHEN 2 THEN 'server' ELSE 'capture' END AS side,
         coalesce(c.name, '') AS container, coalesce(pr.comm, '') AS comm, pr.pid,
         p.value AS protocol, s.value AS service, o.value AS operation, ifnull(u.value, '') AS status,
         CASE x.result WHEN 0 THEN 'ok' WHEN 1 THEN 'error' WHEN 2 THEN 'one-way' WHEN 3 THEN 'opened' WHEN 4 THEN 'no-answer' ELSE 'blind' END AS result,
         CASE x.phase WHEN 1 THEN 'first-byte' ELSE 'queue' END AS phase,
         x.n AS requests, x.total_ns, x.max_ns, x.hist, x.process AS process_id, x.run AS run_id
  FROM request_phase_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run JOIN text p ON p.id = x.protocol
  LEFT JOIN text s ON s.id = x.service
  JOIN text o ON o.id = x.operation LEFT JOIN text u ON u.id = x.status
  LEFT JOIN process pr ON pr.id = x.process LEFT JOIN containers c ON c.id = pr.container
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM request_phase_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;
