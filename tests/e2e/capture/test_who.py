# SPDX-License-Identifier: Apache-2.0
"""Processes that end: how, by what wait(2) says; and how many, however short they live."""
import calendar
import contextlib
import os
import re
import secrets
import shutil
import subprocess
import sys
import time

import pytest

from conftest import WORKLOADS, need_root, scale, sql_all
from containers import cgroup_roots, cgroups
from sonded import until

BURN_THEN = "import os,resource,time\nend=time.monotonic()+{s}\nwhile time.process_time()<0.2 and time.monotonic()<end: pass\n{do}"
ENDS = {
    "exit": ("os._exit(7)", "exit", 7),
    "exit 0": ("os._exit(0)", "exit", 0),
    "signal": ("os.kill(os.getpid(), 9)", "signal", 9),
    "crash": ("resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.kill(os.getpid(), 11)", "signal", 11),
}


@pytest.fixture(autouse=True)
def as_root():
    need_root()


def own_kib(pid):
    """What it has allocated. Files that it alone maps just now (indexes of what else runs here) are the page cache's."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return int(re.search(r"^Anonymous:\s+(\d+)", f.read(), re.M).group(1))


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return f.read().split()


@pytest.mark.long
def test_each_end_of_a_process_is_told_as_wait_tells_it(capture, sql, store):
    c = capture("--freq", 499)
    told = {}
    for name, (do, _, _) in ENDS.items():
        child = subprocess.Popen([sys.executable, "-c", BURN_THEN.format(s=20, do=do)])
        told[name] = (child.pid, child.wait(60))
    c.stop()
    for name, (_, how, status) in ENDS.items():
        pid, code = told[name]
        assert code == (-status if how == "signal" else status)   # the test itself did what it says
        rows = sql(store, "SELECT how, status, end_ns, start_ns, ppid FROM processes WHERE pid = ? AND how <> 'exec'", (pid,))
        assert [(r["how"], r["status"], r["ppid"]) for r in rows] == [(how, status, os.getpid())], name
        assert rows[0]["end_ns"] - rows[0]["start_ns"] >= 0.2e9


def test_of_many_short_processes_none_is_missed_but_what_is_told_as_lost(capture, work, store):
    forks, execs, often = scale((6000, 500, 1), (100000, 4000, 3))
    c = capture("--freq", 99)
    own = []
    for _ in range(often):
        assert work("storm", forks, 77).told(600)["ended"] == forks
        assert work("storm", execs, 78, "exec").told(600)["ended"] == execs
        (maps,) = children(c.pid)
        own.append(own_kib(c.pid) + own_kib(maps))
    done = c.stop()
    ends = {(r["how"], r["status"]): r["n"] for r in sql_all(store, """SELECT how, status, sum(n) AS n FROM process_ends
            WHERE (how = 'exit' AND status IN (77, 78)) OR how = 'unknown' GROUP BY 1, 2""")}
    forked, execed = ends.get(("exit", 77), 0), ends.get(("exit", 78), 0)
    short = often * (forks + execs) - forked - execed
    assert short >= 0 and forked <= often * forks and execed <= often * execs
    assert short <= ends.get(("unknown", 0), 0) + done["maps_lost"], (ends, done)
    if often > 1:  # nothing of what has ended stays; the first round makes room
        assert own[-1] <= own[1] * 1.1 + 2048, own


@pytest.mark.skipif(not os.path.isdir("/sys/fs/cgroup/memory"), reason="missing: a memory cgroup of version 1 to be short of memory in")
def test_what_the_kernel_killed_for_want_of_memory_is_told_so(capture, sql, store):
    group = f"/sys/fs/cgroup/memory/sonde-test-{os.getpid()}"
    os.mkdir(group)
    try:
        with open(f"{group}/memory.limit_in_bytes", "w", encoding="ascii") as f:
            f.write("40M")
        c = capture("--freq", 499)
        eat = "import sys\nopen(sys.argv[1]+'/cgroup.procs','w').write('0')\na=[]\nwhile 1: a.append(bytearray(b'x'*(1<<20)))"
        child = subprocess.Popen([sys.executable, "-c", eat, group])
        assert child.wait(60) == -9
        c.stop()
        (row,) = sql(store, "SELECT how, status FROM processes WHERE pid = ? AND how <> 'exec'", (child.pid,))
        assert (row["how"], row["status"]) == ("out of memory", 9)
    finally:
        os.rmdir(group)


SPIN_C = "int main(void) { volatile long i = 0; while (i < 100000000000L) i = i + 1; return 0; }"
SPIN_JAVA = "public class Spin { public static void main(String[] a) { long x = 0; while (true) x += System.nanoTime() % 7; } }"


def programs(folder):
    """What there is on this machine: name -> (command, language, runtime, linking, libc)."""
    found = {"python": (["/usr/bin/python3", "-c", "while 1: pass"], "python",
                        os.path.basename(os.path.realpath("/usr/bin/python3")), "dynamic", "glibc")}
    for name, command, lang, runtime, linking, libc in (
            ("perl", ["perl", "-e", "1 while 1"], "perl", r"perl([\d.]+)?", "dynamic", "glibc"),
            ("node", ["node", "-e", "for (;;);"], "node", "node", "dynamic", "glibc"),
            ("busybox", ["busybox", "sh", "-c", "while :; do :; done"], "", "", "static", "")):
        if shutil.which(name):
            found[name] = ([shutil.which(name), *command[1:]], lang, runtime, linking, libc)
    if shutil.which("java") and "java-17-" in os.path.realpath(shutil.which("java")):
        with open(f"{folder}/Spin.java", "w", encoding="ascii") as f:
            f.write(SPIN_JAVA)
        found["java"] = (["java", "-Xshare:auto", f"{folder}/Spin.java"], "java", "java17", "dynamic", "glibc")
    if shutil.which("musl-gcc"):
        subprocess.run(["musl-gcc", "-x", "c", "-", "-o", f"{folder}/spinmusl"], input=SPIN_C, text=True, check=True)
        found["musl"] = ([f"{folder}/spinmusl"], "", "", "dynamic", "musl")
    if shutil.which("g++"):
        subprocess.run(["g++", "-x", "c++", "-", "-o", f"{folder}/spincpp", "-Wl,--no-as-needed"], input=SPIN_C.replace("void", ""),
                       text=True, check=True)
        found["c++"] = ([f"{folder}/spincpp"], "c++", r"c\+\+", "dynamic", "glibc")
    if os.path.exists(f"{WORKLOADS}/shares-go") and shutil.which("go"):
        version = subprocess.run(["go", "version", f"{WORKLOADS}/shares-go"], capture_output=True, text=True, check=True).stdout
        found["go"] = ([f"{WORKLOADS}/shares-go", "30"], "go", re.escape(version.split()[-1]), "static", "")
    return found


@pytest.mark.live
def test_language_runtime_and_libc_of_real_programs_are_told(capture, sql, scratch, store):
    c = capture("--freq", 99)
    wanted = programs(scratch)
    running = {name: subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for name, (command, *_) in wanted.items()}
    told = {}
    try:
        end = time.monotonic() + 40
        while time.monotonic() < end and len(told) < len(wanted):
            time.sleep(0.5)
            for name, (_, lang, runtime, linking, libc) in wanted.items():
                for r in sql(store, "SELECT * FROM processes WHERE pid = ?", (running[name].pid,)):
                    if (r["lang"], r["linking"], r["libc"]) == (lang, linking, libc) and re.fullmatch(runtime, r["runtime"]):
                        told[name] = r
    finally:
        for child in running.values():
            child.kill()
            child.wait()
    c.stop()
    assert set(told) == set(wanted), {n: sql(store, "SELECT exe, lang, runtime, linking, libc FROM processes WHERE pid = ?",
                                             (running[n].pid,)) for n in set(wanted) - set(told)}


#: a container's first process: it has children now and then, and one of them in a cgroup of its own
FIRST = """import os, subprocess, sys
burn = "import time\\nend = time.process_time() + 0.4\\nwhile time.process_time() < end: pass"
def join():
    for group in sys.argv[1:]:
        with open(f"{group}/inner/cgroup.procs", "w") as f: f.write("0")
while True:
    subprocess.run([sys.executable, "-c", burn])
    subprocess.run([sys.executable, "-c", burn], preexec_fn=join)
"""


def instances(store, name):
    """When each instance of the container began, of which a process has samples."""
    return sorted({r["started"] for r in sql_all(store, "SELECT DISTINCT c.started FROM containers c JOIN processes p "
                                                        "ON p.container_id = c.runtime_id WHERE c.name = ?", (name,))})


@pytest.mark.long
def test_a_container_that_no_file_tells_of_is_another_instance_once_it_is_started_again(capture, scratch):
    """As LXC makes them. A loader that is started later, or again, tells of the same instance; neither do processes nor cgroups
    that come and go make one."""
    name, late = f"sonde-{os.getpid()}", os.path.join(scratch, "late")
    with contextlib.ExitStack() as stack:
        groups, inside = stack.enter_context(cgroups({root: f"lxc.payload.{name}" for root in cgroup_roots()}))
        stack.enter_context(cgroups({group: "inner" for group in groups}))

        def start():
            # its first process is started from outside, as a runtime's monitor does
            return subprocess.Popen(["unshare", "-p", "-f", "--kill-child", *inside, sys.executable, "-c", FIRST, *groups])
        container = start()
        try:
            c = capture("--freq", 499)
            time.sleep(2)
            c.stop()
            a, b = capture("--freq", 499), capture("--freq", 499, store=late)
            time.sleep(2)
            assert len(instances(a.store, name)) == 1, instances(a.store, name)
            container.kill()
            container.wait()
            assert until(lambda: not any(open(f"{g}/cgroup.procs", encoding="ascii").read() for g in groups))
            container, again = start(), time.time()
            time.sleep(2.5)
            a.stop()
            b.stop()
        finally:
            container.kill()
            container.wait()
    told = instances(a.store, name)
    assert len(told) == 2 and instances(late, name) == told, (told, instances(late, name))
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\dZ", s) for s in told)
    assert abs(again - calendar.timegm(time.strptime(told[1][:19], "%Y-%m-%dT%H:%M:%S"))) < 3, (told, again)


#: a container's first process: what it starts burns a little, execs twice more, and fails
SHORT_LIVES = """i=0; while [ $i -lt 8 ]; do
    sh -c 'j=0; while [ $j -lt 3000 ]; do j=$((j+1)); done; exec sh -c "exec sh -c \\"exit 3\\""' &
    wait $!; i=$((i+1)); done; exec sleep 0.01"""
#: children of one pid, one after the other, each of which execs
SAME_PID = """import os
pid = 0
for _ in range(40):
    if pid:
        with open("/proc/sys/kernel/ns_last_pid", "w") as f: f.write(str(pid - 1))
    pid = os.fork()
    if not pid: os.execv("/bin/sh", ["sh", "-c", "exec sh -c 'exit 4'"])
    os.waitpid(pid, 0)
"""


def test_containers_that_no_file_tells_of_come_and_go_by_dozens_and_the_loader_lives(capture):
    """Docker's form, in no data root that is known."""
    ids = [secrets.token_hex(32) for _ in range(24)]
    with contextlib.ExitStack() as stack:
        inside = [stack.enter_context(cgroups({root: f"docker/{i}" for root in cgroup_roots()}))[1] for i in ids]
        c = capture("--freq", 997)
        for some in range(0, len(ids), 4):
            lives = [subprocess.Popen(["unshare", "-p", "-f", *prefix, "sh", "-c", SHORT_LIVES]) for prefix in inside[some:some + 4]]
            lives.append(subprocess.Popen([*inside[some], sys.executable, "-c", SAME_PID]))
            assert [life.wait(60) for life in lives] == [0] * 5
        c.stop()
    seen = {r["runtime_id"] for r in sql_all(c.store, "SELECT runtime_id FROM containers WHERE name = substr(runtime_id, 1, 12)")}
    assert set(ids) <= seen, (len(set(ids) & seen), len(ids))
    ended = {r["status"]: r["n"] for r in sql_all(c.store, """SELECT status, sum(n) AS n FROM process_ends WHERE how = 'exit'
            AND status IN (3, 4) AND container IN (SELECT name FROM containers WHERE runtime = 'docker') GROUP BY 1""")}
    assert ended == {3: 8 * len(ids), 4: 40 * len(ids) // 4}
