-- SPDX-License-Identifier: Apache-2.0
-- Migration 14: command lines that tell one name many times over (compilers). Where process.args begins with the byte 31,
-- that name stands between it and the next one; what follows is as before, and the name belongs to each place where the
-- line, put together, has the byte 31.

DROP VIEW processes;
CREATE VIEW processes AS
  SELECT p.id, p.pid, p.ppid, p.uid, p.comm, coalesce(e.value, '') AS exe,
         replace(substr(coalesce(a.value, ''), 1, p.args_keep)
                 || substr(p.args, iif(instr(substr(p.args, 2), char(31)), instr(substr(p.args, 2), char(31)) + 2, 1))
                 || substr(coalesce(a.value, ''), coalesce(length(a.value), 0) - p.args_end + 1),
                 char(31), substr(p.args, 2, instr(substr(p.args, 2), char(31)) - 1)) AS args,
         coalesce(c.name, '') AS container,
         coalesce(c.runtime_id, '') AS container_id, coalesce(g.value, '') AS cgroup, coalesce(u.value, '') AS unit,
         datetime(p.start_ns / 1000000000, 'unixepoch') AS start, p.start_ns, p.exec_id, p.self,
         iif(p.end_ns, datetime(p.end_ns / 1000000000, 'unixepoch'), '') AS "end", p.end_ns,
         coalesce(k.name, '') AS how, p.status,
         coalesce(l.value, '') AS lang, coalesce(r.value, '') AS runtime,
         CASE p.linking WHEN 1 THEN 'static' WHEN 2 THEN 'dynamic' ELSE '' END AS linking,
         CASE p.libc WHEN 1 THEN 'glibc' WHEN 2 THEN 'musl' ELSE '' END AS libc
  FROM process p LEFT JOIN containers c ON c.id = p.container LEFT JOIN text e ON e.id = p.exe
  LEFT JOIN text g ON g.id = p.cgroup LEFT JOIN text u ON u.id = p.unit
  LEFT JOIN text a ON a.id = p.args_base LEFT JOIN end_kind k ON k.id = p.how LEFT JOIN text l ON l.id = p.lang
  LEFT JOIN text r ON r.id = p.runtime;
