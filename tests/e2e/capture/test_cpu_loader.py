# SPDX-License-Identifier: Apache-2.0
"""sonde-cpu by itself: nothing is lost without a count, CPU time is right, narrow means narrow in the kernel, and it
begins, ends and refuses as it says. The oracles are the kernel's own books: getrusage of the workload, and the tally."""
import collections
import json
import os
import re
import signal
import subprocess
import time

import pytest

from conftest import BIN, is_charged, need, need_root, scale, stolen_ns, tolerance

LOADER = os.path.join(BIN, "sonde-cpu")


@pytest.fixture(autouse=True)
def as_root():
    need_root()


def run(*args, prefix=(), timeout=60, **kw):
    return subprocess.run([*prefix, LOADER, *map(str, args)], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=timeout, **kw)


def by_pid(sql, store):
    out = {}
    for row in sql(store, "SELECT pid, sum(samples) AS n, sum(cpu_ns) AS ns FROM cpu_samples GROUP BY pid"):
        n, ns = out.get(row["pid"], (0, 0))
        out[row["pid"]] = (n + row["n"], ns + row["ns"])
    return out


@pytest.mark.long
def test_stored_plus_counted_losses_is_exactly_what_the_probe_saw(capture, work, sql, store):
    load = work("burn", scale(4000, 60000), 2)
    c = capture("--freq", 4999, "--duration", f"{scale(4, 60)}s")
    done = c.wait(scale(30, 120))
    load.close()
    stored = sum(n for n, _ in by_pid(sql, store).values())
    lost = sum(row["n"] for row in sql(store, "SELECT sum(lost) AS n FROM loss WHERE reason != 'maps'") if row["n"])
    assert done["seen"] > scale(10000, 300000)
    assert stored == done["samples"]
    assert lost == sum(done["lost"].values()) == done["lost_total"]
    assert stored + lost == done["seen"]


@pytest.mark.long
def test_a_full_queue_counts_the_drops_and_the_identity_holds(capture, work, sql, store):
    """The loader is stopped for two seconds: the ring overflows, and every dropped sample is counted."""
    load = work("burn", 4000, 2)
    c = capture("--freq", 4999, "--pid", load.pid, "--bucket", "10s")
    time.sleep(0.3)
    for _ in range(2):
        os.kill(c.pid, signal.SIGSTOP)
        time.sleep(scale(1.5, 10))
        os.kill(c.pid, signal.SIGCONT)
        time.sleep(0.2)
    done = c.stop()
    load.close()
    stored = sum(n for n, _ in by_pid(sql, store).values())
    assert stored == done["samples"]
    assert stored + sum(done["lost"].values()) == done["seen"]


@pytest.mark.alone
@pytest.mark.parametrize("freq", [99, pytest.param(1999, marks=pytest.mark.long)])
def test_samples_times_period_is_the_cpu_time_that_the_kernel_charged(capture, work, sql, store, freq):
    c = capture("--freq", freq, "--bucket", "10s")
    began, before = time.monotonic_ns(), stolen_ns()
    used = work("burn", scale(5000 if freq == 99 else 3000, 30000), 1).told()
    allowed = tolerance(0.02, used["cpu_ns"], time.monotonic_ns() - began, freq)
    stolen = stolen_ns() - before
    c.stop()
    seen = by_pid(sql, store)[used["pid"]][1]
    assert is_charged(seen, used["cpu_ns"], allowed, stolen), (seen, used, allowed, stolen)


def densest(times, period):
    """Where in the period most of these are: how many of them in that tenth of it, and its middle."""
    bins = collections.Counter(int(at % period * 20 / period) for at in times)
    tenth = max(range(20), key=lambda i: bins[i] + bins[(i + 1) % 20])
    return bins[tenth] + bins[(tenth + 1) % 20], (tenth + 1) % 20 / 20


TRACING = "/sys/kernel/tracing"


@pytest.fixture
def trace_timers(scratch):
    """trace_timers(seconds) -> the kernel's trace of what its timers called meanwhile; others' traces are not touched."""
    mine = os.path.join(TRACING, "instances", os.path.basename(scratch))
    try:
        if not os.path.exists(os.path.join(TRACING, "events")):
            subprocess.run(["mount", "-t", "tracefs", "none", TRACING], check=False, stderr=subprocess.DEVNULL)
        os.mkdir(mine)
    except OSError as e:
        pytest.skip(f"missing: the kernel's tracing ({e.strerror})")

    def put(name, value):
        with open(os.path.join(mine, name), "w", encoding="ascii") as f:
            f.write(value)

    def trace(seconds):
        put("buffer_size_kb", "8192")
        put("trace", "")
        put("events/timer/hrtimer_expire_entry/enable", "1")
        time.sleep(seconds)
        put("events/timer/hrtimer_expire_entry/enable", "0")
        with open(os.path.join(mine, "trace"), encoding="ascii", errors="replace") as f:
            return f.read()
    yield trace
    os.rmdir(mine)


def phases_of_cpus(capture, freq, trace):
    """Where in the period each CPU is sampled, as the kernel's own trace of its timers says. What others sample here at other
    rates falls anywhere in it."""
    c = capture("--freq", freq)
    said = trace(2)
    c.stop()
    times = collections.defaultdict(list)
    for cpu, now in re.findall(r"\[(\d+)\].*function=perf_swevent_hrtimer.* now=(\d+)", said):
        times[int(cpu)].append(int(now))
    if not times:
        pytest.skip("missing: a CPU that is sampled by the kernel's clock (here cycles are counted)")
    phases = []
    for cpu in sorted(os.sched_getaffinity(0)):
        n, at = densest(times[cpu], 1e9 / freq)
        assert n > 1.5 * freq, (cpu, n, "no clock of this rate")
        phases.append(at)
    return sorted(phases)


@pytest.mark.long  # on a busy host all clocks may come late, three times
def test_the_cpus_are_sampled_at_moments_of_their_own(capture, work, trace_timers):
    """Clocks that start together stop all CPUs at the same moments for ever. On a busy host one may come late, not each time."""
    cpus = len(os.sched_getaffinity(0))
    if cpus < 2:
        pytest.skip("missing: a second CPU")
    load = work("burn", 30000, 2)
    arcs = []  # the least part of the period that holds them all
    while len(arcs) < 3 and not (arcs and arcs[-1] > 0.25):
        phases = phases_of_cpus(capture, 211, trace_timers)
        arcs.append(1 - max((b - a) % 1 or 1 for a, b in zip(phases, [*phases[1:], phases[0] + 1])))
    load.close()
    assert arcs[-1] > 0.25, arcs


@pytest.mark.long
def test_a_capture_of_one_process_has_no_other(capture, work, sql, store):
    mine, other = work("burn", 1500), work("burn", 1500)
    c = capture("--freq", 499, "--pid", mine.pid)
    told = mine.told()
    other.told()
    done = c.wait()  # it ends by itself: nothing can come any more
    assert set(by_pid(sql, store)) == {told["pid"]}
    assert done["samples"] > 100
    assert done["lost_total"] == 0


def test_a_capture_of_a_name_has_no_other(capture, work, sql, store, scratch):
    named = os.path.join(scratch, "a-name-of-mine")
    os.symlink(os.path.join(os.path.dirname(BIN), "tests", "workloads", "burn"), named)
    need("workload burn", named)
    c = capture("--freq", 499, "--comm", "a-name-of-mine")
    other = work("burn", 800)
    mine = subprocess.Popen([named, "800"], stdout=subprocess.DEVNULL)
    mine.wait()
    other.told()
    c.stop()
    assert set(by_pid(sql, store)) == {mine.pid}


def cgroup_roots():
    roots = []
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        for line in f:
            before, after = line.split(" - ")
            kind, _, options = after.split()[:3]
            point = before.split()[4]
            if kind == "cgroup2":
                roots.append(("v2", point))
            elif kind == "cgroup" and "memory" in options.split(","):
                roots.append(("memory", point))
            elif kind == "cgroup" and "pids" in options.split(","):
                roots.append(("pids", point))
    return roots


@pytest.mark.parametrize("hierarchy", ["v2", *(pytest.param(h, marks=pytest.mark.long) for h in ("memory", "pids"))])
def test_a_capture_of_a_cgroup_has_those_below_it_and_no_other(capture, work, sql, store, hierarchy):
    point = dict(cgroup_roots()).get(hierarchy)
    if not point:
        pytest.skip(f"missing: a mounted {hierarchy} hierarchy")
    name = f"sonde-test-{os.getpid()}"
    top, below = os.path.join(point, name), os.path.join(point, name, "below")
    os.makedirs(below)
    try:
        inside, outside = work("burn", 1200), work("burn", 1200)
        with open(os.path.join(below, "cgroup.procs"), "w", encoding="utf-8") as f:
            f.write(str(inside.pid))
        c = capture("--freq", 499, "--cgroup", f"/{name}")
        told = inside.told()
        outside.told()
        c.stop()
        assert set(by_pid(sql, store)) == {told["pid"]}
    finally:
        for path in (below, top):
            for _ in range(50):
                try:
                    os.rmdir(path)
                    break
                except OSError:
                    time.sleep(0.05)


def test_a_command_is_followed_with_its_children_from_its_first_to_its_last_moment(capture, work, sql, store):
    burn = os.path.join(os.path.dirname(BIN), "tests", "workloads", "burn")
    need("workload burn", burn)
    other = work("burn", 1000)
    c = capture("--freq", 1999, "--bucket", "10s", command=["sh", "-c", f"{burn} 400 & {burn} 400; wait; exit 3"])
    done = c.wait()
    other.told()
    assert c.rc == 0
    assert c.last("exit")["status"] == 3
    seen = by_pid(sql, store)
    assert other.pid not in seen
    busy = [ns for _, ns in seen.values() if ns > 100e6]
    assert len(busy) == 2
    assert sum(busy) == pytest.approx(800e6, rel=0.05)
    assert done["unfollowed"] == 0


@pytest.mark.long
def test_ctrl_c_stops_within_two_seconds_and_keeps_the_data(capture, work, sql, store):
    work("burn", 20000)
    c = capture()
    c.wait_event("first")
    before = time.monotonic()
    done = c.stop()
    assert time.monotonic() - before < 2
    assert done["samples"] == sum(n for n, _ in by_pid(sql, store).values()) > 0


def test_ctrl_c_before_any_data_is_exit_130(store, work):
    load = work("burn", 1)
    load.told()
    idle = subprocess.Popen(["sleep", "30"])
    try:
        child = subprocess.Popen([LOADER, "--store", store, "--pid", str(idle.pid)], stdin=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE)
        time.sleep(1.5)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
        assert child.returncode == 130
    finally:
        idle.kill()
        idle.wait()


def test_an_idle_target_is_exit_4(store):
    idle = subprocess.Popen(["sleep", "30"])
    try:
        assert run("--store", store, "--pid", idle.pid, "--duration", "300ms").returncode == 4
    finally:
        idle.kill()
        idle.wait()


@pytest.mark.long  # a busy host may take longer than a bucket is
def test_what_is_sampled_first_is_stored_with_its_names_long_before_its_bucket_ends(capture, work, sql, store):
    """Cold: its index is not even made when it comes. Warm: its rows are there, and its names are asked for then."""
    for _ in ("cold", "warm"):
        load = work("burn", 20000)
        if time.time() % 10 > 4:
            time.sleep(10 - time.time() % 10)
        ends = time.time() + 10 - time.time() % 10
        c = capture("--pid", load.pid, bucket="10s")
        found = []
        while not found and time.time() < ends - 1:
            found = sql(store, "SELECT 1 FROM cpu_samples c JOIN stacks s ON s.id = c.stack_id WHERE c.pid = ? AND "
                               "s.folded GLOB '_start;*;burn_middle;burn_leaf'", (load.pid,))
            time.sleep(0.05)
        assert found
        c.stop()
        load.close()


def test_the_parent_s_death_stops_the_capture_in_good_order(capture, work, sql, store):
    work("burn", 20000)
    c = capture()
    c.wait_event("first")
    os.dup2(os.open("/dev/null", os.O_RDONLY), c.read_fd)  # our end of the pipe is closed, as by a kill -9
    assert c.child.wait(5) == 0
    assert by_pid(sql, store)


def test_check_says_what_this_host_can_do_as_json(store):
    done = run("--check", "--json", "--store", store)
    told = json.loads(done.stdout)
    assert told["schema"] == "sonde.check/1" and told["family"] == "cpu"
    assert told["ok"] == (done.returncode == 0)
    items = {item["name"]: item for item in told["items"]}
    assert {"BTF", "privileges", "perf events", "kernel symbols", "stack depth", "sample rate", "memlock", "cgroups", "PID 1",
            "sonde-maps", "sonde-index", "store", "programs"} <= set(items)
    assert items["programs"]["state"] == "ok"
    assert items["BTF"]["state"] == "ok"
    assert all(item["state"] in ("ok", "warn", "fail", "off") for item in told["items"])
    assert not os.path.exists(store)  # asking makes nothing


@pytest.mark.parametrize("check", [False, True])
def test_without_capabilities_it_says_which_and_exits_5(store, check):
    need("setpriv")
    drop = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set", "-all", "--inh-caps", "-all"]
    done = run("--store", store, *(["--check"] if check else ["--duration", "1s"]), prefix=drop)
    assert done.returncode == 5
    text = done.stdout + done.stderr
    assert "CAP_BPF" in text and "CAP_PERFMON" in text and "fix:" in text
    assert "libbpf" not in text


def test_without_type_information_it_says_so_and_exits_3(store):
    need("unshare")
    script = 'mount -t tmpfs none /sys/kernel/btf && exec "$0" "$@"'
    done = run("--store", store, "--duration", "1s", prefix=["unshare", "-m", "sh", "-c", script])
    assert done.returncode == 3
    assert "BTF" in done.stderr and "fix:" in done.stderr


@pytest.mark.parametrize("args, word", [
    (["--pid", "4194304"], "4194304"),
    (["--cgroup", "/no/such"], "/no/such"),
    (["--container", "no-such-container"], "no-such-container"),
    (["--freq", "5000"], "5000"),
    (["--duration", "soon"], "soon"),
    (["--", "/no/such/program"], "/no/such/program"),
])
def test_what_does_not_exist_is_a_usage_error_that_names_it(store, args, word):
    done = run("--store", store, *args)
    assert done.returncode == 2
    assert word in done.stderr


def test_the_help_comes_without_root_and_lists_every_option(store):
    done = run("--help")
    assert done.returncode == 0
    for option in ("--duration", "--freq", "--pid", "--cgroup", "--container", "--comm", "--store", "--check"):
        assert option in done.stdout


@pytest.mark.long
def test_the_ledger_has_every_part_of_the_capture(capture, work, sql, store):
    load = work("burn", 1200, 2)
    c = capture("--freq", 999)
    load.told()
    c.stop()
    cost = {row["program"]: row for row in sql(store, "SELECT program, sum(cpu_ns) AS cpu_ns, sum(runs) AS runs, "
                                               "max(map_bytes) AS map_bytes FROM cost GROUP BY program")}
    assert {"sonde-cpu", "sonde-maps", "bpf:cpu"} <= set(cost)
    assert cost["bpf:cpu"]["runs"] >= 1000
    assert 200 < cost["bpf:cpu"]["cpu_ns"] / cost["bpf:cpu"]["runs"] < 100000
    assert 0 < cost["bpf:cpu"]["map_bytes"] < 32 << 20
    assert cost["sonde-cpu"]["cpu_ns"] > 0
