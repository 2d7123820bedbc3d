-- SPDX-License-Identifier: Apache-2.0
-- Migration 28: family net: connections, listeners, and what the kernel counted of each network namespace, as schema/facts/net.h
-- declares them.

CREATE TABLE flow_row( -- connections by process, side, peer and port, in buckets with changes
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id: whose end it is
  side INTEGER NOT NULL, -- text.id: client, server, unknown (it was open before, and nothing tells)
  protocol INTEGER NOT NULL, -- text.id: tcp, udp, unix
  peer INTEGER NOT NULL, -- text.id: address of the other end; of a Unix socket its path; ~other: of those past the limit
  port INTEGER NOT NULL, -- text.id: the server's port, whichever end this is; empty: it has none
  mate INTEGER NOT NULL, -- process.id of the other end, on this host; 0: none, or unknown
  owner INTEGER NOT NULL, -- text.id: how the process is known: opener, closer, holder (of a descriptor), listener
  container INTEGER NOT NULL, -- container.id of the process
  attempts INTEGER, -- counter: connections that a client began to open
  opened INTEGER, -- counter: of those, established; of a server accepted
  refused INTEGER, -- counter: not opened: the other end refused
  timed_out INTEGER, -- counter: not opened: no answer in time
  unreachable INTEGER, -- counter: not opened: the other end was unreachable
  given_up INTEGER, -- counter: not opened: the program closed it before there was an answer
  failed INTEGER, -- counter: not opened for another reason
  closed INTEGER, -- counter: established ones that ended in good order
  reset_in INTEGER, -- counter: ended by a reset from the other end
  reset_out INTEGER, -- counter: ended by a reset from this end: closed with data unread, or by wish
  broken INTEGER, -- counter: ended because the other end no longer answered
  open_now INTEGER, -- gauge: open at the last reading
  tx_bytes INTEGER, -- counter, bytes: sent, and received by the other end
  rx_bytes INTEGER, -- counter, bytes: received
  segs_out INTEGER, -- counter: segments sent
  segs_in INTEGER, -- counter: segments received
  retrans INTEGER, -- counter: segments retransmitted
  lost INTEGER, -- counter: segments considered lost
  rtt_sum_us INTEGER, -- counter, us: smoothed round-trip times, one of each connection and reading, together
  rtt_n INTEGER, -- counter: how many those are
  connect_us INTEGER, -- counter, us: time to open, summed; of a client
  connect_1ms INTEGER, -- counter: opened in less than 1 ms
  connect_10ms INTEGER, -- counter: in less than 10 ms
  connect_100ms INTEGER, -- counter: in less than 100 ms
  connect_1s INTEGER, -- counter: in less than 1 s
  connect_long INTEGER, -- counter: in 1 s or more: the first packet was lost
  life_us INTEGER, -- counter, us: how long those that ended were open, summed
  PRIMARY KEY(ts, run, process, side, protocol, peer, port, mate)
) STRICT, WITHOUT ROWID;

CREATE TABLE listener_row( -- sockets that others can open connections to
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id
  protocol INTEGER NOT NULL, -- text.id: tcp, udp, unix
  address INTEGER NOT NULL, -- text.id: its own address; 0.0.0.0 and ::: all; of a Unix socket its path
  port INTEGER NOT NULL, -- text.id: port; empty: it has none
  container INTEGER NOT NULL, -- container.id of the process
  open_to INTEGER NOT NULL, -- text.id: who can reach it by its address: host, network
  holders INTEGER, -- gauge: processes that have it
  backlog INTEGER, -- gauge: connections that wait to be accepted, at the last reading
  backlog_max INTEGER, -- gauge: how many may wait
  dropped INTEGER, -- counter: connections and packets that it had no room for
  repeated INTEGER, -- counter: retransmitted answers to opens
  PRIMARY KEY(ts, run, process, protocol, address, port)
) STRICT, WITHOUT ROWID;

CREATE TABLE netns_row( -- network namespaces: what the kernel counted, and how much of it was recorded with its process
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  netns INTEGER NOT NULL, -- text.id: inode number of the network namespace
  container INTEGER NOT NULL, -- container.id: whose it is; 0: the host's, or none's
  active_opens INTEGER, -- counter: the kernel's: connections that clients began to open
  passive_opens INTEGER, -- counter: the kernel's: connections accepted
  attempt_fails INTEGER, -- counter: the kernel's: opens that failed
  estab_resets INTEGER, -- counter: the kernel's: established connections that ended by a reset
  out_rsts INTEGER, -- counter: the kernel's: resets sent
  retrans_segs INTEGER, -- counter: the kernel's: segments retransmitted
  curr_estab INTEGER, -- gauge: the kernel's: connections that are open
  listen_overflows INTEGER, -- counter: the kernel's: a backlog was full
  listen_drops INTEGER, -- counter: the kernel's: opens dropped by listeners
  udp_in INTEGER, -- counter: the kernel's: datagrams received
  udp_out INTEGER, -- counter: the kernel's: datagrams sent
  udp_no_ports INTEGER, -- counter: the kernel's: datagrams for ports without a listener
  udp_errors INTEGER, -- counter: the kernel's: datagrams received and not delivered
  seen_attempts INTEGER, -- counter: of active_opens, recorded with their process
  seen_accepted INTEGER, -- counter: of passive_opens
  seen_fails INTEGER, -- counter: of attempt_fails
  seen_resets INTEGER, -- counter: of estab_resets
  seen_retrans INTEGER, -- counter: of retrans_segs
  PRIMARY KEY(ts, run, netns)
) STRICT, WITHOUT ROWID;

CREATE TABLE connection_row( -- single connections that ended: those that failed, and the longest; bounded
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  process INTEGER NOT NULL, -- process.id
  side INTEGER NOT NULL, -- text.id: as in flow_row
  protocol INTEGER NOT NULL, -- text.id
  peer INTEGER NOT NULL, -- text.id: address of the other end
  port INTEGER NOT NULL, -- text.id: the server's port
  client_port INTEGER NOT NULL, -- text.id: the client's port
  mate INTEGER NOT NULL, -- process.id: who has the other end, on this host
  result INTEGER NOT NULL, -- text.id: how it ended, by the names of flow_row's columns
  life_us INTEGER, -- gauge, us: how long it was open; NULL: it was before the capture
  connect_us INTEGER, -- gauge, us: opening took, or its failure
  tx_bytes INTEGER, -- gauge, bytes: sent
  rx_bytes INTEGER, -- gauge, bytes: received
  retrans INTEGER, -- gauge: segments retransmitted
  rtt_us INTEGER, -- gauge, us: smoothed round-trip time
  PRIMARY KEY(ts, run, process, side, protocol, peer, port, client_port)
) STRICT, WITHOUT ROWID;

CREATE VIEW flows AS -- connections by process, side, peer and port, by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, p.comm, p.pid, coalesce(sd.value, '') AS side, coalesce(pr.value, '') AS protocol,
         coalesce(pe.value, '') AS peer, nullif(CAST(coalesce(po.value, '') AS INTEGER), 0) AS port, coalesce(mc.name, '') AS
         peer_container, coalesce(m.comm, '') AS peer_comm, m.pid AS peer_pid, coalesce(o.value, '') AS owner,
         x.attempts, x.opened, x.refused, x.timed_out, x.unreachable,
         x.given_up, x.failed, x.closed, x.reset_in, x.reset_out, x.broken, x.open_now, x.tx_bytes, x.rx_bytes, x.segs_out,
         x.segs_in, x.retrans, x.lost, x.rtt_sum_us, x.rtt_n, x.connect_us, x.connect_1ms, x.connect_10ms, x.connect_100ms,
         x.connect_1s, x.connect_long, x.life_us, x.process AS process_id,
         x.mate AS peer_process_id, x.run AS run_id, p.self
  FROM flow_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN process m ON m.id = x.mate LEFT JOIN containers mc ON mc.id = m.container
  LEFT JOIN text sd ON sd.id = x.side LEFT JOIN text pr ON pr.id = x.protocol LEFT JOIN text pe ON pe.id = x.peer
  LEFT JOIN text po ON po.id = x.port
  LEFT JOIN text o ON o.id = x.owner
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM flow_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;

CREATE VIEW edges AS -- who talks to whom, by bucket: of a connection whose ends are both on this host the client's end alone
  SELECT time, ts, seconds, container, comm, pid, protocol, peer, port, peer_container, peer_comm, peer_pid, attempts, opened,
         refused, timed_out, unreachable, given_up, failed, closed, reset_in, reset_out, broken, open_now, tx_bytes, rx_bytes,
         retrans, rtt_sum_us, rtt_n, connect_us, process_id, peer_process_id, run_id, self
  FROM flows WHERE side <> 'server'
  UNION ALL
  SELECT time, ts, seconds, peer_container, peer_comm, peer_pid, protocol, peer, port, container, comm, pid, NULL, opened,
         NULL, NULL, NULL, NULL, NULL, closed, reset_out, reset_in, broken, open_now, rx_bytes, tx_bytes,
         retrans, rtt_sum_us, rtt_n, NULL, peer_process_id, process_id, run_id, self
  FROM flows f WHERE side = 'server' AND (peer_process_id = 0 OR peer_pid IS NULL);

CREATE VIEW net_failures AS -- connections that were not opened, or did not end in good order, by bucket
  SELECT time, ts, seconds, container, comm, pid, side, protocol, peer, port, peer_container, peer_comm, attempts, opened, refused,
         timed_out, unreachable, given_up, failed, reset_in, reset_out, broken, process_id, run_id, self
  FROM flows
  WHERE coalesce(refused, 0) + coalesce(timed_out, 0) + coalesce(unreachable, 0) + coalesce(given_up, 0) + coalesce(failed, 0)
        + coalesce(reset_in, 0) + coalesce(reset_out, 0) + coalesce(broken, 0) > 0;

CREATE VIEW listeners AS -- sockets that others can open connections to, by bucket
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, p.comm, p.pid, coalesce(pr.value, '') AS protocol, coalesce(a.value, '') AS address,
         nullif(CAST(coalesce(po.value, '') AS INTEGER), 0) AS port, coalesce(ot.value, '') AS open_to, x.holders, x.backlog,
         x.backlog_max, x.dropped, x.repeated, x.process AS process_id, x.run AS run_id, p.self
  FROM listener_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text pr ON pr.id = x.protocol LEFT JOIN text a ON a.id = x.address LEFT JOIN text po ON po.id = x.port
  LEFT JOIN text ot ON ot.id = x.open_to
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM listener_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;

CREATE VIEW netns_stats AS -- network namespaces by bucket: the kernel's counts, and how much of them was told with its process
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, coalesce(n.value, '') AS netns, x.active_opens, x.passive_opens, x.attempt_fails,
         x.estab_resets, x.out_rsts, x.retrans_segs, x.curr_estab, x.listen_overflows, x.listen_drops, x.udp_in, x.udp_out,
         x.udp_no_ports, x.udp_errors, x.seen_attempts, x.seen_accepted, x.seen_fails, x.seen_resets, x.seen_retrans,
         x.run AS run_id
  FROM netns_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN text n ON n.id = x.netns LEFT JOIN containers c ON c.id = x.container
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
  WHERE h.run IS NULL;

CREATE VIEW connections AS -- single connections that ended: those that failed, and the longest; bounded
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, p.comm, p.pid, coalesce(sd.value, '') AS side, coalesce(pr.value, '') AS protocol,
         coalesce(pe.value, '') AS peer, nullif(CAST(coalesce(po.value, '') AS INTEGER), 0) AS port,
         nullif(CAST(coalesce(cp.value, '') AS INTEGER), 0) AS client_port, coalesce(mc.name, '') AS peer_container,
         coalesce(m.comm, '') AS peer_comm, m.pid AS peer_pid, coalesce(re.value, '') AS result, x.life_us, x.connect_us,
         x.tx_bytes, x.rx_bytes, x.retrans, x.rtt_us, x.process AS process_id, x.mate AS peer_process_id, x.run AS run_id, p.self
  FROM connection_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN process m ON m.id = x.mate LEFT JOIN containers mc ON mc.id = m.container
  LEFT JOIN text sd ON sd.id = x.side LEFT JOIN text pr ON pr.id = x.protocol LEFT JOIN text pe ON pe.id = x.peer
  LEFT JOIN text po ON po.id = x.port
  LEFT JOIN text cp ON cp.id = x.client_port LEFT JOIN text re ON re.id = x.result
  LEFT JOIN fact_hidden h ON h.run = x.run AND x.ts + t0.value BETWEEN h.first_ts AND h.last_ts
   AND (h.by_scope = 0 OR EXISTS (SELECT 1 FROM connection_row y WHERE y.run = h.by AND y.process = x.process))
  WHERE h.run IS NULL;
