# SPDX-License-Identifier: Apache-2.0
"""figures: how whole and how named the samples of a store are, beside what the load knows it ran.

    tests/drowning/figures.py STORE TRUTH      prints them
"""
import bisect
import collections
import contextlib
import functools
import glob
import json
import os
import sqlite3
import subprocess
import sys
import tempfile

#: where a stack may begin: the kernel's entries into a program and a thread, and those of Go
ROOTS = {"_start", "_dl_start_user", "_dl_start", "__clone", "clone", "__clone3", "clone3", "start_thread", "thread_start", "__vfork", "vfork",
         "_rt0_amd64_linux", "runtime.rt0_go", "runtime.goexit", "runtime.mstart", "runtime.clone", "runtime.mcall", "runtime.systemstack"}
STRIPPED_DEPTH = 5  # leaf, mid, work, main and what calls main


@functools.lru_cache(None)
def functions_of(path):
    """([(first byte, one past the last)] of all functions in the file's symbol tables, [(offset, size, address)] of its segments), by readelf."""
    def readelf(*what):
        return subprocess.run(["readelf", *what, "-W", path], capture_output=True, text=True, check=False, errors="replace").stdout.splitlines()
    rows = [line.split() for line in readelf("-s") if " FUNC " in line or " IFUNC " in line]
    functions = sorted({(int(r[1], 16), int(r[1], 16) + int(r[2], 0)) for r in rows if len(r) > 7 and r[6] != "UND" and int(r[2], 0)})
    loads = [(int(r[1], 16), int(r[4], 16), int(r[2], 16)) for r in map(str.split, readelf("-l")) if r[:1] == ["LOAD"]]
    return functions, loads


def has_symbol(path, offset):
    """Does a symbol of the file on disk cover this place? If not, nobody can name it."""
    if not path.startswith("/") or not os.path.exists(path):
        return False
    functions, loads = functions_of(path)
    for first, size, address in loads:
        if first <= offset < first + size:
            at = offset - first + address
            i = bisect.bisect_right(functions, (at, 1 << 63))
            return any(low <= at < high for low, high in functions[max(0, i - 8):i])
    return False


def stacks_of(db):
    """{stack_id: [(function, module, named, runtime, nameable), ...] root first}"""
    found, nameable = collections.defaultdict(list), {}
    for stack, frame, function, module, named, runtime, path, offset in db.execute(
            """SELECT k.stack_id, f.id, f.function, f.module, f.named, f.runtime, f.path, f.offset FROM stack_list k, json_each(k.frames) j
               JOIN frames f ON f.id = j.value ORDER BY k.stack_id, j.key"""):
        if frame not in nameable:
            nameable[frame] = bool(named) or not path.startswith("/") or has_symbol(path, offset)
        found[stack].append((function, module, named, runtime, nameable[frame]))
    return found


def rows_of(store):
    """(ts, pid, comm, samples, stack) of each sample that is not sonde's own."""
    for path in sorted(glob.glob(os.path.join(store, "*.db"))):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20) as db:
            db.text_factory = lambda b: b.decode("utf-8", "replace")
            stacks = stacks_of(db)
            for ts, pid, comm, stack, n in db.execute(
                    "SELECT ts, pid, comm, stack_id, sum(samples) FROM cpu_samples WHERE NOT self GROUP BY 1, 2, 3, 4"):
                yield ts, pid, comm, n, stacks.get(stack, [])
        db.close()


def is_kernel(frame):
    return frame[1].startswith("[") and frame[1] not in ("[anon]", "[jit]", "[unknown]", "[vdso]", "[file]")


def is_whole(user, stripped):
    root = user[0]
    if root[0] in ROOTS or root[0].startswith("_start"):
        return True
    if root[3]:
        return root[0].strip("<>{}") == "main"  # below machine code of a JIT that leads to no caller
    if stripped:
        return len(user) >= STRIPPED_DEPTH
    return not root[2] and len(user) > 1 and root[1].startswith(("libc.so", "libc-", "ld-linux"))  # a C library without symbols


def share(part, whole):
    return round(100 * part / whole, 1) if whole else None


class Sums:
    def __init__(self):
        self.user = self.whole = self.frames = self.nameable = self.named = self.scripts = self.in_script = 0

    def add(self, n, stack, p):
        user = [f for f in stack if not is_kernel(f)]
        mute = {p["program"]} if p and not p["named"] else set()  # a file without symbols
        judged = [f for f in stack if f[1] not in mute]
        self.frames += n * max(len(judged), not stack)
        self.nameable += n * max(sum(f[4] for f in judged), not stack)
        self.named += n * sum(f[2] for f in judged)
        if user or not stack:  # no stack at all: its leaf would have been known
            self.user += n
            self.whole += n * bool(user and is_whole(user, bool(mute)))
        if p and p["script"] and (user or not stack):
            self.scripts += n
            self.in_script += n * any(f[3] and f[0].rsplit(".", 1)[-1].rsplit("#", 1)[-1].endswith(f"work_{p['n']}") for f in user)

    def told(self):
        return {"user": self.user, "whole": share(self.whole, self.user), "named": share(self.named, self.nameable), "named of all": share(self.named, self.frames),
                "script samples": self.scripts, "script frames": share(self.in_script, self.scripts)}


def figures(store, truth, last_s=5):
    """Of all samples of the load, of its last seconds, and by kind of program. Other programs of the host are not judged."""
    of_pid = {p["pid"]: p for p in truth["processes"]}
    rows = list(rows_of(store))
    end = max(r[0] for r in rows)
    all_, last, kinds, seconds = Sums(), Sums(), collections.defaultdict(Sums), collections.defaultdict(Sums)
    by_pid = collections.Counter()
    for ts, pid, comm, n, stack in rows:
        p = of_pid.get(pid)
        by_pid[pid] += n
        if not p and comm != "true":
            continue
        all_.add(n, stack, p)
        if ts > end - last_s:
            last.add(n, stack, p)
        kinds[p["kind"] if p else comm].add(n, stack, p)
        seconds[ts - rows[0][0]].add(n, stack, p)
    return {"all": all_.told(), "last": last.told(), "kinds": {k: s.told() for k, s in sorted(kinds.items(), key=lambda x: -x[1].user)},
            "seconds": {s: sums.told()["whole"] for s, sums in sorted(seconds.items())}, "by_pid": by_pid}


def hurry():
    """In a child: who judges does not drown with the host that is judged."""
    os.setsid()
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -15)
        with open("/proc/self/autogroup", "w", encoding="ascii") as f:
            f.write("-15")


def figures_apart(store, truth, last_s=5):
    """The same, by a process of its own with more weight than the load has."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump(truth, f)
        f.flush()
        done = subprocess.run([sys.executable, __file__, store, f.name, "--json", str(last_s)], capture_output=True, text=True, check=False, preexec_fn=hurry)
    assert not done.returncode, done.stderr
    found = json.loads(done.stdout)
    found["by_pid"] = collections.Counter({int(pid): n for pid, n in found["by_pid"].items()})
    return found


def perf_counts(data):
    """Samples by pid in a file of `perf record`."""
    done = subprocess.run(["perf", "script", "-i", data, "-F", "pid"], capture_output=True, text=True, check=True, preexec_fn=hurry)
    return collections.Counter(int(line) for line in done.stdout.split() if line.isdigit())


def shares_apart(ours, theirs, truth, hottest=10):
    """[(program, our share, perf's share)] of the hottest programs, in percent of what belongs to the load."""
    def shares(counts):
        sums = collections.Counter()
        for p in truth["processes"]:
            sums[p["program"]] += counts[p["pid"]]
        whole = sum(sums.values()) or 1
        return {program: 100 * n / whole for program, n in sums.items()}
    a, b = shares(ours), shares(theirs)
    return [(p, round(a.get(p, 0), 1), round(s, 1)) for p, s in sorted(b.items(), key=lambda x: -x[1])[:hottest]]


def main():
    with open(sys.argv[2], encoding="utf-8") as f:
        truth = json.load(f)
    if len(sys.argv) > 3:
        print(json.dumps(figures(sys.argv[1], truth, int(sys.argv[4]))))
        return
    found = figures(sys.argv[1], truth)
    found.pop("by_pid")
    for key, value in found.items():
        if isinstance(value, dict) and key == "kinds":
            for kind, sums in value.items():
                print(f"  {kind:24} {sums}")
        else:
            print(key, value)


if __name__ == "__main__":
    main()
