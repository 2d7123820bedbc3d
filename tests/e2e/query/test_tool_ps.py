# SPDX-License-Identifier: Apache-2.0
"""`sonde ps` and `sonde containers`: every figure is what SQL says of the same window."""
import collections
import json
import os
import pwd
import sqlite3
import subprocess

import pytest
from conftest import BUILD, need, segments

AT = 1795144200


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("ps") / "store")
    program = os.path.join(BUILD, "tests", "makestore")
    need("build/tests/makestore", program)
    said = json.loads(subprocess.run([program, path, "--rows", "6000", "--segments", "3", "--at", str(AT)], check=True,
                                     capture_output=True, text=True).stdout)
    return path, ["--from", str(said["from"]), "--to", str(said["to"]), "--self", "-n", "100000"]


@pytest.fixture(scope="module")
def by_sql(made):
    """CPU time by (pid, comm), by container, and by (pid, function that one would name)."""
    processes, containers, functions = (collections.Counter() for _ in range(3))
    for path in segments(made[0]):
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        # of a stack with code that a JIT made from a file that is known: the innermost of that, whatever it calls
        jit = dict(db.execute("SELECT stack_id, function FROM stack_frames WHERE module = '[jit]' AND file <> '' AND function NOT LIKE '%+0x%' "
                              "ORDER BY CAST(depth AS INTEGER)"))
        for pid, comm, container, stack, function, ns in db.execute(
                "SELECT pid, comm, container, stack_id, function, sum(cpu_ns) FROM cpu_samples GROUP BY 1, 2, 3, 4, 5"):
            function = jit.get(stack, function)
            processes[pid, comm] += ns
            containers[container or "[host]"] += ns
            functions[pid, function] += ns
        db.close()
    return processes, containers, functions


def answer(sonde, verb, made, *more):
    return json.loads(sonde(verb, *made[1], *more, "--json", store=made[0], check=True).stdout)


def test_processes_have_the_cpu_time_that_sql_says(sonde, made, by_sql):
    said = answer(sonde, "ps", made)
    mine = collections.Counter()
    for row in said["rows"]:
        mine[row["pid"], row["comm"]] += row["cpu_ns"]
    assert mine == by_sql[0] and len(mine) > 1
    assert said["cpu_ns"] == sum(by_sql[0].values())
    assert [r["cpu_ns"] for r in said["rows"]] == sorted((r["cpu_ns"] for r in said["rows"]), reverse=True)
    assert abs(sum(r["share"] for r in said["rows"]) - 1) < 1e-6


def test_the_function_of_a_process_is_its_hottest_by_sql(sonde, made, by_sql):
    for row in answer(sonde, "ps", made)["rows"]:
        of = {f: ns for (pid, f), ns in by_sql[2].items() if pid == row["pid"] and f}
        assert of[row["top_function"]] == max(of.values())
        assert row["top_share"] == pytest.approx(max(of.values()) / row["cpu_ns"], abs=1e-6)


def test_containers_have_the_cpu_time_that_sql_says(sonde, made, by_sql):
    said = answer(sonde, "containers", made)
    assert {r["container"]: r["cpu_ns"] for r in said["rows"]} == dict(by_sql[1])
    assert len(by_sql[1]) > 1
    assert sum(r["processes"] for r in said["rows"]) == len(answer(sonde, "ps", made)["rows"])


def test_fewer_rows_are_told_and_sorting_is_by_the_key(sonde, made):
    few = answer(sonde, "ps", made, "-n", "1")
    assert len(few["rows"]) == 1 and "more rows" in few["warnings"][0]
    pids = [r["pid"] for r in answer(sonde, "ps", made, "--sort", "pid")["rows"]]
    assert pids == sorted(pids)
    done = sonde("ps", *made[1], "--sort", "colour", store=made[0])
    assert done.returncode == 2 and "start" in done.stderr


def test_the_table_is_plain_and_no_wider_than_100_columns_when_piped(sonde, made):
    done = sonde("ps", *made[1], store=made[0], check=True)
    assert done.stdout.splitlines()[0].split()[:4] == ["PID", "CORES", "SHARE", "COMMAND"]
    assert "\x1b" not in done.stdout and max(map(len, done.stdout.splitlines())) <= 100


def test_a_window_without_samples_is_exit_4_with_what_to_try(sonde, made):
    for verb in ("ps", "containers"):
        done = sonde(verb, "--from", "1990-01-01", "--to", "1990-01-02", store=made[0])
        assert done.returncode == 4 and "sonde" in done.stderr
        assert done.stdout == ""


def test_a_parent_is_named_where_it_ran_too(sonde, tmp_path):
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    who = [{"pid": 1, "comm": "make"}, {"pid": 70, "comm": "cc1"}, {"pid": 71, "comm": "cc1"}]   # putstore: children of 1
    lines = [{"run": "cpu", "from": AT, "to": AT + 10, "bucket_s": 1, "period_ns": 10101010},
             *({"kind": "cpu", "at": AT + 1, "n": 9, "stack": ["main"], **w} for w in who)]
    store = str(tmp_path / "store")
    subprocess.run([program, store], input="\n".join(map(json.dumps, lines)), text=True, check=True)
    rows = {r["pid"]: r for r in json.loads(sonde("ps", "--json", store=store, check=True).stdout)["rows"]}
    assert [rows[p]["parent_comm"] for p in (1, 70, 71)] == [None, "make", "make"]
    assert "make 1 " in sonde("ps", store=store, check=True).stdout


def test_how_a_process_ended_is_told(sonde, tmp_path):
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    who = {70: (1, 3, "exit 3"), 71: (2, 11, "signal 11 (SEGV)"), 72: (3, 9, "out of memory"), 73: (0, 0, None)}
    lines = [{"run": "cpu", "from": AT, "to": AT + 10, "bucket_s": 1, "period_ns": 10101010}]
    for pid, (how, status, _) in who.items():
        lines.append({"kind": "cpu", "at": AT + 1, "n": 9, "stack": ["main"], "pid": pid, "comm": "job"})
        if how:
            lines.append({"end": how, "status": status, "at": AT + 2, "pid": pid, "comm": "job"})
    store = str(tmp_path / "store")
    subprocess.run([program, store], input="\n".join(map(json.dumps, lines)), text=True, check=True)
    rows = {r["pid"]: r for r in json.loads(sonde("ps", "--json", store=store, check=True).stdout)["rows"]}
    assert {p: r["how"] for p, r in rows.items()} == {p: w[2] for p, w in who.items()}
    assert rows[71]["status"] == 11 and rows[73]["status"] is None and rows[73]["ended"] is None
    table = sonde("ps", "--wide", store=store, check=True).stdout
    assert "ENDED" in table and all(w[2] in table for w in who.values() if w[2])


def test_a_process_has_its_user_s_name_where_this_host_has_one_for_it(sonde, made):
    rows = answer(sonde, "ps", made)["rows"]
    for row in rows:
        try:
            name = pwd.getpwuid(row["uid"]).pw_name
        except KeyError:
            name = str(row["uid"])
        assert row["user"] == (str(row["uid"]) if row["container_id"] else name)


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """Two containers and three processes that were measured; one of each used no CPU that was sampled. `web` is measured twice at once."""
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    store = str(tmp_path_factory.mktemp("used") / "store")
    web, db = {"container": "web", "container_id": "a" * 64}, {"container": "db", "container_id": "b" * 64}
    lines = [{"run": "cpu", "from": AT, "to": AT + 60, "bucket_s": 10, "period_ns": 10101010},
             {"kind": "cpu", "at": AT + 1, "n": 99, "stack": ["main"], "pid": 70, "comm": "nginx", **web},
             {"kind": "cpu", "at": AT + 1, "n": 9, "stack": ["main"], "pid": 80, "comm": "cron"},
             {"run": "host", "from": AT, "to": AT + 60, "bucket_s": 10}]
    for i in range(6):
        at = {"at": AT + 10 * i}
        lines += [
            {"fact": "cgroup_row", "cgroup": "/docker/web", **web, **at, "user_us": 100, "system_us": 50, "working": (20 + i) << 20,
             "mem_limit": 64 << 20, "read_bytes": 1 << 20, "write_bytes": 2 << 20, "rx_bytes": 1000, "tx_bytes": 500, "throttled_us": 7000},
            {"fact": "cgroup_row", "cgroup": "/docker/db", **db, **at, "user_us": 0, "system_us": 0, "working": 200 << 20,
             "read_bytes": 0, "write_bytes": 0},
            {"fact": "process_row", "pid": 70, "comm": "nginx", **web, **at, "rss": (10 + i) << 20, "read_bytes": 1 << 20, "write_bytes": 0},
        ]
    lines.append({"fact": "process_row", "pid": 71, "comm": "sleeper", "at": AT, "rss": 500 << 20, "read_bytes": 5, "write_bytes": 6})
    lines += [{"run": "host", "from": AT + 10, "to": AT + 20, "bucket_s": 1},
              *({"fact": "cgroup_row", "cgroup": "/docker/web", **web, "at": AT + 10 + i, "working": 21 << 20, "mem_limit": 64 << 20,
                 "read_bytes": 1 << 17, "write_bytes": 0, "rx_bytes": 0, "tx_bytes": 0, "throttled_us": 0} for i in range(8))]
    subprocess.run([program, store], input="\n".join(map(json.dumps, lines)), text=True, check=True)
    return store, ["--from", str(AT), "--to", str(AT + 60)]


def test_containers_have_memory_with_its_limit_and_what_went_in_and_out(sonde, used):
    rows = {r["container"]: r for r in answer(sonde, "containers", used)["rows"]}
    assert set(rows) == {"web", "db", "[host]"}
    web, db = rows["web"], rows["db"]
    assert (web["mem_bytes"], web["mem_limit_bytes"]) == (25 << 20, 64 << 20)
    assert (web["read_bytes"], web["write_bytes"]) == (6 << 20, 10 << 20)  # of one bucket the finer capture's
    assert (web["rx_bytes"], web["tx_bytes"], web["throttled_ns"]) == (5000, 2500, 35000000)
    assert (db["mem_bytes"], db["mem_limit_bytes"], db["read_bytes"], db["rx_bytes"], db["cpu_ns"]) == (200 << 20, None, 0, None, 0)
    assert rows["[host]"]["mem_bytes"] is None and db["container_id"] == "b" * 64
    table = sonde("containers", *used[1], store=used[0], check=True).stdout
    assert [c for c in table.splitlines()[0].split() if c in ("MEM", "LIMIT", "IO", "NET")] == ["MEM", "LIMIT", "IO", "NET"]
    for key, order in (("mem", ["db", "web"]), ("io", ["web", "db"]), ("net", ["web", "db"])):
        sorted_rows = answer(sonde, "containers", (used[0], [*used[1], "--sort", key]))["rows"]
        assert [r["container"] for r in sorted_rows if r["container"] != "[host]"] == order
    narrow = answer(sonde, "containers", (used[0], [*used[1], "--container", "web"]))["rows"]
    assert [r["container"] for r in narrow] == ["web"]


def test_processes_have_memory_and_are_found_by_it_though_they_used_no_cpu(sonde, used):
    rows = {r["comm"]: r for r in answer(sonde, "ps", used)["rows"]}
    assert set(rows) == {"nginx", "cron"}
    # of one bucket the finer capture counts, and it saw nothing move
    assert (rows["nginx"]["mem_bytes"], rows["nginx"]["read_bytes"]) == (15 << 20, 5 << 20)
    assert rows["cron"]["mem_bytes"] is None
    by_mem = answer(sonde, "ps", (used[0], [*used[1], "--sort", "mem"]))["rows"]
    assert [(r["comm"], r["mem_bytes"]) for r in by_mem] == [("sleeper", 500 << 20), ("nginx", 15 << 20), ("cron", None)]
    assert [r["comm"] for r in answer(sonde, "ps", (used[0], [*used[1], "--sort", "io"]))["rows"]][0] == "nginx"


def test_what_was_not_measured_is_no_key_and_says_what_to_record(sonde, made):
    assert "mem_bytes" not in answer(sonde, "ps", made)["rows"][0]
    for verb in ("ps", "containers"):
        done = sonde(verb, "--sort", "mem", *made[1], store=made[0])
        assert done.returncode == 4 and "not recorded" in done.stderr and "--families cpu,host" in done.stderr


def test_what_was_used_is_told_where_no_cpu_time_was_recorded(sonde, tmp_path):
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    store = str(tmp_path / "store")
    lines = [{"run": "host", "from": AT, "to": AT + 10, "bucket_s": 10},
             {"fact": "process_row", "pid": 71, "comm": "small", "at": AT, "rss": 5 << 20},
             {"fact": "process_row", "pid": 72, "comm": "large", "at": AT, "rss": 500 << 20},
             {"fact": "cgroup_row", "cgroup": "/docker/web", "container": "web", "container_id": "a" * 64, "at": AT, "working": 1 << 20}]
    subprocess.run([program, store], input="\n".join(map(json.dumps, lines)), text=True, check=True)
    rows = json.loads(sonde("ps", "--json", store=store, check=True).stdout)["rows"]
    assert [(r["comm"], r["mem_bytes"], r["cpu_ns"]) for r in rows] == [("large", 500 << 20, 0), ("small", 5 << 20, 0)]
    (web,) = json.loads(sonde("containers", "--json", store=store, check=True).stdout)["rows"]
    assert (web["container"], web["mem_bytes"]) == ("web", 1 << 20)
    assert sonde("ps", store=store, check=True).stdout.count("\n") == 3


def test_short_lived_processes_are_sums_and_the_rest_is_told(sonde, tmp_path):
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    store = str(tmp_path / "store")
    web = {"container": "web", "container_id": "a" * 64}
    short = {"fact": "ended_row", **web}
    lines = [{"run": "host", "from": AT, "to": AT + 20, "bucket_s": 10}]
    for i in range(2):
        at = {"at": AT + 10 * i}
        lines += [{"fact": "host_row", **at, "user_us": 5000000, "nice_us": 0, "system_us": 1000000, "irq_us": 1000, "softirq_us": 0},
                  {"fact": "cgroup_row", "cgroup": "/docker/web", **web, **at, "user_us": 3000000, "system_us": 10000},
                  {"fact": "process_row", "pid": 72, "comm": "large", **at, "user_us": 2000000, "system_us": 0},
                  {"fact": "process_row", "pid": 70, "comm": "nginx", **web, **at, "user_us": 1000000, "system_us": 0},
                  {**short, **at, "columns": {"cgroup": "/docker/web", "comm": "sh", "n": 30, "user_us": 1500000, "system_us": 500000,
                                              "lived_us": 3000000, "rss_max": 1 << 20, "self": 0}},
                  {"fact": "ended_row", **at, "columns": {"cgroup": "/", "comm": "sonde-index", "n": 1, "user_us": 900000, "system_us": 0, "self": 1}}]
    subprocess.run([program, store], input="\n".join(map(json.dumps, lines)), text=True, check=True)
    said = json.loads(sonde("ps", "--json", "--with", "ended", "--sort", "cpu", store=store, check=True).stdout)
    assert [(r["comm"], r["cpu_used_ns"]) for r in said["rows"]] == [("large", 4 * 10**9), ("nginx", 2 * 10**9)]
    assert [(r["comm"], r["container"], r["processes"], r["cpu_used_ns"], r["mean_lived_ns"]) for r in said["ended"]] == [
        ("sh", "web", 60, 4 * 10**9, 10**8)]
    assert said["cpu_charged_ns"] == 12002 * 10**6 and said["cpu_unattributed_ns"] == (12002 - 4000 - 2000 - 4000 - 1800) * 10**6
    narrow = json.loads(sonde("ps", "--json", "--with", "ended", "--container", "web", store=store, check=True).stdout)
    assert [r["comm"] for r in narrow["ended"]] == ["sh"] and "cpu_unattributed_ns" not in narrow
    assert json.loads(sonde("ps", "--json", "--container", "!web", store=store, check=True).stdout)["ended_total"] == 0
    (row,) = json.loads(sonde("containers", "--json", store=store, check=True).stdout)["rows"]
    assert (row["cpu_used_ns"], row["ended_processes"], row["cpu_unattributed_ns"]) == (6020 * 10**6, 60, 20 * 10**6)
    lines = sonde("ps", store=store, check=True).stdout.splitlines()
    assert [line for line in lines if "sh (60 short-lived)" in line and "web" in line and " 4 s " in line], lines
    assert [line for line in lines if "[unattributed]" in line and "202 ms" in line], lines


# ---- who read and wrote, and who holds memory ----

def hosted(tmp_path, *lines):
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    store = str(tmp_path / "store")
    subprocess.run([program, store], input="\n".join(map(json.dumps, [{"run": "host", "from": AT, "to": AT + 60, "bucket_s": 10}, *lines])), text=True,
                   check=True)
    return store


def moved(pid, comm, at, read, write, **more):
    return {"fact": "process_row", "pid": pid, "comm": comm, "at": AT + at, "rss": 1 << 20, "user_us": 0, "system_us": 0, "read_bytes": read,
            "write_bytes": write, "start": AT - 100 + pid, **more}


def test_what_a_child_read_and_wrote_is_not_counted_again_for_its_ancestors(sonde, tmp_path):
    """As the kernel has it: a process that waits for its child's end has the child's bytes, too."""
    mib = 1 << 20
    store = hosted(tmp_path, moved(10, "make", 0, 1 * mib, 2 * mib), moved(20, "sh", 0, 0, mib, ppid=10), moved(30, "dd", 0, 40 * mib, 50 * mib, ppid=20),
                 {"end": 1, "at": AT + 8, "pid": 30, "comm": "dd", "start": AT - 70, "ppid": 20}, moved(20, "sh", 10, 40 * mib, 50 * mib, ppid=10),
                 {"end": 1, "at": AT + 18, "pid": 20, "comm": "sh", "start": AT - 80, "ppid": 10}, moved(10, "make", 20, 40 * mib, 51 * mib),
                 moved(40, "runs", 0, 7 * mib, 0, ppid=10))
    rows = json.loads(sonde("ps", "--sort", "io", "--json", store=store, check=True).stdout)["rows"]
    assert [(r["comm"], r["read_bytes"] // mib, r["write_bytes"] // mib) for r in rows] == [("dd", 40, 50), ("runs", 7, 0), ("make", 1, 2), ("sh", 0, 1)]


def test_a_child_whose_parent_did_not_wait_for_it_takes_nothing_off(sonde, tmp_path):
    store = hosted(tmp_path, moved(10, "daemon", 0, 100, 100), moved(30, "dd", 0, 4000, 5000, ppid=10),
                 {"end": 1, "at": AT + 8, "pid": 30, "comm": "dd", "start": AT - 70, "ppid": 10})
    rows = {r["comm"]: r["read_bytes"] for r in json.loads(sonde("ps", "--sort", "io", "--json", store=store, check=True).stdout)["rows"]}
    assert rows == {"daemon": 100, "dd": 4000}


def group(name, **more):
    return {"fact": "cgroup_row", "cgroup": f"/docker/{name}", "container": name, "container_id": name, "at": AT + 10, "user_us": 1, "system_us": 0, **more}


def test_io_that_a_cgroup_did_not_count_is_its_processes_and_has_its_column(sonde, tmp_path):
    web = {"container": "web", "container_id": "web"}
    store = hosted(tmp_path, group("web", read_bytes=0, write_bytes=0), group("db", read_bytes=1 << 20, write_bytes=1 << 20), group("bare"),
                 moved(10, "nginx", 0, 3 << 20, 4 << 20, **web), moved(11, "nginx", 0, 0, 1 << 20, **web))
    rows = {r["container"]: r for r in json.loads(sonde("containers", "--sort", "io", "--json", store=store, check=True).stdout)["rows"]}
    assert list(rows) == ["web", "db", "bare"]
    assert [(r["read_bytes"], r["write_bytes"], r["io_of_processes"]) for r in rows.values()] == [
        (3 << 20, 5 << 20, True), (1 << 20, 1 << 20, False), (None, None, False)]
    head, first, _, last = sonde("containers", "--sort", "io", store=store, check=True).stdout.splitlines()
    assert "IO" in head.split() and "8.0 MiB" in first.replace("8 MiB", "8.0 MiB") and last.startswith("bare")


def test_memory_that_can_be_given_back_ranks_below_what_cannot(sonde, tmp_path):
    store = hosted(tmp_path, group("cache", working=900 << 20, mem=950 << 20, anon=20 << 20, kernel=5 << 20),
                 group("leak", working=400 << 20, mem=400 << 20, anon=380 << 20, kernel=10 << 20), group("old", working=100 << 20))
    rows = json.loads(sonde("containers", "--sort", "mem", "--json", store=store, check=True).stdout)["rows"]
    assert [(r["container"], r["mem_held_bytes"] >> 20, r["mem_bytes"] >> 20) for r in rows] == [("leak", 390, 400), ("old", 100, 100), ("cache", 25, 900)]
    table = sonde("containers", "--sort", "mem", store=store, check=True).stdout.splitlines()
    assert "HELD" in table[0].split() and table[1].startswith("leak")


def test_rates_are_over_the_time_whose_buckets_are_counted(sonde, tmp_path):
    """One core and ten requests a second all the time, in buckets of ten seconds of which the last goes on: no window says less or more,
    wherever it begins and ends."""
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    store, who, now = str(tmp_path / "store"), {"pid": 71, "comm": "busy"}, AT + 7
    span = {"from": AT - 600, "to": now, "bucket_s": 10}
    buckets = [(at, min(10, now - at)) for at in range(AT - 600, now, 10)]
    lines = [{"run": "cpu", "period_ns": 10**7, **span}, *({"kind": "cpu", "at": at, "n": 100 * s, "stack": ["main"], **who} for at, s in buckets),
             {"run": "l7", **span}, *({"request": "GET /", "protocol": "http", "service": "10.0.0.1:80", "side": 2, "status": "200", "result": 0,
                                       "at": at, "n": 10 * s, "total_ns": 10**7, "max_ns": 10**6, **who} for at, s in buckets)]
    subprocess.run([program, store], input="\n".join(map(json.dumps, lines)), text=True, check=True)
    for begin, end in ((AT - 13, now), (AT - 23, now), (AT - 53, now), (AT - 47, AT - 26), (AT - 60, AT - 20), (AT - 600, now)):
        window = ["--from", str(begin), "--to", str(end), "--json"]
        (row,) = json.loads(sonde("ps", *window, store=store, check=True).stdout)["rows"]
        assert row["cpu_cores"] == pytest.approx(1), (begin, end)
        (row,) = json.loads(sonde("requests", *window, store=store, check=True).stdout)["rows"]
        assert row["per_second"] == pytest.approx(10), (begin, end)


@pytest.mark.parametrize("stolen, samples", [(0, 100), (8, 100), (8, 10000)])
def test_what_cpu_time_by_samples_and_by_the_kernel_differ_by_is_said(sonde, tmp_path, stolen, samples):
    """Few samples are an estimate; what a hypervisor takes from a running program is in samples, and in no count of the kernel's."""
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    store, who, span = str(tmp_path / "store"), {"pid": 71, "comm": "busy"}, {"from": AT, "to": AT + 10, "bucket_s": 10}
    lines = [{"run": "cpu", "period_ns": 10**9 // samples, **span}, {"kind": "cpu", "at": AT, "n": samples, "stack": ["main"], **who}, {"run": "host", **span},
             {"fact": "process_row", "at": AT, "user_us": 900_000, "system_us": 0, "rss": 1 << 20, **who},
             {"fact": "host_row", "at": AT, "cpus": 2, "user_us": 10**6, "nice_us": 0, "system_us": 0, "irq_us": 0, "softirq_us": 0, "iowait_us": 0,
              "idle_us": 19_000_000 - stolen * 200_000, "steal_us": stolen * 200_000}]
    subprocess.run([program, store], input="\n".join(map(json.dumps, lines)), text=True, check=True)
    for narrow in ([], ["--comm", "busy"]):
        said = sonde("ps", *narrow, store=store, check=True).stderr
        assert ("estimates from samples: those of the first row from 100, ±20 %" in said) == (samples == 100), said
        assert ("the hypervisor took 8.0 % of the CPU time" in said) == bool(stolen), said
