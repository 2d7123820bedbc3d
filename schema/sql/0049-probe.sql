-- SPDX-License-Identifier: Apache-2.0
-- Migration 49: family probe: probes that were asked for by name, what they counted, single hits. The tables are declared in
-- schema/facts/probe.h.

INSERT INTO kind VALUES
  (21, 'probe', 'counter', 'events', 'events'),
  (22, 'probetime', 'duration', 'events', 'ns');

CREATE TABLE probe_row( -- probes: what each is, and how much it saw
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  probe INTEGER NOT NULL, -- text.id: its name
  spec INTEGER NOT NULL, -- text.id: as it was written, without its name
  args INTEGER NOT NULL, -- text.id: its arguments and their types, with commas: path str,flags int32; of system calls ret and ns, too
  hits INTEGER, -- counter: hits for which its conditions hold
  events INTEGER, -- counter: of them, those with a row in probe_event_row
  runs INTEGER, -- counter: hits of any process, whatever the conditions: what its cost grows with
  lost INTEGER, -- counter: hits that are in no sum, and events that found no room
  unpaired INTEGER, -- counter: system calls of which only the begin or the end was seen: they count as no hit
  off_us INTEGER, -- counter, us: time in which it was taken away, as it cost too much: what happened then is in no number
  PRIMARY KEY(ts, run, probe)
) STRICT, WITHOUT ROWID;

CREATE TABLE probe_sum_row( -- hits of probes, by process and by the arguments that they are summed by
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  probe INTEGER NOT NULL, -- text.id: as in probe_row
  key INTEGER NOT NULL, -- text.id: the arguments that it is summed by, with a blank; ~other: of those past the limit
  process INTEGER NOT NULL, -- process.id: who hit it; 0: of those past the limit
  container INTEGER NOT NULL, -- container.id of the process
  hits INTEGER, -- counter: hits
  errors INTEGER, -- counter: of them, system calls that failed
  ns INTEGER, -- counter, ns: how long system calls took, summed
  sum INTEGER, -- counter: the argument of sum, summed; NULL if that is below 0
  slot_0 INTEGER, -- counter: of the argument of hist, else of ns: 0 and 1
  slot_1 INTEGER, -- counter: 2 to 3
  slot_2 INTEGER, -- counter: 4 to 7
  slot_3 INTEGER, -- counter: 8 to 15
  slot_4 INTEGER, -- counter: 16 to 31
  slot_5 INTEGER, -- counter: 32 to 63
  slot_6 INTEGER, -- counter: 64 to 127
  slot_7 INTEGER, -- counter: 128 to 255
  slot_8 INTEGER, -- counter: 256 to 511
  slot_9 INTEGER, -- counter: 512 to 1023
  slot_10 INTEGER, -- counter: 1024 to 2047
  slot_11 INTEGER, -- counter: 2048 to 4095
  slot_12 INTEGER, -- counter: 4096 to 8191
  slot_13 INTEGER, -- counter: 8192 to 16383
  slot_14 INTEGER, -- counter: 16384 to 32767
  slot_15 INTEGER, -- counter: 32768 to 65535
  slot_16 INTEGER, -- counter: 65536 to 131071
  slot_17 INTEGER, -- counter: 131072 to 262143
  slot_18 INTEGER, -- counter: 262144 to 524287
  slot_19 INTEGER, -- counter: 524288 to 1048575
  slot_20 INTEGER, -- counter: 1048576 to 2097151
  slot_21 INTEGER, -- counter: 2097152 to 4194303
  slot_22 INTEGER, -- counter: 4194304 to 8388607
  slot_23 INTEGER, -- counter: 8388608 to 16777215
  slot_24 INTEGER, -- counter: 16777216 to 33554431
  slot_25 INTEGER, -- counter: 33554432 to 67108863
  slot_26 INTEGER, -- counter: 67108864 to 134217727
  slot_27 INTEGER, -- counter: 134217728 to 268435455
  slot_28 INTEGER, -- counter: 268435456 to 536870911
  slot_29 INTEGER, -- counter: 536870912 to 1073741823
  slot_30 INTEGER, -- counter: 1073741824 to 2147483647
  slot_31 INTEGER, -- counter: 2147483648 or more
  PRIMARY KEY(ts, run, probe, key, process)
) STRICT, WITHOUT ROWID;

CREATE TABLE probe_event_row( -- single hits of probes; bounded
  ts INTEGER NOT NULL, -- start of the bucket, seconds since t0
  run INTEGER NOT NULL, -- run.id
  probe INTEGER NOT NULL, -- text.id: as in probe_row
  process INTEGER NOT NULL, -- process.id: who hit it
  tid INTEGER NOT NULL, -- the thread
  in_ns INTEGER NOT NULL, -- when, in ns from the start of the bucket on; of a system call when it ended
  container INTEGER NOT NULL, -- container.id of the process
  thread INTEGER NOT NULL, -- text.id: name of the thread
  args INTEGER NOT NULL, -- text.id: its arguments as a JSON object; null: it could not be read. Secrets are masked as in command lines
  ns INTEGER, -- gauge, ns: how long a system call took
  weight INTEGER, -- gauge: how many hits it represents: more than 1 where only some have a row
  PRIMARY KEY(ts, run, probe, process, tid, in_ns)
) STRICT, WITHOUT ROWID;

CREATE VIEW probes AS -- probes that were asked for, by bucket: what each is, and how much it saw
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(n.value, '') AS probe, coalesce(s.value, '') AS spec, coalesce(a.value, '') AS args, x.hits, x.events, x.runs, x.lost, x.unpaired, x.off_us,
         x.run AS run_id
  FROM probe_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN text n ON n.id = x.probe LEFT JOIN text s ON s.id = x.spec LEFT JOIN text a ON a.id = x.args;

CREATE VIEW probe_stats AS -- hits of probes by bucket, process and the arguments that they are summed by: exact
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, r.bucket_s AS seconds,
         coalesce(c.name, '') AS container, coalesce(p.comm, '') AS comm, p.pid, coalesce(n.value, '') AS probe, coalesce(k.value, '') AS key,
         x.hits, x.errors, x.ns, x.sum,
         x.slot_0, x.slot_1, x.slot_2, x.slot_3, x.slot_4, x.slot_5, x.slot_6, x.slot_7, x.slot_8, x.slot_9, x.slot_10,
         x.slot_11, x.slot_12, x.slot_13, x.slot_14, x.slot_15, x.slot_16, x.slot_17, x.slot_18, x.slot_19, x.slot_20,
         x.slot_21, x.slot_22, x.slot_23, x.slot_24, x.slot_25, x.slot_26, x.slot_27, x.slot_28, x.slot_29, x.slot_30,
         x.slot_31, nullif(x.process, 0) AS process_id, x.run AS run_id, coalesce(p.self, 0) AS self
  FROM probe_sum_row x JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = x.run
  LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text n ON n.id = x.probe LEFT JOIN text k ON k.id = x.key;

CREATE VIEW probe_events AS -- single hits of probes; args is a JSON object: args ->> 'path'
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, (x.ts + t0.value) * 1000000000 + x.in_ns AS at_ns, coalesce(c.name, '') AS container,
         coalesce(p.comm, '') AS comm, p.pid, coalesce(h.value, '') AS thread, x.tid, coalesce(n.value, '') AS probe, coalesce(a.value, '') AS args, x.ns,
         x.weight, nullif(x.process, 0) AS process_id, x.run AS run_id, coalesce(p.self, 0) AS self
  FROM probe_event_row x JOIN meta t0 ON t0.key = 't0'
  LEFT JOIN process p ON p.id = x.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN text n ON n.id = x.probe LEFT JOIN text h ON h.id = x.thread LEFT JOIN text a ON a.id = x.args;
