# SPDX-License-Identifier: Apache-2.0
"""Family probe on functions from their begin to their end, and on pairs of hooks: what it says equals what the programs know."""
import contextlib
import json
import os
import shutil
import statistics
import subprocess

import pytest

from conftest import BIN, WORKLOADS, need, need_root, sql_all

PROGRAM = "sonde-probe"


class Probed:
    """A workload that says ready, does its work after a line, says what it did, and ends with its input."""

    def __init__(self, path, *args):
        if not os.path.exists(path):
            pytest.skip(f"missing: workload {os.path.basename(path)} (was its compiler there?)")
        self.child = subprocess.Popen([path, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.child.stdout.readline() == "ready\n"

    def work(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())

    def close(self):
        out, _ = self.child.communicate(timeout=60)
        assert self.child.returncode == 0
        return out


@contextlib.contextmanager
def probed(name, *args):
    p = Probed(os.path.join(WORKLOADS, name), *args)
    try:
        yield p
    finally:
        if p.child.poll() is None:
            p.child.kill()
        p.child.wait()


def events(store, probe):
    rows = sql_all(store, "SELECT args, ns, tid FROM probe_events WHERE probe = ? ORDER BY at_ns", (probe,))
    return [{**json.loads(r["args"]), "ns": r["ns"], "tid": r["tid"]} for r in rows]


def keys(store, probe):
    return {r["key"]: r["n"] for r in sql_all(store, "SELECT key, sum(hits) AS n FROM probe_stats WHERE probe = ? GROUP BY key", (probe,))}


def told(store, probe):
    return sql_all(store, "SELECT sum(hits) AS hits, sum(lost) AS lost, sum(unpaired) AS unpaired, sum(off_us) AS off_us FROM probes WHERE probe = ?", (probe,))[0]


def specs(*all_):
    return [word for spec in all_ for word in ("--probe", spec)]


def test_a_function_of_c_has_what_it_was_given_what_it_returned_and_its_time(capture, store):
    path = os.path.join(WORKLOADS, "probed")
    with probed("probed") as p:
        cap = capture("--pid", p.child.pid, *specs(
            f"half=func:{path}:half%return(n=int32 $1, ret=int32) sum n", f"fact=func:{path}:fact%return(n=int64 $1) by n,ret rate 1000",
            f"onward=func:{path}:onward%return(n=int64 $1)", f"word=func:{path}:word%return(ret=str) by ret", f"leap=func:{path}:leap%return(n=int32 $1)",
            f"named=func:{path}:named%return(name=str $1, n=int32 $2, ret=int32) ret>4 by name", f"slow=func:{path}:slow%return(us=int64 $1)",
            f"onward_to_fact=latency from func:{path}:onward(n=int64 $1) to func:{path}:fact(m=int64 $1) by tid"), program=PROGRAM)
        did = p.work()
        cap.stop()
        p.close()
    assert [(e["n"], e["ret"]) for e in events(store, "half")] == [(n, -n if n & 1 else n // 2) for n in range(100)]
    assert sql_all(store, "SELECT sum(sum) AS n FROM probe_stats WHERE probe = 'half'")[0]["n"] == sum(range(100))
    assert keys(store, "fact") == {"1 1": 41, "2 2": 41, "3 6": 41, "4 24": 41, "5 120": 41}  # recursion, in four threads and after the jump
    assert [(e["n"], e["ret"]) for e in events(store, "onward")] == [(4, 120)]  # ends in a jump to fact, whose end is its own
    assert keys(store, "word") == dict.fromkeys(("zero", "one", "two", "three"), 2) and {e["ret"] for e in events(store, "word")} == {"zero", "one", "two", "three"}
    assert {e["n"] for e in events(store, "leap")} == {0} and told(store, "leap") == {"hits": 10, "lost": 0, "unpaired": 9, "off_us": 0}  # the last one may still return
    assert keys(store, "named") == {f"name {i}": 1 for i in range(3, 10)}  # the text is what it was at the begin
    assert [e["m"] for e in events(store, "onward_to_fact")] == [5] and events(store, "onward_to_fact")[0]["n"] == 4
    slow = events(store, "slow")
    assert [e["ret"] for e in slow] == did["slow"] and all(e["ns"] >= e["ret"] for e in slow)
    assert statistics.median(e["ns"] - e["ret"] for e in slow) < 20_000  # 0.7 us on the machine where it was made; at a busy one's mercy
    assert all(told(store, probe)["lost"] == 0 for probe in ("half", "fact", "onward", "word", "named", "slow"))


def test_a_stripped_program_of_go_has_its_arguments_results_and_calls_on_stacks_that_move(capture, store):
    path = os.path.join(WORKLOADS, "probed-go")
    with probed("probed-go") as p:
        cap = capture("--pid", p.child.pid, *specs(
            f"handle=go:{path}:main.(*server).handle(n=int64 $2, name=str $3) by name", f"whole=go:{path}:main.(*server).handle%return(n=int64 $2, name=str $3)",
            f"deep=go:{path}:main.deep%return(n=int64 $1) rate 0 by ret", f"begins=go:{path}:main.deep rate 0"), program=PROGRAM)
        did = p.work()
        cap.stop()
        p.close()
    names = ["request"[:i % 8 % 7] for i in range(50)]
    assert did["sum"] == sum(range(50))
    assert keys(store, "handle") == {name: names.count(name) for name in names}
    assert [(e["n"], e["name"], e["ret"]) for e in events(store, "whole")] == [(i, name, i * len(name) if name else -i) for i, name in enumerate(names)]
    if told(store, "deep")["off_us"] == 0:
        assert keys(store, "deep") == {str(n): 20 for n in range(201)}
    if told(store, "begins")["off_us"] == 0:
        assert told(store, "begins")["hits"] == 20 * 201  # one for each call, also where it begins again with more stack


def test_a_function_of_a_stripped_rust_program_is_found_by_its_address(capture, store):
    need("strip"), need("nm")
    path = store + ".rust"
    built = os.path.join(WORKLOADS, "probed-rust")
    with probed("probed-rust"):
        pass
    names = subprocess.run(["nm", built], capture_output=True, text=True, check=True).stdout
    at = next(int(line.split()[0], 16) for line in names.splitlines() if line.endswith(" triple"))
    load = subprocess.run(["readelf", "-lW", built], capture_output=True, text=True, check=True).stdout
    offset, vaddr = next((int(w[1], 16), int(w[2], 16)) for w in map(str.split, load.splitlines()) if w[:1] == ["LOAD"] and int(w[2], 16) <= at < int(w[2], 16) + int(w[4], 16))
    shutil.copy(built, path)
    subprocess.run(["strip", "-s", path], check=True)
    p = Probed(path)
    try:
        cap = capture("--pid", p.child.pid, *specs(f"t=func:{path}:{hex(at - vaddr + offset)}%return(n=int64 $1)"), program=PROGRAM)
        did = p.work()
        cap.stop()
        p.close()
    finally:
        p.child.kill()
        p.child.wait()
    got = [(e["n"], e["ret"]) for e in events(store, "t")]
    assert got == [(n, 3 * n + (n & 1)) for n in range(30)] and sum(r for _, r in got) == did["sum"]


def test_a_pair_of_tracepoints_has_the_time_between_them_by_a_key(capture, store):
    with probed("probed") as p:
        cap = capture(*specs(f"nap=latency from tracepoint:syscalls:sys_enter_kill(pid, sig) to tracepoint:syscalls:sys_exit_kill(ret) by tid sig==28 by sig",
                             "life=latency from tracepoint:sched:sched_process_exec to tracepoint:sched:sched_process_exit by pid rate 100000"), program=PROGRAM)
        for _ in range(12):
            os.kill(p.child.pid, 28)
        with pytest.raises(ProcessLookupError):
            os.kill(1 << 22, 28)
        done = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True)
        cap.stop()
    mine = sql_all(store, "SELECT args, ns FROM probe_events WHERE probe = 'nap' AND pid = ?", (os.getpid(),))
    got = sorted((json.loads(r["args"])["pid"], json.loads(r["args"])["ret"]) for r in mine)
    assert got == sorted([(p.child.pid, 0)] * 12 + [(1 << 22, -3)]) and all(r["ns"] > 0 for r in mine)
    assert sql_all(store, "SELECT sum(hits) AS n FROM probe_stats WHERE probe = 'nap' AND key = '28' AND pid = ?", (os.getpid(),))[0]["n"] == 13
    assert len(sql_all(store, "SELECT 1 FROM probe_events WHERE probe = 'life' AND pid = ?", (int(done.stdout),))) == 1


@pytest.mark.parametrize("spec, why", [
    ("func:{path}:leap%return(ret=str, name=str $1, b=str $2, c=str $3)", "two texts"),
    ("func:{path}:no_such%return", "has no function no_such"),
    ("func:{path}:0x3%return", "begins at 0x3"),
    ("go:{path}:half", "has no function of Go half"),
    ("latency from func:{path}:half to tracepoint:no:thing by tid", "has no tracepoint no/thing"),
])
def test_what_cannot_be_followed_is_refused(store, spec, why):
    need_root()
    spec = spec.format(path=os.path.join(WORKLOADS, "probed"))
    said = subprocess.run([os.path.join(BIN, PROGRAM), "--store", store, "--duration", "1s", "--probe", spec], capture_output=True, text=True, timeout=60, check=False)
    assert said.returncode in (2, 3) and why in said.stderr and not os.path.exists(store), said.stderr


def test_a_probe_is_a_view_with_its_arguments_as_columns(capture, store, sonde):
    with probed("probed") as p:
        cap = capture(*specs("signals=tracepoint:signal:signal_generate(sig, comm, pid) sig==28", "runs=tracepoint:sched:sched_process_exec(filename, pid)"), program=PROGRAM)
        for _ in range(4):
            os.kill(p.child.pid, 28)
        cap.stop()

    def rows(sql):
        return json.loads(sonde("sql", "--json", sql, store=store, check=True).stdout)["rows"]
    got = rows(f"SELECT sig, pid, hit_pid, hit_comm FROM signals WHERE pid = {p.child.pid}")
    assert [(r["sig"], r["pid"], r["hit_pid"]) for r in got] == [(28, p.child.pid, os.getpid())] * 4
    assert rows(f"SELECT count(*) AS n FROM win_signals WHERE pid = {p.child.pid}")[0]["n"] == 4
    assert "filename" not in rows("SELECT * FROM runs LIMIT 1")[0]  # the name of another view is that one's
    said = sonde("sql", "SELECT * FROM no_such_probe", store=store)
    assert said.returncode == 2 and "no such table: no_such_probe" in said.stderr
