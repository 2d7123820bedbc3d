# SPDX-License-Identifier: Apache-2.0
"""sonde pstack: threads as they stand, against what the program knows, against gdb, and against /proc."""
import json
import os
import re
import subprocess
import sys
import time

import pytest

from conftest import WORKLOADS, need, need_root, sql_all

KINDS = {"sleep": ("sleep", "clock_nanosleep"), "futex": ("lock", "futex"), "pipe": ("pipe", "read"),
         "poll": ("poll", "epoll_wait"), "recv": ("network", "recvfrom"), "accept": ("network", "accept"),
         "fault": ("page fault", None), "stop": ("stop", None)}


class Standing:
    """A program whose threads stand in known waits, until the end of the block."""

    def __init__(self, kinds, program="waits-nofp", cwd=None):
        self.child = subprocess.Popen([os.path.join(WORKLOADS, program), "stand", *kinds], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True, cwd=cwd)
        self.told = json.loads(self.child.stdout.readline())
        self.pid = self.told["pid"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.stdin.close()
        self.child.wait(20)
        self.child.stdout.close()


@pytest.fixture
def standing(scratch):
    need_root()
    need("waits-nofp", os.path.join(WORKLOADS, "waits-nofp"))
    with Standing(KINDS, cwd=scratch) as s:
        yield s


def rows(sonde, store, *args):
    done = sonde("pstack", "--json", *args, store=store, check=True)
    return json.loads(done.stdout)["rows"]


def functions(row, kernel=False):
    return [f["function"] for f in row["frames"] if f["kernel"] == kernel]


def test_each_thread_is_shown_with_its_reason_its_place_and_since_when(sonde, store, standing):
    pids = ["-p", standing.pid, "-p", next(t["tid"] for t in standing.told["threads"] if t["kind"] == "stop")]
    seen = {r["tid"]: r for r in rows(sonde, store, *pids)}
    for t in standing.told["threads"]:
        row = seen[t["tid"]]
        reason, call = KINDS[t["kind"]]
        assert (row["thread"], row["reason"]) == (t["name"], reason)
        if call:
            assert row["syscall"] == call
        assert row["state"] == ("stopped" if t["kind"] == "stop" else "sleeping")
        frames = functions(row)
        at = frames.index("way_a")
        assert frames[at - 1] == f"{t['kind']}_wait" or frames[at - 2] == f"{t['kind']}_wait"
        assert frames[at + 1] == "waits_waiter" and not row["end"] and not row["moved"]
        lines = {f["function"]: (os.path.basename(f["file"] or ""), f["line"]) for f in row["frames"] if not f["kernel"]}
        assert lines["way_a"][0] == "waits.c" and lines["way_a"][1]
        # it looked at the clock just before; on a busy machine it may be put off between the two
        assert -3_000_000 < row["since_boot_ns"] - t["since_ns"] < 300_000_000, t["kind"]
        assert row["blocked_ns"] > 0


def test_n_bounds_the_threads_that_are_shown_and_says_how_many_more_there_are(sonde, store, standing):
    mine = ["-p", standing.pid]
    said = json.loads(sonde("pstack", "--json", "-n", 2, *mine, store=store, check=True).stdout)
    assert len(said["rows"]) == 2 and said["total"] == said["rest"] + 2 and said["total"] >= len(KINDS) - 1 and f"{said['rest']} more rows" in said["warnings"][0], said
    whole = json.loads(sonde("pstack", "--json", "-n", 0, *mine, store=store, check=True).stdout)
    assert len(whole["rows"]) == whole["total"] and not whole["rest"] and not whole["warnings"]
    assert re.search(r"^\d+ more threads: -n 0 shows all$", sonde("pstack", "-n", 2, *mine, store=store, check=True).stdout, re.M)


@pytest.mark.long
def test_how_long_grows_with_the_clock(sonde, store, standing):
    first = {r["tid"]: r for r in rows(sonde, store, "-p", standing.pid)}
    time.sleep(1)  # what is measured: time that passes
    for r in rows(sonde, store, "-p", standing.pid):
        if r["thread"].startswith("w-"):
            assert r["blocked_ns"] >= first[r["tid"]]["blocked_ns"] + 1_000_000_000
            assert abs(r["since_boot_ns"] - first[r["tid"]]["since_boot_ns"]) < 5_000_000


def test_nobody_is_stopped_or_woken_for_it(sonde, store, standing):
    def switches():
        found = {}
        for tid in os.listdir(f"/proc/{standing.pid}/task"):
            with open(f"/proc/{standing.pid}/task/{tid}/status") as f:
                text = f.read()
                if text.startswith("Name:\tw-"):
                    found[tid] = re.findall(r"ctxt_switches:\s+(\d+)", text)
        return found

    before = switches()
    rows(sonde, store)
    assert switches() == before


@pytest.mark.long
def test_the_kernel_part_is_what_proc_shows(sonde, store, standing):
    for row in rows(sonde, store, "-p", standing.pid):
        with open(f"/proc/{standing.pid}/task/{row['tid']}/stack") as f:
            proc = re.findall(r"\] (\S+?)\+0x", f.read())
        with open(f"/proc/{standing.pid}/task/{row['tid']}/wchan") as f:
            wchan = f.read()
        # /proc asks at the return address, which may be a function's first byte after a call that does not return
        assert functions(row, kernel=True) == proc
        assert row["wchan"] == wchan and wchan in proc


def gdb_stacks(pid):
    said = subprocess.run(["gdb", "-nx", "-batch", "-p", str(pid), "-ex", "set width 0", "-ex", "set backtrace past-main on", "-ex", "thread apply all backtrace"],
                          capture_output=True, text=True, errors="replace", timeout=120).stdout
    stacks = {}
    for part in re.split(r"^Thread \d+ ", said, flags=re.M)[1:]:
        tid = int(re.search(r"LWP (\d+)", part).group(1))
        stacks[tid] = re.findall(r"^#\d+\s+(?:0x[0-9a-f]+ in )?([\w.?]+)", part, re.M)
    return stacks


@pytest.mark.long
def test_the_user_part_is_what_gdb_shows(sonde, store, standing):
    need("gdb")
    ours = {r["tid"]: r for r in rows(sonde, store, "-p", standing.pid)}
    theirs = gdb_stacks(standing.pid)
    assert len(theirs) >= 7 and set(theirs) == set(ours)
    own = re.compile(r"(" + "|".join(KINDS) + r")_wait|way_[ab]|waits_\w+|partner|main|stand_until_told|stop_run|start_thread|clone3?")
    for tid, names in theirs.items():
        mine = functions(ours[tid])
        # gdb makes up frames for tail calls, and says other aliases of the C library's functions: there are no less of them
        assert [n for n in mine if own.fullmatch(n)] == [n for n in names if own.fullmatch(n)]
        assert len(mine) - 1 <= len(names) <= len(mine) + 5, (mine, names)
        assert None not in mine


@pytest.mark.long
def test_threads_at_one_place_are_folded(sonde, store, standing):
    text = sonde("pstack", "-p", standing.pid, store=store, check=True).stdout
    # those of recv, accept and the others wait for their turn at one place
    found = re.search(r"(\d+) threads: partner .*lock \(futex\)  for ", text)
    assert found and int(found.group(1)) >= 5, text
    assert "way_a  waits.c:" in text


def test_a_busy_program_is_never_shown_torn(sonde, store, scratch):
    need_root()
    need("waits-nofp", os.path.join(WORKLOADS, "waits-nofp"))
    plan = [f"{kind}:3:100000:0.3" for kind in ("sleep", "pipe", "poll", "futex")]
    child = subprocess.Popen([os.path.join(WORKLOADS, "waits-nofp"), "run", *plan], stdout=subprocess.DEVNULL, cwd=scratch)
    try:
        shown, looks = 0, 0
        while looks < 5 or (not shown and looks < 60):  # threads that are never found at rest say nothing
            looks += 1
            done = sonde("pstack", "--json", "-p", child.pid, store=store)
            for row in json.loads(done.stdout)["rows"] if done.returncode == 0 else []:
                assert row["moved"] or not row["end"], row
                if not row["moved"] and row["thread"].startswith("w-"):
                    assert "waits_waiter" in functions(row), row
                    shown += 1
        assert shown
    finally:
        child.kill()
        child.wait()


def test_what_is_not_there_is_told(sonde, store):
    need_root()
    done = sonde("pstack", "-p", 4194303, store=store)
    assert done.returncode == 2 and "no process has the id" in done.stderr
    done = sonde("pstack", "-p", "x", store=store)
    assert done.returncode == 2
    burn = subprocess.Popen([os.path.join(WORKLOADS, "burn"), "60000"], stdout=subprocess.DEVNULL)
    try:
        done = sonde("pstack", "-p", burn.pid, store=store)
        assert done.returncode == 4 and "are running or ready" in done.stderr and "fix:" in done.stderr
    finally:
        burn.kill()
        burn.wait()


def test_a_recording_keeps_how_threads_stood_at_its_end(sonde, store, standing):
    """All of them began to wait before it: how long that is no other table says."""
    began = time.clock_gettime_ns(time.CLOCK_REALTIME)
    first = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    sonde("record", "--families", "offcpu", "-d", "300ms", "-p", standing.pid, store=store, check=True)
    lasted = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - first
    kept = {r["tid"]: r for r in sql_all(store, "SELECT s.*, k.folded FROM standing s LEFT JOIN stacks k ON k.id = s.stack_id")}
    for t in standing.told["threads"]:
        if t["kind"] == "stop":
            continue  # another process
        row = kept[t["tid"]]
        assert row["reason"] == KINDS[t["kind"]][0] and row["pid"] == standing.pid
        assert row["ts"] * 1_000_000_000 > began - 1_000_000_000
        assert 0 < row["waited_ns"] - (first - t["since_ns"]) < lasted, (row, t)
        if t["kind"] != "fault":
            assert f"{t['kind']}_wait" in row["folded"], row["folded"]
    runs = sql_all(store, "SELECT family, min(from_ns) AS first, max(to_ns) AS last FROM run GROUP BY 1")
    ends = {r["family"]: r["last"] for r in runs}
    assert abs(ends["pstack"] - ends["offcpu"]) < 1_000_000_000  # the recording's range is not longer for it


WITH = """
import json, os, socket, sys, threading
path = sys.argv[1]
tcp, six, unix, abstract = socket.socket(), socket.socket(socket.AF_INET6), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
for s, at in (tcp, ("127.0.0.1", 0)), (six, ("::1", 0)), (unix, path), (abstract, "\\0" + path):
    s.bind(at)
    s.listen()
ends, tids, lock = {}, {}, threading.Lock()
def two(name, family, at, listener):
    c = socket.socket(family)
    c.connect(at)
    ends[name + "-client"], ends[name + "-server"] = c, listener.accept()[0]
two("tcp", socket.AF_INET, tcp.getsockname(), tcp)
two("six", socket.AF_INET6, six.getsockname(), six)
two("unix", socket.AF_UNIX, path, unix)
two("abstract", socket.AF_UNIX, "\\0" + path, abstract)
ports = {k: ends[k].getpeername()[1] for k in ends if k[:3] in ("tcp", "six")}
def stand(name, wait, *args):
    with lock: tids[name] = threading.get_native_id()
    wait(*args)
waits = {"read": (os.read, ends.pop("tcp-client").detach(), 1), **{k: (e.recv, 1) for k, e in ends.items()}, "accept": (tcp.accept,)}
for name, how in waits.items(): threading.Thread(target=stand, args=(name, *how), daemon=True).start()
def asleep(): return all(open(f"/proc/self/task/{t}/syscall").read().split()[0] in ("0", "45", "288", "43") for t in tids.values())
while len(tids) < len(waits) or not asleep(): pass
print(json.dumps({"tids": tids, "ports": ports, "port": tcp.getsockname()[1], "pid": os.getpid()}), flush=True)
sys.stdin.read()
"""


def test_who_reads_a_socket_is_shown_with_its_other_end(sonde, store, scratch):
    need_root()
    path = os.path.join(scratch, "a.sock")
    child = subprocess.Popen([sys.executable, "-c", WITH, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        told = json.loads(child.stdout.readline())
        seen = {r["tid"]: (r["on"], r["peer"]) for r in rows(sonde, store, "-p", child.pid)}
        text = sonde("pstack", "-p", child.pid, store=store, check=True).stdout
    finally:
        child.stdin.close()
        child.wait(20)
        child.stdout.close()
    ports, me = told["ports"], f"{os.path.basename(sys.executable)[:15]} {child.pid}"
    assert {name: seen[tid] for name, tid in told["tids"].items()} == {
        "read": (f"127.0.0.1:{ports['tcp-client']}", None), "tcp-server": (f"127.0.0.1:{ports['tcp-server']}", None),
        "six-client": (f"[::1]:{ports['six-client']}", None), "six-server": (f"[::1]:{ports['six-server']}", None),
        "unix-client": (path, me), "unix-server": (path, me), "abstract-client": (f"@{path}", me), "abstract-server": (f"@{path}", me),
        "accept": (f"port {told['port']}", None)}
    assert f"network (read) on 127.0.0.1:{ports['tcp-client']}  for" in text and f"(recvfrom) on {path} ({me})  for" in text


MANY = """
import ctypes, json, os, select, socket, sys, threading
path, many = sys.argv[1], int(sys.argv[2])
tcp, unix, plain = socket.socket(), socket.socket(socket.AF_UNIX), os.pipe()[0]
for s, at in (tcp, ("127.0.0.1", 0)), (unix, path):
    s.bind(at)
    s.listen(many + 9)
def two(family, listener):
    c = socket.socket(family)
    c.connect(listener.getsockname())
    return c, listener.accept()[0]
u, t = two(socket.AF_UNIX, unix), two(socket.AF_INET, tcp)
crowd = [two(socket.AF_INET, tcp) for _ in range(many)]
epoll, gone = select.epoll(), socket.socket()
for s in (tcp, u[0], t[0]): epoll.register(s, select.EPOLLIN)
epoll.register(plain, select.EPOLLIN)
crowded = select.poll()
for s in crowd: crowded.register(s[0], select.POLLIN)
crowded.register(plain, select.POLLIN)
tids, lock = {}, threading.Lock()
def stand(name, wait, *args):
    with lock: tids[name] = threading.get_native_id()
    wait(*args)
waits = {"epoll": (epoll.poll,), "poll": (crowded.poll,), "select": (select.select, [u[1]], [], [t[1]]), "none": (select.select, [plain], [], [])}
for name, how in waits.items(): threading.Thread(target=stand, args=(name, *how), daemon=True).start()
def asleep(): return all(open(f"/proc/self/task/{t}/syscall").read().split()[0] in ("232", "281", "7", "271", "23", "270") for t in tids.values())
while len(tids) < len(waits) or not asleep(): pass
print(json.dumps({"tids": tids, "port": tcp.getsockname()[1], "client": t[0].getsockname()[1], "pid": os.getpid()}), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("one", [True, False], ids=["one process", "the host"])
def test_who_waits_for_many_is_shown_with_the_sockets_among_them(sonde, store, scratch, one):
    """epoll_wait, poll, select: each socket with its other end; a pipe is none; of eleven eight, and that there are three more."""
    need_root()
    path = os.path.join(scratch, "a.sock")
    child = subprocess.Popen([sys.executable, "-c", MANY, path, "11"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        told = json.loads(child.stdout.readline())
        seen = {r["tid"]: r for r in rows(sonde, store, *(["-p", child.pid] if one else []))}
        text = sonde("pstack", "-p", child.pid, store=store, check=True).stdout
    finally:
        child.stdin.close()
        child.wait(20)
        child.stdout.close()
    port, me = told["port"], f"{os.path.basename(sys.executable)[:15]} {child.pid}"
    watched = {name: [(w["on"], w["peer"]) for w in seen[tid]["watches"]] for name, tid in told["tids"].items()}
    assert watched == {"epoll": [(f"port {port}", None), (path, me), (f"127.0.0.1:{port}", None)], "poll": [(f"127.0.0.1:{port}", None)] * 8,
                       "select": [(path, me), (f"127.0.0.1:{told['client']}", None)], "none": []}
    assert {name: seen[tid]["more_watches"] for name, tid in told["tids"].items()} == {"epoll": 0, "poll": 3, "select": 0, "none": 0}
    assert f"on port {port}, {path} ({me}), 127.0.0.1:{port}  for" in text and f"127.0.0.1:{port} and 3 more sockets  for" in text, text
