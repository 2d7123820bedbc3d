# SPDX-License-Identifier: Apache-2.0
"""Real containers: names of the container and of its functions, from outside, with nothing in it."""
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import time

import pytest

from conftest import BUILD, Capture, need, need_root, sql_all
from containers import engine
from test_shares import assert_shares, stacks_of

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def docker():
    e = engine()
    yield e, e.image()
    e.stop()


def recorded(docker, store, *command, name, options=(), freq=997):
    """Run a container under a capture; what it printed, and the host's pid of its first process."""
    e, image = docker
    c = Capture(store, "--freq", freq, *options, prefix=e.prefix).start()
    try:
        done = e.docker("run", "--rm", "--network", "none", "--name", name, image, *command)
        assert done.returncode == 0, done.stderr
        c.stop()
    finally:
        c.close()
    return json.loads(done.stdout)


@pytest.mark.parametrize("work", ["shares-static", "shares-cpp-static", "shares-rust-static", "shares-go"])
def test_shares_hold_inside_a_container(docker, store, work):
    told = recorded(docker, store, f"/bin/{work}", 6, name=f"web-{work}")
    rows = sql_all(store, "SELECT DISTINCT p.pid, p.container, p.container_id FROM processes p WHERE p.comm LIKE 'shares%' "
                          "AND p.container_id <> ''")
    assert len(rows) == 1 and rows[0]["container"] == f"web-{work}"
    assert re.fullmatch("[0-9a-f]{64}", rows[0]["container_id"])
    assert_shares(stacks_of(store, rows[0]["pid"]), told)


def test_a_container_process_of_50_ms_has_its_name_and_frames(docker, store):
    recorded(docker, store, "/bin/burn-static", 50, 1, "--note=brief", name="brief")
    rows = sql_all(store, "SELECT p.args, p.container, c.function, sum(c.samples) AS n FROM cpu_samples c JOIN processes p "
                          "ON p.id = c.process_id WHERE p.comm = 'burn-static' GROUP BY 1, 2, 3 ORDER BY n DESC")
    assert rows and rows[0]["function"] == "burn_leaf" and rows[0]["container"] == "brief"
    assert rows[0]["args"] == "/bin/burn-static 50 1 --note=brief"


def test_a_perf_map_is_found_by_the_pid_inside_the_container(docker, store):
    told = recorded(docker, store, "/bin/jit-static", 3, name="jitted")
    rows = sql_all(store, "SELECT pid FROM processes WHERE comm = 'jit-static'")
    assert told["pid"] == 1 and rows
    assert_shares(stacks_of(store, rows[0]["pid"]), told)


def test_a_capture_of_one_container_has_nothing_else(docker, store):
    e, image = docker
    started = e.docker("run", "-d", "--rm", "--network", "none", "--name", "only", image, "/bin/burn-static", 30000)
    assert started.returncode == 0, started.stderr
    other = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    c = Capture(store, "--freq", "499", "--container", "only", prefix=e.prefix)
    try:
        c.start()
        time.sleep(3)
        c.stop()
    finally:
        c.close()
        other.kill()
        other.wait()
        e.docker("kill", "only")
    rows = sql_all(store, "SELECT container, comm, sum(samples) AS n FROM cpu_samples GROUP BY 1, 2")
    assert {r["container"] for r in rows} == {"only"}
    assert sum(r["n"] for r in rows) > 499


def rows_of(store, name):
    return sql_all(store, "SELECT name, runtime_id, project, service, labels, started, restarts, image FROM containers WHERE name = ?",
                   (name,))


def test_a_container_that_is_started_again_keeps_its_name_and_is_another_instance(docker, store):
    """Restarted by the engine, by hand, and made anew: three ways, each a row; what the engine says of it is what is told."""
    e, image = docker
    compose = ["--label", "com.docker.compose.project=shop", "--label", "com.docker.compose.service=web", "--label", "tier=front"]
    c = Capture(store, "--freq", "499", prefix=e.prefix).start()
    try:
        done = e.docker("run", "-d", "--network", "none", "--name", "again", "--restart", "on-failure:2", *compose, image,
                        "/bin/sh", "-c", "/bin/burn-static 1500; exit 3")
        assert done.returncode == 0, done.stderr
        first = done.stdout.strip()
        until = time.monotonic() + 60
        while time.monotonic() < until:
            said = json.loads(e.docker("inspect", "again").stdout)[0]
            if said["RestartCount"] == 2 and said["State"]["Status"] == "exited":
                break
            time.sleep(0.2)
        e.docker("restart", "-t", "0", "again")
        by_hand = json.loads(e.docker("inspect", "again").stdout)[0]["State"]["StartedAt"]
        time.sleep(1.5)
        e.docker("rm", "-f", "again")
        done = e.docker("run", "-d", "--network", "none", "--name", "again", *compose, image, "/bin/burn-static", 2000)
        second = done.stdout.strip()
        e.docker("wait", "again")
        c.stop()
    finally:
        c.close()
        e.docker("rm", "-f", "again")
    rows = rows_of(store, "again")
    assert {r["runtime_id"] for r in rows} == {first, second}
    assert {(r["project"], r["service"], r["image"]) for r in rows} == {("shop", "web", image)}
    assert all(json.loads(r["labels"])["tier"] == "front" for r in rows)
    of_first = [r for r in rows if r["runtime_id"] == first]
    assert said["RestartCount"] == 2 and {r["restarts"] for r in of_first} == {0, 1, 2}, rows
    assert said["State"]["StartedAt"] in {r["started"] for r in of_first} and by_hand in {r["started"] for r in of_first}
    ends = sql_all(store, "SELECT how, status, sum(n) AS n FROM process_ends WHERE container = 'again' AND status = 3 GROUP BY 1, 2")
    assert [(r["how"], r["n"] >= 3) for r in ends] == [("exit", True)]


def throttled_by(told):
    """ns that a container was held back, by its own cpu.stat, of either version of cgroups."""
    stat = dict(line.split() for line in told.splitlines())
    return int(stat["throttled_time"]) if "throttled_time" in stat else 1000 * int(stat["throttled_usec"])


def first_served(group):
    """Whatever else this host does: else nobody in there might get half a CPU."""
    for name, most in (("cpu.shares", "262144"), ("cpu.weight", "10000")):
        if os.path.exists(f"{group}/{name}"):
            with open(f"{group}/{name}", "w", encoding="ascii") as f:
                f.write(most)


def test_half_a_cpu_is_told_as_a_quota_and_no_neighbour(docker, sonde, store):
    """docker run --cpus 0.5 of a program that wants a whole one: as long as the container's cpu.stat says, and nobody else."""
    e, image = docker

    def second():
        at = int(time.time()) + 1
        time.sleep(at - time.time())
        return at
    c = Capture(store, program="sonde-offcpu", prefix=e.prefix).start()
    try:
        done = e.docker("run", "-d", "--network", "none", "--name", "half", "--cpus", "0.5", image, "/bin/sh", "-c",
                        "for i in $(busybox seq 60); do busybox sleep 0.1; done; exec /bin/burn-static 60000")
        assert done.returncode == 0, done.stderr
        group = e.cgroup_of(done.stdout.strip(), "cpu.stat")
        first_served(os.path.dirname(os.path.dirname(group)))
        time.sleep(6)
        begin = second()
        time.sleep(5)
        end = second()
        with open(group, encoding="ascii") as f:
            held = throttled_by(f.read())
        c.stop()
    finally:
        e.docker("rm", "-f", "half")
        c.close()
    if held < 0.2e9 * 5:
        pytest.skip(f"missing: a CPU free enough to use a quota up (held back for {held / 1e9:.1f} s)")
    pid = sql_all(store, "SELECT pid FROM processes WHERE container = 'half' AND comm = 'burn-static'")[0]["pid"]
    answer = json.loads(sonde("neighbours", "--pid", pid, "--json", store=store, check=True).stdout)
    (mine,) = [h for h in answer["throttled"] if h["cgroup"].endswith(done.stdout.strip())]
    # read once a second: of the last one a part may be missing, of the time after the last look be there
    assert 0.9 * held - 0.5e9 <= mine["throttled_ns"] <= held + 0.6e9, (mine, held)
    assert mine["container"] == "half", mine
    waits = json.loads(sonde("waits", "--container", "half", "--json", store=store, check=True).stdout)
    said = re.search(r"half lost ([\d.]+) s to its CPU quota", waits["summary"])
    assert said and abs(float(said[1]) - mine["throttled_ns"] / 1e9) < 0.01, (waits["summary"], mine)
    ready = sql_all(store, "SELECT sum(total_ns) AS ns FROM runqueue WHERE pid = ?", (pid,))[0]["ns"]
    assert ready >= 0.8 * held, (ready, held)
    done = sonde("explain", "--from", begin, "--to", end, "--before", f"{end - begin}s", "--container", "half", "--json", store=store,
                 check=True)
    found = [r for r in json.loads(done.stdout)["rows"] if r["type"] == "runqueue" and r["difference"] > 0]
    assert found, done.stdout
    quota = found[0]["causes"][0]
    assert quota["what"] == "quota", found
    assert abs(quota["amount_after"] - held) < 0.1 * held + 0.6e9, (quota, held)
    assert not [x for x in found[0]["causes"][1:] if x["amount_after"] < held], found


def kernel_says(e, container_id):
    """Of a container: CPU time, throttling and memory, by the files of its cgroup, of either version."""
    def read(controller, name):
        for root in (f"/sys/fs/cgroup/{controller}", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"):
            for below in (f"docker/{container_id}", f"system.slice/docker-{container_id}.scope"):
                if os.path.exists(f"{root}/{below}/{name}"):
                    with open(f"{root}/{below}/{name}", encoding="ascii") as f:
                        return f.read()
        return None
    stat = dict(line.split() for line in read("cpu", "cpu.stat").splitlines())
    usage = read("cpuacct", "cpuacct.usage")
    mem = dict(line.split() for line in read("memory", "memory.stat").splitlines())
    return {"cpu": int(usage) // 1000 if usage else int(stat["usage_usec"]), "periods": int(stat["nr_periods"]),
            "throttled": int(stat["nr_throttled"]), "throttled_us": throttled_by("\n".join(map(" ".join, stat.items()))) // 1000,
            "anon": int(mem.get("total_rss", mem.get("anon", 0)))}


def test_a_limited_container_used_what_its_cgroup_and_docker_stats_say(docker, store):
    """docker run -m 64m --cpus 0.3 of a program that wants a whole CPU."""
    e, image = docker
    c = Capture(store, program="sonde-host", prefix=e.prefix).start()
    try:
        done = e.docker("run", "-d", "--network", "none", "--name", "small", "-m", "64m", "--cpus", "0.3", image,
                        "/bin/burn-static", 60000)
        assert done.returncode == 0, done.stderr
        container_id = done.stdout.strip()
        first = kernel_says(e, container_id)
        time.sleep(4)
        shown = json.loads(e.docker("stats", "--no-stream", "--format", "{{json .}}", "small").stdout)
        last = kernel_says(e, container_id)
        time.sleep(2)
        c.stop()
        after = kernel_says(e, container_id)
    finally:
        e.docker("rm", "-f", "small")
        c.close()
    rows = sql_all(store, "SELECT * FROM container_stats WHERE cgroup LIKE ?", (f"%{container_id}%",))
    assert {r["container"] for r in rows} <= {"small", container_id[:12]} and rows[-1]["container"] == "small"
    sums = {k: sum(r[k] or 0 for r in rows) for k in ("user_us", "system_us", "periods", "throttled", "throttled_us")}
    sums["cpu"] = sums["user_us"] + sums["system_us"]
    for k in ("cpu", "periods", "throttled", "throttled_us"):
        assert last[k] - first[k] - 20 <= sums[k] <= after[k] + 20, (k, first, last, after, sums)
    assert {r["mem_limit"] for r in rows if r["mem_limit"]} == {64 << 20}
    assert {r["cpu_limit_m"] for r in rows if r["cpu_limit_m"]} == {300}
    assert rows[-1]["anon"] == after["anon"] and rows[-1]["pids"] >= 1
    used = re.match(r"([\d.]+)([KM])iB / 64MiB", shown["MemUsage"])
    assert used, shown
    assert abs(float(used[1]) * {"K": 1 << 10, "M": 1 << 20}[used[2]] - rows[-1]["working"]) < 2 << 20, (shown, rows[-1])
    assert all(r["rx_bytes"] in (None, 0) for r in rows)  # a network of its own, and nobody in it


def test_docker_rename_is_seen_at_once_and_compose_services_are_found(docker, store, sonde):
    e, image = docker
    labels = ["--label", "com.docker.compose.project=shop", "--label", "com.docker.compose.service=web"]
    c = Capture(store, "--freq", "199", prefix=e.prefix).start()
    try:
        done = e.docker("run", "-d", "--rm", "--network", "none", "--name", "shop-web-1", *labels, image, "/bin/burn-static", 60000)
        assert done.returncode == 0, done.stderr
        own = done.stdout.strip()
        seen = "SELECT 1 FROM processes WHERE container = ? AND comm = 'burn-static'"
        until = time.monotonic() + 20
        while not sql_all(store, seen, ("shop-web-1",)) and time.monotonic() < until:
            time.sleep(0.2)
        assert e.docker("rename", "shop-web-1", "shop-old").returncode == 0
        until = time.monotonic() + 10
        while not sql_all(store, seen, ("shop-old",)) and time.monotonic() < until:
            time.sleep(0.2)
        c.stop()
    finally:
        c.close()
        e.docker("kill", own)
    for value in ("shop-old", "shop-web-1", "web", "shop", "shop/web", own[:8]):
        rows = json.loads(sonde("ps", "--container", value, "--json", store=store, check=True).stdout)["rows"]
        # what ended before (runc's own beginnings) keeps the name that it had
        assert {r["container_id"] for r in rows} == {own} and {r["container"] for r in rows if r["comm"] == "burn-static"} == {"shop-old"}, value


def podman_here():
    """podman with a store of its own, and the image of the tests in it."""
    need_root()
    need("podman")
    need("conmon")
    base = tempfile.mkdtemp(prefix="sonde-podman-")
    command = ["podman", "--root", f"{base}/root", "--runroot", f"{base}/run", "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file",
               "--tmpdir", f"{base}/tmp"]
    if shutil.which("runc"):  # crun refuses a host with both versions of cgroups
        command += ["--runtime", "runc"]

    def call(*args):
        return subprocess.run([*command, *map(str, args)], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False)
    with tarfile.open(f"{base}/image.tar", "w") as t:
        t.add(os.path.join(BUILD, "tests/workloads/burn-static"), "bin/burn-static")
    done = call("import", f"{base}/image.tar", "sonde-test")
    if done.returncode:
        shutil.rmtree(base, ignore_errors=True)
        pytest.skip(f"podman makes no image here: {done.stderr.strip()[-200:]}")
    return base, call


def test_podman_rename_is_seen_at_once(store, sonde):
    base, podman = podman_here()
    own = None
    c = Capture(store, "--freq", "199").start()
    try:
        done = podman("run", "-d", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--network", "none", "--name", "pod-1", "sonde-test", "/bin/burn-static", 60000)
        if done.returncode:
            pytest.skip(f"podman starts no container here: {done.stderr.strip()[-300:]}")
        own = done.stdout.strip()
        seen = "SELECT 1 FROM processes WHERE container = ? AND comm = 'burn-static'"
        until = time.monotonic() + 20
        while not sql_all(store, seen, ("pod-1",)) and time.monotonic() < until:
            time.sleep(0.2)
        assert podman("rename", "pod-1", "pod-old").returncode == 0
        until = time.monotonic() + 10
        while not sql_all(store, seen, ("pod-old",)) and time.monotonic() < until:
            time.sleep(0.2)
        c.stop()
    finally:
        c.close()
        podman("rm", "-f", "-t", "0", own or "pod-1")
        podman("unmount", "--all")
        shutil.rmtree(base, ignore_errors=True)
    for value in ("pod-old", "pod-1", own[:8]):
        rows = json.loads(sonde("ps", "--container", value, "--json", store=store, check=True).stdout)["rows"]
        assert {r["container"] for r in rows if r["comm"] == "burn-static"} == {"pod-old"}, (value, rows)
