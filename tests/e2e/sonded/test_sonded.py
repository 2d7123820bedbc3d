# SPDX-License-Identifier: Apache-2.0
"""sonded with real loaders: what it starts, what it survives, and what it leaves behind."""
import glob
import contextlib
import ctypes
import json
import os
import pty
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time

import procfs
import pytest
from conftest import BIN, ROOT, WORKLOADS, need, need_root, scale, segments, sql_all
from sonded import Hung, Sonded, alive, until


@pytest.fixture(autouse=True)
def root():
    need_root()


def burner(seconds):
    return subprocess.Popen([os.path.join(WORKLOADS, "burn"), str(1000 * seconds)], stdout=subprocess.DEVNULL)


def test_clients_that_say_nothing_keep_nobody_from_asking(store):
    with Sonded(store) as d, contextlib.ExitStack() as silent:
        for _ in range(20):
            silent.enter_context(socket.socket(socket.AF_UNIX)).connect(os.path.join(store, "control.sock"))
            assert d.ask(do="status")["ok"]


@pytest.mark.long
def test_a_loader_and_sonde_maps_that_are_killed_come_back_and_the_end_is_quick_and_loses_nothing(store):
    with Sonded(store, "--freq", "99") as d:
        cpu, maps = d.running("cpu"), d.running("maps")
        os.kill(cpu, signal.SIGKILL)
        cpu = d.running("cpu", other_than=cpu)
        assert cpu, d.said()
        os.kill(maps, signal.SIGKILL)
        assert d.running("maps", other_than=maps), d.said()
        before = d.service("cpu")["samples"]
        assert until(lambda: d.service("cpu")["samples"] > before + 50), d.said()
        assert d.service("cpu")["pid"] == cpu and d.service("cpu")["starts"] == 2  # the loaders go on
        pids = d.pids()
        took = d.stop()
        assert d.child.returncode == 0 and took < 2, (took, d.said())
        assert not [p for p in pids if alive(p)]
    # the clean end of the last loader: all that its run has seen is stored, or lost with a reason
    for path in segments(store):
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        assert db.execute("pragma integrity_check").fetchone() == ("ok",)
        db.close()
    ended = sql_all(store, "select state, accounted from run order by id desc")
    assert ended[0]["state"] == 1 and ended[0]["accounted"] > 0
    stored = sum(r["n"] or 0 for r in sql_all(store, "select sum(n) n from sample"))
    lost = sum(r["n"] or 0 for r in sql_all(store, "select sum(n) n from loss_row"))
    assert stored + lost == sum(r["accounted"] for r in ended)


@pytest.mark.long
def test_a_loader_that_hangs_is_killed_and_started_again(store):
    with Sonded(store) as d:
        cpu = d.running("cpu")
        hung = Hung(cpu)
        time.sleep(15)
        assert alive(cpu) and d.service("cpu")["state"] == "running"  # it is given its time
        assert d.running("cpu", other_than=cpu, seconds=30), d.said()
        hung.thread.join(10)
        assert not alive(cpu) and "it did not respond and was killed" in d.said()


@pytest.mark.long
def test_a_loader_that_does_not_stop_in_time_is_asked_again_before_it_is_killed(store):
    with Sonded(store) as d:
        cpu = d.running("cpu")
        hung = Hung(cpu)
        d.child.send_signal(signal.SIGTERM)
        assert until(lambda: "did not stop in time: asked again" in d.said(), 30), d.said()
        assert alive(cpu) and "killed" not in d.said()
        assert d.child.wait(30) == 0 and not alive(cpu), d.said()
        hung.thread.join(10)
        assert d.said().index("asked again") < d.said().index("did not stop in time: killed")


def weight(pid):
    """The nice value of its session's scheduling group."""
    need("autogroup (CONFIG_SCHED_AUTOGROUP)", "/proc/self/autogroup")
    with open(f"/proc/{pid}/autogroup", encoding="ascii") as f:
        return f.read().strip().rpartition(" ")[2]


def test_a_session_that_sonded_leads_has_more_weight(store):
    with Sonded(store, limit="100") as d:
        assert weight(d.child.pid) == weight(d.running("cpu")) == "-10", d.said()
        # within it no part of sonde takes the CPU from another
        assert {os.getpriority(os.PRIO_PROCESS, p) for p in d.pids()} == {-5}


def test_a_sonded_in_another_session_begins_its_own_and_ends_with_what_was_started(store):
    before = weight("self")

    def begin():
        d = Sonded(store, limit="100", session=False)
        sonded = d.ask(do="status")["sonded"]["pid"]
        pids = [sonded, *d.pids()]
        assert sonded != d.child.pid and {os.getsid(p) for p in pids} == {sonded}, d.said()
        assert {weight(p) for p in pids} == {"-10"} and weight(d.child.pid) == weight("self") == before, d.said()
        return d, pids

    def ended(pids):
        assert until(lambda: not any(alive(p) for p in pids), 20), pids
    d, pids = begin()
    with d:
        d.child.send_signal(signal.SIGHUP)
        assert until(lambda: "reloaded" in d.said()), d.said()
        d.stop(signal.SIGINT)
        assert d.child.returncode == 0, d.said()
        ended(pids)
    d, pids = begin()
    with d:
        d.child.kill()
        d.child.wait()
        ended(pids)
    assert [r["state"] for r in sql_all(store, "select state from run where family = 'cpu' order by id")][-2:] == [1, 1]
    d, pids = begin()
    with d:
        os.kill(pids[0], signal.SIGKILL)
        assert d.child.wait(20) == -signal.SIGKILL
        ended(pids)


def test_ctrl_c_in_a_terminal_ends_a_sonded_that_a_shell_runs_as_a_job(store):
    shell, terminal = pty.fork()
    if not shell:
        os.environ.update(SONDE_CONFIG="/nonexistent", SONDE_FAMILIES="cpu")
        os.execvp("sh", ["sh", "-c", 'set -m; "$@"; echo "ended with $?"', "sh", os.path.join(BIN, "sonded"), "--store", store, "--cpu", "100"])
    said = b""
    try:
        asks = Sonded.__new__(Sonded)
        asks.store = store
        assert until(asks.is_ready, 60)
        sonded = asks.ask(do="status")["sonded"]["pid"]
        assert os.getsid(sonded) == sonded != shell and weight(sonded) == "-10" and weight(shell) != "-10"
        os.write(terminal, b"\x03")
        while b"ended with" not in said:
            said += os.read(terminal, 4096)
        assert b"ended with 0" in said and not alive(sonded), said
    finally:
        os.close(terminal)
        os.waitpid(shell, 0)
    assert [r["state"] for r in sql_all(store, "select state from run")] == [1]


@contextlib.contextmanager
def starving(pid):
    """The process is in a CPU group that gets 1 ms a second, and shares it with one that takes it all."""
    group = "/sys/fs/cgroup/cpu/sonde-starving"
    need("cpu cgroups of version 1", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us")

    def write(path, text):
        with open(path, "w", encoding="ascii") as f:
            f.write(str(text))
    os.makedirs(group, exist_ok=True)
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        write(f"{group}/cpu.cfs_period_us", 1000000)
        write(f"{group}/cpu.cfs_quota_us", 1000)
        os.setpriority(os.PRIO_PROCESS, busy.pid, -20)
        for each in (busy.pid, pid):
            write(f"{group}/cgroup.procs", each)
        yield
    finally:
        busy.kill()
        busy.wait()
        if alive(pid):
            write("/sys/fs/cgroup/cpu/cgroup.procs", pid)
        until(lambda: not open(f"{group}/cgroup.procs", encoding="ascii").read(), 10)
        os.rmdir(group)


@pytest.mark.long
def test_a_loader_that_gets_no_cpu_is_given_time_and_goes_on(store):
    with Sonded(store) as d:
        cpu = d.running("cpu")
        with starving(cpu):
            assert until(lambda: "of them for a CPU: not killed" in d.said(), 90), d.said()
            time.sleep(5)
            assert alive(cpu), d.said()
        before = d.service("cpu")["samples"]
        with burner(5):
            assert until(lambda: d.service("cpu")["samples"] > before, 30), d.said()
        s = d.service("cpu")
        assert (s["pid"], s["starts"], s["state"]) == (cpu, 1, "running"), d.said()
        assert d.said().count("of them for a CPU: not killed") == 1 and "was killed" not in d.said()


SHORT = """import os, sys
for _ in range(int(sys.argv[1])):
    if not os.fork():
        os._exit(0)
    os.wait()
"""


def held(pid):
    """(open files, KiB of memory of its own)"""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return len(os.listdir(f"/proc/{pid}/fd")), next(int(line.split()[1]) for line in f if line.startswith("RssAnon:"))


@pytest.mark.long
def test_sonded_forgets_processes_that_have_ended(store):
    """It follows all of them while a loader wants to be given some, and each for ten seconds more."""
    with Sonded(store, "--families", "goheap") as d:
        assert until(lambda: d.running("goheap") and d.service("goheap")["targets"] is not None), d.said()
        kept = [held(d.child.pid)]
        for _ in range(scale(6, 10)):
            subprocess.run([sys.executable, "-c", SHORT, str(scale(2000, 20000))], check=True)
            time.sleep(11)
            kept.append(held(d.child.pid))
        print(kept)
        assert kept[1][1] > kept[0][1] + 500  # or it did not follow them
        assert kept[-1][1] < kept[-3][1] + 500 and kept[-1][0] <= kept[1][0], kept  # tables have grown for three rounds by then


def test_killed_with_9_it_leaves_no_orphan_and_no_stuck_lock(store):
    for _ in range(scale(1, 20)):
        with Sonded(store, "--families", "cpu,offcpu") as d:
            assert d.running("cpu") and d.running("offcpu"), d.said()
            pids = d.pids()
            assert len(pids) == 3
            d.stop(signal.SIGKILL)
            assert until(lambda: not [p for p in pids if alive(p)], 15), [p for p in pids if alive(p)]


def sleeps(pid):
    """How often its only thread has gone to sleep."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("voluntary_ctxt_switches"))


@pytest.mark.long
def test_whatever_happens_on_the_host_sonded_wakes_by_its_own_clock(store):
    """Two turns a second; what its children tell of themselves, and of 50 processes a second, is read in these."""
    storm = subprocess.Popen(["sh", "-c", "while :; do /bin/true; sleep 0.02; done"])
    try:
        with Sonded(store) as d:
            assert d.running("cpu"), d.said()
            before, began = sleeps(d.child.pid), time.monotonic()
            time.sleep(3)
            rate = (sleeps(d.child.pid) - before) / (time.monotonic() - began)
            assert rate < 6, rate  # it waits for a disk, or a child that is slow to start, now and then
    finally:
        storm.kill()
        storm.wait()


@pytest.fixture
def adoption():
    """Orphans become ours. Those of nobody else's session the kernel wakes when they are stopped: then they end by themselves."""
    libc, adopted = ctypes.CDLL(None), []
    libc.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    yield adopted
    for pid in adopted:
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG) == (0, 0):  # ours, and there still: what the test is about failed
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    libc.prctl(36, 0, 0, 0, 0)


@pytest.mark.long
def test_a_child_that_hangs_while_sonded_is_killed_is_ended_by_the_next(store, adoption):
    with Sonded(store) as d:
        hung = d.running("cpu")
        adoption += d.pids()
        os.kill(hung, signal.SIGSTOP)
        d.stop(signal.SIGKILL)
    assert alive(hung)
    with Sonded(store) as d:
        assert not alive(hung) and "hung children of an earlier sonded" in d.said()


@pytest.mark.long
def test_a_helper_that_hangs_while_sonded_is_killed_is_ended_by_the_next(store, scratch, adoption):
    for name in ("sonded", "sonde-maps", "sonde-index", "sonde-cpu"):
        shutil.copy(os.path.join(BIN, name), scratch)
    path = os.path.join(scratch, "sonde-prune")
    with open(path, "w", encoding="ascii") as f:
        f.write(f"#!/bin/sh\necho $$ > {scratch}/pid\nkill -STOP $$\n")
    os.chmod(path, 0o755)

    def written():
        with contextlib.suppress(OSError, ValueError), open(f"{scratch}/pid", encoding="ascii") as f:
            return int(f.read())
    with Sonded(store, program=os.path.join(scratch, "sonded")) as d:
        assert d.running("cpu"), d.said()
        d.ask(do="prune")
        hung = until(written)
        time.sleep(0.6)  # sonded's next turn, which notes it
        adoption += [*d.pids(), hung]
        d.stop(signal.SIGKILL)
    assert alive(hung)
    with Sonded(store) as d:
        assert not alive(hung) and "hung children of an earlier sonded" in d.said()


def test_a_reload_changes_only_what_changed(store, scratch):
    conf = os.path.join(scratch, "sonde.conf")
    with open(conf, "w", encoding="ascii") as f:
        f.write("[record]\nfamilies = cpu\n")
    with Sonded(store, "--config", scratch) as d:
        cpu, maps = d.running("cpu"), d.running("maps")
        with open(conf, "w", encoding="ascii") as f:
            f.write("[record]\nfamilies = cpu, goheap\n".replace(", ", ","))
        d.child.send_signal(signal.SIGHUP)
        assert d.running("goheap"), d.said()
        assert d.running("cpu") == cpu and d.running("maps") == maps
        with open(conf, "w", encoding="ascii") as f:
            f.write("[record]\nfamilies = goheap\n[stor]\n")
            f.write("budgt = 1G\n")
        d.child.send_signal(signal.SIGHUP)
        assert until(lambda: re.search("unknown key .*keeping the old configuration; fix: ", d.said())), d.said()
        assert d.running("cpu") == cpu
        with open(conf, "w", encoding="ascii") as f:  # other things of it change, the families do not
            f.write("[record]\nfamilies = cpu,goheap\n[store]\nage = 3d\n")
        assert d.ask(do="down", families=["goheap"])["ok"] and d.ask(do="reload")["ok"]
        assert until(lambda: d.service("goheap")["state"] == "off"), d.said()
        assert d.ask(do="status")["store"]["age_seconds"] == 3 * 86400
        assert d.ask(do="up", families=["goheap"])["ok"] and d.running("goheap") and d.running("cpu") == cpu
        with open(conf, "w", encoding="ascii") as f:
            f.write("[record]\nfamilies = goheap\n")
        d.child.send_signal(signal.SIGHUP)
        assert until(lambda: d.service("cpu")["state"] == "off"), d.said()
        assert not alive(cpu) and d.running("maps") == maps


def test_systemd_hears_that_it_is_ready_and_alive_and_the_journal_priorities(store, scratch):
    path, heard = os.path.join(scratch, "notify"), []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(path)
        s.settimeout(60)

        def listen():
            while not heard or b"STOPPING" not in heard[-1]:
                heard.append(s.recv(4096))
        t = threading.Thread(target=listen, daemon=True)
        t.start()
        journal = ["sh", "-c", 'JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec "$@"', "sh"]
        with Sonded(store, prefix=journal, env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "2000000"}) as d:
            assert until(lambda: [h for h in heard if h.startswith(b"WATCHDOG=1\nSTATUS=1 of 1 families")], 20), heard
            d.stop()
            assert d.said() and all(re.match(r"<[3467]>sonde[a-z-]*: ", line) for line in d.said().splitlines()), d.said()
        t.join(10)
    assert heard.count(b"READY=1") == 1 and heard[-1] == b"STOPPING=1"


def test_up_status_logs_and_down(store, sonde):
    done = sonde("up", "cpu", store=store, env={"JOURNAL_STREAM": "1:2"})  # a desktop's, inherited
    try:
        assert done.returncode == 0 and "sonde status" in done.stderr, done.stderr
        again = sonde("up", "goheap", store=store)
        assert again.returncode == 0 and again.stderr == f"sonded already records into {store}; now also goheap\n", again.stderr
        assert until(lambda: json.loads(sonde("status", "--json", store=store, check=True).stdout)["sonded"]["services"][-1]["state"]
                     == "running")
        text = sonde("status", store=store, check=True).stdout
        assert re.search(r"^sonded +pid \d+, up for .*, ready", text) and re.search(r"^  cpu +running for", text, re.M)
        assert "budget" in text
        assert sonde("status", "--check", store=store).returncode == 0
        assert 'msg="ready' in sonde("status", "--log", store=store, check=True).stdout
        assert sonde("up", "cpu", store=store).stderr == f"sonded already records into {store}\n"
        fewer = sonde("down", "--families", "goheap", store=store)
        assert fewer.returncode == 0 and fewer.stderr == "goheap: not recorded any more\n", fewer.stderr
        assert sonde("up", "nonsense", store=store).returncode == sonde("up", "--families", "cpu,nonsense", store=store).returncode == 2
    finally:
        done = sonde("down", store=store)
    assert done.returncode == 0 and done.stderr == f"stopped; what was recorded stays in {store}\n", done.stderr
    unwell = sonde("status", "--check", store=store)
    assert unwell.returncode == 4 and "no sonded is running for" in unwell.stderr and "sonde up" in unwell.stderr
    gone = sonde("status", "--log", store=store)
    assert gone.returncode == 4 and "no sonded is running for" in gone.stderr and "fix:" in gone.stderr
    log = open(os.path.join(store, "sonded.log"), encoding="utf-8").read()
    assert "ended" in log and all(line.startswith("ts=") for line in log.splitlines())


def test_the_file_that_is_written_is_ended_on_demand_and_no_sample_is_lost_or_doubled(store, sonde, work):
    none = sonde("rotate", store=store)
    assert none.returncode == 4 and "fix:" in none.stderr, none.stderr
    with Sonded(store, "--families", "cpu", "--freq", "99") as d, contextlib.closing(work("burn", "60000")):
        assert until(lambda: any(r["n"] for r in sql_all(store, "select sum(n) n from sample")), 30), d.said()
        done = sonde("rotate", store=store)
        assert done.returncode == 0, done.stderr
        path = done.stdout.strip()
        assert path in segments(store) and path < segments(store)[-1] and not os.path.exists(f"{path}-wal")
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            was = db.execute("pragma integrity_check").fetchone(), db.execute("select sum(n) from sample").fetchone()
            assert was[0] == ("ok",) and db.execute("select state from runs").fetchall() == [("continued",)]
        assert until(lambda: sum(r["n"] or 0 for r in sql_all(store, "select sum(n) n from sample")) > was[1][0], 30)
        d.stop()
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        assert db.execute("select sum(n) from sample").fetchone() == was[1]
    stored = sum(r["n"] or 0 for r in sql_all(store, "select sum(n) n from sample"))
    lost = sum(r["n"] or 0 for r in sql_all(store, "select sum(n) n from loss_row"))
    assert stored + lost == max(r["n"] for r in sql_all(store, "select max(accounted) n from run"))


def test_the_control_socket_is_for_the_group_and_changing_is_for_its_owner(store):
    need("setpriv")
    with Sonded(store) as d:
        path = os.path.join(store, "control.sock")
        assert os.stat(path).st_mode & 0o777 == 0o660
        os.chmod(store, 0o755)
        os.chmod(path, 0o666)
        ask = ("import socket,sys;s=socket.socket(socket.AF_UNIX);s.connect(sys.argv[1]);s.sendall(sys.argv[2].encode()+b'\\n');"
               "print(s.recv(65536).decode())")
        for request, word in (('{"do":"status"}', '"ok":true'), ('{"do":"stop"}', "only root"), ("nonsense", "no JSON object")):
            out = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "/usr/bin/python3", "-c",
                                  ask, path, request], capture_output=True, text=True, check=True).stdout
            assert word in out
        assert d.is_ready()




def rights_and_memory(text):
    """The capabilities and the soft limit of memory in /proc/PID/status and limits."""
    caps = int(re.search(r"CapEff:\s*(\w+)", text).group(1), 16)
    assert int(re.search(r"CapBnd:\s*(\w+)", text).group(1), 16) == caps
    return caps, re.search(r"Max data size +(\w+)", text).group(1)


def test_each_child_has_the_rights_and_the_memory_for_its_task_and_no_more(store, scratch):
    for name in ("sonded", "sonde-maps", "sonde-index", "sonde-cpu"):
        shutil.copy(os.path.join(BIN, name), scratch)
    with open(os.path.join(scratch, "sonde-prune"), "w", encoding="ascii") as f:
        f.write(f"#!/bin/sh\ncat /proc/$$/status /proc/$$/limits > {scratch}/part && mv {scratch}/part {scratch}/told\n")
    os.chmod(f.name, 0o755)

    def child(pid):
        with open(f"/proc/{pid}/status", encoding="ascii") as a, open(f"/proc/{pid}/limits", encoding="ascii") as b:
            return rights_and_memory(a.read() + b.read())
    ours = child("self")[0]

    def bits(*caps):
        return sum(1 << c for c in caps) & ours
    chown, override, search, owner, net, ptrace, nice, resource, syslog, perfmon, bpf = 0, 1, 2, 3, 12, 19, 23, 24, 34, 38, 39
    with Sonded(store, "--memory", "300M", program=os.path.join(scratch, "sonded")) as d:
        load = (chown, search, ptrace, nice, resource, syslog, perfmon, bpf)
        assert child(d.running("cpu")) == (bits(*load), str(600 << 20))
        assert child(d.running("maps")) == (bits(net, *load), str(600 << 20))
        d.ask(do="prune")
        assert until(lambda: os.path.exists(f"{scratch}/told")), d.said()
    with open(f"{scratch}/told", encoding="ascii") as f:
        assert rights_and_memory(f.read()) == (bits(chown, override, owner), str(512 << 20))


def test_an_ordinary_user_with_the_unit_s_capabilities_records(scratch):
    need("setpriv")
    with open(os.path.join(ROOT, "supervisor/systemd/sonded.service"), encoding="ascii") as f:
        unit = f.read()
    caps = re.search(r"^AmbientCapabilities=(.*)$", unit, re.M).group(1).replace("CAP_", "").lower().split()
    assert re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.M).group(1).replace("CAP_", "").lower().split() == caps
    plus = ",".join("+" + c for c in caps)
    store = os.path.join(scratch, "store")
    os.chmod(scratch, 0o777)
    for part in iter(lambda p=[BIN]: p.pop() if p else None, None):
        if subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", "test", "-x", part], check=False).returncode:
            pytest.skip("missing: a build that an ordinary user can reach")
    prefix = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps", f"-all,{plus}", "--ambient-caps",
              f"-all,{plus}", "--bounding-set", f"-all,{plus}"]
    burn = burner(8)
    with Sonded(store, "--families", "cpu,goheap", "--freq", "99", prefix=prefix) as d:
        assert d.running("cpu") and d.running("goheap"), d.said()
        with open(f"/proc/{d.running('goheap')}/status", encoding="ascii") as f:
            held = int(re.search(r"CapPrm:\s*(\w+)", f.read()).group(1), 16)
        assert held == 1 << 19 | 1 << 2 | 1 << 38 | 1 << 39, hex(held)  # SYS_PTRACE, DAC_READ_SEARCH, PERFMON, BPF; no SYSLOG
        assert any(os.readlink(fd) == "anon_inode:bpf-prog" for fd in glob.glob(f"/proc/{d.running('goheap')}/fd/*"))
        assert until(lambda: d.service("cpu")["samples"] > 100), d.said()
        d.stop()
    burn.kill()
    burn.wait()
    assert sum(r["n"] or 0 for r in sql_all(store, "select sum(n) n from sample")) > 100


def is_confined(pid):
    """Each of its threads."""
    for status in procfs.of_threads(pid, "status"):
        said = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        if (said["Seccomp"], said["NoNewPrivs"]) != ("2", "1"):
            return False
    return True


def test_loaders_give_up_what_they_do_not_record_with(store):
    with Sonded(store, "--families", "cpu,offcpu,host,net") as d:
        for family in ("cpu", "offcpu", "host", "net"):
            pid = d.running(family)
            assert pid and until(lambda p=pid: is_confined(p)), (family, d.said())


def test_sonded_and_sonde_maps_give_up_what_they_do_not_need(store):
    with Sonded(store, "--families", "cpu") as d:
        maps = d.running("maps")
        assert maps and until(lambda: is_confined(maps)), d.said()
        assert is_confined(d.child.pid)


def test_the_unit_is_hardened(tmp_path):
    need("systemd-analyze")
    with open(os.path.join(ROOT, "supervisor/systemd/sonded.service"), encoding="ascii") as f:
        text = f.read().replace("@libexecdir@", BIN)
    unit = tmp_path / "sonded.service"
    unit.write_text(text)
    out = subprocess.run(["systemd-analyze", "security", "--offline=true", str(unit)], capture_output=True, text=True, check=False)
    level = re.search(r"Overall exposure level for sonded.service: ([\d.]+)", out.stdout)
    if not level:
        pytest.skip("missing: systemd-analyze security --offline")
    assert float(level.group(1)) <= 2.5
