# SPDX-License-Identifier: Apache-2.0
"""Tables of the programs that are full: what found no room is counted, under the reason `room`, or `pairs` where totals by thread are
exact all the same; never under `ring`. SONDE_MAP_ENTRIES makes the tables small (loaders/lib/bpf/load/maproom.h)."""
import os
import secrets
import signal
import socket
import subprocess
import sys

import pytest

from conftest import Work, need_root, sql_all
from containers import cgroup_roots, cgroups
from test_mem_oom import LIMIT, limited

THREADS, WAITS = 12, 20


def small(**maps):
    need_root()
    return {**os.environ, "SONDE_MAP_ENTRIES": ",".join(f"{name}={n}" for name, n in maps.items())}


def books(done, least, reason="room"):
    """At least so many under this reason, none in the ring; all that was seen is stored or lost."""
    lost = done["lost"]
    assert lost[reason] >= least and lost["ring"] == 0, lost
    assert done["seen"] == done["samples"] + done["lost_total"] and done["lost_total"] == sum(lost.values()), done


def test_pairs_of_threads_that_find_no_room_are_lost_as_such_and_each_thread_is_counted_exactly(store, capture, sonde):
    run = capture("--comm", "waits", program="sonde-offcpu", env=small(wakes=1, culprits=1))
    told = Work("waits", "run", f"pipe:{THREADS}:{WAITS}:3").told()
    done = run.stop()
    books(done, THREADS, "pairs")
    assert done["lost"]["room"] == 0, done["lost"]
    rows = sql_all(store, "SELECT tid, sum(count) AS n FROM wait_totals WHERE reason = 'pipe' AND pid = ? GROUP BY tid", (told["pid"],))
    counts = {r["tid"]: r["n"] for r in rows}
    for thread in told["threads"]:
        least, most = sorted((thread["count"], thread["switches"]))  # one that was woken on its way to sleep has not slept
        assert 0.98 * least <= counts[thread["tid"]] <= 1.02 * most, (thread, counts)
    (run_id,) = [r["id"] for r in sql_all(store, "SELECT id FROM runs")]
    (row,) = sql_all(store, "SELECT sum(lost) AS n FROM loss WHERE run_id = ? AND reason = 'pairs'", (run_id,))
    assert row["n"] == done["lost"]["pairs"]
    assert "how long each waited is" in " ".join(sonde("status", store=store, check=True).stdout.split())


def whole(done):
    assert not any(done["lost"][reason] for reason in ("ring", "room")), done["lost"]
    assert done["seen"] == done["samples"] + done["lost_total"], done


@pytest.mark.parametrize("table", ["totals", "who"])
def test_threads_that_find_no_room_are_stored_together_and_nothing_is_lost(store, capture, table):
    """Without a sum or a number of its own, a thread's waits are those of `[no room]`: by reason as many as the threads know of."""
    run = capture("--comm", "waits", program="sonde-offcpu", env=small(**{table: 1}))
    told = Work("waits", "run", f"pipe:{THREADS}:{WAITS}:3").told()
    whole(run.stop())
    (row,) = sql_all(store, "SELECT sum(count) AS n, sum(total_ns) AS ns FROM wait_totals WHERE reason = 'pipe' AND comm IN ('waits', '[no room]')"
                            " AND NOT unfinished")
    threads = told["threads"]
    least, most = (sum(of(t["count"], t["switches"]) for t in threads) for of in (min, max))
    assert 0.98 * least <= row["n"] <= 1.02 * most, (row, told)
    ran = sum(t["delay_ns"] + t["ran_ns"] + 50_000 * t["count"] for t in threads)
    assert sum(t["ns"] for t in threads) - ran <= row["ns"] <= sum(t["ns"] for t in threads) + 50_000, (row, told)
    (other,) = sql_all(store, "SELECT sum(count) AS n FROM wait_totals WHERE comm = '[no room]' AND pid = 0")
    assert other["n"] >= THREADS * WAITS // 2, other


def test_threads_that_are_not_followed_are_lost(capture):
    run = capture("--comm", "waits", program="sonde-offcpu", env=small(threads=1))
    Work("waits", "run", f"pipe:{THREADS}:{WAITS}:3").told()
    run.child.send_signal(signal.SIGINT)  # interrupted before it stored anything: not 0
    books(run.wait(), THREADS * WAITS)


def test_a_loader_that_gets_no_turn_loses_nothing(store, capture):
    """It is stopped, while more processes come and go, and more waits are drawn, than there is room for. Their waits by reason are all there."""
    need_root()
    run = capture("--comm", "waits", "--stack-rate", "100000", program="sonde-offcpu",
                  env=small(who=64, totals=256, events=65536, culprits=4096))
    os.kill(run.pid, signal.SIGSTOP)
    try:
        told = [Work("waits", "run", "sleep:3:40:1").told() for _ in range(40)]
    finally:
        os.kill(run.pid, signal.SIGCONT)
    whole(run.stop())
    rows = {r["comm"]: r for r in sql_all(store, "SELECT comm, sum(count) AS n, sum(total_ns) AS ns FROM wait_totals WHERE reason = 'sleep'"
                                                 " AND NOT unfinished GROUP BY comm")}
    threads = [t for work in told for t in work["threads"]]
    n, ns = (sum(r[of] for r in rows.values()) for of in ("n", "ns"))
    assert set(rows) <= {"waits", "[no room]"} and rows["[no room]"]["n"] > 1000, rows
    assert 0.98 * sum(t["count"] for t in threads) <= n <= 1.02 * sum(t["count"] for t in threads), (rows, n)
    assert ns <= sum(t["ns"] + 50_000 for t in threads), (rows, ns)
    assert ns >= sum(t["ns"] - t["delay_ns"] - t["ran_ns"] - 50_000 * t["count"] for t in threads), (rows, ns)
    (stacks,) = sql_all(store, "SELECT sum(total_ns) AS ns FROM waits WHERE reason = 'sleep'")  # exact with what has no stack
    assert 0.9 * ns <= stacks["ns"] <= 1.1 * ns, (stacks, ns)


def python(code, *args):
    subprocess.run([sys.executable, "-c", code, *map(str, args)], check=True)


def test_flushes_and_opens_that_failed_find_no_room(capture, scratch):
    run = capture(program="sonde-disk", env=small(disk_syncs=1, disk_opens=1, disk_rest_opens=1))
    python("import os, sys\nfor i in range(20):\n f = open(f'{sys.argv[1]}/{i}', 'w'); f.write('x'); f.flush(); os.fsync(f.fileno())\n"
           "for path in ('/none', sys.argv[1] + '/0/none', '/' + 'x' * 300):\n for i in range(10):\n  try: open(path + str(i))\n  except OSError: pass\n", scratch)
    books(run.stop(), 19 + 9)


def test_connections_and_talks_find_no_room(capture):
    run = capture(program="sonde-net", env=small(conns=1, talks=1))
    with socket.create_server(("127.0.0.1", 0)) as server:
        ends = []
        for _ in range(10):
            ends += [socket.create_connection(server.getsockname()), server.accept()[0]]
        for _ in range(6):  # a sum for each process and socket
            python("import socket\na, b = socket.socketpair()\na.send(b'x')")
        books(run.stop(), 10)  # entries are free again where a connection ends or sums are read
        for s in ends:
            s.close()


def test_requests_whose_connection_finds_no_room(capture):
    run = capture(program="sonde-l7", env=small(socks=1))
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(10):
            with socket.create_connection(server.getsockname()) as c, server.accept()[0] as s:
                c.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                s.recv(100)
    books(run.stop(), 10)


def test_calls_that_are_probed_and_find_no_room(capture):
    """Eight threads at once in a call that lasts: one of them has room."""
    run = capture("--probe", "nap=syscall:clock_nanosleep", "--comm", "probed-naps", program="sonde-probe", env=small(calls=1))
    python("import threading, time\nopen('/proc/self/comm', 'w').write('probed-naps')\n"
           "t = [threading.Thread(target=time.sleep, args=(0.5,)) for _ in range(8)]\n[x.start() for x in t]\n[x.join() for x in t]")
    done = run.stop()
    assert done["lost"]["room"] >= 7 - os.cpu_count(), done["lost"]


@pytest.mark.long
def test_waits_for_memory_that_find_no_room(capture, scratch):
    """Eight processes read a file of twice the memory that their cgroup may have: they wait at the same time."""
    with cgroups({root: f"docker/{secrets.token_hex(32)}" for root in cgroup_roots()}) as (made, prefix):
        limited(made)
        path = os.path.join(scratch, "big")
        with open(path, "wb") as f:
            for _ in range(2 * LIMIT):
                f.write(os.urandom(1 << 20))
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        run = capture("--apart", program="sonde-mem", env=small(stalls=1, sleeps=1))
        read = "import sys\nf = open(sys.argv[1], 'rb', buffering=0)\nfor i in range(3):\n f.seek(0)\n while f.read(65536): pass"
        for child in [subprocess.Popen([*prefix, sys.executable, "-c", read, path]) for _ in range(8)]:
            assert child.wait() == 0
        books(run.stop(60), 1)
