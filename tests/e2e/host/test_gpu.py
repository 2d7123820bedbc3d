# SPDX-License-Identifier: Apache-2.0
"""Family gpu, with a libnvidia-ml.so.1 that knows what it tells (tests/workloads/fakenvml.c)."""
import json
import os
import subprocess
import time

import pytest

from conftest import BIN, BUILD, comm_of, need, need_root, sql_all
from containers import cgroup_roots, cgroups
from livedin import put
from sonded import Sonded, alive, until

GIB = 1 << 30
RESERVED = 400 << 20  # of the driver's own, which is nobody's use
GAUGES = {"0": {"mem_total": 16 * GIB, "mem_used": 4 * GIB - RESERVED, "power_mw": 100000, "power_limit_mw": 300000, "temperature_m": 60000,
                "temperature_limit_m": 90000, "fan_percent": 30, "clock_mhz": 1500, "clock_max_mhz": 1980, "mem_clock_mhz": 5000, "throttle_reasons": 0},
          "1": {"mem_total": 32 * GIB, "mem_used": 8 * GIB - RESERVED, "power_mw": 50000, "power_limit_mw": 300000, "temperature_m": 61000,
                "temperature_limit_m": 90000, "fan_percent": None, "clock_mhz": 1500, "clock_max_mhz": 1980, "mem_clock_mhz": 5000,
                "throttle_reasons": 0x44}}


def fake(kind, processes=()):
    path = os.path.join(BUILD, "tests", "workloads", "nvml", kind)
    need("fakenvml (make workloads)", os.path.join(path, "libnvidia-ml.so.1"))
    return dict(os.environ, LD_LIBRARY_PATH=os.path.abspath(path), FAKE_NVML=", ".join(f"{d} {pid} {mib} {percent}" for d, pid, mib, percent in processes))


def rows(store, view="gpu_stats", where="1"):
    try:
        return sql_all(store, f"SELECT * FROM {view} WHERE {where} ORDER BY ts")
    except Exception:  # noqa: BLE001 (there is no store yet)
        return []


def seconds_of(store, n, view="gpu_stats"):
    """Until there are n buckets."""
    assert until(lambda: len({r["ts"] for r in rows(store, view)}) >= n, 60)


@pytest.fixture
def sleepers():
    """Two processes that do nothing."""
    all_ = [subprocess.Popen(["sleep", "600"]) for _ in range(2)]
    yield [p.pid for p in all_]
    for p in all_:
        p.kill()
        p.wait()


def total(some, column):
    return sum(r[column] or 0 for r in some)


def test_two_devices_and_their_processes_are_told_apart(capture, store, sleepers):
    a, b = sleepers
    c = capture(program="sonde-gpu", env=fake("all", [(0, a, 512, 30), (0, b, 100, 10), (1, b, 64, 20)]))
    seconds_of(store, 4)
    c.stop()
    told = rows(store)
    for number, gauges in GAUGES.items():
        of = [r for r in told if r["gpu"] == number]
        assert len(of) >= 3 and {r["uuid"] for r in of} == {f"GPU-fake-{number}"} and {r["name"] for r in of} == {f"Fake {number}"}
        for r in of:
            assert {k: r[k] for k in gauges} == gauges
    first, second = ([r for r in told if r["gpu"] == n] for n in "01")
    assert total(first, "busy_us") > 0 and total(first, "ecc_errors") == 0
    for column in ("busy_us", "mem_busy_us"):  # one is twice as busy as the other, in the very same moments
        assert abs(total(first, column) - 2 * total(second, column)) <= 4 * len(first), column
    assert all(0 <= r["busy_us"] <= 1.5e6 for r in told if r["busy_us"] is not None)
    assert {r["throttled_by"] for r in second} == {"power limit, hot (hardware)"} and {r["throttled_by"] for r in first} == {""}
    assert total(second, "hot_us") > 0 and total(first, "hot_us") == total(told, "capped_us") == 0
    assert total(first, "encoder_us") > 0 and total(second, "encoder_us") == 0
    assert abs(total(first, "energy_mj") - 2 * total(second, "energy_mj")) < 0.2 * total(first, "energy_mj")
    use = rows(store, "gpu_process_stats")
    assert {(r["gpu"], r["pid"], r["mem"]) for r in use} == {("0", a, 512 << 20), ("0", b, 100 << 20), ("1", b, 64 << 20)}
    assert {r["comm"] for r in use} == {"sleep"}
    one, other, third = (total([r for r in use if (r["gpu"], r["pid"]) == k], "busy_us") for k in (("0", a), ("0", b), ("1", b)))
    assert one > 0 and abs(one - 3 * other) <= 12 * len(use) and abs(third - 2 * other) <= 12 * len(use)


def test_a_process_of_a_container_has_its_name(capture, store):
    container = "ab" * 32
    with cgroups({root: f"docker/{container}" for root in cgroup_roots()}) as (made, prefix):
        if not made:
            pytest.skip("missing: a cgroup hierarchy that can be written")
        p = subprocess.Popen([*prefix, "sleep", "600"])
        try:
            c = capture(program="sonde-gpu", env=fake("all", [(0, p.pid, 512, 30)]))
            seconds_of(store, 1, "gpu_process_stats")
            c.stop()
        finally:
            p.kill()
            p.wait()
    assert {r["container"] for r in rows(store, "gpu_process_stats")} == {container[:12]}


def test_calls_that_fail_cost_their_values_and_no_others(capture, store, sleepers):
    c = capture(program="sonde-gpu", env=fake("fails", [(0, sleepers[0], 512, 30)]))
    seconds_of(store, 4)
    c.stop()
    told = rows(store)
    for number, gauges in GAUGES.items():
        of = [r for r in told if r["gpu"] == number]
        assert of
        for r in of:
            assert {k: r[k] for k in gauges if r[k] is not None} == {k: v for k, v in gauges.items() if r[k] is not None}
            assert r["busy_us"] is None or 0 <= r["busy_us"] <= 2e6
    assert any(r["mem_total"] is None for r in told) and any(r["mem_total"] for r in told)


def test_an_old_library_tells_what_it_can_and_doctor_says_what_it_lacks(capture, store, sleepers):
    env = fake("old", [(1, sleepers[0], 512, 30)])
    c = capture(program="sonde-gpu", env=env)
    seconds_of(store, 3)
    c.stop()
    told = rows(store)
    assert {(r["gpu"], r["mem_used"]) for r in told} == {("0", 4 * GIB), ("1", 8 * GIB)}  # the driver's own too
    assert total(told, "busy_us") > 0 and all(r["energy_mj"] is None and r["ecc_errors"] is None for r in told)
    (use,) = {(r["gpu"], r["pid"], r["mem"], r["busy_us"]) for r in rows(store, "gpu_process_stats")}
    assert use == ("1", sleepers[0], 512 << 20, None)
    said = {i["name"]: i for i in check(env)["items"]}
    library = said["NVIDIA's library"]
    assert library["state"] == "warn" and "nvmlDeviceGetTotalEnergyConsumption" in library["text"] and "nvmlInit" not in library["text"]
    assert said["GPUs"]["text"] == "2"


def check(env=None):
    done = subprocess.run([os.path.join(BIN, "sonde-gpu"), "--check", "--json"], capture_output=True, text=True, timeout=60, check=False, env=env)
    return json.loads(done.stdout)


def test_doctor_tells_of_a_library_that_is_missing_without_warning_of_it():
    item = next(i for i in check()["items"] if i["name"] == "NVIDIA's library")
    if item["state"] != "off":
        pytest.skip("missing: a host without a GPU of NVIDIA's")
    assert "libnvidia-ml.so.1" in item["text"] and not item["fix"]
    assert next(i for i in check(fake("all"))["items"] if i["name"] == "NVIDIA's library")["state"] == "ok"


def test_where_there_is_no_library_a_capture_says_so(sonde, store):
    need_root()
    if next(i for i in check()["items"] if i["name"] == "NVIDIA's library")["state"] != "off":
        pytest.skip("missing: a host without a GPU of NVIDIA's")
    done = sonde("record", "--families", "gpu", "-d", "1s", store=store)
    assert done.returncode == 3 and "libnvidia-ml.so.1 cannot be loaded" in done.stderr and "fix:" in done.stderr


def test_a_library_that_hangs_holds_up_nobody(capture, store):
    c = capture(program="sonde-gpu", env=fake("hangs"))
    seconds_of(store, 1)
    child = next(int(p) for p in os.listdir("/proc") if p.isdigit() and parent_of(p) == c.pid and comm_of(p) == "sonde-nvml")
    began = time.monotonic()
    c.stop()
    assert time.monotonic() - began < 20
    assert not os.path.exists(f"/proc/{child}")
    assert {r["gpu"] for r in rows(store)} == {"0", "1"}


@pytest.mark.long
def test_one_that_hung_is_told_and_ended(capture, store):
    c = capture(program="sonde-gpu", env=fake("hangs"))
    assert until(lambda: "did not answer within 5 s" in c.said(), 30)
    c.stop()


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return int(f.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def test_the_library_runs_without_any_right(capture, store):
    c = capture(program="sonde-gpu", env=fake("all"))
    child = next(p for p in os.listdir("/proc") if p.isdigit() and parent_of(p) == c.pid and comm_of(p) == "sonde-nvml")
    with open(f"/proc/{child}/status", encoding="utf-8") as f:
        status = dict(line.split(":", 1) for line in f)
    assert int(status["CapEff"], 16) == 0 and int(status["CapBnd"], 16) == 0 and status["NoNewPrivs"].strip() == "1"
    c.stop()


def test_sonded_records_gpus_and_lines_where_its_configuration_says_so(store, sleepers):
    need_root()
    env = {**fake("all", [(0, sleepers[0], 512, 30)]), "SONDE_FAMILIES": "host", "SONDE_GPU": "on", "SONDE_LOG_LINES": "off"}
    with Sonded(store, env={k: env[k] for k in ("LD_LIBRARY_PATH", "FAKE_NVML", "SONDE_FAMILIES", "SONDE_GPU", "SONDE_LOG_LINES")}) as s:
        assert s.running("gpu") and s.running("host")
        with open(f"/proc/{s.running('host')}/cmdline", encoding="utf-8") as f:
            assert "--log-lines\0off\0" in f.read()
        assert until(lambda: {r["pid"] for r in rows(store, "gpu_process_stats")} == {sleepers[0]}, 60)
        assert {r["gpu"] for r in rows(store)} == {"0", "1"}
        child = next(p for p in os.listdir("/proc") if p.isdigit() and parent_of(p) == s.running("gpu") and comm_of(p) == "sonde-nvml")
    assert not alive(child), "what it started ends with it"


AT = 1800000000


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A minute of two GPUs: web has 40 % of the first and 10 % of the second, train 10 % of the first."""
    lines = [{"run": "gpu", "from": AT, "to": AT + 60, "bucket_s": 10}]
    for at in range(AT, AT + 60, 10):
        for n, busy in ((0, 5000000), (1, 1000000)):
            lines.append({"fact": "gpu_row", "at": at, "columns": {"uuid": f"GPU-{n}", "gpu": str(n), "name": "A100", "busy_us": busy, "mem_total": 1 << 34}})
        for process, uuid, mem, busy in ((WEB, 0, 512, 4000000), (WEB, 1, 1, 1000000), (TRAIN, 0, 256, 1000000)):
            lines.append({"fact": "gpu_process_row", "at": at, **process, "uuid": f"GPU-{uuid}", "gpu": str(uuid), "mem": mem << 20, "busy_us": busy})
    store = str(tmp_path_factory.mktemp("s") / "told")
    put(store, lines)
    return store


WEB, TRAIN = {"pid": 7, "comm": "app", "container": "web"}, {"pid": 9, "comm": "train"}
RANGE = ("--from", str(AT), "--to", str(AT + 60))


def test_who_used_gpus_is_told_by_process_and_container(sonde, told):
    rows_ = json.loads(sonde("ps", "--sort", "gpu", "--json", *RANGE, store=told, check=True).stdout)["rows"]
    assert [(r["pid"], r["gpu_ns"], r["gpu_mem_bytes"]) for r in rows_] == [(7, 30 * 10**9, 513 << 20), (9, 6 * 10**9, 256 << 20)]
    (web,) = json.loads(sonde("containers", "--sort", "gpu", "--json", *RANGE, store=told, check=True).stdout)["rows"]
    assert (web["container"], web["gpu_ns"], web["gpu_mem_bytes"]) == ("web", 30 * 10**9, 513 << 20)
    assert "GPU MEM" in sonde("ps", "--sort", "gpu", *RANGE, store=told, check=True).stdout


def test_where_gpus_were_not_recorded_nothing_of_them_is_shown(sonde, tmp_path):
    store = str(tmp_path / "store")
    put(store, [{"run": "cpu", "from": AT, "to": AT + 60, "bucket_s": 10},
                {"kind": "cpu", "at": AT, "n": 1, "value": 10**9, **TRAIN, "stack": ["main"]}])
    assert "GPU" not in sonde("ps", *RANGE, store=store, check=True).stdout
    assert "gpu" not in sonde("ps", "--json", *RANGE, store=store, check=True).stdout
    done = sonde("timeline", "--of", "gpu", *RANGE, store=store)
    assert done.returncode == 4 and "GPUs were not recorded" in done.stderr and "--families cpu,gpu" in done.stderr


def test_the_timeline_has_a_strip_for_each_gpu_and_who_used_it(sonde, told):
    answer = json.loads(sonde("timeline", "--of", "gpu", "--json", *RANGE, store=told, check=True).stdout)
    assert {r["who"]: round(r["most"], 3) for r in answer["rows"]} == {"[gpu 0]": 0.5, "[gpu 1]": 0.1, "web": 0.5, "train": 0.1}
