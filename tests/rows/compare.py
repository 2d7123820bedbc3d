#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""compare: compares the unwind rows of sonde-index with readelf's, exhaustively, for whole files.

    tests/rows/compare.py [--budget SECONDS] [--seed TEXT] [--jobs N] PATH...     files, or folders to take all of
"""
import argparse
import bisect
import collections
import concurrent.futures
import hashlib
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oracle  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INDEX = os.path.join(ROOT, os.environ.get("B", "build"), "bin", "sonde-index")

# What Go's tables say and call-frame information has no words for (go files: CFA alone is compared, where it has some).
GO_WORDS = ("root", "signal", "go-", "fp")
# What sonde-index says where no call-frame information does (loaders/index/unwind/knowncode.h).
KNOWN_CODE = ("root", "signal", "plt:", "rsp+8 same c-8", "rsp+16 same c-8", "rsp+24 same c-8")


class Outcome:
    def __init__(self, path):
        self.path, self.wrong, self.rows, self.raw, self.unsupported = path, [], 0, 0, collections.Counter()
        self.go = False


def ours(path):
    """([(address, rule)], what the head line says), or (None, why it was refused)."""
    with tempfile.TemporaryDirectory(prefix="sonde-rows.") as work:
        index = os.path.join(work, "index")
        done = subprocess.run([INDEX, path, "-o", index], capture_output=True, text=True, errors="replace")
        if done.returncode:
            return None, done.stderr.strip()
        said = subprocess.run([INDEX, "--dump-rows", index], capture_output=True, text=True, check=True).stdout
    lines = said.splitlines() or ["#"]
    return [(int(line[:16], 16), line[17:]) for line in lines[1:]], lines[0]


def rule_at(table, starts, addr):
    i = bisect.bisect_right(starts, addr) - 1
    return table[i][1] if i >= 0 else "none"


def same_in_go(x, y, inside):
    return not inside or x.startswith(GO_WORDS) or x.split()[0] == y.split()[0]


def is_followed(path):
    """A C library or a static program, whose code is followed where no call-frame information is (loaders/index/unwind/stackdepth.h);
    what is made of it is held against .eh_frame by the test of `followed`."""
    said = subprocess.run(["readelf", "-W", "-l", "--dyn-syms", path], capture_output=True, text=True, errors="replace").stdout
    defined = any(w[-1].split("@")[0] == "sigaction" and w[6] != "UND" for w in map(str.split, said.splitlines()) if len(w) == 8)
    return defined or " INTERP " not in said and " DYNAMIC " not in said


def differences(mine, expected, covered, go=False, followed=False):
    """Where the two say different things, address ranges with both rules."""
    if mine == expected:
        return []
    a, b = [r[0] for r in mine], [r[0] for r in expected]
    lows = [lo for lo, _ in covered]
    edges = {e for span in covered for e in span}
    wrong = []
    for addr in sorted(set(a) | set(b) | edges):
        x, y = rule_at(mine, a, addr), rule_at(expected, b, addr)
        if x == y:
            continue
        i = bisect.bisect_right(lows, addr) - 1
        inside = i >= 0 and addr < covered[i][1]
        if go and same_in_go(x, y, inside):
            continue
        padding = i >= 0 and not inside and addr - covered[i][1] <= oracle.PADDING
        if not inside and (padding or x == "none" or x.startswith(KNOWN_CODE) or followed and x.startswith(("rsp+", "rbp+"))):
            continue
        wrong.append((addr, x, y))
    return wrong


def code_at(path, addr, size):
    """The bytes of code at a virtual address."""
    with open(path, "rb") as f:
        head = f.read(64)
        at, n = int.from_bytes(head[32:40], "little"), int.from_bytes(head[56:58], "little")
        for i in range(n):
            f.seek(at + 56 * i)
            p = f.read(56)
            offset, vaddr, filesz = (int.from_bytes(p[k:k + 8], "little") for k in (8, 16, 32))
            if p[:4] == b"\1\0\0\0" and vaddr <= addr < vaddr + filesz:
                f.seek(offset + addr - vaddr)
                return f.read(size)
    return b""


def is_start_context(path, x, y, addr):
    """glibc's __start_context: nothing called it, but older ones do not say so (loaders/index/unwind/knowncode.h, 5)."""
    return x == "root" and y == "rsp+8 same c-8" and code_at(path, addr, 10) == bytes.fromhex("4889dc488b3c244885ff")


def compare(path):
    out = Outcome(path)
    expected, covered, out.raw = oracle.table(path)
    mine, head = ours(path)
    if mine is None:
        if covered:
            out.wrong = [(0, "refused: " + head, "rows")]
        return out
    out.go = " go" in head
    out.rows = len(mine)
    for _, rule in mine:
        if rule.startswith("unsupported"):
            out.unsupported[rule] += 1
    out.wrong = [w for w in differences(mine, expected, covered, out.go, is_followed(path)) if not is_start_context(path, w[1], w[2], w[0])]
    return out


def is_program(path):
    """An x86-64 ET_EXEC or ET_DYN."""
    try:
        with open(path, "rb") as f:
            head = f.read(20)
    except OSError:
        return False
    return head[:6] == b"\x7fELF\x02\x01" and head[16:20] in (b"\x02\0\x3e\0", b"\x03\0\x3e\0")


def files_of(paths):
    seen, out = set(), []
    for top in paths:
        listed = [os.path.join(d, f) for d, _, names in os.walk(top) for f in names] if os.path.isdir(top) else [top]
        for path in listed:
            if not os.path.isfile(path) or (os.path.islink(path) and path != top):
                continue
            st = os.stat(path)
            if (st.st_dev, st.st_ino) not in seen and is_program(path):
                seen.add((st.st_dev, st.st_ino))
                out.append((st.st_size, path))
    return out


def ordered(files, seed):
    """The ten largest first, then all others in an order that the seed chooses."""
    files = sorted(files, reverse=True)
    rest = sorted(files[10:], key=lambda f: hashlib.sha256((seed + f[1]).encode()).digest())
    return [p for _, p in files[:10] + rest]


class Sum:
    def __init__(self):
        self.files = self.go = self.rows = self.raw = self.unsupported = 0
        self.reasons, self.wrong, self.above = collections.Counter(), [], []

    def add(self, o):
        bad = sum(o.unsupported.values())
        self.files += 1
        self.go += o.go
        self.rows += o.rows
        self.raw += o.raw
        self.unsupported += bad
        self.reasons += o.unsupported
        self.wrong += [(o.path, w) for w in o.wrong[:5]]
        if o.rows and bad / o.rows > 0.01:
            self.above.append(f"{o.path}: {bad} of {o.rows} rows unsupported")

    def __str__(self):
        share = 100 * self.unsupported / self.rows if self.rows else 0
        return (f"{self.files} files ({self.go} of Go, by CFA), {self.raw} rows of readelf, {self.rows} after merging, {self.unsupported} unsupported "
                f"({share:.4f} %: {dict(self.reasons)}), {len(self.wrong)} disagree")


def compare_all(paths, budget=None, jobs=2, talk=False):
    total, until = Sum(), time.monotonic() + budget if budget else float("inf")
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        for o in within(pool, paths, until, jobs):
            total.add(o)
            if talk and o.wrong:
                print(f"{o.path}: {len(o.wrong)} differ, first {o.wrong[0][0]:#x}: ours {o.wrong[0][1]}, readelf's {o.wrong[0][2]}",
                      flush=True)
    return total


def within(pool, paths, until, jobs):
    """Results, as long as there is time to begin one more."""
    waiting, left = set(), iter(paths)
    while True:
        while len(waiting) < jobs and time.monotonic() < until:
            path = next(left, None)
            if path is None:
                break
            waiting.add(pool.submit(compare, path))
        if not waiting:
            return
        done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
        for w in done:
            yield w.result()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float)
    parser.add_argument("--seed", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("paths", nargs="+")
    opts = parser.parse_args()
    total = compare_all(ordered(files_of(opts.paths), opts.seed), opts.budget, opts.jobs, talk=True)
    for line in total.above:
        print(line)
    print(total)
    return 1 if total.wrong or total.above or not total.files else 0


if __name__ == "__main__":
    sys.exit(main())
