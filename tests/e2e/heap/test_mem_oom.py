# SPDX-License-Identifier: Apache-2.0
"""A process that is killed at its cgroup's limit: whose line grew, what it held then, how long it waited for memory."""
import json
import os
import secrets
import subprocess
import sys
import time

import pytest

from conftest import need_root, sql_all
from containers import cgroup_roots, cgroups
from livedin import put
from sonded import until
from test_mem import ready

LIMIT = 64  # MiB


def stalled_ns(path="/proc/pressure/memory", *_):
    """PSI: how long at least one thread of the host, or of a cgroup, waited for memory."""
    try:
        with open(path, encoding="ascii") as f:
            return int(f.readline().rpartition("total=")[2]) * 1000
    except OSError as e:
        pytest.skip(f"missing: /proc/pressure/memory ({e})")


def limited(made):
    """Sets the limit in each cgroup that can have one, of memory without swap."""
    done = False
    for folder in made:
        for name in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max", "memory.swap.max"):
            path = os.path.join(folder, name)
            if os.path.exists(path):
                with open(path, "w", encoding="ascii") as f:
                    f.write("0" if name == "memory.swap.max" else str(LIMIT << 20))
                done = True
    if not done:
        pytest.skip("missing: a memory controller that can be written")


@pytest.mark.long
def test_a_kill_at_a_limit_names_the_line_that_grew_and_what_it_held(sonde, store, capture, scratch):
    need_root()
    command = ready("c", scratch)
    container_id = secrets.token_hex(32)
    with cgroups({root: f"docker/{container_id}" for root in cgroup_roots()}) as (made, prefix):
        limited(made)
        host, mem = capture(program="sonde-host"), capture("--apart", "--period", 100, program="sonde-mem")
        assert until(lambda: sql_all(store, "SELECT 1 FROM host_stats LIMIT 1"), 30)
        done = subprocess.run([*prefix, *command, "256", "60"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        assert done.returncode == -9, done
        assert until(lambda: sql_all(store, "SELECT 1 FROM oom_kills"), 30), "missing: the kernel's log"
        time.sleep(2)
        mem.stop(60)
        host.stop(60)
    (kill,) = sql_all(store, "SELECT * FROM oom_kills")
    (story,) = json.loads(sonde("oom", "--json", store=store, check=True).stdout)["rows"]
    first = story["grew"][0]
    assert first["function"] == "leaky" and first["file"].endswith("leak.c") and first["line"]
    held = {x["function"]: x["inuse_bytes"] for x in story["grew"]}
    print(kill["anon"], held)
    # churn() has up to 16 MiB at any moment
    assert 0.85 * (kill["anon"] - (17 << 20)) <= held["leaky"] <= 1.03 * kill["anon"], (kill["anon"], held)
    assert sum(held.values()) == pytest.approx(kill["anon"], rel=0.05), (kill["anon"], held)
    assert held.get("[without a sample]", 0) < 0.15 * kill["anon"], held
    assert first["grown_bytes"] == first["inuse_bytes"], "it began within the ten minutes"
    said = sonde("oom", store=store, check=True).stdout
    assert f"grew in the 10 min before: leaky (leak.c:{first['line']}) of " in said
    explained = sonde("explain", "--last", "40s", "--before", "20s", store=store).stdout
    assert not explained or "leaky (leak.c" in explained, explained


AT = 1795144200
WEB = {"pid": 70, "comm": "app", "container": "web", "container_id": "web", "start": AT - 5000}


def killed():
    """web's app keeps 1 MiB more every two seconds, for five minutes, and 30 MiB of old: it is killed at AT. cpu is there for explain."""
    for family in ("host", "mem", "cpu"):
        yield {"run": family, "from": AT - 1800, "to": AT + 60, "bucket_s": 10, **({"period_ns": 52631578} if family == "cpu" else {})}
        if family == "cpu":
            yield from ({**WEB, "kind": "cpu", "at": at, "n": 10, "stack": ["main"]} for at in range(AT - 1800, AT, 10))
        if family == "mem":
            for at in range(AT - 1800, AT + 1, 60):
                for name, line, mib in (("leaky", 12, max(0, at - AT + 300) // 2), ("old", 40, 30)):
                    yield {**WEB, "kind": "mem", "at": at, "n": mib * 256, "value": mib << 20, "stack": ["main", [name, "app.c", line]]}
        if family == "host":
            yield {**WEB, "end": 3, "status": 9, "at": AT}
            yield {"fact": "event_row", "at": AT, **WEB, "columns": {"kind": "oom kill", "subject": "container", "name": "web", "detail": "met its limit",
                                                                     "which": "web", "n": 1, "at_us": AT * 1000000}}


def test_who_grew_before_a_kill_is_said_by_oom_and_explain(sonde, tmp_path):
    store = str(tmp_path / "store")
    put(store, killed())
    (story,) = json.loads(sonde("oom", "--from", AT - 600, "--to", AT + 60, "--json", store=store, check=True).stdout)["rows"]
    leaky = {"who": "web", "function": "leaky", "file": "app.c", "line": 12, "grown_bytes": 150 << 20, "inuse_bytes": 150 << 20}
    assert story["grew"] == [leaky]
    assert "grew in the 10 min before: leaky (app.c:12) of web by 150 MiB to 150 MiB" in sonde("oom", "--from", AT - 600, "--to", AT + 60, store=store, check=True).stdout
    window = ["--from", AT - 60, "--to", AT + 60, "--before", "10m"]
    told = json.loads(sonde("explain", *window, "--json", store=store, check=True).stdout)
    assert [i["grew"] for i in told["incidents"]] == [[leaky]], told["incidents"]
    assert "leaky (app.c:12) of web by 150 MiB" in " ".join(sonde("explain", *window, store=store, check=True).stdout.split())


# One thread each, on one CPU: PSI weighs the CPUs by how busy they are, and counts a CPU once where several threads wait there.
WAITS = {
    "write": "f = open(sys.argv[1] + '-out', 'wb')\nfor i in range(96): f.write(bytes(4 << 20)); f.flush()",
    "read": "f = open(sys.argv[1], 'rb', buffering=0)\nfor i in range(6):\n f.seek(0)\n while f.read(65536): pass",
    "map": "import mmap\nf = open(sys.argv[1], 'rb'); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\nfor i in range(6):\n for at in range(0, len(m), 4096): m[at]",
}


@pytest.mark.long
@pytest.mark.parametrize("how", WAITS)
def test_waits_for_memory_are_as_long_as_the_kernel_counts(sonde, store, capture, scratch, how):
    """Each page is had by giving up others: of a file of six times the limit that is written, or one of twice the limit that is read
    over and over. The kernel's own account is memory.pressure, of a cgroup v2 where there is one."""
    need_root()
    big = os.path.join(scratch, "big")
    with open(big, "wb") as f:
        for _ in range(2 * LIMIT):
            f.write(os.urandom(1 << 20))
        f.flush()
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # whoever reads it next is charged for it
    with cgroups({root: f"docker/{secrets.token_hex(32)}" for root in cgroup_roots()}) as (made, prefix):
        limited(made)
        accounts = [path for path in (os.path.join(folder, "memory.pressure") for folder in made) if os.path.exists(path)]
        mem = capture("--apart", program="sonde-mem")
        before = stalled_ns(*accounts)
        cpu = str(min(os.sched_getaffinity(0)))
        done = subprocess.Popen([*prefix, "taskset", "-c", cpu, sys.executable, "-c", f"import sys\n{WAITS[how]}\nimport os; print(os.getpid())", big],
                                stdout=subprocess.PIPE, text=True)
        pid = int(done.communicate()[0])
        truth = stalled_ns(*accounts) - before
        time.sleep(1)
        mem.stop(60)
    (row,) = sql_all(store, "SELECT sum(n) AS n, sum(value) AS ns FROM amounts WHERE type = 'memwait' AND pid = ?", (pid,))
    print(row, truth)
    assert all(n >= 0 for n in mem.last("done")["lost"].values()), mem.last("done")
    most = 1.1 * truth * (1 if accounts else os.cpu_count())
    # of each wait some us lie outside of the two tracepoints, sonde's own programs among them: much where waits are short
    assert row["n"] and 0.9 * truth - 5000 * row["n"] <= row["ns"] <= most, (row, truth)
    folded = os.path.join(scratch, "waits.folded")
    sonde("flame", "--type", "memwait", "-p", pid, "-o", folded, store=store, check=True)
    with open(folded, encoding="utf-8") as f:
        stacks = f.read()
    assert "try_charge" in stacks and "bpf_" not in stacks, stacks
