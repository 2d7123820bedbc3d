#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""crowd: every verb, stock query and view, asked of a quarter of an hour in which ten thousand processes came and went: a build,
a crash loop, a hog that is killed for memory, two families that record always, in three segments. No real load is needed: the
store is made by putstore, in some seconds, the same each time.

    tests/homelab/crowd.py [--processes 10000] [--limit 2] [--keep DIR]

Prints what took how long, the slowest first; 1 where a question failed, or took more CPU time than the limit (seconds): what else
the machine does is no matter.
"""
import argparse
import functools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e", d) for d in ("", "lib", "lib/servers")]
import questions
from conftest import BUILD

SECONDS, BUCKET, SEGMENTS = 900, 10, 3
SERVICES = ("db", "web", "cache", "worker", "queue", "proxy", "metrics", "photos", "files", "mail")
STACKS = 150            # of each program
LOOPS, HOGS = 60, 40  # instances of each
PERIOD_NS = 10**9 // 19
LOCK, DISK, POLL, PREEMPTED, RUNNING = 1, 2, 5, 17, 32  # schema/store/write/waits.h
EXIT, OOM = 1, 3        # enum store_end_how


@functools.cache
def stacks(comm):
    """A program's, which have their beginning in common."""
    r = random.Random(comm)
    return [made(r, comm) for _ in range(STACKS)]


def made(r, comm):
    return ["main", f"{comm}_loop", *(f"{comm}_step_{r.randrange(6)}_{depth}" for depth in range(r.randrange(4, 12))), f"{comm}_leaf_{r.randrange(8)}"]


def stack(r, comm):
    return r.choice(stacks(comm))


def used(r, who, at, n, waits=True):
    """What one process did in a bucket, in both families: it ran, was blocked, was ready, was woken, and who had its CPU."""
    ns = r.randrange(10**6, 3 * 10**9)
    yield "cpu", {"kind": "cpu", "at": at, "n": n, "stack": stack(r, who["comm"]), **who}
    if not waits:
        return
    by = {"pid": 100, "comm": SERVICES[0], "container": SERVICES[0], "container_id": "a0" * 32}
    yield "offcpu", {"kind": "offcpu", "at": at, "n": 3, "value": ns, "max": ns // 2, "label": DISK, "stack": stack(r, who["comm"]), **who}
    yield "offcpu", {"kind": "runqueue", "at": at, "n": 5, "value": ns // 50, "max": ns // 90, "label": PREEMPTED, "stack": stack(r, who["comm"]), **who}
    for state, part in ((RUNNING, 9), (DISK, 1), (POLL, 2), (PREEMPTED, 50)):
        yield "offcpu", {"wait": state, "at": at, "n": 3, "total_ns": ns // part, "max_ns": ns // part // 2, **who}
    yield "offcpu", {"wake": DISK, "context": 0, "at": at, "n": 3, "total_ns": ns, "by": by, **who}
    yield "offcpu", {"on": f"/data/file-{r.randrange(40)}", "class": DISK, "at": at, "n": 1, "total_ns": ns, "stack": stack(r, who["comm"]), "by": by, **who}
    yield "offcpu", {"culprit": 0, "at": at, "n": 2, "total_ns": ns // 50, "by": by, **who}


def service(i):
    name = SERVICES[i]
    return {"pid": 100 + i, "comm": name, "container": name, "container_id": f"a{i}" * 32, "started": "s"}


def instance(name, number, i, t, at, pid):
    return {"pid": pid, "comm": name, "container": name, "container_id": f"{number:x}" * 64, "started": f"s{i}", "restarts": i, "start": at}


def lived(r, who, at, how, status):
    """One that ended in the same ten seconds."""
    yield from used(r, who, at, r.randrange(1, 5))
    yield "cpu", {"end": how, "status": status, "at": at + r.randrange(1, 4), **who}


def happened(r, began, processes):
    """(family, object) of all, by bucket."""
    pids = iter(range(1000, 10**7))
    for bucket in range(began, began + SECONDS, BUCKET):
        for i in range(len(SERVICES)):
            for _ in range(12):
                yield from used(r, service(i), bucket, r.randrange(1, 30))
        yield "offcpu", {"throttle": "web", "at": bucket, "periods": 100, "throttled": 30, "throttled_ns": 10**9}
        for name, number, n, how, status in (("loop", 14, LOOPS, EXIT, 1), ("hog", 15, HOGS, OOM, 9)):
            for i in range((bucket - began) * n // SECONDS, (bucket + BUCKET - began) * n // SECONDS):
                yield from lived(r, instance(name, number, i, bucket, bucket + 1, next(pids)), bucket + 1, how, status)
        for _ in range(processes * BUCKET // SECONDS):
            comm = r.choice(("cc1", "as", "sh", "make", "ld"))
            yield from lived(r, {"pid": next(pids), "comm": comm, "start": bucket}, bucket, EXIT, r.random() < 0.1)


def put(folder, began, processes):
    """The segments of a store, each of a third of the time."""
    r = random.Random(1)
    parts = [{"cpu": [], "offcpu": []} for _ in range(SEGMENTS)]
    for family, what in happened(r, began, processes):
        parts[min(int(what["at"] - began) * SEGMENTS // SECONDS, SEGMENTS - 1)][family].append(what)
    os.makedirs(folder)
    for i, part in enumerate(parts):
        span = {"from": began + i * SECONDS // SEGMENTS, "to": began + (i + 1) * SECONDS // SEGMENTS, "bucket_s": BUCKET}
        lines = [{"run": "cpu", "period_ns": PERIOD_NS, **span}, *part["cpu"], {"run": "offcpu", **span}, *part["offcpu"]]
        own = f"{folder}/part"
        subprocess.run([os.path.join(BUILD, "tests", "putstore"), own], input="\n".join(map(json.dumps, lines)), text=True, check=True)
        (db,) = (x for x in os.listdir(own) if x.endswith(".db"))
        os.rename(f"{own}/{db}", f"{folder}/{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(span['from']))}-0001.db")
        shutil.rmtree(own)


def make(folder, processes):
    began = int(time.time()) // BUCKET * BUCKET - SECONDS
    put(os.path.join(folder, "store"), began, processes)
    marks = {"began": began, "ended": began + SECONDS, "backup": [began + 600, began + 720]}
    with open(os.path.join(folder, "truth.json"), "w", encoding="utf-8") as f:
        json.dump({"marks": marks, "minutes": SECONDS / 60}, f)


def more_questions(truth):
    """What asks for each of ten thousand."""
    marks = truth["marks"]
    whole = ["--from", str(marks["began"]), "--to", str(marks["ended"])]
    return [("all-processes", ["ps", "-n", "100000", *whole]), ("all-processes-json", ["ps", "-n", "100000", "--json", *whole]),
            ("processes-by-wait", ["ps", "--sort", "offcpu", *whole]), ("containers-by-restarts", ["containers", "--sort", "restarts", *whole]),
            ("timeline-by-process", ["timeline", "--by", "process", *whole]), ("timeline-events", ["timeline", "--events", "--json", *whole]),
            ("crash-loop", ["timeline", "loop", *whole]), ("report-of-loop", ["report", "loop", *whole, "-o", "loop.html"]),
            ("neighbours-of-make", ["neighbours", "--comm", "make", *whole]), ("wakers-of-make", ["wakers", "--comm", "make", *whole])]


def judge(results, limit):
    """Names of the questions that failed, or took too long."""
    bad = []
    for x in sorted(results, key=lambda x: -x["cpu"]):
        slow, failed = x["cpu"] > limit, not questions.answers(x)
        if slow or failed:
            bad.append(x["name"])
        print(f"{x['cpu']:7.2f} s of CPU, {x['seconds']:6.2f} s  exit {x['exit']:2}  {x['name']}{'   SLOW' if slow else ''}{'   ' + x['stderr'].strip()[-160:] if failed else ''}")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=10000)
    parser.add_argument("--limit", type=float, default=2)
    parser.add_argument("--keep", help="leaves the store and the answers there")
    opts = parser.parse_args()
    folder = opts.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    try:
        make(folder, opts.processes)
        bad = judge(questions.ask_all(folder, more_questions), opts.limit)
    finally:
        if not opts.keep:
            shutil.rmtree(folder)
    print(f"{len(bad)} failed or took longer than {opts.limit:g} s: {', '.join(bad)}" if bad else "all within the limit")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
