# SPDX-License-Identifier: Apache-2.0
"""What the flame graph page should show, computed from the rows that it was made of, path by path; and the pointer moved
over the canvas to see whether it does."""
import json
import re
from collections import defaultdict

from browser import ROW

GROUP, KERNEL, RUNTIME = 4, ("[kernel]", "", 1, False), ("[runtime]", "", 5, False)
RUNTIME_NAME = re.compile(r"(internal/)?runtime(/[^.]*)?\.")
RUNTIME_MODULE = re.compile(r"ld-linux|ld-musl|libc[.-]|libm[.-]|libpthread|librt[.-]|libdl|libstdc\+\+|libgcc_s|libjvm|libpython")
ALL = ("all", "", 4, False)


class Rows:
    def __init__(self, path):
        data = json.load(open(path))
        self.frames = data["frames"]
        self.rows = data["rows"]

    def look(self, frame):
        return tuple(self.frames[frame][:4])


def group_of(row, by):
    _, pid, comm, tid, thread, container, _, _ = row
    return {"container": container or "[host]", "process": f"{comm} ({pid})", "thread": f"{comm} ({pid}) {thread} ({tid})"}[by]


def stand_in(look, kernel, runtime):
    if kernel and look[2] == 1:
        return KERNEL
    if runtime and (look[2] == 2 and RUNTIME_NAME.match(look[0]) or look[2] == 0 and RUNTIME_MODULE.match(look[1])):
        return RUNTIME
    return look


def paths(data, group="none", slots=None, focus=(), drop=(), hide=(), kernel=False, runtime=False, merge=False):
    """(path of looks, samples) of each row that stays; functions are (name, module)."""
    for row in data.rows:
        looks = [data.look(f) for f in row[0]]
        functions = {x[:2] for x in looks}
        if slots and not slots[0] <= row[6] <= slots[1]:
            continue
        if not set(focus) <= functions or functions & set(drop):
            continue
        out = [] if group == "none" else [(group_of(row, group), "", GROUP, False)]
        for look in looks:
            if look[:2] in hide:
                continue
            look = stand_in(look, kernel, runtime)
            if look in (KERNEL, RUNTIME) and out and out[-1] == look:
                continue
            if merge and look in out:
                del out[out.index(look) + 1:]
            else:
                out.append(look)
        yield out, row[7]


class Node:
    def __init__(self, look):
        self.look, self.total, self.self, self.children = look, 0, 0, {}

    def add(self, path, n):
        at = self
        at.total += n
        for look in path:
            at = at.children.setdefault(look, Node(look))
            at.total += n
        at.self += n

    def ordered(self):
        return sorted(self.children.values(), key=lambda c: (-c.total, c.look[0]))


def forward(data, **options):
    root = Node(ALL)
    for path, n in paths(data, **options):
        root.add(path, n)
    return root


def inverted(data, **options):
    root = Node(ALL)
    for path, n in paths(data, **options):
        head = path[:1] if path and path[0][2] == GROUP else []
        root.add(head + path[len(head):][::-1], n)
    return root


def sandwich(data, function, **options):
    """(callers, callees) of the outermost calls."""
    callers, callees = Node(function), Node(function)
    for path, n in paths(data, **options):
        at = next((i for i, look in enumerate(path) if look[:2] == function), None)
        if at is not None:
            callers.add(path[:at][::-1], n)
            callees.add(path[at + 1:], n)
    return callers, callees


def functions(root):
    """(name, module) -> [self, total]; a recursion counts once."""
    sums = defaultdict(lambda: [0, 0])

    def walk(node, above):
        key = node.look[:2]
        if node is not root and node.look[2] != GROUP:
            sums[key][0] += node.self
            if key not in above:
                sums[key][1] += node.total
            above = above | {key}
        for child in node.children.values():
            walk(child, above)
    walk(root, frozenset())
    return sums


def depth_of(node):
    return 1 + max((depth_of(c) for c in node.children.values()), default=-1) if node.children else 0


def boxes(root, width, max_depth=24):
    """(node, depth, left, right, sure) in pixels, level by level; not sure: a sibling looks the same."""
    out, level = [], [(root, 0, 0.0)]
    while level:
        node, depth, left = level.pop(0)
        out.append((node, depth, left * width / root.total, (left + node.total) * width / root.total))
        x = left
        if depth < max_depth:
            for child in node.ordered():
                level.append((child, depth + 1, x))
                x += child.total
    return out


def look_over(page, root, which="lower", flip=False, wide=12, most=24, deep=24, whole=None):
    """Move the pointer over the frames at least `wide` pixels wide: name and numbers must be those of `root`."""
    page.js("document.getElementById(arguments[0]).scrollIntoView({block: 'start'})", which)
    page.settle()
    box, seen = page.canvas(which), 0
    depth = depth_of(root)
    for node, row, left, right in boxes(root, box["width"], deep):
        if right - left < wide or seen >= most:
            continue
        at = (depth - row if flip else row) * ROW + ROW / 2
        if at > box["height"]:
            continue
        tip = page.point((left + right) / 2, at, which=which)
        samples = f"{node.total:,}".replace(",", "\u202f") + " samples"
        assert tip and tip[0] == node.look[0], (tip, node.look, left, right, row)
        assert f" {samples}" in tip[1], (tip, node.total)
        share = 100 * node.total / (whole or root.total)
        assert f"{share:.1f} % of all" in tip[1] or f"{share:.2f} % of all" in tip[1], (tip, share)
        seen += 1
    assert seen >= min(most, 4), seen
    return seen
