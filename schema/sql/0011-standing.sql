-- SPDX-License-Identifier: Apache-2.0
-- Migration 11: threads that wait at one moment, as sonde-pstack keeps them at the end of a recording. A wait that began before
-- the recording is among them, and how long it has lasted already: such time is in no other table.

INSERT INTO kind(id, name, class, unit_n, unit_value) VALUES (8, 'standing', 'gauge', 'events', 'ns');

CREATE VIEW standing AS -- blocked threads as they stood
  SELECT datetime(x.ts + t0.value, 'unixepoch') AS time, x.ts + t0.value AS ts, coalesce(c.name, '') AS container, p.comm,
         p.pid, t.thread, t.tid, coalesce(w.name, 'class ' || e.label) AS reason,
         coalesce(f.function, '[no stack]') AS function, coalesce(f.module, '') AS module, e.stack AS stack_id,
         x.n AS threads, x.value AS waited_ns, t.process AS process_id, t.run AS run_id, p.self
  FROM amount x JOIN meta t0 ON t0.key = 't0' JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task
  JOIN process p ON p.id = t.process LEFT JOIN containers c ON c.id = p.container
  LEFT JOIN wait_class w ON w.id = e.label
  LEFT JOIN stack k ON k.id = e.stack LEFT JOIN frames f ON f.id = k.leaf
  WHERE t.kind = 8;
