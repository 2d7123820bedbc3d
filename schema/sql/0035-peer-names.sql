-- SPDX-License-Identifier: Apache-2.0
-- Migration 35: what programs call the addresses that they talk to, as schema/facts/net.h declares it.

CREATE TABLE peer_name_row( -- addresses and what programs called them: of families l7 and net
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id: who asked for the name, or has the file
  address INTEGER NOT NULL, -- text.id: address that it was answered with
  name INTEGER NOT NULL, -- text.id: name that was asked for
  how INTEGER NOT NULL, -- text.id: dns (an answer that family l7 saw), hosts (/etc/hosts as the process sees it)
  n INTEGER, -- counter: buckets and readings in which it was recorded
  PRIMARY KEY(ts, run, process, address, name, how)
) STRICT, WITHOUT ROWID;

CREATE VIEW peer_names AS -- addresses and what programs called them, by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, coalesce(c.name, '') AS container,
         coalesce(p.comm, '') AS comm, p.pid, coalesce(a.value, '') AS address, coalesce(n.value, '') AS name, coalesce(h.value, '') AS how,
         x.process AS process_id, x.run AS run_id
  FROM peer_name_row x JOIN meta t0 ON t0.key = 't0' LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text a ON a.id = x.address LEFT JOIN text n ON n.id = x.name LEFT JOIN text h ON h.id = x.how;
