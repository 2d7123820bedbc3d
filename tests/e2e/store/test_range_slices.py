# SPDX-License-Identifier: Apache-2.0
"""What compares two ranges of many files says the same of plain files, of archives, and of days in place of these; over ranges that begin and end anywhere.

Of functions and their callers the oracle is the drawing's tree, as folded stacks with the numbers of both sides, which Python adds up.
"""
import collections
import json
import os
import random
import shutil
import time

import pytest

from conftest import BUILD, need
from test_range_sums import put

FILE = 60  # seconds that each file has
LAYOUTS = {"one after the other": (26, FILE), "two a day": (52, 43200)}  # how many, and from one's begin to the next one's
NAMES = ["web", "db"]
PIDS = range(100, 108)


def who(pid, at):
    name = NAMES[pid % 2]
    return {"pid": pid, "comm": f"{name}-{pid % 3}", "start": at - 1000 - pid, "container": name if pid % 4 else "", "container_id": name[0] * 64 if pid % 4 else ""}


def run(family, start, step=FILE):
    return {"run": family, "from": start, "to": start + step, "bucket_s": 10, "period_ns": 10_000_000}


def stack(r, late, pid):
    """Recursions, and a caller that only the later half has. Each command has other functions: of one name in two modules a folded stack says one."""
    deep = ["main", *r.choices(["a", "b", "c", "d"], k=r.randrange(1, 5)), f"leaf{r.randrange(4)}"]
    deep = [*deep[:1], "fresh", *deep[1:]] if late and r.random() < 0.3 else deep
    return [f"{who(pid, 0)['comm']}.{x}" for x in deep]


def rows(r, start, step, begin, late):
    yield run("cpu", start, step)
    for t in range(start, start + FILE, 10):
        for pid in r.sample(PIDS, 4):
            yield {"kind": "cpu", "at": t, "n": r.randrange(1, 9) * (3 if late and pid == 101 else 1), "stack": stack(r, late, pid), **who(pid, begin)}
    yield run("offcpu", start, step)
    for t in range(start, start + FILE, 10):
        for pid in r.sample(PIDS, 4):
            wait = r.choice([1, 2, 3])
            yield {"wait": wait, "flags": 0, "at": t, "n": 3, "total_ns": r.randrange(10**9), "max_ns": r.randrange(10**8), "lengths": [9], **who(pid, begin)}
            yield {"kind": "offcpu", "at": t, "n": 3, "value": r.randrange(10**9), "label": wait, "stack": stack(r, late, pid), **who(pid, begin), "lengths": [9]}
            yield {"kind": "runqueue", "at": t, "n": 2, "value": r.randrange(10**8), "label": 16, "stack": stack(r, late, pid), **who(pid, begin)}
    yield run("host", start, step)
    for t in range(start, start + FILE, 10):
        yield {"fact": "host_row", "at": t, "user_us": r.randrange(10**6), "nice_us": 0, "system_us": 9, "irq_us": 0, "softirq_us": 0}
        for pid in r.sample(PIDS, 3):
            yield {"fact": "process_row", "at": t, "user_us": r.randrange(10**6), "system_us": 3, "read_bytes": r.randrange(9), "rss": 1 << 20, **who(pid, begin)}
    yield run("l7", start, step)
    for t in range(start, start + FILE, 10):
        for pid in r.sample(PIDS, 3):
            yield {"request": f"GET /{r.randrange(3)}", "protocol": "http", "service": "10.0.0.1:80", "status": "200", "result": r.choice([0, 0, 1]), "at": t,
                   "n": 3, "total_ns": 3 * (slow := r.randrange(10**6, 10**7) * (5 if late else 1)), "max_ns": slow, "lengths": [slow] * 3, "side": r.choice([1, 2]), **who(pid, begin)}
    for pid in PIDS:
        if r.random() < 0.2:
            yield {"end": 2, "status": r.choice([9, 11]), "at": start + 30, "pid": 1000 + r.randrange(10**6), "comm": "short", "start": start + 29}


def name_of(at):
    return time.strftime("%Y%m%dT%H%M%SZ-0001.db", time.gmtime(at))


@pytest.fixture(scope="module", params=LAYOUTS)
def made(request, tmp_path_factory):
    """(store, when it begins, when its later half begins, when it ends)"""
    need("build/tests/putstore", os.path.join(BUILD, "tests", "putstore"))
    n, step = LAYOUTS[request.param]
    begin = 1792022400  # a midnight
    folder, r = tmp_path_factory.mktemp("slices"), random.Random(46)
    store, at = str(folder / "store"), [begin + i * step for i in range(n)]
    put(store, [run("cpu", at[-1] + 86400), {"kind": "cpu", "at": at[-1] + 86401, "n": 1, "stack": ["main"], "pid": 1, "comm": "x"}])
    for i, start in enumerate(at):
        shutil.move(put(str(folder / f"part{i}"), rows(r, start, step, begin, i >= n // 2)), f"{store}/{name_of(start)}")
    return store, begin, at[n // 2], at[-1] + FILE


def ranges(made):
    """(from, to, and for how long before)"""
    _, begin, middle, end = made
    yield middle, end, middle - begin
    yield middle - 3 * FILE - 7, end - 40, middle - begin - 300


def rounded(x):
    """Sums of floating point numbers in another order."""
    if isinstance(x, float):
        return float(f"{x:.7g}")
    if isinstance(x, dict):
        return {k: rounded(v) for k, v in x.items() if k != "generated"}
    return sorted((rounded(v) for v in x), key=json.dumps) if isinstance(x, list) else x


def answers(sonde, made):
    out, store = {}, made[0]
    for first, last, before in ranges(made):
        at = ["--from", str(first), "--to", str(last)]
        earlier = ["--vs-from", str(first - before), "--vs-to", str(first)]
        for verb in (["diff", "-n", "0", *earlier], ["diff", "-n", "0", "--type", "offcpu", *earlier], ["explain", "-n", "0", "--before", f"{before}s"],
                     ["timeline", "--of", "latency"], ["timeline"]):
            out[first, last, *verb] = rounded(json.loads(sonde(*verb, "--json", *at, store=store, check=True).stdout))
    return out


def of_folded(text):
    """{function: [self before, after, total before, after]}, {(caller, function): [before, after]} of the outermost calls, from lines "a;b;c N M"."""
    functions, calls = collections.defaultdict(lambda: [0] * 4), collections.defaultdict(lambda: [0] * 2)
    for line in text.splitlines():
        path, *n = line.rsplit(" ", 2)
        path = path.split(";")
        for side in range(2):
            functions[path[-1]][side] += int(n[side])
            for i, function in enumerate(path):
                if function in path[:i]:
                    continue
                functions[function][2 + side] += int(n[side])
                if i:
                    calls[path[i - 1], function][side] += int(n[side])
    return functions, calls


def check_oracle(sonde, made, folder):
    store = made[0]
    for first, last, before in ranges(made):
        at = ["--from", str(first), "--to", str(last), "--vs-from", str(first - before), "--vs-to", str(first)]
        path = os.path.join(folder, "x.folded")
        sonde("diff", *at, "-o", path, store=store, check=True)
        with open(path, encoding="ascii") as f:
            functions, calls = of_folded(f.read())
        said = json.loads(sonde("diff", *at, "--json", "-n", "0", store=store, check=True).stdout)
        assert said["test"] == "welch" and said["after"]["slices"] >= 12
        for row in said["rows"]:
            got = [row[part][f"{side}_samples"] for part in ("self", "total") for side in ("before", "after")]
            assert got == functions[row["function"]], row["function"]
            for key, side in (("new_callers", 1), ("gone_callers", 0)):
                want = {c: n[side] for (c, f), n in calls.items() if f == row["function"] and not n[1 - side] and n[side] >= 10}
                assert {c["function"]: c["samples"] for c in row[key]} == want, (row["function"], key)
        assert {row["function"] for row in said["rows"]} >= {"db-2.fresh", "web-1.leaf0"}


def test_differences_are_those_of_the_trees(sonde, made, tmp_path):
    check_oracle(sonde, made, tmp_path)


def test_archives_and_days_say_what_plain_files_say(sonde, made, tmp_path):
    plain = made[0]
    store = str(tmp_path / "store")
    os.rename(plain, store)
    made = (store, *made[1:])
    shutil.copytree(store, plain)
    before = answers(sonde, made)
    sonde("seal", store=store, check=True)
    days = os.listdir(f"{store}/days") if os.path.isdir(f"{store}/days") else []
    after = answers(sonde, made)
    for key, answer in before.items():
        assert after[key] == answer, key
    check_oracle(sonde, made, tmp_path)
    if days:
        shutil.rmtree(f"{store}/days")  # without them the archives
        for key, answer in answers(sonde, made).items():
            assert after[key] == answer, key
    for path in (plain, store):  # and with the oldest files gone
        for name in sorted(os.listdir(path))[:2]:
            if name.endswith(".db"):
                os.unlink(f"{path}/{name}")
    shutil.move(store, f"{store}-sealed")
    shutil.move(plain, store)
    pruned = answers(sonde, made)
    shutil.move(store, plain)
    shutil.move(f"{store}-sealed", store)
    for key, answer in answers(sonde, made).items():
        assert pruned[key] == answer, key


def test_ends_of_processes_are_as_many_as_events_says(sonde, made):
    store, begin, _, end = made
    at = ["--json", "--from", str(begin), "--to", str(end)]
    events = json.loads(sonde("events", "-n", "0", *at, store=store, check=True).stdout)["rows"]
    ends = [x for x in json.loads(sonde("timeline", "--events", *at, store=store, check=True).stdout)["events"] if x["event"] == "process ended"]
    assert sum(x["n"] or 1 for x in ends) == sum(x["count"] for x in events if x["subject"] == "process") > 40
