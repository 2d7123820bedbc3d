# SPDX-License-Identifier: Apache-2.0
"""docs/SCHEMA.md is true: every query in it runs with the plain sqlite3 program, and it names every view and table.

The store comes from makestore, which knows what it put there.
"""
import csv
import io
import json
import math
import os
import re
import sqlite3
import subprocess

import pytest

from conftest import BUILD, ROOT, need

DOC = open(os.path.join(ROOT, "docs", "SCHEMA.md"), encoding="utf-8").read()
QUERIES = re.findall(r"```sql\n(.*?)```", DOC, re.S)
MAKESTORE = os.path.join(BUILD, "tests", "makestore")


def make(folder, *args):
    need("makestore (make workloads)", MAKESTORE)
    done = subprocess.run([MAKESTORE, folder, *args], capture_output=True, text=True, check=True)
    files = sorted(f for f in os.listdir(folder) if f.endswith(".db"))
    return os.path.join(folder, files[0]), json.loads(done.stdout)


def put(folder, lines):
    tool = os.path.join(BUILD, "tests", "putstore")
    need("putstore (make workloads)", tool)
    subprocess.run([tool, folder], input="\n".join(map(json.dumps, lines)), text=True, check=True)
    return os.path.join(folder, sorted(f for f in os.listdir(folder) if f.endswith(".db"))[0])


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return make(str(tmp_path_factory.mktemp("s") / "plain"))


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    return make(str(tmp_path_factory.mktemp("s") / "two"), "--two-runs", "--at", "1800000000")


WAIT = {"kind": "offcpu", "n": 3, "value": 9000000, "max": 5000000, "hist": [0] * 21 + [2, 1], "stack": ["main", "wait"]}
HEAP = {"pid": 7, "label": 1024, "n": 10, "value": 10240, "stack": ["main", ["make", "app.go", 12]]}


BY = {"pid": 9, "comm": "burner", "thread": "burner"}
WAITS = [{"wait": 2, "flags": 12, "n": 3, "total_ns": 9000, "max_ns": 5000, "hist": [0] * 11 + [2, 1], "at": 1800000001},
         {"wait": 2, "flags": 12, "n": 2, "total_ns": 1000, "max_ns": 600, "hist": [0] * 9 + [2], "at": 1800000001},
         {"wait": 17, "n": 4, "total_ns": 700, "max_ns": 400, "at": 1800000002},
         {"wait": 32, "flags": 1, "n": 8, "total_ns": 5000, "max_ns": 900, "at": 1800000002},
         {"wake": 2, "context": 1, "n": 5, "total_ns": 10000, "by": BY, "at": 1800000001},
         {"on": "/a/file", "class": 2, "n": 5, "total_ns": 10000, "by": BY, "at": 1800000001, "stack": ["main", "wait"]},
         {"kind": "standing", "n": 1, "value": 70000, "max": 70000, "label": 3, "stack": ["main", "recv"], "at": 1800000003},
         {"culprit": 0, "n": 3, "total_ns": 600, "by": BY, "at": 1800000002},
         {"culprit": 1, "n": 1, "total_ns": 100, "at": 1800000002},
         {"throttle": "/docker/abc", "periods": 10, "throttled": 4, "throttled_ns": 70000, "at": 1800000003},
         {"steal": 5, "idle_ns": 60, "cpu_ns": 2000000000, "at": 1800000003},
         {"slowed": 1, "stack_rate": 250, "at": 1800000003}, {"slowed": 2, "stack_rate": 62, "at": 1800000003}]


FACTS = [{"run": "host", "from": 1800000000, "to": 1800000030, "bucket_s": 10},
         {"fact": "host_row", "at": 1800000001, "cpus": 2, "user_us": 7, "system_us": 5, "mem_available": 1 << 30},
         {"fact": "disk_row", "at": 1800000001, "disk": "sda", "writes": 2, "write_us": 9, "busy_us": 10, "in_flight": 0},
         {"fact": "fs_row", "at": 1800000001, "mount": "/", "source": "/dev/sda1", "fstype": "ext4", "size": 4096, "available": 1024},
         {"fact": "nic_row", "at": 1800000001, "interface": "eth0", "rx_bytes": 5, "tx_bytes": 6},
         {"fact": "sensor_row", "at": 1800000001, "sensor": "acpitz", "temperature_m": 41500},
         {"fact": "cgroup_row", "at": 1800000001, "cgroup": "/docker/abc", "container": "web", "container_id": "abc",
          "user_us": 3, "system_us": 4, "working": 1 << 20, "mem_limit": 1 << 26, "throttled_us": 8},
         {"fact": "cgroup_row", "at": 1800000001, "cgroup": "/system.slice", "user_us": 3, "system_us": 4},
         {"fact": "cgroup_disk_row", "at": 1800000001, "cgroup": "/docker/abc", "disk": "sda", "write_bytes": 4096},
         {"fact": "process_row", "at": 1800000001, "pid": 7, "comm": "app", "rss": 1 << 21, "user_us": 3, "system_us": 4},
         {"fact": "ended_row", "at": 1800000001, "container": "web", "container_id": "abc", "columns": {
             "cgroup": "/docker/abc", "comm": "sh", "n": 5, "user_us": 30, "system_us": 40, "lived_us": 500, "rss_max": 1 << 20}},
         {"fact": "event_row", "at": 1800000001, "columns": {"kind": "restarted", "subject": "container", "name": "web", "n": 2, "at_us": 1800000001000000,
                                                             "detail": "", "which": "abc"}},
         {"fact": "fds_row", "at": 1800000001, "pid": 7, "comm": "app", "fds": 60, "fds_limit": 64},
         {"fact": "process_mem_row", "at": 1800000001, "pid": 7, "comm": "app", "file": 1 << 20, "shmem": 1 << 19},
         {"fact": "fill_row", "at": 1800000001, "columns": {"mount": "/", "kind": "folder", "path": "/var/log", "bytes": 1 << 30, "hour": 1 << 29}},
         {"fact": "oom_row", "at": 1800000001, "pid": 7, "comm": "app", "cgroup": "/docker/abc", "mem_limit": 1 << 26, "at_us": 1800000001000000},
         {"fact": "oom_task_row", "at": 1800000001, "pid": 7, "comm": "app", "columns": {"holder": "app 7", "comm": "app", "pid": 7, "rss": 1 << 25}},
         {"fact": "event_row", "at": 1800000001, "columns": {"kind": "stopped", "subject": "container", "name": "web", "n": 1, "at_us": 1800000001000000,
                                                             "detail": "exit 3", "which": "abc"}},
         *({"fact": "event_log_row", "at": 1800000001, "columns": {"which": "abc", "at_us": 1800000001000000, "nth": n, "line": f"line {n}", "cut": 0}}
           for n in (1, 2)),
         {"fact": "jvm_row", "at": 1800000001, "pid": 7, "comm": "app", "collector": "G1", "version": "17.0.15", "young_gcs": 2, "young_gc_us": 900,
          "full_gcs": 0, "full_gc_us": 0, "young_used": 1 << 20, "old_used": 1 << 21, "young_committed": 1 << 22, "old_committed": 1 << 22},
         {"run": "gpu", "from": 1800000000, "to": 1800000030, "bucket_s": 10},
         {"fact": "gpu_row", "at": 1800000001, "columns": {"uuid": "GPU-1", "gpu": "0", "name": "A100", "busy_us": 5000000, "mem_used": 1 << 30,
                                                           "mem_total": 1 << 34, "temperature_m": 61000, "throttle_reasons": 4}},
         {"fact": "gpu_process_row", "at": 1800000001, "pid": 7, "comm": "app", "uuid": "GPU-1", "gpu": "0", "mem": 1 << 29, "busy_us": 4000000},
         {"run": "logs", "from": 1800000000, "to": 1800000030, "bucket_s": 10},
         {"fact": "log_row", "at": 1800000001, "columns": {"source": "web", "level": "error", "kind": "docker", "lines": 9, "messages": 3, "bytes": 400}},
         {"fact": "log_pattern_row", "at": 1800000001, "source": "web", "level": "error", "pattern": "cannot reach *", "sample": "ERROR cannot reach db", "messages": 3,
          "first_us": 1800000001000000, "last_us": 1800000002000000},
         {"fact": "log_second_row", "at": 1800000001, "source": "web", "level": "error", "pattern": "cannot reach *", "messages": 3},
         {"run": "probe", "from": 1800000000, "to": 1800000030, "bucket_s": 10},
         {"fact": "probe_row", "at": 1800000001, "probe": "openfail", "spec": "syscall:openat(path)", "args": "path str,ret int64,ns", "hits": 2, "events": 1, "runs": 9, "lost": 0},
         {"fact": "probe_sum_row", "at": 1800000001, "pid": 7, "comm": "app", "probe": "openfail", "key": "ENOENT", "hits": 2, "errors": 2, "ns": 4000},
         {"fact": "probe_event_row", "at": 1800000001, "pid": 7, "comm": "app", "probe": "openfail", "tid": 7, "in_ns": 5, "thread": "app",
          "args": json.dumps({"path": "/none", "error": "ENOENT"}), "ns": 2000, "weight": 2},
         {"run": "java", "from": 1800000000, "to": 1800000030, "bucket_s": 10},
         {"fact": "java_wait_row", "at": 1800000001, "pid": 7, "comm": "app",
          "columns": {"kind": "monitor", "class": "Till", "owner": "holds", "place": "Shop.pay:42", "n": 3, "ns": 60000000}},
         {"fact": "java_wait_log_row", "at": 1800000001, "pid": 7, "comm": "app",
          "columns": {"id": 1, "tid": 7, "at_us": 1800000001000000, "ns": 9000000, "kind": "monitor", "class": "Till", "owner": "holds", "place": "Shop.pay:42"}},
         {"kind": "java-alloc", "n": 3, "value": 9000000, "stack": ["main", "new byte[]"], "pid": 7, "at": 1800000005},
         {"note": "state", "text": "recorded", "pid": 7}, {"note": "version", "text": "17.0.15", "pid": 7},
         {"run": "disk", "from": 1800000000, "to": 1800000030, "bucket_s": 10},
         {"fact": "block_row", "at": 1800000001, "pid": 7, "comm": "app", "disk": "sda", "op": "write", "requests": 2, "bytes": 8192, "errors": 0, "queue_us": 5, "device_us": 200,
          "us_64": 2},
         {"fact": "device_row", "at": 1800000001, "disk": "sda", "under": "", "busy_us": 200, "in_flight": 0},
         {"fact": "slow_row", "at": 1800000001, "pid": 7, "comm": "app", "disk": "sda", "op": "write", "sector": 8, "at_us": 1800000001000000, "thread": "app", "bytes": 4096,
          "queue_us": 5, "device_us": 60000, "failed": 0},
         {"fact": "slow_stack_row", "at": 1800000001, "columns": {"disk": "sda", "sector": 8, "at_us": 1800000001000000, "stack": "folio_wait_bit_common vfs_fsync_range"}},
         {"fact": "sync_row", "at": 1800000001, "pid": 7, "comm": "app", "file": "/data/a", "call": "fsync", "calls": 1, "errors": 0, "us": 300, "us_256": 1},
         {"fact": "sync_lasting_row", "at": 1800000001, "pid": 7, "comm": "app", "file": "/data/a", "call": "fsync", "calls": 1, "us": 2000000},
         {"fact": "open_row", "at": 1800000001, "pid": 7, "comm": "app", "path": "/none", "error": "ENOENT", "opens": 3},
         {"fact": "file_row", "at": 1800000001, "pid": 7, "comm": "app", "file": "/data/a", "disk": "sda", "writes": 2, "write_bytes": 8192},
         {"fact": "file_row", "at": 1800000001, "pid": 7, "comm": "app", "file": "/data/a", "disk": "", "dirty_bytes": 8192, "grown_bytes": 4096},
         {"fact": "call_row", "at": 1800000001, "pid": 7, "comm": "app", "file": "/data/a", "call": "write", "calls": 2, "errors": 0, "bytes": 8192, "us": 20, "us_8": 2},
         {"fact": "lock_row", "at": 1800000001, "pid": 7, "comm": "app", "columns": {"file": "/data/a", "lock": "flock", "waits": 1, "errors": 0, "us": 300, "longest_us": 300}},
         {"fact": "block_order_row", "at": 1800000001, "pid": 7, "comm": "app", "disk": "sda", "op": "write", "sequential": 1},
         {"fact": "place_row", "at": 1800000001, "pid": 7, "comm": "app", "columns": {"file": "/data/a", "seen": "/a"}},
         {"fact": "held_row", "at": 1800000001, "pid": 7, "comm": "app", "file": "/data/gone", "ino": 12, "mount": "/data", "bytes": 1 << 20, "holders": 1},
         {"run": "net", "from": 1800000000, "to": 1800000030, "bucket_s": 10},
         {"fact": "flow_row", "at": 1800000001, "pid": 7, "comm": "app", "container": "web", "side": "client", "protocol": "tcp", "peer": "10.0.0.5",
          "port": "5432", "owner": "opener", "mate": {"pid": 18, "comm": "postgres"}, "attempts": 3, "opened": 2, "refused": 1, "tx_bytes": 10,
          "rx_bytes": 20, "rtt_sum_us": 30, "rtt_n": 2, "open_now": 1},
         {"fact": "flow_row", "at": 1800000001, "pid": 18, "comm": "postgres", "side": "server", "protocol": "tcp", "peer": "10.0.0.1",
          "port": "5432", "owner": "holder", "mate": {"pid": 7, "comm": "app"}, "opened": 2, "tx_bytes": 20, "rx_bytes": 10},
         {"fact": "listener_row", "at": 1800000001, "pid": 18, "comm": "postgres", "protocol": "tcp", "address": "0.0.0.0", "port": "5432",
          "open_to": "network", "backlog": 0, "backlog_max": 244, "dropped": 0},
         {"fact": "netns_row", "at": 1800000001, "netns": "4026531833", "active_opens": 3, "seen_attempts": 3},
         {"fact": "connection_row", "at": 1800000001, "pid": 7, "comm": "app", "side": "client", "protocol": "tcp", "peer": "10.0.0.5",
          "port": "5432", "client_port": "40000", "result": "refused", "connect_us": 90},
         {"fact": "flow_mark_row", "at": 1800000001, "pid": 7, "comm": "app", "side": "client", "peer": "10.0.0.5", "port": "5432", "mark": 7, "n": 1},
         {"fact": "peer_name_row", "at": 1800000001, "pid": 7, "comm": "app", "address": "10.0.0.5", "name": "db.example.com", "how": "hosts", "n": 1},
         {"run": "l7", "from": 1800000000, "to": 1800000030, "bucket_s": 10},
         {"fact": "request_log_row", "at": 1800000001, "pid": 7, "comm": "app", "side": "client", "protocol": "http", "service": "10.0.0.5:80",
          "operation": "GET /", "nth": "1", "at_us": 1800000001000005, "status": "200", "result": "ok", "why": "slow", "weight": 1, "tid": 7, "first_us": 5,
          "total_us": 9, "request_bytes": 10, "response_bytes": 20, "trace": ""},
         {"fact": "request_span_row", "at": 1800000001, "pid": 7, "comm": "app", "side": "client", "span": 11, "nth": "1", "parent": 12, "how": "thread"},
         {"fact": "request_log_row", "at": 1800000001, "pid": 7, "comm": "app", "side": "server", "protocol": "http", "service": "10.0.0.7:80",
          "operation": "GET /", "nth": "2", "at_us": 1800000001000001, "status": "200", "result": "ok", "why": "slow", "weight": 1, "tid": 7, "first_us": 9,
          "total_us": 19, "request_bytes": 10, "response_bytes": 20, "trace": ""},
         {"fact": "request_span_row", "at": 1800000001, "pid": 7, "comm": "app", "side": "server", "span": 12, "nth": "2", "how": ""},
         {"fact": "request_running_row", "at": 1800000001, "pid": 7, "comm": "app", "columns": {
             "side": "client", "id": 11, "protocol": "http", "service": "10.0.0.5:80", "operation": "GET /", "client": "10.0.0.7", "port": 4000, "result": "",
             "at_us": 1799999999000000, "seen_us": 1800000001000000, "tid": 7, "request_bytes": 10, "response_bytes": 0, "trace": ""}},
         {"fact": "request_bytes_row", "at": 1800000001, "pid": 7, "comm": "app", "side": "client", "protocol": "http", "service": "10.0.0.5:80",
          "seen": 30, "parsed": 30, "skipped": 0, "blind": 0, "blind_requests": 0}]


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("s") / "kinds")
    return put(folder, [{"run": "offcpu", "from": 1800000000, "to": 1800000010}, {**WAIT, "at": 1800000001},
                        *WAITS, {"run": "goheap", "from": 1800000000, "to": 1800000030, "bucket_s": 10},
                        {"rate": 524288, "pid": 7, "at": 1800000000}, {**HEAP, "kind": "alloc", "at": 1800000005},
                        {**HEAP, "kind": "inuse", "at": 1800000005},
                        {**HEAP, "kind": "inuse", "at": 1800000015, "n": 4, "value": 4096},
                        *({"kind": "inuse", "at": at, "pid": 7, "n": 0, "value": 0, "stack": []} for at in
                          (1800000005, 1800000015)),
                        {"note": "version", "text": "go1.26.8", "pid": 7}, {"note": "state", "text": "read", "pid": 7},
                        {"run": "scrape", "from": 1800000000, "to": 1800000030, "bucket_s": 10},
                        {"kind": "gomutex", "n": 3, "value": 9000000, "stack": ["main", "lock"], "pid": 7, "at": 1800000005},
                        {"kind": "wallclock", "n": 3, "value": 30000000, "stack": ["main", "get"], "pid": 7, "at": 1800000005, "labels": '{"endpoint":"/a"}'},
                        {"note": "state", "text": "asked", "pid": 7}, {"note": "address", "text": "127.0.0.1:6060", "pid": 7},
                        *FACTS, {"end": 2, "status": 11, "pid": 8, "comm": "crashed", "at": 1800000016},
                        {"run": "replay", "from": 1800000000, "to": 1800000002},
                        {"request": "GET /", "status": "200", "n": 3, "total_ns": 9000, "max_ns": 5000, "at": 1800000001},
                        {"request": "GET /", "status": "200", "part": 2, "side": 2, "n": 3, "total_ns": 400, "max_ns": 300, "at": 1800000001},
                        {"request": "GET /", "status": "503", "result": 1, "n": 1, "total_ns": 700, "max_ns": 700, "at": 1800000001}])


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """A segment that was archived; another one is the newest."""
    folder = str(tmp_path_factory.mktemp("s") / "archive")
    path, _ = make(folder)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE meta SET value = 'another' WHERE key = 'boot_id'")
    make(folder)
    subprocess.run([os.path.join(BUILD, "bin", "sonde-seal"), "--store", folder, "--quiet"], check=True)
    return path


def ask(path, query):
    need("sqlite3")
    extension = ["-cmd", f".load {BUILD}/lib/sonde"] if "sonde_" in query else []
    done = subprocess.run(["sqlite3", "-readonly", "-csv", "-header", *extension, path, query], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0 and not done.stderr, f"{query}\n{done.stderr}"
    return list(csv.DictReader(io.StringIO(done.stdout)))


@pytest.mark.parametrize("n", range(len(QUERIES)))
def test_each_query_of_the_document_runs_and_answers(n, plain, two_runs, kinds, archive):
    of_kinds = re.search("how|java_|block_devices|slow_blocks|fsyncs|lasting_fsyncs|failed_opens|disk_files|file_calls|lock_waits|held_files|FROM probe|FROM log|amount|kinds|labelled|go_|scraped|notes|_stats|_logs|FROM (events|oom|flows|flow_marks|edges|net_failures|listeners|connections|wait|wakers|runqueue|neighbours|throttling|steal|slowed|standing|request|running)",
                         QUERIES[n])
    path = two_runs[0] if re.search("run_hidden|sonde_", QUERIES[n]) else kinds if of_kinds else plain[0]
    if "FROM packed_table" in QUERIES[n]:
        path = archive
    assert ask(path, QUERIES[n]), QUERIES[n]


def test_the_document_names_every_view_and_table(plain):
    with sqlite3.connect(f"file:{plain[0]}?mode=ro", uri=True) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type IN ('view', 'table')"):
            assert re.search(rf"\b{name}\b", DOC), f"{name} is not in docs/SCHEMA.md"


def test_every_table_is_strict_and_every_column_has_a_comment(plain):
    with sqlite3.connect(f"file:{plain[0]}?mode=ro", uri=True) as db:
        for name, sql in db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"):
            assert "STRICT" in sql.splitlines()[-1], name
            lines = sql.splitlines()
            assert "--" in lines[0], f"{name} has no comment"
            for line in lines[1:-1]:
                if not line.strip().startswith("PRIMARY KEY("):
                    assert "--" in line, f"{name}: {line.strip()} has no comment"


def test_the_columns_people_rely_on_are_there(plain):
    must = {
        "cpu_samples": "time ts container comm pid thread function module file line samples cpu_ns stack_id",
        "stacks": "id depth folded", "stack_frames": "stack_id depth function module file line",
        "functions_top": "function module container self total", "processes": "id pid comm exe args container",
        "containers": "id name runtime image", "functions": "id function module file line",
        "amounts": "time ts container comm pid thread type function module file line stack_id n value max hist label rate",
        "kinds": "id name class unit_n unit_value", "amount_spread": "ts series_id low high n", "loss": "time reason lost run_id", "cost": "time program cpu_ns run_id",
        "runs": "id family options scope from_ns to_ns period_ns",
    }
    with sqlite3.connect(f"file:{plain[0]}?mode=ro", uri=True) as db:
        for view, columns in must.items():
            have = {row[1] for row in db.execute(f"PRAGMA table_info({view})")}
            assert set(columns.split()) <= have, view


def test_the_views_agree_with_what_was_put_there(plain):
    path, told = plain
    total = ask(path, "SELECT sum(samples) AS n, sum(cpu_ns) AS ns FROM cpu_samples")[0]
    assert int(total["n"]) == told["samples"]
    assert int(total["ns"]) == told["samples"] * told["period_ns"]
    top = ask(path, "SELECT sum(self) AS n FROM functions_top")[0]
    assert int(top["n"]) == told["samples"] - told["self_samples"]
    assert ask(path, "SELECT count(*) AS n FROM stacks k WHERE depth <> (SELECT count(*) FROM stack_frames f"
                     " WHERE f.stack_id = k.id) OR depth <> 1 + length(folded) - length(replace(folded, ';', ''))"
               )[0]["n"] == "0"


def test_command_lines_that_share_text_come_out_whole(plain):
    got = {int(r["pid"]): r["args"] for r in ask(plain[0], "SELECT pid, args FROM processes WHERE NOT self")}
    assert got == {1000 + i: f"server --number {i} --port {8000 + i}" for i in range(plain[1]["processes"])}


def test_two_captures_at_once_are_not_counted_twice(two_runs):
    path, told = two_runs
    seconds = told["to"] - told["from"]
    got = ask(path, "SELECT comm, sum(cpu_ns) AS ns FROM cpu_samples GROUP BY comm")
    assert len(got) == told["processes"]
    for row in got:  # each process was busy all the time
        assert abs(int(row["ns"]) / (seconds * 1e9) - 1) < 1e-6, row


def test_what_is_in_memory_is_the_last_row_of_each_series(kinds):
    query = next(q for q in QUERIES if "'inuse'" in q)
    assert ask(kinds, query)[0] | {"pid": ""} == {"comm": "app", "pid": "", "function": "make", "file": "app.go", "line": "12",
                                                  "objects": "4", "bytes": "4096"}


def test_waits_are_told_in_milliseconds_and_by_their_spread(kinds):
    row = ask(kinds, next(q for q in QUERIES if "longest_ns" in q))[0]
    assert (row["type"], row["events"], row["ms"], row["longest_ns"]) == ("offcpu", "3", "9.0", "5000000")
    spread = ask(kinds, next(q for q in QUERIES if "amount_spread" in q))
    assert [(r["low"], r["n"]) for r in spread if r["type"] == "offcpu"] == [("2097152", "2"), ("4194304", "1")]


def test_what_threads_did_adds_up_by_thread_reason_and_bucket(kinds):
    def one(query):
        return ask(kinds, query)[0]
    disk = one("SELECT * FROM wait_totals WHERE reason = 'disk'")
    assert [disk[k] for k in ("ts", "state", "count", "total_ns", "max_ns", "iowait", "uninterruptible", "began_before",
                              "unfinished", "hist")] == ["1800000001", "blocked", "5", "10000", "5000", "1", "1", "0", "0",
                                                         "[9,2,0,2,1]"]
    assert one("SELECT sum(total_ns) AS n FROM wait_totals WHERE state = 'running' AND began_before")["n"] == "5000"
    assert one("SELECT count, total_ns FROM runqueue WHERE reason = 'preempted'") == {"count": "4", "total_ns": "700"}
    on = one("SELECT * FROM wait_objects")
    assert (on["object"], on["reason"], on["count"], on["total_ns"], on["by_pid"]) == ("/a/file", "disk", "5", "10000", "9")
    stood = one("SELECT * FROM standing")
    assert (stood["reason"], stood["function"], stood["threads"], stood["waited_ns"]) == ("network", "recv", "1", "70000")
    by = one("SELECT * FROM wakers")
    assert (by["by_comm"], by["by_pid"], by["context"], by["count"], by["reason"]) == ("burner", "9", "interrupt", "5", "disk")
    assert ask(kinds, "SELECT who, by_comm, total_ns FROM neighbours ORDER BY who") == [
        {"who": "idle", "by_comm": "", "total_ns": "100"}, {"who": "thread", "by_comm": "burner", "total_ns": "600"}]
    assert one("SELECT cgroup, throttled, throttled_ns FROM throttling") == {
        "cgroup": "/docker/abc", "throttled": "4", "throttled_ns": "70000"}
    assert one("SELECT family, step, stack_rate FROM slowed") == {"family": "offcpu", "step": "2", "stack_rate": "62"}
    assert one("SELECT steal_ns, cpu_ns FROM steal") == {"steal_ns": "5", "cpu_ns": "2000000000"}
    assert one("SELECT sum(count) AS n, sum(total_ns) AS ns FROM waits") == {"n": "3", "ns": "9000000"}


def test_what_go_holds_is_told_whole_beside_what_was_sampled(kinds):
    def one(query):
        return ask(kinds, query)[0]
    factor = 1 / (1 - math.exp(-1024 / 524288))
    row = one("SELECT * FROM go_heap")
    assert [row[k] for k in ("comm", "function", "file", "line", "object_bytes", "alloc_bytes_raw", "inuse_bytes_raw")] == [
        "app", "make", "app.go", "12", "1024", "10240", "4096"]
    assert (int(row["alloc_objects"]), int(row["inuse_bytes"])) == (int(10 * factor), int(4096 * factor))
    row = one("SELECT * FROM go_heap_growth")
    assert int(row["growth_bytes"]) == int(-6144 * factor) and float(row["bytes_per_s"]) < 0
    row = one("SELECT * FROM go_alloc_rate")  # the first reading has no time that it stands for
    assert (row["seconds"], row["bytes"]) == ("10", "0")
    assert one("SELECT version, state, rate FROM go_processes") == {"version": "go1.26.8", "state": "read", "rate": "524288"}


def test_what_containers_and_processes_used_has_names_and_null_for_what_was_not_measured(kinds):
    row = ask(kinds, "SELECT * FROM container_stats")[0]
    assert [row[k] for k in ("ts", "seconds", "container", "cgroup", "user_us", "mem_limit", "rx_bytes")] == [
        "1800000000", "10", "web", "/docker/abc", "3", str(1 << 26), ""]
    assert {r["cgroup"]: r["kind"] for r in ask(kinds, "SELECT cgroup, kind FROM cgroup_stats")} == {
        "/docker/abc": "container", "/system.slice": "slice"}
    row = ask(kinds, "SELECT container, comm, n, user_us + system_us AS us, self FROM ended_stats")[0]
    assert row == {"container": "web", "comm": "sh", "n": "5", "us": "70", "self": "0"}
    row = ask(kinds, "SELECT comm, pid, rss, self FROM process_stats")[0]
    assert row == {"comm": "app", "pid": "7", "rss": str(1 << 21), "self": "0"}


def test_of_a_connection_with_both_ends_here_an_edge_is_the_client_s(kinds):
    assert ask(kinds, "SELECT container, comm, peer_comm, port, opened, refused, tx_bytes FROM edges") == [
        {"container": "web", "comm": "app", "peer_comm": "postgres", "port": "5432", "opened": "2", "refused": "1", "tx_bytes": "10"}]
    assert [r["comm"] for r in ask(kinds, "SELECT comm FROM flows")] == ["app", "postgres"]
