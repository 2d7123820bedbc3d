# SPDX-License-Identifier: Apache-2.0
"""CPU time by samples beside the kernel's own accounts: what it charged each cgroup (cpuacct.usage, cpu.stat) and each process (utime + stime), while the host
is quiet and while twenty others want its CPUs, at the rates of `record` and of sonded, for programs that always run, that wake a hundred times a second, that
hand a CPU to each other, and that live for milliseconds."""
import bisect
import contextlib
import json
import math
import os
import subprocess
import sys
import threading
import time

import pytest
from conftest import BIN, need_root, sql_all, stolen_ns
from containers import cgroup_roots, cgroups

TICK = os.sysconf("SC_CLK_TCK")
SECONDS = 24
WORK = {
    "busy": "while 1: pass",
    "sleepy": "import time\nwhile 1:\n t = time.monotonic() + 0.002\n while time.monotonic() < t: pass\n time.sleep(0.008)",
    "handing over": "import os\na, b = os.pipe(); c, d = os.pipe()\nif os.fork():\n while 1: os.write(b, b'x'); os.read(c, 1)\nelse:\n while 1: os.read(a, 1); os.write(d, b'x')",
    "short-lived": "import os\nwhile 1: os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)",
}
#: those that hand over ten thousand times a second: a timer that fires while a switch has interrupts off is counted for the next task (perf's cpu-clock too)
APART = {"handing over": 0.2, "short-lived": 0.1}
ROOTS = ("/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpu,cpuacct")


def charged_of(path):
    """ns."""
    if os.path.exists(f"{path}/cpuacct.usage"):
        with open(f"{path}/cpuacct.usage", encoding="ascii") as f:
            return int(f.read())
    with open(f"{path}/cpu.stat", encoding="ascii") as f:
        return 1000 * int(dict(line.split() for line in f)["usage_usec"])


def process_ns(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 10**9 // TICK


class Accounts:
    """The kernel's counters over time, each read every 50 ms."""

    def __init__(self, read):
        self.read, self.times, self.told, self.over = read, [], [], threading.Event()
        self.thread = threading.Thread(target=self.follow)
        self.thread.start()

    def follow(self):
        while not self.over.wait(0.05):
            self.times.append(time.time())
            self.told.append(self.read())

    def stop(self):
        self.over.set()
        self.thread.join()

    def at(self, t, key):
        i = min(max(bisect.bisect(self.times, t), 1), len(self.times) - 1)
        (t0, a), (t1, b) = ((self.times[k], self.told[k][key]) for k in (i - 1, i))
        return a + (b - a) * (t - t0) / (t1 - t0)

    def between(self, begin, end, key):
        return self.at(end, key) - self.at(begin, key)


@contextlib.contextmanager
def running(code, prefix=()):
    child = subprocess.Popen([*prefix, sys.executable, "-c", code], stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, 9)
        child.wait()


def allowed(samples, kind):
    return APART.get(kind, 0.02) + 3.5 / math.sqrt(max(samples, 1))


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize("others", [0, 20])
@pytest.mark.parametrize("freq", [19, 499])
def test_samples_are_what_the_kernel_charged(tmp_path, others, freq):
    need_root()
    store = str(tmp_path / "store")
    roots = [*cgroup_roots(), *(r for r in ROOTS if os.path.isdir(r))]
    with contextlib.ExitStack() as stack:
        ids, paths = {}, {}
        for n, kind in enumerate(WORK):
            ids[kind] = f"{n + 1:064x}"
            made, prefix = stack.enter_context(cgroups({root: f"docker/{ids[kind]}" for root in roots}))
            paths[kind] = next((p for p in made if os.path.exists(f"{p}/cpuacct.usage") or os.path.exists(f"{p}/cpu.stat")), None)
            if not paths[kind]:
                pytest.skip("missing: a cgroup that counts CPU time")
            child = stack.enter_context(running(WORK[kind], prefix))
            if kind == "busy":
                alone = child.pid
        for _ in range(others):
            stack.enter_context(running(WORK["busy"]))
        time.sleep(1)
        accounts = Accounts(lambda: {**{k: charged_of(p) for k, p in paths.items()}, "stolen": stolen_ns(), "process": process_ns(alone)})
        stack.callback(accounts.stop)
        done = subprocess.run([os.path.join(BIN, "sonde"), "record", "-F", str(freq), "-d", f"{SECONDS}s", "--families", "cpu", "--store", store, "--json"],
                              capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr
        (run,) = sql_all(store, "SELECT from_ns, to_ns FROM run WHERE family = 'cpu'")
        begin, end = math.ceil(run["from_ns"] / 1e9), math.floor(run["to_ns"] / 1e9)
        stolen, wrong = accounts.between(begin, end, "stolen"), []
        for kind, i in ids.items():
            (row,) = sql_all(store, "SELECT sum(s.samples) AS n, sum(s.cpu_ns) AS ns FROM cpu_samples s JOIN processes p ON p.id = s.process_id "
                                    "WHERE p.container_id = ? AND s.ts >= ? AND s.ts < ?", (i, begin, end))
            charged, rel = accounts.between(begin, end, kind), allowed(row["n"] or 0, kind)
            print(f"{kind}: {(row['ns'] or 0) / 1e9:.3f} s by {row['n']} samples, {charged / 1e9:.3f} s charged (+-{rel:.3f}), {stolen / 1e9:.2f} s stolen from the host")
            if not (1 - rel) * charged <= (row["ns"] or 0) <= (1 + rel) * charged + stolen:
                wrong.append(kind)
        shown = json.loads(subprocess.run([os.path.join(BIN, "sonde"), "ps", "--from", str(begin), "--to", str(end), "--json", "-n", "10000", "--store", store],
                                          capture_output=True, text=True, check=True).stdout)["rows"]
        (row,) = [r for r in shown if r["pid"] == alone]
        charged, rel = accounts.between(begin, end, "process"), allowed(row["samples"], "busy")
        print(f"ps: {row['cpu_cores']:.3f} cores, {charged / 1e9 / (end - begin):.3f} by utime + stime")
        assert (1 - rel) * charged <= row["cpu_cores"] * (end - begin) * 1e9 <= (1 + rel) * charged + stolen
        assert not wrong
