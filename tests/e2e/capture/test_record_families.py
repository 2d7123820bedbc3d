# SPDX-License-Identifier: Apache-2.0
"""`sonde record --families`: several loaders at once, one recording, one progress, one end.

The loaders are stand-ins that speak the progress protocol (loaders/lib/bpf/run/progress.h): scripts beside a copy of `sonde`,
told by the environment what to do. What they store is put there by tests/workloads/putstore.c. The real loaders have tests
of their own.
"""
import glob
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess

import pytest
from conftest import BIN, BUILD, families, need

T0 = 1800000000
ORDER = ("cpu", "offcpu", "mem", "goheap", "host", "disk", "gpu", "scrape", "net", "l7", "probe", "logs", "java")  # in which families are listed
STAND_IN = r"""#!/usr/bin/python3
import json, os, select, signal, subprocess, sys, time
name = os.path.basename(sys.argv[0])[len("sonde-"):]
plan = json.loads(os.environ.get("PLAN_" + name.upper(), "{}"))
args = sys.argv[1:]
if "--check" in args:
    print(json.dumps({"ok": True, "items": [{"name": "programs", "state": "ok", "text": "stand-in", "fix": None}]}))
    sys.exit(0)
value = lambda option: args[args.index(option) + 1] if option in args else None
fd, store = int(value("--progress-fd")), value("--store")
tell = lambda **ev: os.write(fd, (json.dumps(ev) + "\n").encode())
with open(os.environ["LOG"], "a") as log:
    log.write(json.dumps({"name": name, "args": args, "pid": os.getpid()}) + "\n")
got = []
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
if plan.get("error"):
    tell(event="error", what=plan["error"], fix="run it with sudo: sudo sonde record ...", exit=5)
    sys.exit(5)
time.sleep(plan.get("late", 0))
tell(event="ready", run=1, segment="", clock="stand-in", hz=99 if name == "cpu" else 0)
if plan.get("die"):
    os.kill(os.getpid(), signal.SIGKILL)
n = plan.get("n", 10)
tell(event="progress", elapsed_s=0.5, left_s=None, samples=n, lost=1, self_cores=0.001, store_bytes=4096)
ready = time.monotonic()
took = signal.sigtimedwait({signal.SIGINT, signal.SIGTERM}, 0.2 if value("--duration") else 60)
with open(os.environ["LOG"], "a") as log:
    log.write(json.dumps({"name": name, "args": args, "pid": os.getpid(), "ended": bool(took), "s": time.monotonic() - ready}) + "\n")
lines = plan.get("lines", [])
head = dict({"run": name, "from": 1800000000, "to": 1800000010, "recording": int(value("--recording") or 0)}, **plan.get("run", {}))
subprocess.run([os.environ["PUTSTORE"], store], input="\n".join(map(json.dumps, [head] + lines)), text=True, check=True)
db = sorted(f for f in os.listdir(store) if f.endswith(".db"))[-1]
import sqlite3
run = sqlite3.connect(os.path.join(store, db)).execute("SELECT max(id) FROM run WHERE family = ?", (name,)).fetchone()[0]
tell(**{"event": "done", "run": run, "segment": os.path.join(store, db), "samples": n, "seen": n + 1, "lost": {"ring": 1},
        "lost_total": 1, "processes": plan.get("processes", 2), "frames": 10, "frames_named": 9, "user_samples": 4,
        "user_complete": 4, "from": 1800000000, "to": 1800000010, "took_s": 10, "self_cores": 0.01, "edges_cpu_s": 0.1, "first_s": 0.1})
sys.exit(0 if n else 4)
"""
KEEPS = """#!/usr/bin/python3
import os, sys
if "--check" in sys.argv:
    print('{"ok": true, "items": []}')
    sys.exit(0)
open(os.environ["LOG"] + ".kept", "a").write(" ".join(sys.argv[1:]) + "\\n")
"""
CPU = {"n": 990, "run": {"period_ns": 10101010},
       "lines": [{"kind": "cpu", "at": T0 + i, "n": 99, "stack": ["main", "spin"]} for i in range(10)]}
WAITS = {"n": 6, "lines": [{"kind": "offcpu", "at": T0 + 1, "n": 6, "value": 3_000_000_000, "stack": ["main", "wait"]}]}
HEAP = {"n": 2, "processes": 3, "lines": [{"kind": "inuse", "at": T0 + 1, "n": 4, "value": 4096, "stack": ["main", "make"]}]}


@pytest.fixture
def host(scratch, store):
    """A copy of sonde with stand-ins beside it: host(ARGS, plans) -> (CompletedProcess, what was started)."""
    putstore = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", putstore)
    folder = os.path.join(scratch, "bin")
    os.mkdir(folder)
    shutil.copy(os.path.join(BIN, "sonde"), folder)
    with open(os.path.join(folder, "sonde-pstack"), "w", encoding="utf-8") as f:
        f.write(KEEPS)
    os.chmod(os.path.join(folder, "sonde-pstack"), 0o755)
    for name in families():
        path = os.path.join(folder, f"sonde-{name}")
        with open(path, "w", encoding="utf-8") as f:
            f.write(STAND_IN)
        os.chmod(path, 0o755)
    log = os.path.join(scratch, "log")
    open(log, "w").close()

    def env(**plans):
        return dict(os.environ, LOG=log, PUTSTORE=putstore, SONDE_STORE=store,
                    **{f"PLAN_{k.upper()}": json.dumps(v) for k, v in plans.items()})

    def call(*args, **plans):
        done = subprocess.run([os.path.join(folder, "sonde"), *args], capture_output=True, text=True, env=env(**plans),
                              timeout=60, stdin=subprocess.DEVNULL)
        return done, [line for line in map(json.loads, open(log)) if "ended" not in line or "late" in str(plans)]
    call.folder, call.env, call.log, call.store = folder, env, log, store
    return call


def test_several_families_are_one_recording(host):
    done, started = host("record", "--families", "cpu,offcpu,goheap", "-F", "99", "-d", "1s", cpu=CPU, offcpu=WAITS, goheap=HEAP)
    assert done.returncode == 0, done.stderr
    assert {s["name"] for s in started} == {"cpu", "offcpu", "goheap"}
    assert all("--freq" in s["args"] if s["name"] == "cpu" else "--freq" not in s["args"] for s in started)
    tokens = {s["args"][s["args"].index("--recording") + 1] for s in started}
    assert len(tokens) == 1 and int(tokens.pop()) > 0
    assert re.search(r"^recording cpu at 99 Hz \(stand-in\) → ", done.stderr, re.M)
    assert re.search(r"^recording offcpu \(stand-in\) → ", done.stderr, re.M)
    assert re.search(r"^rec 1 done: cpu 990 samples, offcpu 6 events, goheap 2 events of 3 processes in 10 s; 3 lost; 90\.0 % "
                     r"of frames named, 100\.0 % of user stacks complete; own CPU 3\.0 % of one core, and 300 ms to start and end$", done.stderr, re.M)
    assert re.search(r"^next:  \S*sonde flame ", done.stderr, re.M) and "hottest  app" in done.stderr
    listed = json.loads(host("status", "--json")[0].stdout)["rows"]
    assert [(r["rec"], r["samples"], r["events"]) for r in listed] == [(1, 990, 7)]
    assert set(listed[0]["family"].split(",")) == {"cpu", "offcpu", "goheap"}
    text = host("status")[0].stdout
    assert "997" in text and "--recording" not in text and "--progress-fd" not in text


def test_status_tells_of_the_whole_not_of_the_family_that_was_noted_last(host):
    """The rate is that of the family that has one; one family that was killed is not hidden by another that ended."""
    host("record", "--families", "offcpu,cpu", "-d", "1s", cpu=CPU, offcpu=WAITS)
    later = {"n": 6, "run": {"from": T0 + 20, "to": T0 + 30}, "lines": [{**WAITS["lines"][0], "at": T0 + 21}]}
    host("record", "--families", "offcpu", "-d", "1s", offcpu=later)
    listed = json.loads(host("status", "--json")[0].stdout)["rows"]
    assert [(r["rec"], r["state"], r["period_ns"]) for r in listed] == [(2, "ended", 0), (1, "ended", 10101010)]
    text = [line.split() for line in host("status")[0].stdout.splitlines()]
    assert [line[line.index("ended") + 1] for line in text if "ended" in line] == ["-", "99"]
    for family in ("cpu", "offcpu"):
        db = sqlite3.connect(glob.glob(os.path.join(host.store, "*.db"))[0], isolation_level=None)
        db.execute("UPDATE run SET state = iif(family = ?, 2, 1)", (family,))
        db.close()
        listed = json.loads(host("status", "--json")[0].stdout)["rows"]
        assert [r["state"] for r in listed if r["rec"] == 1] == ["killed"], family


def test_all_cover_the_time_that_was_asked_for(host):
    done, log = host("record", "--families", "cpu,offcpu,goheap", "-d", "1s", cpu=CPU, offcpu={**WAITS, "late": 1.5},
                     goheap={"error": "not here"})
    ended = {s["name"]: s["s"] for s in log if s.get("ended")}
    assert set(ended) == {"cpu", "offcpu"} and ended["offcpu"] >= 0.99 and ended["cpu"] >= ended["offcpu"] + 1
    assert done.returncode == 5 and "rec 1 done" in done.stderr


def test_the_json_has_a_row_for_each_family(host):
    done, _ = host("record", "--families", "cpu,offcpu", "-d", "1s", "--json", "-q", cpu=CPU, offcpu=WAITS)
    out = json.loads(done.stdout)
    assert done.returncode == 0 and done.stderr == ""
    assert [(r["family"], r["rec"], r["samples"]) for r in out["rows"]] == [("cpu", 1, 990), ("offcpu", 1, 6)]


def test_one_family_has_no_number_of_its_own(host):
    done, started = host("record", "--families", "goheap", "-d", "1s", goheap=HEAP)
    assert done.returncode == 0 and [s["name"] for s in started] == ["goheap"] and "--recording" not in started[0]["args"]
    assert re.search(r"^rec 1 done: 2 [a-z]+ of 3 processes", done.stderr, re.M)
    assert [s["name"] for s in host("record", "-d", "1s", cpu=CPU)[1]][1:] == ["cpu"]  # the default
    assert not os.path.exists(host.log + ".kept")


def test_how_threads_stand_is_kept_as_of_the_end(host):
    _, started = host("record", "--families", "offcpu", "-d", "1s", "-p", "1", "--container", "web", offcpu=WAITS)
    token = started[0]["args"][started[0]["args"].index("--recording") + 1]
    host("record", "--families", "offcpu", "-d", "1s", "--comm", "web", offcpu=WAITS)  # it cannot choose by names
    assert open(host.log + ".kept").read().splitlines() == [
        f"--keep --store {host.store} --recording {token} --at {(T0 + 10) * 1_000_000_000} --pid 1 --container web"]


def test_one_that_fails_does_not_end_the_others(host):
    done, _ = host("record", "--families", "offcpu,cpu", "-d", "1s", cpu=CPU, offcpu={"error": "it may not"})
    assert done.returncode == 5
    assert "sonde: offcpu is not recorded: it may not" in done.stderr and "rec 1 done: offcpu 0 events, cpu 990 samples" in done.stderr
    assert re.search(r"fix: run it with sudo: (sudo )?\S*sonde record \.\.\.$", done.stderr.rstrip())
    done, _ = host("record", "--families", "cpu,offcpu", "-d", "1s", "--json", "-q", cpu=CPU, offcpu={"die": True})
    out = json.loads(done.stdout)
    assert [r["family"] for r in out["rows"]] == ["cpu"] and "offcpu was not recorded" in out["warnings"][0]
    assert done.returncode == 1 and "offcpu was ended by signal 9" in done.stderr


def test_all_that_fail_are_one_error(host):
    done, _ = host("record", "--families", "cpu,offcpu", "-d", "1s", cpu={"error": "no"}, offcpu={"error": "neither"})
    assert done.returncode == 5 and "done" not in done.stderr


def test_nothing_at_all_is_said_as_such(host):
    done, _ = host("record", "--families", "cpu,offcpu", "-d", "1s", cpu={"n": 0}, offcpu={"n": 0})
    assert done.returncode == 4 and "nothing that was asked for happened in 10 s" in done.stderr


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_of_them(host, sig):
    child = subprocess.Popen([os.path.join(host.folder, "sonde"), "record", "--families", "cpu,offcpu,goheap"], text=True,
                             stderr=subprocess.PIPE, env=host.env(cpu=CPU, offcpu=WAITS, goheap=HEAP), start_new_session=True)
    for _ in range(3):
        while "recording" not in child.stderr.readline():
            pass
    child.send_signal(sig)
    _, said = child.communicate(timeout=120)
    assert child.returncode == 0 and "rec 1 done: cpu 990 samples, offcpu 6 events, goheap 2 events" in said
    for line in open(host.log):
        with pytest.raises(ProcessLookupError):
            os.kill(json.loads(line)["pid"], 0)


def test_how_go_heaps_are_read_is_passed_on_to_who_reads_them(host):
    done, started = host("record", "--families", "cpu,goheap", "--mode", "force", "--rate", "4096", "-d", "1s", cpu=CPU, goheap=HEAP)
    assert done.returncode == 0, done.stderr
    for s in started:
        passed = [s["args"][s["args"].index(o) + 1] for o in ("--mode", "--rate") if o in s["args"]]
        assert passed == (["force", "4096"] if s["name"] == "goheap" else [])


def test_what_does_not_go_together_is_refused(host):
    for args, word in ((["--mode", "force"], "--mode and --rate need family goheap, which --families does not list"),
                       (["--families", "cpu,nothing"], "unknown family 'nothing': known are cpu, offcpu, mem, goheap"),
                       (["--families", ""], "unknown family ''"),
                       (["--families", "cpu,offcpu", "--", "true"], "several families cannot record a command")):
        done, started = host("record", *args)
        assert done.returncode == 2 and word in done.stderr and not started
    done, started = host("record", "--families", "cpu,cpu", "-d", "1s", cpu=CPU)
    assert done.returncode == 0 and len(started) == 1
    os.unlink(os.path.join(host.folder, "sonde-goheap"))
    done, again = host("record", "--families", "cpu,goheap", "-d", "1s", cpu=CPU)
    assert done.returncode == 3 and "sonde-goheap is not installed" in done.stderr and len(again) == len(started)


def test_doctor_asks_each_loader_and_says_what_is_not_installed(host):
    os.unlink(os.path.join(host.folder, "sonde-offcpu"))
    rows = json.loads(host("doctor", "--json")[0].stdout)["rows"]
    assert [(r["family"], r["state"]) for r in rows if r["family"]] == [(name, "off" if name == "offcpu" else "ok") for name in ORDER]
    assert "12 of 13 probe families ready, 0 failed" in host("doctor")[0].stdout


ASKED = r"""#!/bin/sh
case "$*" in *--check*) ;; *) exit 0 ;; esac
name=${0##*/sonde-}
[ "$name" != "$HANGS" ] || { echo $$ >"$LOG.pid"; exec sleep 3600; }
if [ -z "$HANGS" ]; then
	mkdir "$LOG.at-$name"
	ls -d "$LOG".at-* | wc -l >>"$LOG.running"
	until [ -e "$LOG.go" ]; do # four are asked at a time
		[ "$(ls -d "$LOG".at-* | wc -l)" -lt 4 ] || : >"$LOG.go"
		sleep 0.1
	done
	until [ "$name" != cpu ] || [ -e "$LOG.java" ]; do sleep 0.1; done # the first answers when the last has
	: >"$LOG.$name"
	rmdir "$LOG.at-$name"
fi
echo '{"ok": true, "items": [{"name": "'"check of $name"'", "state": "ok", "text": "stand-in", "fix": null}]}'
"""


@pytest.fixture
def asked(host):
    for name in (*families(), "maps", "pstack"):
        with open(os.path.join(host.folder, f"sonde-{name}"), "w", encoding="utf-8") as f:
            f.write(ASKED)
        os.chmod(f.name, 0o755)

    def call(*args, hangs=""):
        return subprocess.run([os.path.join(host.folder, "sonde"), "doctor", *args], capture_output=True, text=True, env=dict(host.env(), HANGS=hangs), timeout=300, stdin=subprocess.DEVNULL)
    call.log = host.log
    return call


def test_doctor_asks_several_at_a_time_and_has_the_answers_in_the_order_of_the_families(asked):
    done = asked("--json")
    assert done.returncode == 0, done.stderr
    told = [r["name"] for r in json.loads(done.stdout)["rows"] if r["name"].startswith("check of ")]
    assert told == [f"check of {name}" for name in (*ORDER, "maps", "pstack")]
    with open(f"{asked.log}.running", encoding="ascii") as f:
        running = [int(line) for line in f]
    assert len(running) == len(ORDER) + 2 and 4 <= max(running) <= 8


def test_doctor_has_what_others_answer_where_one_does_not(asked):
    done = asked("--json", "--timeout", "15s", hangs="disk")
    rows = json.loads(done.stdout)["rows"]
    (late,) = [r for r in rows if r["state"] == "fail"]
    assert (late["family"], late["name"], late["text"]) == ("disk", "sonde-disk", "its check did not answer within 15 s and was ended: what it can record is not known")
    assert late["fix"].endswith("sonde doctor --timeout 1m")
    assert done.returncode == 1 and not json.loads(done.stdout)["ok"]
    assert [r["family"] for r in rows if r["family"] and r is not late] == [name for name in ORDER if name != "disk"]
    with open(f"{asked.log}.pid", encoding="ascii") as f, pytest.raises(ProcessLookupError):
        os.kill(int(f.read()), 0)
    text = asked("--timeout", "15s", hangs="disk").stdout
    assert "12 of 13 probe families ready, 1 failed" in text and "did not answer within 15 s" in text
