# SPDX-License-Identifier: Apache-2.0
"""sonde-export metrics: what Prometheus is told is what the store has, and no counter ever falls."""
import glob
import json
import os
import re
import shutil
import sqlite3
import subprocess
import time

import pytest

import hist
import livedin
import metrics
from conftest import BIN, ROOT, need_root, sql_all
from serving import Serve

LABELS = {"container", "image", "project", "service", "unit", "reason", "protocol", "operation", "side", "state", "mode", "kind", "direction",
          "resource", "minutes", "disk", "mount", "fstype", "interface", "sensor", "gpu", "model", "subject", "program", "family", "version", "le", "device", "mountpoint"}


def export(store, state, *args, command="metrics", ok=True):
    done = subprocess.run([f"{BIN}/sonde-export", command, "--store", str(store), "--state", str(state), *args], capture_output=True, text=True,
                          check=False)
    assert not ok or done.returncode == 0, done.stderr
    return done.stdout if ok else done


def scrape(store, state, *args):
    return metrics.read(export(store, state, *args), "--openmetrics" in args)


class Made:
    """A store of which every row is known: one run of family host, whose rows the test puts there."""

    def __init__(self, path, begun):
        self.dir, self.number = str(path), 0
        profile = f"{path}.folded"
        with open(profile, "w", encoding="ascii") as f:
            f.write("main;work 1\n")
        subprocess.run([f"{BIN}/sonde", "import", profile, "--store", self.dir, "-q"], check=True, stdout=subprocess.DEVNULL)
        [self.form] = glob.glob(f"{self.dir}/*.db")
        shutil.move(self.form, f"{path}.form")
        self.form = f"{path}.form"
        self.begin(begun)

    def begin(self, begun):
        """A new segment, begun then."""
        self.number += 1
        self.t0 = begun
        self.path = f"{self.dir}/{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(begun))}-{self.number:04}.db"
        shutil.copy(self.form, self.path)
        with sqlite3.connect(self.path) as db:
            db.execute("DELETE FROM sample")
            db.execute("UPDATE meta SET value = ? WHERE key = 't0'", (begun,))
            db.execute("INSERT INTO run_count(run, kind, n) VALUES(1, 0, 1)")  # it has rows of facts
            db.execute("UPDATE run SET family = 'host', bucket_s = 10, from_ns = ?, to_ns = ?", (begun * 10**9, (begun + 86400) * 10**9))
        return self.path

    def id_of(self, db, table, values):
        where = " AND ".join(f"{k} = ?" for k in values)
        row = db.execute(f"SELECT id FROM {table} WHERE {where}", list(values.values())).fetchone()
        if row:
            return row[0]
        return db.execute(f"INSERT INTO {table}({', '.join(values)}) VALUES({', '.join('?' * len(values))})", list(values.values())).lastrowid

    def container(self, ts, *names, **values):
        """A row of cgroup_row for each."""
        with sqlite3.connect(self.path) as db:
            for name in names:
                self.put(db, ts, name, values)

    def put(self, db, ts, name, values):
        c = self.id_of(db, "container", {"hash": 0, "name": name, "runtime": "docker", "runtime_id": name, "image": f"{name}:1", "cgroup": f"/{name}"})
        g = self.id_of(db, "text", {"value": f"/{name}"})
        columns = ["ts", "run", "cgroup", "container", "unit", *values]
        db.execute(f"INSERT INTO cgroup_row({', '.join(columns)}) VALUES({', '.join('?' * len(columns))})",
                   [ts - self.t0, 1, g, c, 0, *values.values()])


@pytest.fixture
def made(scratch):
    now = int(time.time()) // 10 * 10
    return Made(f"{scratch}/made", now - 600), now


def test_a_counter_goes_on_over_rotation_retention_and_restart(made, scratch):
    store, now = made
    state, put, last, first = f"{scratch}/state", 0, 0, store.path
    for i, ts in enumerate(range(now - 600, now, 10)):
        if i == 30:
            store.begin(ts)
        if i == 55:
            os.remove(first)
        store.container(ts, "web", user_us=1000 * (i + 1), mem=i)
        put += 1000 * (i + 1)
        if i % 5 == 0:
            got = scrape(store.dir, state)
            seen = metrics.total(got, "sonde_container_cpu_seconds_total", container="web", mode="user")
            assert round(seen * 1e6) == put and seen >= last
            last = seen
    # a row of a bucket that is not settled yet grows
    with sqlite3.connect(store.path) as db:
        db.execute("UPDATE cgroup_row SET user_us = user_us + 5 WHERE ts = ?", (now - 10 - store.t0,))
    got = scrape(store.dir, state)
    assert round(metrics.total(got, "sonde_container_cpu_seconds_total") * 1e6) == put + 5
    assert metrics.total(got, "sonde_container_memory_bytes", kind="all") == 59
    assert metrics.total(got, "sonde_container_info", container="web", image="web:1") == 1
    assert metrics.total(got, "sonde_export_missed_seconds_total") == 0


def test_what_retention_removed_before_it_was_counted_is_told(made, scratch):
    store, now = made
    state, first = f"{scratch}/state", store.path
    store.container(now - 600, "web", user_us=7)
    scrape(store.dir, state)
    store.begin(now - 20)
    os.remove(first)
    store.container(now - 10, "web", user_us=5)
    got = scrape(store.dir, state)
    assert metrics.total(got, "sonde_container_cpu_seconds_total") == pytest.approx(7e-6)  # the sum is 5 now: it does not fall
    assert metrics.total(got, "sonde_export_missed_seconds_total") >= 500


def test_names_are_bounded_and_their_sum_is_whole(made, scratch):
    store, now = made
    names = [f"job-{i}" for i in range(300)]
    store.container(now - 10, *names, user_us=10, system_us=1, mem=5, pids=1)
    got = scrape(store.dir, f"{scratch}/state", "--series", "200")
    assert metrics.total(got, "sonde_container_cpu_seconds_total", mode="user") == pytest.approx(300 * 10e-6)
    assert metrics.total(got, "sonde_container_cpu_seconds_total", mode="user", container="~other") > 0
    assert sum(map(len, got.values())) == metrics.total(got, "sonde_export_series") < 230
    status = json.loads(export(store.dir, f"{scratch}/state", "--json", "--series", "200", command="status"))
    assert status["series_limit"] == 200 and status["folded_values"] == 0  # nothing has settled yet


def test_thirty_containers_are_far_below_five_thousand_series(made, scratch):
    store, now = made
    with sqlite3.connect(store.path) as db:
        columns = [c[1] for c in db.execute("PRAGMA table_info(cgroup_row)")][5:]
    store.container(now - 10, *[f"web-{i}" for i in range(30)], **{c: 1 for c in columns})
    got = scrape(store.dir, f"{scratch}/state")
    assert 30 * 30 < metrics.total(got, "sonde_export_series") < 1500


def test_odd_names_keep_the_format(made, scratch):
    store, now = made
    odd = 'a"b\\c\nd{}= \u20ac,'
    store.container(now - 10, odd, user_us=1)
    for args in ([], ["--openmetrics"]):
        assert metrics.total(scrape(store.dir, f"{scratch}/state", *args), "sonde_container_cpu_seconds_total", container=odd) == pytest.approx(1e-6)


def test_a_damaged_memory_begins_anew_and_says_so(made, scratch):
    store, now = made
    store.container(now - 600, "web", user_us=7)
    store.container(now - 10, "web", user_us=7)
    scrape(store.dir, f"{scratch}/state")
    [path] = [p for p in glob.glob(f"{scratch}/state/*") if not p.endswith(".lock")]
    with open(path, "a", encoding="ascii") as f:
        f.write("nonsense\n")
    done = export(store.dir, f"{scratch}/state", ok=False)
    assert done.returncode == 0 and "counters start from zero" in done.stderr
    assert metrics.total(metrics.read(done.stdout), "sonde_container_cpu_seconds_total") == pytest.approx(14e-6)


def test_refusals_say_what_is_wrong(scratch):
    for args, exit_code in ((["nonsense"], 2), ([], 2), (["metrics", "--series", "x"], 2), (["metrics", "more"], 2),
                            (["metrics", "--store", f"{scratch}/none", "--state", f"{scratch}/s"], 6), (["metrics", "--store", str(scratch), "--state", "/proc/no"], 5)):
        done = subprocess.run([f"{BIN}/sonde-export", *args], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (exit_code, ""), (args, done.stderr)
        assert done.stderr.startswith("sonde: ")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    need_root()
    store = tmp_path_factory.mktemp("recorded") / "store"
    subprocess.run([f"{BIN}/sonde", "record", "-q", "--families", "cpu,offcpu,host,net", "-d", "3s", "--store", str(store)], check=True,
                   capture_output=True)
    return store


def one(store, query):
    return sum(r["v"] or 0 for r in sql_all(store, query))


def test_metrics_say_what_the_views_say(recorded, tmp_path):
    got = scrape(recorded, tmp_path)
    for name, labels, query in (
            ("sonde_host_cpu_seconds_total", {"mode": "user"}, "SELECT sum(user_us) / 1e6 AS v FROM host_stats"),
            ("sonde_host_context_switches_total", {}, "SELECT sum(switches) AS v FROM host_stats"),
            ("sonde_disk_bytes_total", {"direction": "write"}, "SELECT sum(write_bytes) AS v FROM disk_stats"),
            ("node_disk_written_bytes_total", {}, "SELECT sum(write_bytes) AS v FROM disk_stats"),
            ("node_disk_io_time_seconds_total", {}, "SELECT sum(busy_us) / 1e6 AS v FROM disk_stats"),
            ("sonde_profile_cpu_seconds_total", {}, "SELECT sum(cpu_ns) / 1e9 AS v FROM cpu_samples WHERE NOT self"),
            ("sonde_thread_seconds_total", {"state": "ready"}, "SELECT sum(total_ns) / 1e9 AS v FROM wait_totals WHERE state = 'ready' AND NOT self"),
            ("sonde_thread_seconds_total", {"state": "blocked"}, "SELECT sum(total_ns) / 1e9 AS v FROM wait_totals WHERE state = 'blocked' AND NOT self"),
            ("sonde_runqueue_wait_seconds_count", {}, "SELECT sum(count) AS v FROM runqueue WHERE NOT self"),
            ("sonde_runqueue_wait_seconds_sum", {}, "SELECT sum(total_ns) / 1e9 AS v FROM runqueue WHERE NOT self"),
            ("sonde_connections_opened_total", {}, "SELECT sum(opened) AS v FROM flows WHERE NOT self"),
            ("sonde_process_ends_total", {}, "SELECT sum(n) AS v FROM process_ends"),
            ("sonde_self_cpu_seconds_total", {}, "SELECT sum(cpu_ns) / 1e9 AS v FROM cost"),
            ("sonde_lost_total", {}, "SELECT sum(lost) AS v FROM loss")):
        assert metrics.total(got, name, **labels) == pytest.approx(one(recorded, query), rel=1e-9), name
    root = os.statvfs("/")  # as node_exporter reads it
    (labels,) = [dict(key) for key in got["node_filesystem_size_bytes"] if dict(key)["mountpoint"] == "/"]
    assert metrics.total(got, "node_filesystem_size_bytes", **labels) == root.f_blocks * root.f_frsize
    assert metrics.total(got, "node_filesystem_files", **labels) == root.f_files
    assert metrics.total(got, "node_filesystem_readonly", **labels) == 0
    spread = [part for r in sql_all(recorded, "SELECT hist FROM runqueue WHERE NOT self AND hist IS NOT NULL") for part in hist.parts(r["hist"])]
    assert metrics.total(got, "sonde_runqueue_wait_seconds_bucket", le="0.000008191") == sum(n for _, high, n in spread if high <= 8192)
    assert metrics.total(got, "sonde_profile_samples_total") > 0


def test_labels_are_those_that_are_bounded(recorded, tmp_path):
    got = scrape(recorded, tmp_path, "--openmetrics")
    assert {label for series in got.values() for key in series for label, _ in key} <= LABELS


def test_gpus_and_virtual_machines_are_told_as_the_views_have_them(scratch):
    now = int(time.time()) // 10 * 10
    web, job = {"pid": 7, "comm": "app", "container": "web"}, {"pid": 9, "comm": "java"}
    lines = [{"run": family, "from": now - 120, "to": now, "bucket_s": 10} for family in ("gpu", "host")]
    for i, at in enumerate(range(now - 40, now, 10)):  # counting begins a minute before the file
        lines += [{"fact": "gpu_row", "at": at, "columns": {"uuid": f"GPU-{n}", "gpu": str(n), "name": "A100", "busy_us": 1000 * i + n, "mem_used": i << 20,
                                                          "mem_total": 1 << 30, "power_mw": 1500 + n, "energy_mj": 15000, "hot_us": 7, "fan_percent": 30,
                                                          "clock_mhz": 1980}} for n in (0, 1)]
        lines += [{"fact": "gpu_process_row", "at": at, **web, "uuid": "GPU-1", "gpu": "1", "mem": 5 << 20, "busy_us": 900 * i},
                  {"fact": "jvm_row", "at": at, **job, "columns": {"collector": "G1", "version": "21", "young_gcs": 2, "young_gc_us": 5000, "safepoints": 3,
                                                                 "safepoint_us": 800, "old_used": 9}}]
    store = f"{scratch}/gpus"
    livedin.put(store, lines)
    got = scrape(store, f"{scratch}/state")

    def total(name, **labels):
        return round(metrics.total(got, name, **labels), 6)
    for n in "01":
        (said,) = sql_all(store, f"SELECT sum(busy_us) / 1e6 AS busy, sum(energy_mj) / 1e3 AS energy, sum(hot_us) / 1e6 AS hot FROM gpu_stats WHERE gpu = '{n}'")
        assert total("sonde_gpu_busy_seconds_total", gpu=n, model="A100") == round(said["busy"], 6) > 0
        assert total("sonde_gpu_energy_joules_total", gpu=n) == said["energy"] == 60
        assert total("sonde_gpu_throttled_seconds_total", gpu=n, reason="hot") == round(said["hot"], 6) > 0
        assert total("sonde_gpu_memory_bytes", gpu=n, kind="used") == 3 << 20 and total("sonde_gpu_power_watts", gpu=n) == 1.5 + int(n) / 1000
        assert total("sonde_gpu_fan_ratio", gpu=n) == 0.3 and total("sonde_gpu_clock_hertz", gpu=n, kind="processors") == 1.98e9
    assert total("sonde_container_gpu_busy_seconds_total", container="web", gpu="1") == round(sum(900 * i for i in range(4)) / 1e6, 6)
    assert (total("sonde_jvm_collections_total", kind="young"), total("sonde_jvm_collection_seconds_total", kind="young")) == (8, 0.02)
    assert (total("sonde_jvm_safepoints_total"), total("sonde_jvm_safepoint_seconds_total")) == (12, 0.0032)
    assert not metrics.total(got, "sonde_jvm_collections_total", kind="full")


def test_promtool_has_no_complaint(recorded, tmp_path):
    if not shutil.which("promtool"):
        pytest.skip("missing: promtool (package prometheus)")
    done = subprocess.run(["promtool", "check", "metrics"], input=export(recorded, tmp_path), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_serve_has_them_at_metrics(made, scratch):
    store, now = made
    store.container(now - 10, "web", user_us=3)
    server = Serve(store.dir, env={"STATE_DIRECTORY": f"{scratch}/state"})
    try:
        for accept, form in (("*/*", "text/plain; version=0.0.4; charset=utf-8"),
                             ("application/openmetrics-text;version=1.0.0,*/*;q=0.1", "application/openmetrics-text; version=1.0.0; charset=utf-8")):
            status, heads, body = server.ask("/metrics", headers={"Accept": accept})
            assert (status, heads["Content-Type"]) == (200, form)
            got = metrics.read(body.decode(), "openmetrics" in form)
            assert metrics.total(got, "sonde_container_cpu_seconds_total", container="web") == pytest.approx(3e-6)
        server.error("/metrics", 421, headers={"Host": "elsewhere.example"})
    finally:
        server.close()


def test_the_dashboard_asks_for_metrics_that_there_are():
    with open(f"{ROOT}/export/grafana/sonde.json", encoding="ascii") as f:
        board = json.load(f)
    with open(f"{ROOT}/export/metric.c", encoding="ascii") as f:
        source = f.read()
    asked = [t["expr"] for p in board["panels"] for t in p.get("targets", [])]
    assert len(asked) > 10 and board["uid"] and board["__inputs"][0]["pluginId"] == "prometheus"
    for expr in asked:
        for name in set(re.findall(r"sonde_\w+", expr)):
            plain = name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count")
            known = plain in source or name in source or plain.replace("sonde_container", 'sonde_" x "', 1) in source
            assert known or name.startswith(("sonde_export_", "sonde_store_", "sonde_build_")), expr
