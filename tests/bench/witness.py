# SPDX-License-Identifier: Apache-2.0
"""witness: what the facts of an archive would take in plain columns, each compressed by itself: a measure of what is in it, and no format of
sonde's. Stacks as a tree, depth first, frames in order of their places.
"""
import lzma
import os
import sqlite3
import zlib

import bench


def numbers(values):
    """Signed LEB128, one after the other."""
    out = bytearray()
    for v in values:
        v = v << 1 if v >= 0 else (-v << 1) - 1
        while v > 127:
            out.append(v & 127 | 128)
            v >>= 7
        out.append(v)
    return bytes(out)


def steps(values):
    before, out = 0, []
    for v in values:
        out.append(v - before)
        before = v
    return numbers(out)


def column(values):
    """Strings with a NUL between, numbers as steps."""
    return "\0".join(values).encode() if values and isinstance(values[0], str) else steps(values)


def tree_of(db):
    """Parents, frames and depths by node, and the node at which each stack ends."""
    parent, frame, depth, end = [0], [0], [0], {0: 0}
    for row, base, keep, leaf, tail in db.execute("SELECT id, base, keep, leaf, tail FROM stack ORDER BY id"):
        at = end[base]
        while depth[at] > keep:
            at = parent[at]
        for f in [int(v) for v in tail.split(",") if v] + [leaf]:
            parent.append(at)
            frame.append(f)
            depth.append(depth[at] + 1)
            at = len(parent) - 1
        end[row] = at
    return parent, frame, depth, end


def stack_columns(db, place):
    """How far up each node hangs, how far its frame is from the last one that came below the same caller, which nodes are a stack's
    end; and the place of each stack in that order."""
    parent, frame, depth, end = tree_of(db)
    children, ends, last = [[] for _ in parent], {v: k for k, v in end.items()}, {}
    for node in range(1, len(parent)):
        children[parent[node]].append(node)
    up, far, own, order = [], [], [], {}
    todo, at = sorted(children[0], key=lambda x: -place.get(frame[x], 0)), 0
    while todo:
        node = todo.pop()
        here, caller = place.get(frame[node], 0), place.get(frame[parent[node]], 0)
        up.append(at - depth[node] + 1)
        far.append(here - last.get(caller, caller))
        last[caller], at = here, depth[node]
        own.append(int(node in ends))
        if node in ends:
            order[ends[node]] = len(order)
        todo.extend(sorted(children[node], key=lambda x: -place.get(frame[x], 0)))
    return [numbers(up), numbers(far), bytes(own)], order


def table_columns(db, table, names, order):
    return [column(list(c)) for c in zip(*db.execute(f"SELECT {names} FROM {table} ORDER BY {order}"))]


def opened(path):
    """With sonde's extension, for an archive."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    db.enable_load_extension(True)
    db.load_extension(os.path.join(bench.BUILD, "lib", "sonde"))
    return db


def columns_of(path):
    db = opened(path)
    frames = db.execute('SELECT id, image, "offset", function, line, flags, outer FROM frame ORDER BY image, "offset", id').fetchall()
    place = {row[0]: i + 1 for i, row in enumerate(frames)}
    out = {"frames": [steps(c) for c in list(zip(*frames))[1:6]] + [steps(place.get(row[6], 0) for row in frames)]}
    out["stacks"], order = stack_columns(db, place)
    series = sorted((task, order.get(stack, 0)) for task, stack in db.execute("SELECT task, stack FROM series"))
    out["series"] = [steps(s[0] for s in series), steps(s[1] for s in series)]
    out["functions"] = table_columns(db, "function", "image, line, name, source", "image, name")
    out["processes, threads"] = table_columns(db, "task", "process, tid, thread", "process, tid") + table_columns(
        db, "process", "pid, ppid, uid, exec_id, start_ns / 1000, comm, exe, args_base, args_keep, args, args_end, cgroup, unit,"
        " container, (end_ns - start_ns) / 1000, how, status", "id")
    out["texts"] = table_columns(db, "text", "value", "id") + table_columns(db, "source", "path", "id") + table_columns(
        db, "image", "name, path, build_id", "id")
    out["samples"] = table_columns(db, "sample", "ts, series, n", "ts, series")
    db.close()
    return out


def sizes(path):
    """By part: (zlib -9, xz -9e)."""
    return {name: (sum(len(zlib.compress(c, 9)) for c in columns),
                   sum(len(lzma.compress(c, preset=9 | lzma.PRESET_EXTREME)) for c in columns)) for name, columns in columns_of(path).items()}
