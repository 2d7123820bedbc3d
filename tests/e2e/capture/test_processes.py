# SPDX-License-Identifier: Apache-2.0
"""Processes that come, go and change: their samples stand under their own name, and never under another file's."""
import os
import secrets
import signal
import time

import pytest

from conftest import WORKLOADS, is_charged, need_root, scale, sql_all, stolen_ns
from containers import cgroup_roots, cgroups, fake_container


@pytest.fixture(autouse=True)
def as_root():
    need_root()


def one(rows, key="n"):
    return sum(r[key] or 0 for r in rows)


@pytest.mark.long
def test_short_processes_are_sampled_under_their_own_command_and_named(capture, work, scratch, sql, store):
    count, ms, seconds = scale((80, 100, 8), (200, 200, 30))
    c, before = capture("--freq", 499), stolen_ns()
    crowd = work("crowd", os.path.join(WORKLOADS, "burn"), scratch, count, ms, seconds)
    jobs = crowd.told(timeout=300)["jobs"]  # they wait for their CPU where others want it too
    stolen = stolen_ns() - before
    c.stop()
    seen = own = cpu_ns = 0
    for job in jobs:
        for row in sql(store, "SELECT comm, function, sum(samples) AS n, sum(cpu_ns) AS ns FROM cpu_samples WHERE pid = ? "
                              "GROUP BY 1, 2", (job["pid"],)):
            seen += row["n"]
            cpu_ns += row["ns"]
            own += row["n"] if row["comm"] == job["name"] and "+0x" not in row["function"] else 0
    assert is_charged(cpu_ns, sum(j["cpu_ns"] for j in jobs), 0.05, stolen), (cpu_ns, stolen, jobs)
    assert own >= 0.98 * seen
    named = sum(1 for job in jobs if one(sql(store, "SELECT count(*) AS n FROM processes WHERE pid = ? AND comm = ?",
                                             (job["pid"], job["name"]))))
    assert named >= 0.98 * len(jobs)


def test_a_process_of_50_ms_has_its_command_line_container_and_named_frames(capture, work, sql, store):
    with fake_container() as (container_id, inside):
        c = capture("--freq", 997)
        told = work("burn", 50, 1, "--note=was-here", prefix=inside).told()
        time.sleep(0.3)
        c.stop()
    process = sql(store, "SELECT * FROM processes WHERE pid = ? AND comm = 'burn'", (told["pid"],))
    assert process, sql(store, "SELECT pid, comm, args FROM processes")
    assert process[0]["args"].endswith("burn 50 1 --note=was-here")
    assert process[0]["container_id"] == container_id
    stacks = sql(store, "SELECT s.folded, sum(c.samples) AS n FROM cpu_samples c JOIN stacks s ON s.id = c.stack_id "
                        "WHERE c.pid = ? AND c.comm = 'burn' GROUP BY 1", (told["pid"],))
    good = sum(r["n"] for r in stacks if "burn_thread;burn_middle;burn_leaf" in r["folded"])
    assert one(stacks) >= 30 and good >= 0.9 * one(stacks)


def wrong_and_unnamed(store, pids, red, blue):
    """Samples whose stack has a frame of the other colour than their thread's name says; with an unnamed leaf; all."""
    marks = ",".join("?" * len(pids))
    rows = sql_all(store, f"""SELECT c.thread, c.function, s.folded, sum(c.samples) AS n, c.pid, min(c.ts) AS ts
        FROM cpu_samples c JOIN stacks s ON s.id = c.stack_id
        WHERE c.pid IN ({marks}) AND c.thread IN ('{red}', '{blue}') GROUP BY 1, 2, 3, c.pid, c.ts""", pids)
    other = {red: "blue_", blue: "red_"}
    wrong = [r for r in rows if any(f.startswith(other[r["thread"]]) for f in r["folded"].split(";"))]
    unnamed = sum(r["n"] for r in rows if "+0x" in r["function"])
    return wrong, unnamed, one(rows)


@pytest.mark.long
def test_flipping_between_two_files_by_exec_never_mixes_their_names(capture, work, store):
    seconds = scale(6, 60)
    red, blue = (os.path.join(WORKLOADS, n) for n in ("flip-red", "flip-blue"))
    c = capture("--freq", 997)
    until = int((time.clock_gettime(time.CLOCK_MONOTONIC) + seconds) * 1000)
    pair = [work("flip-red", blue, 50, until, argv0=red), work("flip-blue", red, 50, until, argv0=blue)]
    told = [w.told() for w in pair]
    c.stop()
    assert all(t["execs"] >= seconds * 8 for t in told)  # 20 a second where no one else is busy
    wrong, unnamed, all_ = wrong_and_unnamed(store, [t["pid"] for t in told], "flip-red", "flip-blue")
    assert all_ > 0.9 * 997 * sum(t["cpu_ns"] for t in told) / 1e9
    assert not wrong
    assert unnamed <= 0.02 * all_


def child_named(pid, name):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        for child in map(int, f.read().split()):
            with open(f"/proc/{child}/comm", encoding="utf-8") as comm:
                if comm.read().strip() == name:
                    return child
    raise AssertionError(f"{pid} has no child {name}")


@pytest.mark.long
def test_where_records_are_lost_the_names_of_two_files_are_not_mixed_either(capture, work, store):
    """sonde-maps is stopped again and again while crowds of programs start, so that its buffers overflow; what it then reads
    of /proc may be the next program's already."""
    seconds = scale(12, 60)
    red, blue = (os.path.join(WORKLOADS, n) for n in ("flip-red", "flip-blue"))
    c = capture("--freq", 997)
    maps = child_named(c.pid, "sonde-maps")
    until = int((time.clock_gettime(time.CLOCK_MONOTONIC) + seconds) * 1000)
    pair = [work("flip-red", blue, 20, until, argv0=red), work("flip-blue", red, 20, until, argv0=blue)]
    while time.clock_gettime(time.CLOCK_MONOTONIC) * 1000 < until:
        os.kill(maps, signal.SIGSTOP)
        work("storm", 1500, 0, "exec").told()
        os.kill(maps, signal.SIGCONT)
        time.sleep(0.5)
    told = [w.told() for w in pair]
    c.stop(60)
    assert "side-band records were lost" in c.said()
    wrong, _, all_ = wrong_and_unnamed(store, [t["pid"] for t in told], "flip-red", "flip-blue")
    assert all_ > 0
    assert not wrong


@pytest.mark.long
@pytest.mark.parametrize("folder", [".", "twins"])
def test_flipping_between_two_libraries_by_dlopen_never_mixes_their_names(capture, work, store, folder):
    """twins: both libraries carry the same build-id, and still keep their own names."""
    seconds = scale(5, 60)
    red, blue = (os.path.join(WORKLOADS, folder, f"lib{n}.so") for n in ("red", "blue"))
    c = capture("--freq", 997)
    pair = [work("flip-dl", red, blue, 50, seconds) for _ in range(2)]
    told = [w.told() for w in pair]
    done = c.stop()
    for t in told:
        assert t["turns"] > seconds * 8 and t["same"] >= 0.8 * t["turns"]
    wrong, unnamed, all_ = wrong_and_unnamed(store, [t["pid"] for t in told], "red", "blue")
    assert all_ > 0.9 * 997 * sum(t["cpu_ns"] for t in told) / 1e9
    assert not wrong, f"{wrong}; {done}"
    assert unnamed <= 0.02 * all_


def shown(name):
    """As the store keeps it: valid UTF-8, control bytes spelled out."""
    text = name.decode("utf-8", "replace")
    return "".join(c if ord(c) >= 32 else f"\\x{ord(c):02x}" for c in text)


def test_hostile_thread_names_are_stored_as_text_and_leave_as_text(capture, work, sonde, sql, store, scratch):
    c = capture("--freq", 499)
    told = work("namer", 150).told()
    c.stop()
    threads = {r["thread"] for r in sql(store, "SELECT DISTINCT thread FROM cpu_samples WHERE pid = ?", (told["pid"],))}
    for name in told["names"]:
        assert shown(bytes(name[:15])) in threads
    longest = max(len(r["function"]) for r in sql(store, "SELECT DISTINCT function FROM cpu_samples WHERE pid = ?",
                                                   (told["pid"],)))
    assert longest >= 4096
    for name in ("x.html", "x.folded", "x.json", "x.pb.gz"):
        path = os.path.join(scratch, name)
        group = [] if name.endswith(".gz") else ["--group", "thread"]
        sonde("flame", "--rec", "last", *group, "-o", path, store=store, check=True)
        with open(path, "rb") as f:
            data = f.read()
        assert data
        if name == "x.html":
            assert b"</script><b>" not in data
        elif not name.endswith(".gz"):
            data.decode("utf-8")
            assert b"\033" not in data


def test_a_container_that_version_1_alone_knows_is_no_part_of_the_unit_that_holds_it_on_version_2(capture, work, sql, store):
    """A hybrid host: the runtime's groups are on v1, and on v2 the process is in its runtime's unit."""
    container_id = secrets.token_hex(32)
    roots = {os.path.basename(root): root for root in cgroup_roots()}
    if not {"memory", "unified"} <= set(roots):
        pytest.skip("missing: hierarchies of both versions")
    unit = f"system.slice/sonde-test-{os.getpid()}.service"
    with cgroups({roots["memory"]: f"docker/{container_id}", roots["unified"]: unit}) as (made, inside):
        assert len(made) == 2
        c = capture("--freq", 499)
        told = work("burn", 300, 1, prefix=inside).told()
        c.stop()
    rows = sql(store, "SELECT container_id, unit FROM processes WHERE pid = ? AND comm = 'burn'", (told["pid"],))
    assert rows and {(r["container_id"], r["unit"]) for r in rows} == {(container_id, "")}, rows
