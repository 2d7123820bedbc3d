-- SPDX-License-Identifier: Apache-2.0
-- Migration 39: requests while they run. The table is declared in schema/facts/l7.h.

CREATE TABLE request_running_row( -- requests that last, while they run; bounded
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id whose end of the connection it is; of a mark 0
  side INTEGER NOT NULL, -- text.id: client, server; of a mark empty
  id INTEGER NOT NULL, -- its own; 0: a mark, which says until when all that run have rows
  protocol INTEGER NOT NULL, -- text.id
  service INTEGER NOT NULL, -- text.id: address and port of the server, or its path
  operation INTEGER NOT NULL, -- text.id
  client INTEGER NOT NULL, -- text.id: address of the client's end; empty: it has none
  port INTEGER, -- gauge: port of the client's end
  at_us INTEGER, -- gauge, us: when its first byte was seen, since 1970; of a mark: earlier rows hold no longer
  seen_us INTEGER, -- gauge, us: when it was looked at, since 1970
  end_us INTEGER, -- gauge, us: when it was over, since 1970; NULL: it runs
  result INTEGER NOT NULL, -- text.id: ok, error, no-answer, blind; while it runs empty, or opened of a stream
  tid INTEGER, -- gauge: thread that moved the connection's last bytes
  first_us INTEGER, -- gauge, us: to the first byte of its answer; NULL: none so far
  request_bytes INTEGER, -- gauge, bytes: of the request so far
  response_bytes INTEGER, -- gauge, bytes: of its answer so far
  trace INTEGER NOT NULL, -- text.id: id of the trace that it carried; empty: none
  exchange INTEGER, -- gauge: the same on both sides of one request; NULL: not known
  others INTEGER, -- gauge: of a mark: how many more run, without a row, because they are too many
  PRIMARY KEY(ts, run, process, side, id)
) STRICT, WITHOUT ROWID;

CREATE VIEW running_requests AS -- requests that last, each time they were looked at while they ran, and when they were over
  SELECT datetime(x.seen_us / 1000000, 'unixepoch') AS time, x.ts + t0.value AS ts, coalesce(c.name, '') AS container,
         coalesce(p.comm, '') AS comm, p.pid, x.tid, coalesce(sd.value, '') AS side, coalesce(pr.value, '') AS protocol, coalesce(s.value, '') AS service,
         coalesce(o.value, '') AS operation, coalesce(cl.value, '') AS client, x.port, x.at_us * 1000 AS at_ns, x.seen_us * 1000 AS seen_ns,
         x.end_us * 1000 AS end_ns, coalesce(re.value, '') AS result, x.first_us, x.request_bytes, x.response_bytes, coalesce(tr.value, '') AS trace,
         x.id AS request, x.exchange, x.others, x.process AS process_id, x.run AS run_id
  FROM request_running_row x JOIN meta t0 ON t0.key = 't0' LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text sd ON sd.id = x.side LEFT JOIN text pr ON pr.id = x.protocol LEFT JOIN text s ON s.id = x.service
  LEFT JOIN text o ON o.id = x.operation LEFT JOIN text cl ON cl.id = x.client LEFT JOIN text re ON re.id = x.result
  LEFT JOIN text tr ON tr.id = x.trace
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM request_running_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;
