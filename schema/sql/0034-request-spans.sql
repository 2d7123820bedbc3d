-- SPDX-License-Identifier: Apache-2.0
-- Migration 34: which request was made for which other one. The table is declared in schema/facts/l7.h.

CREATE TABLE request_span_row( -- single requests of request_log_row: which one caused which
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id whose it is
  side INTEGER NOT NULL, -- text.id: client, server
  span INTEGER NOT NULL, -- its own id
  nth INTEGER NOT NULL, -- text.id: request_log_row.nth of the same bucket, run and process
  parent INTEGER, -- gauge: server side: the span of the client's request; client side: the span of the request that its thread served; NULL: unknown
  caller INTEGER, -- gauge: of who sent it, as the header of its trace says, the lowest 60 bits; NULL: it does not
  how INTEGER NOT NULL, -- text.id: how the parent is known: thread (it asked while it served the parent), opener (it opened the connection then), bytes (both ends are of this host); empty: it is not
  partial INTEGER, -- gauge: 1: some that were asked for it may be missing
  PRIMARY KEY(ts, run, process, side, span)
) STRICT, WITHOUT ROWID;

-- What threads of Go programs ask is asked by whatever goroutine they run by then: it is not known for which request.
CREATE VIEW request_spans AS -- single requests with their own ids, and those of the requests that they were made for
  SELECT datetime(x.at_us / 1000000, 'unixepoch') AS time, x.at_us / 1000000 AS ts, x.at_us * 1000 AS at_ns, coalesce(c.name, '') AS container,
         p.comm, p.pid, x.tid, coalesce(sd.value, '') AS side, coalesce(pr.value, '') AS protocol, coalesce(s.value, '') AS service,
         coalesce(o.value, '') AS operation, coalesce(u.value, '') AS status, coalesce(re.value, '') AS result, coalesce(w.value, '') AS why,
         x.first_us, x.total_us, coalesce(tr.value, '') AS trace, sp.span,
         CASE WHEN coalesce(l.value, '') = 'go' AND h.value IN ('thread', 'opener') THEN NULL ELSE sp.parent END AS parent, sp.caller,
         CASE WHEN coalesce(l.value, '') = 'go' AND h.value IN ('thread', 'opener') THEN '' ELSE coalesce(h.value, '') END AS how,
         coalesce(sp.partial, 0) AS partial, x.process AS process_id, x.run AS run_id
  FROM request_span_row sp JOIN meta t0 ON t0.key = 't0'
  JOIN request_log_row x ON x.ts = sp.ts AND x.run = sp.run AND x.process = sp.process AND x.side = sp.side AND x.nth = sp.nth
  LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text sd ON sd.id = x.side LEFT JOIN text pr ON pr.id = x.protocol LEFT JOIN text s ON s.id = x.service
  LEFT JOIN text o ON o.id = x.operation LEFT JOIN text u ON u.id = x.status LEFT JOIN text re ON re.id = x.result
  LEFT JOIN text w ON w.id = x.why LEFT JOIN text tr ON tr.id = x.trace LEFT JOIN text h ON h.id = sp.how LEFT JOIN text l ON l.id = p.lang
  LEFT JOIN fact_hidden hi ON hi.run = x.run AND x.ts + t0.value BETWEEN hi.first_ts AND hi.last_ts
   AND (hi.by_scope = 0 OR EXISTS (SELECT 1 FROM request_log_row y WHERE y.run = hi.by AND y.process = x.process))
  WHERE hi.run IS NULL;
