# SPDX-License-Identifier: Apache-2.0
"""What is frequent hides no other answer, and what is gone holds nothing: made stores of a host in which one thing happens again and again (decision 0279)."""
import json

import pytest
from livedin import put

AT, MIB = 1_795_140_000, 1 << 20
RUN = {"run": "host", "from": AT, "to": AT + 1200, "bucket_s": 10}
RANGE = ["--from", str(AT), "--to", str(AT + 1200)]


def event(at, kind, subject, name, detail="", **who):
    return {"fact": "event_row", "at": at, **who, "columns": {"kind": kind, "subject": subject, "name": name, "detail": detail, "which": name, "n": 1, "at_us": at * 1000000}}


def rows(sonde, store, *words):
    return json.loads(sonde(*words, *RANGE, "--json", store=store, check=True).stdout)["rows"]


@pytest.fixture
def store(tmp_path):
    return str(tmp_path / "store")


def box(at, name, mib, **more):
    return {"fact": "cgroup_row", "at": at, "cgroup": f"/docker/{name}", "container": name, "container_id": name, "user_us": 1000, "system_us": 0, "working": mib * MIB, "anon": mib * MIB, **more}


def test_a_leak_that_was_killed_once_is_told_beside_one_that_is_killed_every_minute(sonde, store):
    def killed(at, pid, comm, name):
        return {"fact": "oom_row", "at": at, "cgroup": f"/docker/{name}", "victim_cgroup": f"/docker/{name}", "asked_by": comm, "mem_limit": 64 * MIB, "mem": 64 * MIB, "anon": 60 * MIB,
                "file": 0, "shmem": 0, "at_us": at * 1000000, "pid": pid, "comm": comm, "container": name, "container_id": name, "start": at - 30}
    put(store, [RUN, *(killed(at, 100 + at - AT, "tail", "hog") for at in range(AT + 300, AT + 1200, 60)), killed(AT + 100, 7, "leaky", "feeds")])
    assert [r["container"] for r in rows(sonde, store, "oom")] == ["feeds", "hog", "hog"]
    done = sonde("oom", *RANGE, store=store, check=True)
    assert "feeds: leaky (7) was killed" in done.stdout and "13 more kills: -n 16 shows them" in done.stderr
    assert len(rows(sonde, store, "oom", "-n", "0")) == 16


def test_a_loop_that_began_long_ago_is_told_beside_many_processes_that_end(sonde, store):
    put(store, [RUN, *(e for at in range(AT + 10, AT + 1100, 60) for e in (event(at, "stopped", "container", "loop", "exit 1"), event(at + 2, "restarted", "container", "loop"))),
                event(AT + 50, "full", "file system", "/srv"),
                *({"end": 2, "status": 11, "at": AT + 200 + 15 * i, "pid": 1000 + i, "comm": f"test{i}", "start": AT + 100} for i in range(60))])
    told = rows(sonde, store, "events")
    assert len(told) == 40 and [r["last_ns"] for r in told] == sorted(r["last_ns"] for r in told)
    assert {(r["kind"], r["name"]) for r in told if r["subject"] != "process"} == {("restart loop", "loop"), ("full", "/srv")}
    assert {r["name"] for r in told if r["subject"] == "process"} == {f"test{i}" for i in range(22, 60)}
    assert "22 more: -n 62 shows them" in sonde("events", *RANGE, store=store, check=True).stderr


def test_a_container_that_is_gone_holds_no_memory(sonde, store):
    put(store, [RUN, *(box(at, "web", 20) for at in range(AT, AT + 1200, 10)), *(box(at, "feeds", 370) for at in range(AT, AT + 300, 10))])
    held = {r["container"]: r["mem_held_bytes"] for r in rows(sonde, store, "containers", "--sort", "mem")}
    assert held == {"web": 20 * MIB, "feeds": None}
    then = json.loads(sonde("containers", "--from", str(AT), "--to", str(AT + 200), "--json", store=store, check=True).stdout)["rows"]
    assert {r["container"]: r["mem_held_bytes"] for r in then} == {"web": 20 * MIB, "feeds": 370 * MIB}


def test_who_waited_for_those_that_wrote_has_written_nothing(sonde, store):
    """As the kernel counts: at the end of each child all that it wrote is its parent's, too."""
    def wrote(at, pid, ppid, comm, mib, **more):
        return {"fact": "process_row", "at": at, "pid": pid, "ppid": ppid, "comm": comm, "start": AT + pid, "rss": MIB, "write_bytes": mib * MIB, "read_bytes": 0, **more}
    put(store, [RUN, wrote(AT + 100, 11, 10, "dd", 500), wrote(AT + 110, 10, 1, "sh", 520), {"end": 1, "status": 0, "at": AT + 105, "pid": 11, "ppid": 10, "comm": "dd", "start": AT + 11},
                wrote(AT + 100, 20, 1, "writer", 70, container="backup"), box(AT + 100, "backup", 5)])
    told = {(r["kind"], r["name"]): (r["bytes"] // MIB, r["size"]) for r in rows(sonde, store, "sql", "@fills")}
    assert told == {("process", "dd (11)"): (500, "500 MiB"), ("process", "sh (10)"): (20, "20 MiB"), ("process", "writer (20)"): (70, "70 MiB"), ("container", "backup"): (70, "70 MiB")}


def test_a_key_of_which_no_container_has_anything_says_so(sonde, store):
    put(store, [RUN, {"fact": "process_row", "at": AT + 10, "pid": 7, "comm": "dd", "start": AT, "rss": MIB, "write_bytes": MIB, "read_bytes": 0, "user_us": 1000, "system_us": 0},
                {**RUN, "run": "cpu", "period_ns": 10101010}, {"kind": "cpu", "at": AT + 10, "n": 5, "pid": 7, "comm": "dd", "start": AT, "stack": ["main"]}])
    assert "note: no container read or wrote: sonde ps --sort io has the processes" in sonde("containers", "--sort", "io", *RANGE, store=store, check=True).stderr
    assert "note: no container was restarted" in sonde("containers", "--sort", "restarts", *RANGE, store=store, check=True).stderr


def test_a_kind_that_was_recorded_and_saw_nothing_is_not_said_to_be_missing(sonde, store):
    put(store, [{**RUN, "run": "offcpu"}, {**RUN, "run": "cpu", "period_ns": 10101010}, {"kind": "cpu", "at": AT + 10, "n": 5, "pid": 7, "comm": "dd", "stack": ["main"]}])
    done = sonde("stacks", "--type", "offcpu", *RANGE, store=store)
    assert done.returncode == 4 and "it was recorded, and none was seen" in done.stderr, done.stderr
    done = sonde("stacks", "--type", "inuse", *RANGE, store=store)
    assert done.returncode == 4 and "it was not recorded then" in done.stderr, done.stderr
    for begun in (["--rec", "1"], RANGE):
        done = sonde("heap", "--pages", *begun, store=store)
        assert done.returncode == 4 and "not recorded then" in done.stderr and "--pages" in done.stderr, done.stderr


def test_a_recording_says_what_it_recorded_and_did_not_see(sonde, store):
    put(store, [{**RUN, "run": "mem", "recording": 9}, {**RUN, "run": "cpu", "period_ns": 10101010, "recording": 9},
                {"kind": "cpu", "at": AT + 10, "n": 5, "pid": 7, "comm": "dd", "stack": ["main"]}])
    done = sonde("heap", "--rec", "1", store=store)
    assert done.returncode == 4 and "it was recorded, and none was seen" in done.stderr, done.stderr


def test_lines_that_a_container_repeats_are_one_line(sonde, store):
    put(store, [RUN, event(AT + 100, "stopped", "container", "web", "exit 1"),
                *({"fact": "event_log_row", "at": AT + 100, "columns": {"which": "web", "at_us": (AT + 100) * 1000000, "nth": i, "line": line, "cut": 0}}
                  for i, line in enumerate(["begin", *["cannot read config"] * 8], 1))])
    assert "    | begin\n    | cannot read config  (8 times)\n" in sonde("events", *RANGE, store=store, check=True).stdout
