-- SPDX-License-Identifier: Apache-2.0
-- Migration 39: what tells two hosts' ends of a connection to be one, as schema/facts/net.h declares it.

CREATE TABLE flow_mark_row( -- marks of connections whose other end is not on this host: of family net
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id: whose end it is, as in flow_row
  side INTEGER NOT NULL, -- text.id: as in flow_row
  peer INTEGER NOT NULL, -- text.id: as in flow_row
  port INTEGER NOT NULL, -- text.id: as in flow_row
  mark INTEGER NOT NULL, -- of one of its connections: a number that its other end comes to as well, whatever host that is on and whatever translates addresses between them
  n INTEGER, -- counter: how often it was recorded in the bucket
  PRIMARY KEY(ts, run, process, side, peer, port, mark)
) STRICT, WITHOUT ROWID;

CREATE VIEW flow_marks AS -- marks of connections whose other end is not on this host, by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, coalesce(c.name, '') AS container,
         coalesce(p.comm, '') AS comm, p.pid, coalesce(sd.value, '') AS side, coalesce(pe.value, '') AS peer,
         nullif(CAST(coalesce(po.value, '') AS INTEGER), 0) AS port, x.mark, x.process AS process_id, x.run AS run_id
  FROM flow_mark_row x JOIN meta t0 ON t0.key = 't0' LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text sd ON sd.id = x.side LEFT JOIN text pe ON pe.id = x.peer LEFT JOIN text po ON po.id = x.port;
