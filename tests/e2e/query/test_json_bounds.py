# SPDX-License-Identifier: Apache-2.0
"""No verb's JSON grows with the host: each shows so many rows, and says with "total" and "rest" what it left out; -n N shows N, -n 0 all. Lists beside
the rows are as long, and have their KEY_total. On a store with hundreds of everything."""
import json
import os
import subprocess

import livedin
import pytest
from conftest import BIN

AT = 1795144200
MANY = 300
RANGE = ["--from", str(AT - 1200), "--to", str(AT)]
LATER = ["--from", str(AT - 600), "--to", str(AT)]
#: verb and words -> how many rows it has by itself, and how many there are at least
ASKED = {
    ("requests",): (30, MANY), ("requests", "--slowest"): (30, MANY), ("net",): (30, MANY), ("net", "--by", "peer"): (30, MANY), ("net", "--listen"): (30, MANY),
    ("disk",): (30, 1), ("disk", "--slow"): (30, MANY), ("disk", "--fsync"): (30, MANY), ("disk", "--opens"): (30, MANY),
    ("map",): (100, MANY), ("ps",): (20, MANY), ("top",): (20, MANY), ("containers",): (20, MANY), ("stacks",): (10, MANY), ("events",): (40, MANY),
    ("overview",): (20, MANY), ("waits",): (20, MANY), ("timeline", "--of", "mem"): (12, MANY), ("oom",): (3, 20), ("heap",): (10, MANY),
    ("stacks", "--callees", "main"): (10, MANY), ("lines", "work"): (10, 10), ("status",): (5, 1), ("diff", "--baseline", "10m"): (10, 0), ("explain", "--before", "10m"): (5, 0), ("trace",): (200, 600),
    ("neighbours",): (20, MANY), ("wakers",): (20, MANY),
}
#: list beside the rows -> the least of it. Those in WITH are asked for by name.
BESIDE = [(("ps",), "ended", MANY), (("containers",), "ended", MANY), (("requests",), "unread_tls", MANY), (("requests",), "running", MANY), (("top",), "ended", MANY),
          (("timeline",), "events", 6), (("timeline",), "groups", MANY), (("waits",), "throttled", MANY), (("neighbours",), "throttled", MANY), (("overview",), "wrong", MANY),
          (("explain", "--before", "10m"), "happened", MANY), (("explain", "--before", "10m"), "incidents", MANY), (("explain", "--before", "10m"), "new_connections", MANY),
          (("diff", "--baseline", "10m"), "new_connections", MANY), (("disk",), "who", MANY)]
WITH = {"ended", "unread_tls", "running"}


def crowd(end):
    begin = end - 1200
    who = [{"pid": 1000 + i, "comm": f"worker{i}", "container": f"app-{i}"} for i in range(MANY)]
    runs = ("cpu", "offcpu", "host", "net", "l7", "goheap", "disk")
    for family in runs:
        yield livedin.run(family, begin, end, 1, 10101010 if family == "cpu" else 0)
    for at in (begin, begin + 600, end - 60):
        for i, w in enumerate(who):
            yield {"kind": "cpu", "at": at, "n": (20 + i % 7) * (5 if at > begin + 600 else 1), **w, "stack": ["main", ["work", f"work{i % 40}.c", i], f"step_{i}"]}
            yield {**w, "tid": w["pid"], "thread": w["comm"], "wait": 2, "at": at, "n": 3, "total_ns": 9000000 + i, "max_ns": 5000000}
            yield {**w, "tid": w["pid"], "thread": w["comm"], "wait": 17, "at": at, "n": 3, "total_ns": 9000000 + i, "max_ns": 5000000}
            other = who[(i + 1) % MANY]
            by = {"pid": other["pid"], "comm": other["comm"], "thread": other["comm"]}
            yield {**w, "tid": w["pid"], "thread": w["comm"], "wake": 2, "at": at, "n": 3, "total_ns": 9000000, "by": by}
            yield {**w, "tid": w["pid"], "thread": w["comm"], "culprit": 0, "at": at, "n": 8, "total_ns": 2000000, "by": by}
            yield {**w, "tid": w["pid"], "thread": w["comm"], "kind": "inuse", "label": 64, "at": at, "n": 10 + i, "value": 640 + i, "stack": ["main", [f"keep_{i}", "app.go", i + 1]]}
            yield {"request": f"GET /item/{i}", "protocol": "http", "service": "172.17.0.2:80", "status": "200", "result": 0, "at": at, **w, "n": 30, "side": 2,
                   "total_ns": 600000000, "max_ns": 20000000 + i, "request_bytes": 3000, "response_bytes": 90000}
            yield {"fact": "request_log_row", "at": at, **w, "side": "server", "protocol": "http", "service": "172.17.0.2:80", "operation": f"GET /item/{i}", "nth": str(i),
                   "at_us": at * 1000000 + i, "status": "200", "result": "ok", "why": "slow", "weight": 1, "tid": w["pid"], "first_us": 19000, "total_us": 20000 + i,
                   "request_bytes": 100, "response_bytes": 3000, "trace": ""}
            yield {"fact": "request_bytes_row", "at": at, **w, "side": "server", "protocol": "tls", "service": "", "seen": 93000, "parsed": 0, "skipped": 0, "blind": 93000 + i,
                   "blind_requests": 0}
            yield {"fact": "flow_row", "at": at, **w, "side": "client", "protocol": "tcp", "peer": f"172.17.{i // 200}.{i % 200 + 3}", "port": "5432", "owner": "opener",
                   "attempts": 9, "opened": 9, "closed": 9, "tx_bytes": 4000 + i, "rx_bytes": 90000, "rtt_sum_us": 900, "rtt_n": 9}
            yield {"fact": "block_row", "at": at, **w, "disk": "sda", "op": "read", "requests": 9, "bytes": 9 * 4096 + i, "errors": 0, "queue_us": 9, "device_us": 900, "us_64": 9}
            yield {"fact": "slow_row", "at": at, **w, "disk": "sda", "op": "read", "sector": 8 * i, "at_us": at * 1000000 + i, "thread": w["comm"], "bytes": 4096, "queue_us": 0,
                   "device_us": 60000 + i, "failed": 0}
            yield {"fact": "sync_row", "at": at, **w, "file": f"/data/{i}", "call": "fsync", "calls": 1, "errors": 0, "us": 900, "us_512": 1}
            yield {"fact": "open_row", "at": at, **w, "path": f"/none/{i}", "error": "ENOENT", "opens": 2}
            yield {"fact": "listener_row", "at": at, **w, "protocol": "tcp", "address": "0.0.0.0", "port": str(2000 + i), "open_to": "network", "backlog": 0, "backlog_max": 244,
                   "dropped": 0}
            yield {"fact": "cgroup_row", "at": at, "cgroup": f"/docker/app-{i}", "container": f"app-{i}", "working": (10 + i) << 20, "mem_limit": 0, "read_bytes": i << 10,
                   "write_bytes": 2 << 20, "rx_bytes": 50000, "tx_bytes": 90000}
            yield {"fact": "process_row", "at": at, **w, "rss": (9 + i) << 20, "read_bytes": 0, "write_bytes": 2 << 20}
            yield {"fact": "ended_row", "at": at, "container": f"app-{i}", "columns": {
                "cgroup": f"/docker/app-{i}", "comm": f"short{i}", "n": 3, "user_us": 1000 + i, "system_us": 10, "lived_us": 3000, "rss_max": 1 << 20, "self": 0}}
            yield {"fact": "event_row", "at": at, "columns": {"kind": "started", "subject": "container", "name": f"app-{i}", "detail": "", "which": f"app-{i}", "n": 1, "at_us": (at + i % 50) * 1000000}}
        yield {"fact": "host_row", "at": at, "mem_total": 8 << 30, "mem_available": 4 << 30, "psi_io_us": 100000}
        for i in range(8):
            gone = {"pid": 5000 + i, "comm": "victim", "container": f"app-{i}", "start": begin - 600}
            yield {"fact": "oom_row", "at": at, "cgroup": f"/docker/app-{i}", "victim_cgroup": f"/docker/app-{i}", "asked_by": "x", "mem_limit": 512 << 20, "mem": 512 << 20,
                   "anon": 400 << 20, "file": 0, "shmem": 0, "at_us": (at + i) * 1000000, **gone}


def troubles(end):
    """In the last minutes each container restarts, has a new limit, meets its CPU quota, opens a connection that is new, and has requests that hang."""
    at = end - 60
    yield {"fact": "request_running_row", "at": end - 10, "columns": {"side": "", "id": 0, "protocol": "", "service": "", "operation": "", "client": "", "at_us": (end - 1200) * 1000000,
                                                                     "seen_us": (end - 10) * 1000000, "result": "", "trace": "", "others": 0}}
    for i in range(MANY):
        name, w = f"app-{i}", {"pid": 1000 + i, "comm": f"worker{i}", "container": f"app-{i}"}
        for kind, detail, n in (("restarted", "", 5), ("limit changed", "memory 512 MiB, was 256 MiB", 1)):
            yield {"fact": "event_row", "at": at, "columns": {"kind": kind, "subject": "container", "name": name, "detail": detail, "which": name, "n": n, "at_us": at * 1000000}}
        yield {"pid": 6000 + i, "comm": "victim", "container": name, "start": end - 600, "end": 3, "status": 9, "at": at}  # for lack of memory
        yield {"throttle": f"/docker/{name}", "at": at, "periods": 50, "throttled": 40, "throttled_ns": 1500000000}
        yield {"fact": "flow_row", "at": at, **w, "side": "client", "protocol": "tcp", "peer": "10.9.9.9", "port": str(3000 + i), "owner": "opener",
               "attempts": 9, "opened": 9, "closed": 9, "tx_bytes": 4000 + i, "rx_bytes": 90000, "rtt_sum_us": 900, "rtt_n": 9}
        yield {"fact": "request_running_row", "at": end - 10, **w, "columns": {
            "side": "server", "id": 10 + i, "protocol": "postgres", "service": "10.0.0.1:5432", "operation": "SELECT 1", "client": "10.0.0.9", "port": 4000 + i,
            "at_us": (end - 300) * 1000000, "seen_us": (end - 10) * 1000000, "result": "", "tid": 7, "request_bytes": 30, "response_bytes": 0, "trace": ""}}


def tree(at):
    """A request that causes 600 others."""
    web = {"pid": 812, "comm": "nginx", "container": "web"}
    for i in range(601):
        side = "client" if i else "server"
        yield {"fact": "request_log_row", "at": at, **web, "side": side, "protocol": "http", "service": "172.17.0.2:80", "operation": f"GET /part/{i}", "nth": str(i + 1),
               "at_us": at * 1000000 + i, "status": "200", "result": "ok", "why": "linked" if i else "slow", "weight": 1, "tid": 812, "first_us": 10, "total_us": 9000 if i else 900000,
               "request_bytes": 100, "response_bytes": 3000, "trace": ""}
        yield {"fact": "request_span_row", "at": at, **web, "side": side, "span": i + 1, "nth": str(i + 1), "how": "thread" if i else "", **({"parent": 1} if i else {})}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("bounds") / "store")
    livedin.put(path, [*crowd(AT), *tree(AT - 60), *troubles(AT)])
    return path


def ask(store, words, *more):
    done = subprocess.run([f"{BIN}/sonde", *words, "--json", "--store", store, *([] if words[0] in ("status", "check") else LATER if words[0] in ("diff", "explain") else RANGE), *more], capture_output=True, text=True,
                          check=False, timeout=300, env={"PATH": os.environ["PATH"], "SONDE_CONFIG": "/nonexistent", "TZ": "UTC"})
    assert done.returncode == 0 or (words[0] == "check" and done.returncode == 1), (words, more, done.stderr)
    return json.loads(done.stdout), len(done.stdout)


@pytest.mark.parametrize("words", ASKED, ids=" ".join)
def test_rows_are_bounded_and_what_is_left_out_is_told(words, store):
    usual, least = ASKED[words]
    by_itself, size = ask(store, words)
    three, _ = ask(store, words, "-n", "3")
    every, _ = ask(store, words, "-n", "0")
    if words[0] not in ("lines", "trace"):  # there -n counts functions and trees
        assert len(by_itself["rows"]) <= usual and len(three["rows"]) <= 3
    assert len(every["rows"]) >= least and every["rest"] == 0
    for answer in (by_itself, three, every):
        assert answer["total"] == len(answer["rows"]) + answer["rest"] and answer["total"] in (every["total"], answer["total"])
        assert any("more rows" in w for w in answer["warnings"]) == bool(answer["rest"]), answer["warnings"]
    if words[0] not in ("lines", "trace", "diff", "explain"):
        assert by_itself["total"] == three["total"] == every["total"] >= least
    assert size < 100_000, size


@pytest.mark.parametrize("words,key,least", BESIDE)
def test_lists_beside_the_rows_are_bounded(words, key, least, store):
    named = ["--with", key] if key in WITH else []
    answer, _ = ask(store, words, *named)
    assert len(answer[key]) <= 100 and least <= answer[f"{key}_total"]
    if words[0] == "timeline" and key == "groups":
        return  # a strip of the picture, whose own bound it has
    three, _ = ask(store, words, *named, "-n", "3")
    assert words[0] == "timeline" or len(three[key]) == 3
    every, _ = ask(store, words, *named, *(["--events"] if words[0] == "timeline" else ["-n", "0"]))
    assert len(every[key]) == every[f"{key}_total"] == three[f"{key}_total"] == answer[f"{key}_total"]


def lists(value, at=""):
    """(path, length) of each list in an answer."""
    for k, v in value.items() if isinstance(value, dict) else ((None, v) for v in value) if isinstance(value, list) else ():
        if isinstance(v, list):
            yield f"{at}.{k}", len(v)
        yield from lists(v, at if k is None else f"{at}.{k}")


#: what is no list of things of the host: columns of a picture, buckets of a histogram, frames, points of a curve
FIXED = ("by_column", "columns", "cpu_by_column_ns", "allocated_by_column_bytes", "inuse_by_column_bytes", "by_column_ns", "hist", "memory", "evidence", "warnings", "path",
         "groups", "events", "slowest", "failing", "running", "not_recorded")


@pytest.mark.parametrize("words", [*ASKED, ("check", "--all")], ids=" ".join)
def test_no_list_in_an_answer_is_longer_than_it_was_asked_to_be(words, store):
    """Whatever lists a verb has: with -n 3 none is longer, but those inside of rows, which are at most 20."""
    answer, size = ask(store, words, *(["--at", str(AT)] if words[0] == "check" else []), "-n", "3")
    long = {path: n for path, n in lists(answer) if path.rsplit(".", 1)[1] not in FIXED and n > (20 if path.count(".") > 1 or words[0] in ("lines", "trace") else 3)}
    assert words[0] == "trace" or not long, long
    assert size < 60_000 or words[0] == "trace", size


@pytest.mark.parametrize("words", [("ps",), ("top",), ("containers",), ("requests",)], ids=" ".join)
def test_side_lists_are_asked_for_by_name(words, store):
    """Their totals are there in any case."""
    plain, _ = ask(store, words)
    names = [k[:-len("_total")] for k in plain if k.endswith("_total")]
    assert names and not set(names) & set(plain)
    for name in names:
        answer, _ = ask(store, words, "--with", name)
        assert isinstance(answer[name], list) and set(names) & set(answer) == {name} and answer[f"{name}_total"] == plain[f"{name}_total"]
    every, _ = ask(store, words, "--with", ",".join(names))
    assert set(names) <= set(every)


def test_a_side_list_that_is_not_there_is_refused_with_those_that_are(store):
    for words, why in ((["ps", "--json", "--with", "unread_tls"], "--with ended"), (["requests", "--json", "--with", "running,x"], "--with unread_tls,running"),
                       (["ps", "--with", "ended"], "--json --with ended"), (["ps", "--ndjson", "--with", "ended"], "--json"), (["net", "--json", "--with", "ended"], "no option --with")):
        done = subprocess.run([f"{BIN}/sonde", *words, "--store", store], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and why in done.stderr and not done.stdout, (words, done.stderr)


def test_the_map_keeps_what_is_used_most(store):
    rows = ask(store, ("map",), "-n", "5")[0]["rows"]
    every = ask(store, ("map",), "-n", "0")[0]["rows"]

    def uses(row):
        return ((row["requests"] or 0) + row["opened"] + max(row["open_now"] or 0, 0), row["tx_bytes"] + row["rx_bytes"])
    assert sorted(map(uses, rows)) == sorted(map(uses, every))[-5:]
    assert [r for r in every if r in rows] == rows


def test_sql_counts_what_it_does_not_print(store):
    query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) SELECT i FROM n"
    for more, shown in (([], 5000), (["-n", "0"], 5000), (["-n", "7"], 7)):
        done = subprocess.run([f"{BIN}/sonde", "sql", query, "--json", "--store", store, *more], capture_output=True, text=True, check=True)
        answer = json.loads(done.stdout)
        assert (len(answer["rows"]), answer["total"], answer["rest"]) == (shown, 5000, 5000 - shown)
    for form in ("--csv", "--ndjson", "--box"):
        done = subprocess.run([f"{BIN}/sonde", "sql", query, form, "--store", store, "-n", "7"], capture_output=True, text=True, check=True)
        assert "7" in done.stdout and "8" not in done.stdout and len(done.stdout.splitlines()) <= 11
