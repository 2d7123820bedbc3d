# SPDX-License-Identifier: Apache-2.0
"""What is left of ten seconds once minutes are kept: the same sums, no time told twice, no step at the border."""
import glob
import json
import os
import shutil
import subprocess

import pytest

from conftest import BUILD, need

AT = 1795000020 // 60 * 60
CUT = 630        # the first file ends within a minute
END = 1200
WEB = {"container": "web", "container_id": "a" * 64}
TABLES = {"host_stats": ("user_us", "forks"), "container_stats": ("user_us", "read_bytes", "rx_bytes"), "process_stats": ("user_us", "write_bytes"),
          "ended_stats": ("n", "user_us"), "disk_stats": ("write_bytes",), "net_stats": ("rx_bytes",)}


def rows(start, end):
    """Everything goes on at one rate; memory grows."""
    yield {"run": "host", "from": AT + start, "to": AT + end, "bucket_s": 10}
    for t in range(start, end, 10):
        at = {"at": AT + t}
        yield {"fact": "host_row", **at, "user_us": 4000000, "nice_us": 0, "system_us": 1000000, "irq_us": 0, "softirq_us": 0, "forks": 30,
               "mem_total": 8 << 30, "mem_available": 4 << 30}
        yield {"fact": "cgroup_row", "cgroup": "/docker/web", **WEB, **at, "user_us": 2000000, "system_us": 0, "working": (100 << 20) + t,
               "read_bytes": 1 << 20, "write_bytes": 0, "rx_bytes": 5000, "tx_bytes": 0}
        yield {"fact": "process_row", "pid": 70, "comm": "nginx", **WEB, **at, "user_us": 1500000, "system_us": 0, "write_bytes": 4096,
               "read_bytes": 0, "rss": (50 << 20) + t}
        yield {"fact": "ended_row", **WEB, **at, "columns": {"cgroup": "/docker/web", "comm": "sh", "n": 3, "user_us": 500000, "system_us": 0,
                                                            "lived_us": 600000, "rss_max": 1 << 20, "self": 0}}
        yield {"fact": "disk_row", "disk": "sda", **at, "write_bytes": 1 << 20, "read_bytes": 0, "busy_us": 100000}
        yield {"fact": "nic_row", "interface": "eth0", **at, "rx_bytes": 7000, "tx_bytes": 0}
        # so that the file is worth an archive
        for i in range(8):
            yield {"fact": "process_row", "pid": 100 + i, "comm": f"idle-{i}-" + "x" * 5, **at, "user_us": 0, "system_us": 0, "rss": (i + 1) << 20}


def put(store, lines):
    subprocess.run([os.path.join(BUILD, "tests", "putstore"), store], input="\n".join(map(json.dumps, lines)), text=True, check=True)
    (path,) = glob.glob(f"{store}/2*.db")
    return path


@pytest.fixture
def made(tmp_path):
    """Two archives and the newest file, which has nothing of it."""
    need("build/tests/putstore", os.path.join(BUILD, "tests", "putstore"))
    store = str(tmp_path / "store")
    newest = put(store, [{"run": "cpu", "from": AT + 9000, "to": AT + 9060, "bucket_s": 10},
                         {"kind": "cpu", "at": AT + 9001, "n": 1, "stack": ["main"], "pid": 1, "comm": "x"}])
    assert newest
    for i, (start, end) in enumerate(((0, CUT), (CUT, END))):
        part = str(tmp_path / f"part{i}")
        shutil.move(put(part, rows(start, end)), f"{store}/2020010{i + 1}T000000Z-0001.db")
    return store


def ask(sonde, store, query):
    return json.loads(sonde("sql", "--json", query, store=store, check=True).stdout)["rows"]


def sums(sonde, store):
    return {t: ask(sonde, store, f"SELECT {', '.join(f'sum({c}) AS {c}' for c in columns)} FROM {t}") for t, columns in TABLES.items()}


def timeline(sonde, store, of):
    said = json.loads(sonde("timeline", "--of", of, "--json", "--from", str(AT), "--to", str(AT + END), store=store, check=True).stdout)
    return said["rows"]


def seal(sonde, store, *args):
    done = sonde("seal", "--json", *args, store=store, check=True)
    return json.loads(done.stdout)


def test_minutes_have_the_sums_of_the_ten_seconds_and_prune_says_so(sonde, made):
    before, sizes = sums(sonde, made), {p: os.path.getsize(p) for p in glob.glob(f"{made}/2020*.db")}
    assert seal(sonde, made)["segments"] == 2 and sums(sonde, made) == before
    dry = json.loads(sonde("prune", "--dry-run", "--age", "10000d", "--json", store=made, check=True).stdout)
    assert dry["thinned"] == 2 and sums(sonde, made) == before and ask(sonde, made, "SELECT DISTINCT seconds FROM host_stats") == [{"seconds": 10}]
    said = sonde("prune", "--age", "10000d", store=made, check=True).stdout
    assert "kept minutes of 2 archives" in said, said
    assert sums(sonde, made) == before
    again = json.loads(sonde("prune", "--age", "10000d", "--json", store=made, check=True).stdout)
    assert again["thinned"] == 0 and again["fine_seconds"] == 86400
    assert all(os.path.getsize(p) < sizes[p] for p in sizes)
    wide = ask(sonde, made, f"SELECT ts - {AT} AS t, seconds, user_us, forks FROM host_stats ORDER BY ts")
    # the minute that the cut goes through is told in two parts, each as wide as it is
    assert [(r["t"], r["seconds"]) for r in wide] == [(60 * i, 60) for i in range(10)] + [(600, 30), (630, 30)] + [(60 * i, 60) for i in range(11, 20)]
    assert all(r["user_us"] == 400000 * r["seconds"] and r["forks"] == 3 * r["seconds"] for r in wide)
    last = ask(sonde, made, f"SELECT working FROM container_stats WHERE ts = {AT + 540}")
    assert last == [{"working": (100 << 20) + 590}]  # the minute's last reading


@pytest.mark.parametrize("thinned", [0, 1, 2])
def test_what_a_process_and_a_container_used_is_the_same_over_both_forms(sonde, made, thinned):
    seal(sonde, made)
    if thinned:
        kept = glob.glob(f"{made}/20200102*") if thinned == 1 else []
        for path in kept:  # the younger one stays as it is
            os.rename(path, path.replace("20200102T", "20991231T"))
        os.path.exists(made)
        assert seal(sonde, made, "--fine", "1d")["thinned"] == thinned
    window = ["--from", str(AT + 100), "--to", str(AT + 1000)]
    said = json.loads(sonde("ps", "--json", "--with", "ended", "--sort", "cpu", *window, store=made, check=True).stdout)
    (nginx,) = [r for r in said["rows"] if r["comm"] == "nginx"]
    assert nginx["cpu_used_ns"] == pytest.approx(900 * 150e6, rel=1e-6) and nginx["mem_bytes"] > 50 << 20
    (sh,) = said["ended"]
    assert sh["processes"] == 270 and sh["cpu_used_ns"] == pytest.approx(900 * 50e6, rel=1e-6)
    assert said["cpu_unattributed_ns"] == pytest.approx(900 * 300e6, rel=1e-6)
    (web,) = json.loads(sonde("containers", "--json", *window, store=made, check=True).stdout)["rows"]
    assert web["cpu_used_ns"] == pytest.approx(900 * 200e6, rel=1e-6) and web["cpu_unattributed_ns"] < 1000
    assert web["read_bytes"] == pytest.approx(90 << 20, rel=1e-6)
    for of, name, rate in (("io", "web", (1 << 20) / 10), ("net", "[eth0]", 700), ("disk", "[sda]", 0.01)):
        (line,) = [r for r in timeline(sonde, made, of) if r["who"] == name]
        values = [v for v in line["by_column"] if v is not None]
        assert len(values) > 20 and all(v == pytest.approx(rate, rel=1e-6) for v in values), (of, values)
    (line,) = [r for r in timeline(sonde, made, "mem") if r["who"] == "web"]
    values = [v for v in line["by_column"] if v is not None]
    assert values == sorted(values) and values[-1] <= (100 << 20) + END


def test_a_recording_stays_as_it_is(sonde, tmp_path, made):
    part = str(tmp_path / "rec")
    lines = [{"run": "host", "from": AT, "to": AT + 30, "bucket_s": 1, "recording": 1}]
    lines += [{"fact": "process_row", "pid": 70 + i % 9, "comm": f"p{i % 9}", "at": AT + i // 9, "user_us": 1000 * i, "system_us": 0, "rss": i << 20}
              for i in range(270)]
    shutil.move(put(part, lines), f"{made}/20200103T000000Z-0001.db")
    before = ask(sonde, made, "SELECT ts, pid, user_us, seconds FROM process_stats WHERE comm LIKE 'p_' ORDER BY ts, pid")
    seal(sonde, made)
    seal(sonde, made, "--fine", "1d")
    assert len(before) == 270
    assert ask(sonde, made, "SELECT ts, pid, user_us, seconds FROM process_stats WHERE comm LIKE 'p_' ORDER BY ts, pid") == before


def waited(start, end, **run):
    """A database that waits for its disk and for a CPU, all the time alike."""
    yield {"run": "offcpu", "from": AT + start, "to": AT + end, "bucket_s": 10, **run}
    db, web = {"pid": 900, "comm": "postgres"}, {"pid": 812, "comm": "nginx", "thread": "nginx"}
    for t in range(start, end, 10):
        at = {**db, "at": AT + t}
        yield {**at, "wait": 2, "n": 3, "total_ns": 9000000, "max_ns": 5000000 + t}
        yield {**at, "wait": 17, "n": 8, "total_ns": 2000000, "max_ns": 900000}
        yield {**at, "kind": "offcpu", "n": 3, "value": 9000000, "stack": ["main", "exec_query", "read"]}
        yield {**at, "wake": 2, "n": 3, "total_ns": 9000000, "by": web}
        yield {**at, "culprit": 0, "n": 8, "total_ns": 2000000, "by": web}
        for i in range(4):  # so that the file is worth an archive
            yield {**at, "pid": 1000 + i, "comm": f"idle-{i}", "wait": 2, "n": 1, "total_ns": 9000, "max_ns": 9000}


WAITED = ("SELECT state, reason, sum(count) AS n, sum(total_ns) AS ns, max(max_ns) AS most FROM wait_totals GROUP BY 1, 2 ORDER BY 1, 2",
          "SELECT function, reason, sum(count) AS n, sum(total_ns) AS ns FROM waits GROUP BY 1, 2", "SELECT by_comm, sum(count) AS n, sum(total_ns) AS ns FROM wakers GROUP BY 1",
          "SELECT who, by_comm, sum(count) AS n, sum(total_ns) AS ns FROM neighbours GROUP BY 1, 2")


def test_waits_are_summed_by_minute_where_they_were_recorded_always(sonde, tmp_path, made):
    shutil.move(put(str(tmp_path / "waits"), waited(0, CUT)), f"{made}/20200103T000000Z-0001.db")
    shutil.move(put(str(tmp_path / "rec"), waited(CUT, END, recording=1)), f"{made}/20200104T000000Z-0001.db")
    seal(sonde, made)
    window = ["--from", str(AT), "--to", str(AT + END), "--json"]
    verbs = ("waits", "neighbours")
    before = [ask(sonde, made, q) for q in WAITED], [json.loads(sonde(v, *window, store=made, check=True).stdout) for v in verbs]
    assert before[0][0][0]["n"] and len(ask(sonde, made, "SELECT DISTINCT ts FROM wait_totals")) == END / 10
    assert seal(sonde, made, "--fine", "1d")["thinned"] == 4
    after = [ask(sonde, made, q) for q in WAITED], [json.loads(sonde(v, *window, store=made, check=True).stdout) for v in verbs]
    assert after == before
    # eleven minutes, the last one in part, and the recording as it was
    for view in ("wait_totals", "waits", "wakers", "neighbours"):
        times = [r["ts"] - AT for r in ask(sonde, made, f"SELECT DISTINCT ts FROM {view} ORDER BY 1")]
        assert times == [60 * i for i in range(11)] + list(range(CUT, END, 10)), (view, times)


def test_an_archive_that_is_damaged_is_set_aside_and_holds_up_no_other(sonde, made):
    seal(sonde, made)
    path = f"{made}/20200101T000000Z-0001.db"
    with open(path, "r+b") as f:
        f.seek(4096)
        f.write(os.urandom(os.path.getsize(path) - 8192))
    said = json.loads(sonde("seal", "--fine", "1d", "--json", store=made).stdout or "{}")
    assert said.get("thinned") == 1 and said["set_aside"] + said["put_off"] == 1, said
