# SPDX-License-Identifier: Apache-2.0
"""Family probe on the real kernel: what it counts and reads equals what the test did."""
import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest

from conftest import BIN, need_root, sql_all

PROGRAM = "sonde-probe"


def capture_probes(capture, *specs, more=()):
    return capture(*more, *(word for spec in specs for word in ("--probe", spec)), program=PROGRAM)


def events(store, probe, where=""):
    rows = sql_all(store, f"SELECT pid, tid, thread, args, ns, weight FROM probe_events WHERE probe = ? {where} ORDER BY at_ns", (probe,))
    return [{**r, "args": json.loads(r["args"])} for r in rows]


def hits(store, probe, where=""):
    return sql_all(store, f"SELECT coalesce(sum(hits), 0) AS n FROM probe_stats WHERE probe = ? {where}", (probe,))[0]["n"]


def test_a_tracepoint_has_its_fields_as_arguments(capture, store):
    child = subprocess.Popen([sys.executable, "-c", "import signal, sys; signal.signal(signal.SIGUSR1, lambda *a: None); sys.stdin.read()"],
                             stdin=subprocess.PIPE)
    try:
        cap = capture_probes(capture, f"mine=tracepoint:signal:signal_generate(sig, comm, pid) pid=={child.pid} by sig", "tracepoint:signal:signal_generate rate 0")
        for _ in range(12):
            os.kill(child.pid, signal.SIGUSR1)
        os.kill(child.pid, signal.SIGWINCH)
        cap.stop()
    finally:
        child.kill()
        child.wait()
    got = [(e["args"]["sig"], e["args"]["pid"]) for e in events(store, "mine", f"AND pid = {os.getpid()}")]
    assert got == [(int(signal.SIGUSR1), child.pid)] * 12 + [(int(signal.SIGWINCH), child.pid)]
    keys = sql_all(store, f"SELECT key, sum(hits) AS n FROM probe_stats WHERE probe = 'mine' AND pid = {os.getpid()} GROUP BY key")
    assert {r["key"]: r["n"] for r in keys} == {str(int(signal.SIGUSR1)): 12, str(int(signal.SIGWINCH)): 1}
    assert events(store, "signal_generate") == []  # rate 0: sums alone
    assert hits(store, "signal_generate", f"AND pid = {os.getpid()}") >= 13
    shape = sql_all(store, "SELECT DISTINCT spec, args FROM probes WHERE probe = 'mine'")
    assert [r["args"] for r in shape] == ["sig int32,comm str,pid int32"]


def test_a_system_call_has_arguments_result_error_and_time(capture, store):
    base = os.path.join(os.path.dirname(store), "none")
    long = base + "/" + "x" * (250 - len(base) - 1)
    cap = capture_probes(capture, f"call=syscall:openat(path=str $2, flags=int32 $3) ret==-ENOENT and path~'{base[:40]}' by path,ret", more=("--pid", os.getpid()))
    for i in range(9):
        with contextlib.suppress(FileNotFoundError):
            os.open(base, os.O_RDONLY | os.O_CLOEXEC)
    with contextlib.suppress(FileNotFoundError):
        os.open(long, os.O_RDONLY)
    with open(store + ".there", "wb"):
        pass
    cap.stop()
    got = events(store, "call")
    assert [e["args"]["path"] for e in got] == [base] * 9 + [long]  # right to 256 bytes
    assert all(e["args"]["ret"] == -2 and e["args"]["error"] == "ENOENT" and e["ns"] > 0 and e["weight"] == 1 for e in got)
    assert got[0]["args"]["flags"] & os.O_CLOEXEC and {e["pid"] for e in got} == {os.getpid()}
    rows = sql_all(store, "SELECT key, sum(hits) AS n, sum(errors) AS errors, sum(ns) AS ns, sum(" + " + ".join(f"coalesce(slot_{i}, 0)" for i in range(32)) +
                   ") AS slots FROM probe_stats WHERE probe = 'call' GROUP BY key")
    mine = next(r for r in rows if r["key"] == f"{base[:111]} ENOENT")
    assert mine["n"] == mine["errors"] == mine["slots"] == 9 and mine["ns"] == sum(e["ns"] for e in got[:9])


def test_sums_are_exact_beyond_the_rate_and_single_hits_are_weighted(capture, store):
    cap = capture_probes(capture, "all=syscall:getppid rate 50", more=("--pid", os.getpid()))
    for _ in range(30000):
        os.getppid()
    cap.stop()
    assert hits(store, "all") == 30000
    told = sql_all(store, "SELECT sum(hits) AS hits, sum(events) AS events, sum(lost) AS lost FROM probes")[0]
    rows = events(store, "all")
    assert told["hits"] == 30000 and told["lost"] == 0 and told["events"] == len(rows) < 30000


def test_stacks_carry_the_probes_name_as_a_label(capture, store, sonde):
    cap = capture_probes(capture, "calls=syscall:getpgrp stack rate 1000", more=("--pid", os.getpid()))
    for _ in range(200):
        os.getpgrp()
    cap.stop()
    rows = sql_all(store, "SELECT k.name AS kind, sum(x.n) AS n FROM amount x JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task JOIN kind k ON k.id = t.kind GROUP BY 1")
    assert {r["kind"]: r["n"] for r in rows} == {"probe": 200, "probetime": 200}
    sonde("flame", "--type", "probe", "--label", "probe=calls", "-o", store + ".folded", store=store, check=True)
    with open(store + ".folded", encoding="utf-8") as f:
        assert sum(int(line.rsplit(" ", 1)[1]) for line in f if "getpgrp" in line) == 200


@pytest.mark.parametrize("spec, why", [
    ("tracepoint:sched:no_such_thing", "has no tracepoint sched/no_such_thing"),
    ("tracepoint:sched:sched_switch(nope)", "there is no field nope"),
    ("syscall:openat(path=str $2) by pth", "it has: path ret ns"),
    ("func:/bin/true:main%return", "return"),
    ("tracepoint:sched", "column 17"),
])
def test_what_is_not_there_is_refused_before_anything_is_recorded(store, spec, why):
    need_root()
    said = subprocess.run([os.path.join(BIN, PROGRAM), "--store", store, "--duration", "1s", "--probe", spec], capture_output=True, text=True, timeout=60, check=False)
    assert said.returncode in (2, 3) and why in said.stderr and not os.path.exists(store)
