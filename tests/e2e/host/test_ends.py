# SPDX-License-Identifier: Apache-2.0
"""What processes used up to their end: the kernel's own sums of a process (wait4) and of its cgroup are the oracle."""
import contextlib
import os
import secrets
import subprocess
import sys

import pytest

from conftest import WORKLOADS, sql_all
from containers import cgroups
from sonded import until
from test_events import contained, memory
from test_host import all_roots, cpu_of, first_row, rounds, two_rounds_later

CPU = "sum(user_us + system_us)"
BURN = "import time\nwhile time.process_time() < {}: pass\n"


def asked(store, query):
    """One row; None while there is no store yet."""
    with contextlib.suppress(Exception):
        return sql_all(store, query)[0]
    return None


def number(row, key):
    return row and row[key] or 0


def ended(store, where):
    return asked(store, f"SELECT sum(n) AS n, {CPU} AS cpu, sum(write_bytes) AS wr, max(rss_max) AS rss, sum(lived_us) AS lived, "
                        f"max(container) AS container FROM ended_stats WHERE {where}")


def read_in_life(store, cgroup):
    return number(asked(store, f"SELECT {CPU} AS cpu FROM process_stats s JOIN process p ON p.id = s.process_id JOIN text t ON t.id = p.cgroup "
                               f"WHERE t.value = '{cgroup}'"), "cpu")


@contextlib.contextmanager
def container():
    """(path of its cgroup, prefix for commands in it)"""
    path = f"docker/{secrets.token_hex(32)}"
    with cgroups({root: path for root in all_roots()}) as (made, prefix):
        if not made or cpu_of(path) is None:
            pytest.skip("missing: a cgroup hierarchy that can be written, and that counts CPU time")
        yield path, prefix


def storm_adds_up(capture, store, count, us):
    cap = capture(program="sonde-host")
    assert until(lambda: first_row(store), 20)
    with container() as (path, prefix):
        told = subprocess.run([*prefix, os.path.join(WORKLOADS, "storm"), str(count), "0", str(us)], capture_output=True, text=True, check=True)
        assert f'"ended": {count}' in told.stdout
        charged = cpu_of(path)
        cgroup = f"/{path}"
        sums = f"cgroup = '{cgroup}' AND comm = 'storm'"
        met = f"SELECT count(DISTINCT process_id) AS n FROM process_stats s JOIN process p ON p.id = s.process_id JOIN text t ON t.id = p.cgroup " \
              f"WHERE t.value = '{cgroup}' AND s.comm = 'storm'"  # by a reading: each has rows of its own, and so has their parent
        assert until(lambda: number(ended(store, sums), "n") + number(asked(store, met), "n") >= 0.97 * count, 30), (ended(store, sums), asked(store, met))
        two_rounds_later(store)
        two_rounds_later(store)
        cap.stop()
    row = ended(store, sums)
    stored = row["cpu"] + read_in_life(store, cgroup) + number(ended(store, f"cgroup = '{cgroup}' AND comm <> 'storm'"), "cpu")
    assert row["n"] <= count + 1 and row["container"] == path[7:19]  # and the one that made them, where it used little
    assert row["cpu"] >= (row["n"] - 1) * us
    # the shell that joins the cgroup, and becomes the storm, had used some milliseconds before it did
    assert 0.98 * charged <= stored <= 1.002 * charged + 10000, (stored, charged, row)


@pytest.mark.long
def test_processes_of_a_millisecond_add_up_to_what_their_cgroup_was_charged(capture, store):
    storm_adds_up(capture, store, 3000, 1000)


@pytest.mark.long
def test_twenty_thousand_processes_of_five_milliseconds_add_up_to_what_their_cgroup_was_charged(capture, store):
    storm_adds_up(capture, store, 20000, 5000)


THREADS = BURN.format(0.05) + """
import threading, time
def burn():
    while time.thread_time() < 0.4:
        hash(b"x")
for _ in range(3):
    t = threading.Thread(target=burn)
    t.start()
    t.join()
"""


@pytest.mark.long
def test_what_threads_used_that_ended_before_their_process_is_its_own(capture, store):
    cap = capture("--bucket", "10s", program="sonde-host")
    assert until(lambda: first_row(store), 40)
    with container() as (path, prefix):
        subprocess.run([*prefix, sys.executable, "-c", THREADS], check=True)
        charged = cpu_of(path)
        cap.stop()
    assert charged > 1250000
    stored = read_in_life(store, f"/{path}") + number(ended(store, f"cgroup = '/{path}'"), "cpu")
    # of a thread that collects itself the kernel's sum of the process lacks what it ran since its last tick
    assert charged - 3 * 20000 <= stored <= 1.02 * charged, (stored, charged)


BURNS_AND_HOLDS = BURN.format(0.6) + "x = bytearray(200 << 20)"


@pytest.mark.long
@pytest.mark.parametrize("known", [False, True], ids=["never-met", "read-before"])
def test_a_container_that_is_gone_before_it_is_read_again_has_its_kill_and_its_cpu_time(capture, store, known):
    """Rounds are ten seconds apart: what ended it, and what it used for that, no reading has met."""
    with contained(**memory(48)) as (container_id, prefix, _):
        path = f"docker/{container_id}"
        p = subprocess.Popen([*prefix, "sh", "-c", f"read x; {sys.executable} -c '{BURNS_AND_HOLDS}'; exit 3"], stdin=subprocess.PIPE, text=True) if known else None
        cap = capture("--bucket", "10s", program="sonde-host")
        assert until(lambda: first_row(store), 40)
        before = cpu_of(path)
        if known:
            p.communicate("\n", timeout=360)
        else:
            p = subprocess.run([*prefix, "sh", "-c", f"{sys.executable} -c '{BURNS_AND_HOLDS}'; exit 3"], stdin=subprocess.DEVNULL, check=False)
        charged = cpu_of(path) - before
    assert p.returncode == 3 and charged > 600000
    two_rounds_later(store)
    cap.stop()
    (kill,) = sql_all(store, f"SELECT sum(n) AS n, max(at_ns) AS at FROM events WHERE which = '{container_id}' AND kind = 'oom kill'")
    rows = sql_all(store, f"SELECT ts, oom_kills, user_us + system_us AS cpu, container FROM container_stats WHERE cgroup = '/{path}'")
    assert kill["n"] == 1 == sum(r["oom_kills"] or 0 for r in rows), (kill, rows)
    assert any(r["oom_kills"] and r["ts"] <= 1e-9 * kill["at"] < r["ts"] + 10 and r["container"] == container_id[:12] for r in rows), (kill, rows)
    # what joins a cgroup has used a little before it did; what a reading had met is told from that on
    assert 0.95 * charged <= sum(r["cpu"] or 0 for r in rows) <= charged + 30000, (charged, rows)


EXECS = BURN.format(0.2) + "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', sys.argv[1]])"


def test_a_process_that_executes_another_program_has_what_it_used_once(capture, store):
    """Read before its exec or not: what wait4 says is what is stored, of all its programs together."""
    cap = capture(program="sonde-host")
    assert until(lambda: first_row(store), 20)
    pid = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", EXECS, BURN.format(0.9)])
    _, status, used = os.wait4(pid, 0)
    assert status == 0
    mine = f"SELECT {CPU} AS cpu, max(rss) AS rss FROM process_stats WHERE pid = {pid}"
    until(lambda: number(asked(store, mine), "cpu") >= 0.9e6, 10)
    cap.stop()
    row = asked(store, mine)
    exact = 1e6 * (used.ru_utime + used.ru_stime)
    assert abs(row["cpu"] - exact) <= 20000 and row["rss"], (row, exact)


@pytest.mark.long
def test_what_one_used_after_its_last_reading_is_in_the_row_of_the_end(capture, store, scratch):
    cap = capture("--bucket", "10s", program="sonde-host")
    assert until(lambda: first_row(store), 40)
    p = subprocess.Popen([sys.executable, "-c", "import sys\nsys.stdin.readline()\n" + BURN.format(0.5)], stdin=subprocess.PIPE, text=True)
    before = rounds(store)
    assert until(lambda: len(rounds(store) - before) >= 1, 40)  # it was read while it waited
    p.stdin.write("\n")
    p.stdin.close()
    _, _, used = os.wait4(p.pid, 0)
    p.returncode = 0
    cap.stop()
    row = asked(store, f"SELECT {CPU} AS cpu, count(*) AS n FROM process_stats WHERE pid = {p.pid}")
    assert abs(row["cpu"] - 1e6 * (used.ru_utime + used.ru_stime)) <= 20000 and row["n"] >= 2, (row, used)


DIRECT = """
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_DIRECT)
block = mmap.mmap(-1, 1 << 16)
for _ in range(64):
    os.write(fd, block)
held = bytearray(30 << 20)
"""


@pytest.mark.long
def test_what_a_short_process_wrote_and_its_most_memory_are_told(capture, store, scratch):
    cap = capture(program="sonde-host")
    assert until(lambda: first_row(store), 20)
    name = "sh" + secrets.token_hex(4)
    with container() as (path, prefix):
        script = f"import ctypes\nctypes.CDLL(None).prctl(15, b'{name}', 0, 0, 0)\n" + DIRECT
        for i in range(3):
            subprocess.run([*prefix, sys.executable, "-c", script, os.path.join(scratch, str(i))], check=True)
        # one that used more than 200 ms, or that a reading met, has rows of its own
        both = f"SELECT sum(write_bytes) AS wr, max(coalesce(rss, 0)) AS rss FROM process_stats WHERE comm = '{name}'"
        written = lambda: number(ended(store, f"comm = '{name}'"), "wr") + number(asked(store, both), "wr")  # noqa: E731
        assert until(lambda: written() >= 3 * (4 << 20), 20), written()
        cap.stop()
    assert written() < 4 * (4 << 20)
    assert max(number(ended(store, f"comm = '{name}'"), "rss"), number(asked(store, both), "rss")) > 30 << 20


@pytest.mark.long
def test_a_zombie_is_no_step_when_it_is_collected(capture, store):
    """Its parent waits for rounds to go by: what it used was read, and is not told again."""
    cap = capture(program="sonde-host")
    assert until(lambda: first_row(store), 20)
    pid = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", BURN.format(1.2)])
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    two_rounds_later(store)
    _, _, used = os.wait4(pid, 0)
    two_rounds_later(store)
    cap.stop()
    exact = 1e6 * (used.ru_utime + used.ru_stime)
    stored = number(asked(store, f"SELECT {CPU} AS cpu FROM process_stats WHERE pid = {pid}"), "cpu")
    assert 1e6 <= exact and abs(stored - exact) <= 20000, (stored, exact)


@pytest.mark.long
def test_what_the_rules_leave_out_is_not_summed_either(capture, store):
    cap = capture("--exclude", "command:storm", program="sonde-host")
    assert until(lambda: first_row(store), 20)
    with container() as (path, prefix):
        subprocess.run([*prefix, os.path.join(WORKLOADS, "storm"), "100", "0", "500"], stdout=subprocess.DEVNULL, check=True)
        two_rounds_later(store)
        two_rounds_later(store)
        cap.stop()
    assert not sql_all(store, "SELECT 1 FROM ended_stats WHERE comm = 'storm'")
    assert sql_all(store, "SELECT 1 FROM process_stats LIMIT 1")


def test_the_command_that_a_capture_is_of_is_told_whole(sonde, store):
    """The capture ends with it: its sums come after its end."""
    done = sonde("record", "--families", "host", "--store", store, "--", sys.executable, "-c",
                 BURN.format(0.4) + "import os; print('told', os.getpid(), time.process_time())")
    assert done.returncode == 0, done.stderr
    pid, said = next(line.split()[1:] for line in done.stdout.splitlines() if line.startswith("told "))
    row = asked(store, f"SELECT {CPU} AS cpu FROM process_stats WHERE pid = {pid}")
    said = float(said)
    assert said * 1e6 <= number(row, "cpu") <= said * 1e6 + 100000, (row, said)
