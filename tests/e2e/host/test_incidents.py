# SPDX-License-Identifier: Apache-2.0
"""What happened to containers (restarts, kills for memory, time held back by a quota), and what a bare command is about where
several families record always: on stores of known contents."""
import glob
import json
import os
import subprocess
import time

import pytest

from conftest import BUILD, need

AT = int(time.time()) // 10 * 10 - 3600
RANGE = ("--from", AT - 300, "--to", AT)


def put(store, lines):
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    subprocess.run([program, store], input="\n".join(map(json.dumps, lines)), text=True, check=True)


def run(family, since=AT - 300, until=AT, **more):
    return {"run": family, "from": since, "to": until, "bucket_s": 10, "period_ns": 52631578 if family == "cpu" else 0, **more}


def sampled(comm, pid, at, n=10, **more):
    return {"kind": "cpu", "at": at, "n": n, "pid": pid, "comm": comm, "stack": ["main", f"{comm}_work"], **more}


def instance(name, i, at, restarts=0, number=7, **more):
    """A process of the i-th instance of a container, alive and sampled at `at`."""
    return sampled("sh", 1000 * number + i, at, 1, container=name, container_id=f"{number:x}" * 64, started=f"s{i}", start=at, restarts=restarts,
                   **more)


def end(how, status, at, pid, comm, **more):
    return {"end": how, "status": status, "at": at, "pid": pid, "comm": comm, **more}


@pytest.fixture(scope="module")
def homelab(tmp_path_factory):
    """Two families that record always. A loop restarts 6 times and ends with 1, a hog is killed 4 times, one is throttled, one is
    made anew, one only runs."""
    store = str(tmp_path_factory.mktemp("incidents") / "store")
    lines = [run("cpu"), *(sampled("steady", 10, t, 100, container="web") for t in range(AT - 300, AT, 10))]
    for i in range(7):
        at = AT - 280 + 30 * i
        lines += [instance("loop", i, at, restarts=i),
                  end(1, 1, at + 1, 7000 + i, "sh", container="loop", container_id="7" * 64, started=f"s{i}", start=at, restarts=i)]
    for i in range(4):
        at = AT - 200 + 20 * i
        lines += [instance("hog", i, at, number=8),
                  end(3, 9, at + 5, 8000 + i, "tail", container="hog", container_id="8" * 64, started=f"s{i}", start=at)]
    lines += [instance("job", 1, AT - 100, number=9), instance("job", 2, AT - 50, number=10)]
    lines += [run("offcpu"), {"kind": "offcpu", "at": AT - 100, "n": 5, "value": 10**9, "pid": 10, "comm": "steady", "container": "web",
                              "stack": ["main", "wait"]}]
    lines += [{"wait": 0, "at": AT - 100, "n": 3, "total_ns": 10**9, "max_ns": 10**9, "pid": 10, "comm": "steady", "container": "web"},
              {"throttle": "web", "at": AT - 100, "periods": 100, "throttled": 60, "throttled_ns": 51 * 10**9}]
    put(store, lines)
    return store


def test_restarts_kills_and_throttling_are_columns(sonde, homelab):
    rows = {r["container"]: r for r in json.loads(sonde("containers", *RANGE, "--json", store=homelab, check=True).stdout)["rows"]}
    assert {n: (r["restarts"], r["oom"]) for n, r in rows.items()} == {"web": (0, 0), "loop": (6, 0), "hog": (3, 4), "job": (0, 0)}
    assert rows["web"]["throttled_ns"] == 51 * 10**9 and rows["loop"]["throttled_ns"] == 0
    text = sonde("containers", *RANGE, store=homelab, check=True).stdout
    head = text.splitlines()[0].split()
    assert {"THROTTLED", "RESTARTS", "OOM"} <= set(head)
    first = sonde("containers", *RANGE, "--sort", "oom", store=homelab, check=True).stdout.splitlines()[1]
    assert first.startswith("hog ")


def test_a_column_that_says_nothing_is_not_drawn(sonde, tmp_path):
    store = str(tmp_path / "store")
    put(store, [run("cpu"), sampled("a", 1, AT - 100, container="web")])
    head = sonde("containers", *RANGE, store=store, check=True).stdout.splitlines()[0].split()
    assert not {"THROTTLED", "RESTARTS", "OOM"} & set(head)
    (row,) = json.loads(sonde("containers", *RANGE, "--json", store=store, check=True).stdout)["rows"]
    assert row["restarts"] == 0 and row["throttled_ns"] is None  # nobody looked


def test_each_is_one_line_of_the_timeline_with_the_container_s_name(sonde, homelab):
    events = json.loads(sonde("timeline", *RANGE, "--json", store=homelab, check=True).stdout)["events"]
    said = {e["text"]: e for e in events}
    assert said["hog: out of memory 4 times (tail)"]["n"] == 4 and said["hog: out of memory 4 times (tail)"]["who"] == "hog"
    loop = said["loop: restarted 6 times (exit 1)"]
    assert (loop["from_ns"] // 10**9, loop["to_ns"] // 10**9, loop["n"]) == (AT - 250, AT - 100, 6)
    assert "job: created again" in said
    assert "loop: restarted 6 times (exit 1)" in sonde("timeline", *RANGE, store=homelab, check=True).stdout


def test_filters_hold_for_what_happened(sonde, homelab):
    events = json.loads(sonde("timeline", "loop", *RANGE, "--json", store=homelab, check=True).stdout)["events"]
    texts = [e["text"] for e in events]
    assert any("loop: restarted" in t for t in texts) and not any("hog" in t for t in texts)


def test_explain_says_what_happened_and_whether_it_did_before(sonde, homelab):
    told = json.loads(sonde("explain", "--from", AT - 150, "--to", AT, "--before", "150s", "--json", store=homelab, check=True).stdout)
    by = {x["container"]: x for x in told["incidents"]}
    assert by["hog"]["oom"] == 1 and by["hog"]["oom_before"] == 3 and by["loop"]["restarts"] == 2
    text = sonde("explain", "--from", AT - 150, "--to", AT, "--before", "150s", store=homelab, check=True).stdout
    assert "hog: out of memory (tail)" in text and "also before" in text


def test_a_bare_command_is_about_all_that_records_always(sonde, homelab):
    """The newest run is offcpu's alone: it is no recording of its own."""
    for verb in ("containers", "ps", "timeline", "stacks", "waits", "explain"):
        done = sonde(verb, store=homelab)
        assert done.returncode == 0, f"{verb}: {done.stderr}"
    rows = json.loads(sonde("containers", "--json", store=homelab, check=True).stdout)["rows"]
    assert {"web", "loop"} <= {r["container"] for r in rows}


def test_a_recording_that_was_made_later_is_what_a_bare_command_is_about(sonde, tmp_path):
    store = str(tmp_path / "store")
    put(store, [run("cpu", AT - 300, AT - 60), sampled("always", 1, AT - 100),
                {**run("cpu", AT - 50, AT - 40), "bucket_s": 1, "recording": 5}, sampled("made", 2, AT - 45)])
    (row,) = json.loads(sonde("ps", "--json", store=store, check=True).stdout)["rows"]
    assert row["comm"] == "made"


def test_without_cpu_it_is_said_what_there_is(sonde, tmp_path):
    store = str(tmp_path / "store")
    put(store, [run("offcpu"), {"kind": "offcpu", "at": AT - 100, "n": 5, "value": 10**9, "pid": 10, "comm": "a", "stack": ["main"]}])
    done = sonde("containers", store=store)
    assert done.returncode == 4 and "cpu was not recorded then; there is offcpu" in done.stderr and "sonde waits" in done.stderr
    assert "nothing was recorded" not in done.stderr


def test_unequal_coverage_is_not_compared(sonde, tmp_path):
    """Four seconds beside ten minutes: no statement, and the seconds of both."""
    store = str(tmp_path / "store")
    put(store, [{**run("cpu", AT - 600, AT), "bucket_s": 1}, *(sampled("a", 1, t) for t in range(AT - 600, AT)),
                {**run("cpu", AT + 10, AT + 14), "bucket_s": 1}, *(sampled("a", 1, t, 20) for t in range(AT + 10, AT + 14))])
    done = sonde("explain", "--from", AT + 5, "--to", AT + 60, store=store)
    assert done.returncode == 4 and "too little was recorded: cpu (" in done.stderr and " s in the window)" in done.stderr
    assert "%" not in done.stdout


def test_a_bucket_that_the_range_cuts_is_no_gap(sonde, tmp_path):
    store = str(tmp_path / "store")
    put(store, [run("cpu"), *(sampled("a", 1, t) for t in range(AT - 300, AT, 10))])
    events = json.loads(sonde("timeline", "--from", AT - 57, "--to", AT - 13, "--json", store=store, check=True).stdout)["events"]
    assert not [e for e in events if e["event"] == "gap"]


def test_exits_of_a_loop_are_added_up_over_segments(sonde, tmp_path):
    store = str(tmp_path / "store")
    for first in (0, 3, 6):
        lines = [run("cpu", AT - 300 + 30 * first, AT - 210 + 30 * first)]
        for i in range(first, first + 3):
            at = AT - 290 + 30 * i
            lines += [instance("loop", i, at, restarts=i),
                      end(1, 3, at + 1, 7000 + i, "sh", container="loop", container_id="7" * 64, started=f"s{i}", start=at, restarts=i)]
        put(str(tmp_path / f"part{first}"), lines)
    os.makedirs(store)
    for first in (0, 3, 6):
        (db,) = (x for x in os.listdir(tmp_path / f"part{first}") if x.endswith(".db"))
        os.rename(tmp_path / f"part{first}" / db, f"{store}/20261121T0000{first:02}Z-0001.db")
    events = json.loads(sonde("timeline", *RANGE, "--json", store=store, check=True).stdout)["events"]
    assert "loop: restarted 8 times (exit 3)" in [e["text"] for e in events]


def test_two_captures_at_once_count_a_throttled_container_once(sonde, tmp_path):
    """By the longer of both, in containers as in waits; and a filter of commands does not take it away."""
    store = str(tmp_path / "store")
    held = {"throttle": "web", "at": AT - 100, "periods": 100, "throttled": 60, "throttled_ns": 6 * 10**9}
    wait = {"wait": 0, "at": AT - 100, "n": 3, "total_ns": 10**9, "max_ns": 10**9, "pid": 10, "comm": "steady", "container": "web"}
    put(store, [run("cpu"), *(sampled("steady", 10, t, container="web") for t in range(AT - 300, AT, 10)),
                run("offcpu"), held, wait, run("offcpu", AT - 120, AT - 60), held])
    for words in ((), ("--comm", "steady")):
        (row,) = json.loads(sonde("containers", *RANGE, *words, "--json", store=store, check=True).stdout)["rows"]
        assert row["throttled_ns"] == 6 * 10**9, words
    assert "web lost 6 s to its CPU quota" in sonde("waits", *RANGE, store=store, check=True).stdout


def test_instances_follow_one_another_as_their_runtime_says(sonde, tmp_path):
    """On a busy host a process is named when its container has been started anew already: it is told of as the later instance's."""
    store = str(tmp_path / "store")
    lines = [run("cpu"), *(sampled("steady", 10, t, 100, container="web") for t in range(AT - 300, AT, 10))]
    for i in range(5):
        at = AT - 280 + 50 * i
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + ".033262979Z"
        lines += [{**instance("loop", i, at + 20, restarts=i), "started": stamp, "start": first} for first in (at, AT - 279 + 7 * (5 - i))]
    put(store, lines)
    rows = json.loads(sonde("containers", "--json", *RANGE, store=store, check=True).stdout)["rows"]
    assert {r["container"]: r["restarts"] for r in rows}["loop"] == 4


def test_a_kill_names_each_other_container_once_whatever_segment_it_is_read_in(sonde, tmp_path):
    store = str(tmp_path / "store")
    gone = {"pid": 4711, "comm": "tail", "container": "web", "start": AT - 600}

    def group(name, at, mib):
        return {"fact": "cgroup_row", "at": at, "cgroup": f"/docker/{name}", "container": name, "working": mib << 20}
    put(store, [run("host", AT - 300, AT - 60), group("db", AT - 70, 900), group("cache", AT - 70, 100)])
    put(f"{store}2", [run("host", AT - 60, AT), group("db", AT - 50, 700), group("cache", AT - 50, 150), {**gone, "end": 3, "status": 9, "at": AT - 20}])
    (first,), (second,) = (glob.glob(f"{s}/*.db") for s in (store, f"{store}2"))
    os.rename(second, first.replace("-0001.db", "-0002.db"))
    (story,) = json.loads(sonde("oom", *RANGE, "--json", store=store, check=True).stdout)["rows"]
    assert [(c["name"], c["bytes"] >> 20) for c in story["containers"]] == [("db", 700), ("cache", 150)]
