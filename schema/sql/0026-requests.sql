-- SPDX-License-Identifier: Apache-2.0
-- Migration 26: requests: how many of what, by bucket.

CREATE TABLE request_row(  -- requests that have all of these in common
  ts INTEGER NOT NULL,     -- start of the bucket that they began in, seconds since t0
  run INTEGER NOT NULL,    -- run.id
  process INTEGER NOT NULL, -- process.id whose they are; 0: not known, as of a capture
  side INTEGER NOT NULL,   -- where they were seen: 0 on the way, 1 by who asked, 2 by who answered
  protocol INTEGER NOT NULL, -- text.id
  service INTEGER NOT NULL, -- text.id: address and port of who answers
  operation INTEGER NOT NULL, -- text.id: a route, statement, command with its key's pattern...
  status INTEGER NOT NULL, -- text.id: '200', '42P01', 'NXDOMAIN'; 0: the protocol has none
  result INTEGER NOT NULL, -- 0 ok, 1 error, 2 one-way, 3 opened, 4 no answer, 5 blind: what became of it was not seen
  n INTEGER NOT NULL,      -- requests
  total_ns INTEGER NOT NULL, -- the sum of their latencies, first byte of the request to last of the answer; 0 but for ok and error
  max_ns INTEGER NOT NULL, -- the longest
  request_bytes INTEGER NOT NULL, -- of all of them
  response_bytes INTEGER NOT NULL, -- of all of their answers
  hist TEXT,               -- latencies: [k, how many lay in step k, in k + 1, ...] of 8 steps to each power of two, see request_spread; NULL: none
  PRIMARY KEY(ts, run, process, side, protocol, service, operation, status, result)
) STRICT, WITHOUT ROWID;

CREATE VIEW requests AS -- requests by bucket, service and operation
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts,
         CASE x.side WHEN 1 THEN 'client' WHEN 2 THEN 'server' ELSE 'capture' END AS side,
         p.value AS protocol, s.value AS service, o.value AS operation, ifnull(u.value, '') AS status,
         CASE x.result WHEN 0 THEN 'ok' WHEN 1 THEN 'error' WHEN 2 THEN 'one-way' WHEN 3 THEN 'opened' WHEN 4 THEN 'no-answer' ELSE 'blind' END AS result,
         x.n AS requests, CASE WHEN x.result IN (1, 4) THEN x.n ELSE 0 END AS errors, x.total_ns, x.max_ns,
         x.request_bytes, x.response_bytes, x.process AS process_id, x.run AS run_id
  FROM request_row x JOIN meta t0 ON t0.key = 't0' JOIN text p ON p.id = x.protocol JOIN text s ON s.id = x.service
  JOIN text o ON o.id = x.operation LEFT JOIN text u ON u.id = x.status;

CREATE VIEW request_spread AS -- latencies: how many lay in [low_ns, high_ns), at most an eighth wide
  SELECT r.ts, r.protocol, r.service, r.operation, r.result, r.low_ns, r.low_ns + (1 << max(r.k / 8 - 1, 0)) AS high_ns, r.n, r.process_id, r.run_id
  FROM (SELECT x.ts + t0.value AS ts, p.value AS protocol, s.value AS service, o.value AS operation,
               CASE x.result WHEN 0 THEN 'ok' ELSE 'error' END AS result, json_extract(x.hist, '$[0]') + j.key - 1 AS k,
               CASE WHEN json_extract(x.hist, '$[0]') + j.key - 1 < 8 THEN json_extract(x.hist, '$[0]') + j.key - 1
                    ELSE (8 + (json_extract(x.hist, '$[0]') + j.key - 1) % 8) << ((json_extract(x.hist, '$[0]') + j.key - 1) / 8 - 1) END AS low_ns,
               j.value AS n, x.process AS process_id, x.run AS run_id
        FROM request_row x JOIN meta t0 ON t0.key = 't0' JOIN text p ON p.id = x.protocol JOIN text s ON s.id = x.service
        JOIN text o ON o.id = x.operation JOIN json_each(x.hist) j WHERE j.key > 0 AND j.value > 0) r;
