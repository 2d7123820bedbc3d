#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a segment's dictionary costs in each form that was considered, on real stacks.

    perf record -F 99 -a -g -o x.data sleep 40; perf script -i x.data -F comm,pid,tid,time,ip,sym,symoff,dso > x.txt
    tests/bench/dictionary/dictionary.py x.txt [--only nginx,redis]     or     dictionary.py SEGMENT.db

Stacks come from `perf script`, or from a segment that sonde wrote. Callers keep their exact offset, the leaf is folded
to its function where that has a name. Each form is filled into a database of its own, vacuumed, and measured by pages
(sqlite's dbstat); what all forms share (rows, series, tasks, frames, functions) is measured once. Bytes a sample.

  tree      stack(id, parent, frame)
  tree+uq   the same with UNIQUE(parent, frame)                 look-up in the file
  json      stack(id, frames), a JSON list of frame ids
  tail      stack(id, base, keep, leaf, tail): the first `keep` frames of an earlier stack, a list, the leaf: sonde's
"""
import argparse
import collections
import json
import re
import sqlite3
import sys

FRAME = re.compile(r"^\s+([0-9a-f]+) (.*) \((.*)\)$")
HEAD = re.compile(r"^(\S.*?)\s+(\d+)/(\d+)\s+([0-9.]+):")


def perf_samples(path):
    """(comm, pid, tid, second, [(module, function or '', offset)] root first) of each sample that is not idle."""
    head, frames = None, []
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in list(lines) + ["\n"]:
            m = HEAD.match(line)
            if m:
                head, frames = m, []
                continue
            m = FRAME.match(line)
            if m and head:
                ip, sym, dso = m.groups()
                if dso == "[unknown]":
                    continue
                name = "" if sym.startswith("[unknown]") else sym.rsplit("+", 1)[0]
                frames.append((dso, name, int(ip, 16)))
                continue
            if head and not line.strip():
                comm, pid, tid, when = head.groups()
                if not comm.startswith("swapper"):
                    yield comm, int(pid), int(tid), float(when), fold(frames[::-1])
                head = None


def fold(frames):
    if frames and frames[-1][1]:
        frames = frames[:-1] + [(frames[-1][0], frames[-1][1], -1)]
    return tuple(frames)


def store_samples(path):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    parent = {i: (p, f) for i, p, f in db.execute("SELECT id, parent, frame FROM stack")}
    frame = {i: (m, n if named else "", o if not flags & 2 else -1) for i, m, n, named, o, flags in db.execute(
        "SELECT f.id, v.module, v.function, v.named, f.offset, f.flags FROM frame f JOIN frames v ON v.id = f.id")}
    for ts, n, stack, comm, pid, tid in db.execute(
            "SELECT x.ts, x.n, e.stack, p.comm, p.pid, t.tid FROM sample x JOIN series e ON e.id = x.series"
            " JOIN task t ON t.id = e.task JOIN process p ON p.id = t.process"):
        out = []
        while stack:
            stack, f = parent[stack]
            out.append(frame[f])
        for _ in range(n):
            yield comm, pid, tid, ts, tuple(out[::-1])


class Ids(dict):
    def __missing__(self, key):
        self[key] = len(self) + 1
        return self[key]


def measure(fill):
    db = sqlite3.connect(":memory:")
    fill(db)
    db.commit()
    db.execute("VACUUM")
    return {n: b for n, b in db.execute(
        "SELECT name, sum(pgsize) FROM dbstat WHERE name NOT LIKE 'sqlite_schema' GROUP BY name")}


def tree(stacks, unique):
    def fill(db):
        db.execute("CREATE TABLE stack(id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, frame INTEGER NOT NULL"
                   + (", UNIQUE(parent, frame)" if unique else "") + ") STRICT")
        nodes = Ids()
        for s in stacks:
            at = 0
            for f in s:
                at = nodes[(at, f)]
        db.executemany("INSERT INTO stack VALUES(?, ?, ?)", ((i, p, f) for (p, f), i in nodes.items()))
        fill.nodes = len(nodes)
    return fill


def json_list(stacks):
    def fill(db):
        db.execute("CREATE TABLE stack(id INTEGER PRIMARY KEY, frames TEXT NOT NULL) STRICT")
        db.executemany("INSERT INTO stack(frames) VALUES(?)", ((json.dumps(s, separators=(",", ":")),) for s in stacks))
    return fill


def tail(stacks):
    def fill(db):
        db.execute("CREATE TABLE stack(id INTEGER PRIMARY KEY, base INTEGER NOT NULL, keep INTEGER NOT NULL,"
                   " leaf INTEGER NOT NULL, tail TEXT NOT NULL) STRICT")
        seen = {}
        for i, s in enumerate(stacks, 1):
            keep = max(len(s) - 1, 0)
            while keep and s[:keep] not in seen:
                keep -= 1
            base = seen[s[:keep]] if keep else 0
            db.execute("INSERT INTO stack VALUES(?, ?, ?, ?, ?)",
                       (i, base, keep, s[-1] if s else 0, ",".join(map(str, s[keep:-1]))))
            for k in range(keep + 1, len(s) + 1):
                seen.setdefault(s[:k], i)
    return fill


def shared(samples, frame_ids):
    """Rows, series, tasks, frames, functions: as in schema/sql."""
    def fill(db):
        db.executescript(
            "CREATE TABLE sample(ts INTEGER NOT NULL, series INTEGER NOT NULL, n INTEGER NOT NULL,"
            " PRIMARY KEY(ts, series)) STRICT, WITHOUT ROWID;"
            "CREATE TABLE series(id INTEGER PRIMARY KEY, task INTEGER NOT NULL, stack INTEGER NOT NULL) STRICT;"
            "CREATE TABLE frame(id INTEGER PRIMARY KEY, image INTEGER NOT NULL, offset INTEGER NOT NULL,"
            " function INTEGER NOT NULL, line INTEGER NOT NULL, flags INTEGER NOT NULL) STRICT;"
            "CREATE TABLE function(id INTEGER PRIMARY KEY, hash INTEGER NOT NULL, image INTEGER NOT NULL,"
            " line INTEGER NOT NULL, name TEXT NOT NULL, file TEXT NOT NULL) STRICT;"
            "CREATE INDEX function_by_hash ON function(hash);")
        rows, tasks, series, images, functions = collections.Counter(), Ids(), Ids(), Ids(), Ids()
        for comm, pid, tid, second, stack in samples:
            rows[(second, series[(tasks[(comm, pid, tid)], stack)])] += 1
        first = min(s for s, _ in rows)
        db.executemany("INSERT INTO sample VALUES(?, ?, ?)", ((t - first, s, n) for (t, s), n in sorted(rows.items())))
        stack_ids = Ids()
        db.executemany("INSERT INTO series VALUES(?, ?, ?)",
                       ((i, t, stack_ids[s] * 5) for (t, s), i in series.items()))  # *5: ids are of nodes
        db.executemany("INSERT INTO frame VALUES(?, ?, ?, ?, 0, 0)",
                       ((i, images[m], o & 0xffffffffff if o > 0 else i * 64, functions[(m, f)] if f else 0)
                        for (m, f, o), i in frame_ids.items()))
        db.executemany("INSERT INTO function VALUES(?, ?, ?, 0, ?, '')",
                       ((i, hash(f) & 0x7fffffff, images[m], f) for (m, f), i in functions.items()))
        fill.series, fill.functions, fill.tasks = len(series), len(functions), len(tasks)
    return fill


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("file")
    ap.add_argument("--only", help="commands, by the start of their names")
    ap.add_argument("--stretch", type=float, default=1, help="take the capture as N times as long at 1/N of its rate:"
                    " a dictionary that has settled without waiting for it")
    args = ap.parse_args()
    read = store_samples if args.file.endswith(".db") else perf_samples
    only = tuple(args.only.split(",")) if args.only else ("",)
    samples = [s for s in read(args.file) if s[0].startswith(only)]
    samples = [(c, p, t, int(when * args.stretch), s) for c, p, t, when, s in samples]
    if not samples:
        sys.exit("no sample")
    frame_ids, stack_ids = Ids(), Ids()
    for s in samples:
        stack_ids[tuple(frame_ids[f] for f in s[4])]
    stacks = list(stack_ids)
    n = len(samples)
    common = shared(samples, frame_ids)
    parts = measure(common)
    depth = sum(len(s) for s in stacks) / len(stacks)
    print(f"{n} samples, {len(stacks)} stacks (mean depth {depth:.1f}), {common.series} series, {common.tasks} tasks, "
          f"{len(frame_ids)} frames, {common.functions} functions")
    print("  shared, B a sample: " + ", ".join(f"{k} {v / n:.1f}" for k, v in parts.items())
          + f"; together {sum(parts.values()) / n:.1f}")
    for name, fill in (("tree", tree(stacks, False)), ("tree+uq", tree(stacks, True)), ("json", json_list(stacks)),
                       ("tail", tail(stacks))):
        size = sum(measure(fill).values())
        more = f", {fill.nodes} nodes, {fill.nodes / len(stacks):.2f} a stack" if hasattr(fill, "nodes") else ""
        print(f"  {name:8} {size / n:6.1f} B a sample, {size / len(stacks):6.1f} B a stack"
              f", all {(size + sum(parts.values())) / n:6.1f} B a sample{more}")


main()
