# SPDX-License-Identifier: Apache-2.0
"""sonde-goheap on a Go program whose heap is known. The oracle is the heap profile that the program's own runtime writes
while the program rests (runtime/pprof), read by go tool pprof."""
import json
import math
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

from conftest import BIN, ROOT, WORKLOADS, need, need_root, scale, sql_all

LOADER = os.path.join(BIN, "sonde-goheap")
CAPS = "-all,+sys_ptrace,+dac_read_search"


class Heapwork:
    """The workload; `rest` brings it to rest and gives its own profile, `go_on` lets it work again."""

    def __init__(self, folder, *args, program=os.path.join(WORKLOADS, "heapwork-go"), cgroup=None):
        need("heapwork-go (make workloads, with go)", program)
        enter = ["sh", "-c", f'echo $$ > {cgroup}; exec "$@"', "sh"] if cgroup else []
        self.process = subprocess.Popen([*enter, program, *args, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        assert self.process.stdout.readline() == "ready\n"
        self.pid = self.process.pid

    def line(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def rest(self):
        self.line()
        return re.fullmatch(r"at rest (.*)\n", self.process.stdout.readline()).group(1)

    go_on = line

    def close(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def heapwork(scratch):
    running = []

    def start(*args):
        running.append(Heapwork(scratch, *args))
        return running[-1]

    need_root()
    yield start
    for w in running:
        w.close()


def loader(store, *args, prefix=()):
    return subprocess.Popen([*prefix, LOADER, "--store", store, "--bucket", "1s", *args], stderr=subprocess.PIPE, text=True)


def ended(p, timeout=30):
    try:
        return p.wait(timeout), p.stderr.read()
    finally:
        p.kill()


def wait_for(what, seconds=15):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        got = what()
        if got:
            return got
        time.sleep(0.05)
    raise AssertionError("it did not come in time")


def asked(store, query):
    if not os.path.isdir(store) or not any(f.endswith(".db") for f in os.listdir(store)):
        return []
    try:
        return sql_all(store, query)
    except sqlite3.OperationalError:  # it is being made
        return []


def readings(store, pid):
    return [r["n"] for r in asked(store, "SELECT count(*) AS n FROM go_readings r JOIN process p ON p.id = r.process_id"
                                         f" WHERE p.pid = {pid}")]


def own(profile):
    """What the program's own runtime says: (function, line) of the allocation -> its four values."""
    need("go")
    raw = subprocess.run(["go", "tool", "pprof", "-raw", profile], capture_output=True, text=True, check=True).stdout
    lines = raw.splitlines()
    places = {}
    for m in re.finditer(r"^\s+(\d+): (0x[0-9a-f]+) (?:M=\d+ )?(?:\[F\] )?(.*)$", raw, re.M):
        named = re.match(r"(.+) \S+?:(\d+)(?::\d+)? s=-?\d+$", m.group(3))
        places[m.group(1)] = (named.group(1), int(named.group(2))) if named else (m.group(3).strip() or m.group(2), 0)
    sums = {}
    for line in lines[lines.index("Samples:") + 2:lines.index("Locations")]:
        m = re.match(r"\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+): ([\d ]+)", line)
        if m:
            at = sums.setdefault(places[m.group(5).split()[0]], [0, 0, 0, 0])
            for i in range(4):
                at[i] += int(m.group(i + 1))
    return sums


def held(store, pid):
    """The same of the store."""
    rows = asked(store, "SELECT function, line, sum(alloc_objects) AS a, sum(alloc_bytes) AS b, sum(inuse_objects) AS c,"
                        f" sum(inuse_bytes) AS d FROM go_heap WHERE pid = {pid} GROUP BY 1, 2")
    return {(r["function"], r["line"]): [r["a"], r["b"], r["c"], r["d"]] for r in rows}


def assert_in_use(profile, store, pid):
    mine, theirs = held(store, pid), own(profile)
    assert {k for k, v in theirs.items() if v[2]} == {k for k, v in mine.items() if v[2]}
    for place, values in theirs.items():
        if values[2]:
            for i in (2, 3):  # each size of object is rounded by itself
                assert abs(mine[place][i] - values[i]) <= 8, (place, mine[place], values)


def leak_line():
    with open(os.path.join(ROOT, "tests", "workloads", "go", "heapwork.go"), encoding="utf-8") as f:
        return next(i for i, line in enumerate(f, 1) if "// LEAK" in line)


@pytest.mark.long
def test_what_is_in_use_is_what_the_runtime_itself_says(heapwork, store):
    work = heapwork()
    time.sleep(1)  # something to find
    profile = work.rest()
    status, said = ended(loader(store, "--pid", str(work.pid), "--duration", "2s", "--interval", "1s"))
    assert status == 0, said
    assert_in_use(profile, store, work.pid)
    (row,) = sql_all(store, "SELECT * FROM go_processes")
    assert (row["pid"], row["state"], row["reason"], row["rate"]) == (work.pid, "read", "", 4096)
    assert re.match(r"go1\.\d+", row["version"])
    # it rested: of what it had allocated before, nothing counts as allocated now
    assert sum(v[0] for v in held(store, work.pid).values()) == 0


@pytest.mark.long
def test_of_a_program_that_begins_with_the_capture_all_is_counted(store, scratch):
    need_root()
    need("heapwork-go (make workloads, with go)", os.path.join(WORKLOADS, "heapwork-go"))
    command = f"({{ sleep 2; echo; sleep 2; }} | {WORKLOADS}/heapwork-go {scratch})"
    status, said = ended(loader(store, "--interval", "1s", "--", "sh", "-c", command))
    assert status == 0, said
    (pid,) = {r["pid"] for r in sql_all(store, "SELECT pid FROM go_processes")}
    mine, theirs = held(store, pid), own(os.path.join(scratch, "own-1.pb.gz"))
    for place, values in theirs.items():
        if place[0].startswith("main."):  # writing the profile allocates too
            for i in (0, 1):
                assert abs(mine[place][i] - values[i]) <= max(8, 0.001 * values[i]), (place, mine[place], values)


@pytest.mark.long
def test_a_leak_among_heavy_allocation_is_named_first(heapwork, store, sonde):
    work = heapwork("-leak", "4000")
    running = loader(store, "--pid", str(work.pid), "--interval", "2s")
    wait_for(lambda: (readings(store, work.pid) or [0])[0] >= 4)  # three collections after the first
    running.send_signal(signal.SIGINT)
    assert ended(running)[0] == 0
    top = sql_all(store, "SELECT * FROM go_heap_growth ORDER BY growth_bytes DESC LIMIT 1")[0]
    assert (top["function"], top["line"]) == ("main.leak", leak_line())
    first = json.loads(sonde("heap", "--growth", "--json", "--store", store).stdout)["rows"][0]
    assert (first["function"], first["line"]) == ("main.leak", leak_line())
    assert first["growth_bytes_per_s"] > 0 and first["inuse_bytes"] >= top["last_bytes"]
    said = sonde("heap", "--growth", "--store", store).stdout.splitlines()
    assert said[0].split() == ["GROWTH", "IN", "USE", "OBJECTS", "FUNCTION", "LINE"]
    assert "main.leak" in said[1] and said[1].endswith(f"heapwork.go:{leak_line()}"), said[1]
    churned = sql_all(store, "SELECT sum(alloc_bytes) AS n FROM go_heap")[0]["n"]
    assert churned > 20 * top["growth_bytes"]


@pytest.mark.long
def test_without_a_right_but_ptrace_it_reads_all_the_same(heapwork, store):
    need("setpriv")
    work = heapwork()
    time.sleep(1)
    profile = work.rest()
    status, said = ended(loader(store, "--pid", str(work.pid), "--duration", "3s", "--interval", "1s",
                                prefix=("setpriv", f"--inh-caps={CAPS}", f"--bounding-set={CAPS}")))
    assert status == 0, said
    assert_in_use(profile, store, work.pid)


@pytest.mark.long
def test_a_process_is_never_written_to(heapwork, store, scratch):
    need("strace")
    work = heapwork()
    log = os.path.join(scratch, "strace")
    status, said = ended(loader(store, "--pid", str(work.pid), "--duration", "2s", "--interval", "1s",
                                prefix=("strace", "-f", "-o", log, "-e",
                                        "trace=process_vm_readv,process_vm_writev,ptrace,openat,open,kill,tgkill,pidfd_send_signal")))
    assert status == 0, said
    with open(log, encoding="utf-8", errors="replace") as f:
        calls = f.read()
    assert f"process_vm_readv({work.pid}, " in calls
    assert not re.search(r"process_vm_writev\(|ptrace\(|/mem\"", calls)
    assert not re.search(rf"kill\({work.pid}, (?!0\))", calls)


@pytest.mark.long
def test_a_process_that_may_not_be_read_has_a_row_with_the_reason(store, scratch):
    need_root()
    need("setpriv")
    program = os.path.join(WORKLOADS, "heapwork-go")
    need("heapwork-go (make workloads, with go)", program)
    copy = os.path.join(scratch, "heapwork")
    shutil.copy(program, copy)
    os.chmod(scratch, 0o755)
    work = subprocess.Popen([copy, str(scratch)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        os.makedirs(store, exist_ok=True)
        os.chmod(store, 0o777)
        nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")
        status, said = ended(loader(store, "--pid", str(work.pid), "--duration", "3s", "--interval", "1s", prefix=nobody))
        assert status == 4, said  # nothing was recorded, and it says so
    finally:
        work.kill()
        work.wait()


@pytest.mark.long
def test_one_that_lives_ten_seconds_has_its_profile(store, scratch):
    need_root()
    running = loader(store, "--interval", "60s")
    try:
        wait_for(lambda: asked(store, "SELECT id FROM run"))
        work = Heapwork(scratch)
        begun = time.monotonic()
        wait_for(lambda: (readings(store, work.pid) or [0])[0] >= 3)
        assert time.monotonic() - begun < 10
        work.close()
    finally:
        running.send_signal(signal.SIGINT)
        assert ended(running)[0] == 0
    rows = sql_all(store, f"SELECT sum(inuse_bytes) AS n FROM go_heap WHERE pid = {work.pid}")
    assert rows[0]["n"] > 0
    assert math.isfinite(rows[0]["n"])


def test_a_profile_that_is_off_is_told_as_off(heapwork, store):
    work = heapwork("-rate", "0")
    status, said = ended(loader(store, "--pid", str(work.pid), "--duration", "2s", "--interval", "1s"))
    assert status in (0, 4), said
    (row,) = sql_all(store, "SELECT state, reason FROM go_processes")
    assert row["state"] == "off" and "off" in row["reason"]


def flat(*args):
    """Function -> bytes, as go tool pprof -top has them."""
    out = subprocess.run(["go", "tool", "pprof", "-top", "-unit=B", "-sample_index=inuse_space", "-nodecount=0", "-nodefraction=0",
                          *args], capture_output=True, text=True, check=True, env=dict(os.environ, PPROF_TMPDIR="/nonexistent"))
    return {m.group(2): int(m.group(1)) for m in re.finditer(r"^\s*(-?\d+)B?\s+\S+%\s+\S+%\s+\S+\s+\S+%\s+(\S+)$", out.stdout, re.M)
            if int(m.group(1))}


@pytest.mark.long
def test_what_came_between_two_profiles_is_what_the_runtimes_own_say(heapwork, scratch, sonde):
    """go tool pprof -diff_base of two exports, and of the two that the program itself wrote at the same moments."""
    need("go")
    work, files = heapwork("-leak", "4000"), {}
    for n in ("1", "2"):
        time.sleep(1)
        own_one = work.rest()
        store = os.path.join(scratch, f"store-{n}")
        running = loader(store, "--pid", str(work.pid), "--interval", "1s")
        wait_for(lambda store=store: (readings(store, work.pid) or [0])[0] >= 2, 60)
        running.send_signal(signal.SIGINT)
        status, said = ended(running)
        assert status == 0, said
        ours = os.path.join(scratch, f"ours-{n}.pb.gz")
        sonde("export", "pprof", "--type", "inuse", "-o", ours, store=store, check=True)
        files[n] = ours, own_one
        work.go_on()
    ours, theirs = (flat("-diff_base", files["1"][i], files["2"][i]) for i in (0, 1))
    assert theirs["main.leak"] > 0
    assert ours.keys() == theirs.keys()
    for function, bytes_ in theirs.items():
        assert abs(ours[function] - bytes_) <= 64, (function, ours[function], bytes_)  # each is rounded by itself


# ---- the last profile ----


@pytest.fixture
def limited():
    """A memory cgroup of 100 MB: its cgroup.procs."""
    need_root()
    for root, name in (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
        folder = os.path.join(root, f"sonde-goheap-{os.getpid()}")
        if not os.path.exists(os.path.join(root, "cgroup.procs")):
            continue  # no hierarchy is mounted there
        os.mkdir(folder)
        if not os.path.exists(os.path.join(folder, name)):
            os.rmdir(folder)
            continue
        with open(os.path.join(folder, name), "w", encoding="ascii") as f:
            f.write(str(100 << 20))
        yield os.path.join(folder, "cgroup.procs")
        os.rmdir(folder)
        return
    pytest.skip("missing: a cgroup hierarchy for memory")


def until_killed(procs, scratch, ready):
    """Runs the workload in the cgroup until memory is out: its pid, and what it said last that it held."""
    program = os.path.join(WORKLOADS, "heapwork-go")
    need("heapwork-go (make workloads, with go)", program)
    p = subprocess.Popen(["sh", "-c", f"echo $$ > {procs}; exec {program} -grow 4 {scratch}"], stdout=subprocess.PIPE, text=True)
    lines = []
    try:
        for line in p.stdout:
            lines.append(line)
            if len(lines) == 4:  # it was read by now, or is waited for
                os.kill(p.pid, signal.SIGSTOP)
                wait_for(lambda: ready(p.pid))
                os.kill(p.pid, signal.SIGCONT)
            assert len(lines) < 100, "it is not limited"
        assert p.wait() == -signal.SIGKILL
    finally:
        p.kill()
        p.wait()
    return p.pid, int(lines[-1].split()[1])


@pytest.mark.parametrize("burners", [pytest.param(0, id="idle"),
                                     pytest.param(2 * (os.cpu_count() or 1), id="busy", marks=pytest.mark.long)])
def test_a_program_killed_for_memory_leaves_its_last_profile(limited, store, scratch, burners):
    need_root()
    burning = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(burners)]
    running = loader(store, "--comm", "heapwork-go", "--interval", "10s")
    held = {}
    try:
        wait_for(lambda: asked(store, "SELECT id FROM run"), 30)
        for _ in range(scale(1, 20)):
            pid, said = until_killed(limited, scratch, lambda pid: (readings(store, pid) or [0])[0])
            held[pid] = said
            wait_for(lambda: asked(store, f"SELECT last FROM go_processes WHERE pid = {pid} AND last <> ''"))
    finally:
        for b in burning:
            b.kill()
            b.wait()
        running.send_signal(signal.SIGINT)
        status, said = ended(running)
    assert status == 0, said
    for pid, bytes_ in held.items():
        (row,) = sql_all(store, f"SELECT last FROM go_processes WHERE pid = {pid}")
        assert row["last"] in ("out of memory", "signal 9")  # the kernel may mark its victim a moment after the kill
        (row,) = sql_all(store, f"SELECT sum(inuse_bytes_raw) AS n FROM go_heap WHERE pid = {pid}")
        assert abs(row["n"] / bytes_ - 1) < 0.05, (pid, row["n"], bytes_)


def test_a_signal_and_an_exit_are_told_apart(heapwork, store):
    killed, left = heapwork(), heapwork()
    running = loader(store, "--pid", str(killed.pid), "--pid", str(left.pid), "--interval", "10s")
    for work in (killed, left):
        wait_for(lambda work=work: (readings(store, work.pid) or [0])[0])
    killed.process.send_signal(signal.SIGTERM)
    left.process.stdin.close()  # it returns from main
    wait_for(lambda: len(asked(store, "SELECT last FROM go_processes WHERE last <> ''")) == 2)
    running.send_signal(signal.SIGINT)
    assert ended(running)[0] == 0
    assert {r["pid"]: r["last"] for r in sql_all(store, "SELECT pid, last FROM go_processes")} == {
        killed.pid: f"signal {int(signal.SIGTERM)}", left.pid: "exit 0"}
