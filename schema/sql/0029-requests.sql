-- SPDX-License-Identifier: Apache-2.0
-- Migration 29: requests as family l7 sees them: with the process whose they are, single ones, and what became of bytes. The tables are declared in schema/facts/l7.h.

CREATE TABLE request_log_row( -- single requests: failed ones, the slowest, and a sample of the others; bounded
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id whose it is
  side INTEGER NOT NULL, -- text.id: client, server
  protocol INTEGER NOT NULL, -- text.id
  service INTEGER NOT NULL, -- text.id: address and port of the server, or its path
  operation INTEGER NOT NULL, -- text.id
  nth INTEGER NOT NULL, -- text.id: which of the bucket
  at_us INTEGER, -- gauge, us: when its first byte was seen, since 1970
  status INTEGER NOT NULL, -- text.id; empty: the protocol has none
  result INTEGER NOT NULL, -- text.id: ok, error, one-way, opened, no-answer, blind
  why INTEGER NOT NULL, -- text.id: why this one is kept: failed, slow (the slowest of the bucket), sample (drawn from all others)
  weight INTEGER, -- gauge: requests that it represents: 1, or for a sample the number of requests per sampled one
  tid INTEGER, -- gauge: thread that moved the connection's last bytes before it was answered
  first_us INTEGER, -- gauge, us: to the first byte of its answer; NULL: it had none
  total_us INTEGER, -- gauge, us: to the last byte of its answer; NULL: it had none
  request_bytes INTEGER, -- gauge, bytes: of the request
  response_bytes INTEGER, -- gauge, bytes: of its answer
  trace INTEGER NOT NULL, -- text.id: id of the trace that it carried; empty: none
  PRIMARY KEY(ts, run, process, side, protocol, service, operation, nth)
) STRICT, WITHOUT ROWID;

CREATE TABLE request_bytes_row( -- how the bytes of connections were treated: seen = parsed + skipped + blind
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id whose end of the connections it is; 0: unknown
  side INTEGER NOT NULL, -- text.id: client, server
  protocol INTEGER NOT NULL, -- text.id: protocol; empty: unknown
  service INTEGER NOT NULL, -- text.id: address and port of the server, or its path
  seen INTEGER, -- counter, bytes: that these connections moved: parsed + skipped + blind
  parsed INTEGER, -- counter, bytes: of those, read
  skipped INTEGER, -- counter, bytes: skipped because they are not needed: bodies, and unknown protocols
  blind INTEGER, -- counter, bytes: missing, or not understood: requests in them are not counted
  blind_requests INTEGER, -- counter: requests that were seen, but whose outcome was not
  PRIMARY KEY(ts, run, process, side, protocol, service)
) STRICT, WITHOUT ROWID;

DROP VIEW requests;
CREATE VIEW requests AS -- requests by bucket, process, side, service and operation
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         CASE x.side WHEN 1 THEN 'client' WHEN 2 THEN 'server' ELSE 'capture' END AS side,
         coalesce(c.name, '') AS container, coalesce(pr.comm, '') AS comm, pr.pid,
         p.value AS protocol, s.value AS service, o.value AS operation, ifnull(u.value, '') AS status,
         CASE x.result WHEN 0 THEN 'ok' WHEN 1 THEN 'error' WHEN 2 THEN 'one-way' WHEN 3 THEN 'opened' WHEN 4 THEN 'no-answer' ELSE 'blind' END AS result,
         x.n AS requests, CASE WHEN x.result IN (1, 4) THEN x.n ELSE 0 END AS errors, x.total_ns, x.max_ns,
         x.request_bytes, x.response_bytes, x.hist, x.process AS process_id, x.run AS run_id
  FROM request_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run JOIN text p ON p.id = x.protocol
  LEFT JOIN text s ON s.id = x.service
  JOIN text o ON o.id = x.operation LEFT JOIN text u ON u.id = x.status
  LEFT JOIN process pr ON pr.id = x.process LEFT JOIN containers c ON c.id = pr.container
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM request_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;

CREATE VIEW request_log AS -- single requests: failed ones, the slowest, and a sample of the others; bounded
  SELECT datetime(x.at_us / 1000000, 'unixepoch') AS time, x.at_us / 1000000 AS ts, x.at_us * 1000 AS at_ns, coalesce(c.name, '') AS container,
         p.comm, p.pid, x.tid, coalesce(sd.value, '') AS side, coalesce(pr.value, '') AS protocol, coalesce(s.value, '') AS service,
         coalesce(o.value, '') AS operation, coalesce(u.value, '') AS status, coalesce(re.value, '') AS result, coalesce(w.value, '') AS why,
         x.weight, x.first_us, x.total_us, x.request_bytes, x.response_bytes, coalesce(tr.value, '') AS trace,
         x.process AS process_id, x.run AS run_id, p.self
  FROM request_log_row x JOIN meta t0 ON t0.key = 't0' LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text sd ON sd.id = x.side LEFT JOIN text pr ON pr.id = x.protocol LEFT JOIN text s ON s.id = x.service
  LEFT JOIN text o ON o.id = x.operation LEFT JOIN text u ON u.id = x.status LEFT JOIN text re ON re.id = x.result
  LEFT JOIN text w ON w.id = x.why LEFT JOIN text tr ON tr.id = x.trace
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM request_log_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;

CREATE VIEW request_bytes AS -- what became of the bytes that connections moved, by bucket: seen = parsed + skipped + blind
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds, coalesce(c.name, '') AS container,
         coalesce(p.comm, '') AS comm, p.pid, coalesce(sd.value, '') AS side, coalesce(pr.value, '') AS protocol, coalesce(s.value, '') AS service,
         x.seen, x.parsed, x.skipped, x.blind, x.blind_requests, x.process AS process_id, x.run AS run_id
  FROM request_bytes_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run LEFT JOIN process p ON p.id = x.process
  LEFT JOIN containers c ON c.id = p.container LEFT JOIN text sd ON sd.id = x.side LEFT JOIN text pr ON pr.id = x.protocol
  LEFT JOIN text s ON s.id = x.service
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM request_bytes_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;
