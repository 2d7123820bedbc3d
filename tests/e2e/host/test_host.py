# SPDX-License-Identifier: Apache-2.0
"""Family host: what it stores is what the kernel's own files say, over the same time.

Each counter is read before the recorder begins, after its first row, before it stops and after it: what is stored lies between
the inner and the outer difference.
"""
import contextlib
import mmap
import os
import secrets
import socket
import subprocess
import sys
import threading

import pytest

from conftest import need, need_root, sql_all
from containers import cgroup_roots, cgroups
from mounts import mounted
from sonded import Sonded, until
from test_clock import clock  # noqa: F401 (a fixture)

TICK = 1_000_000 // os.sysconf("SC_CLK_TCK")


def text(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def host_counters():
    """{column of host_stats: how the kernel counts it}"""
    stat = dict(line.split(None, 1) for line in text("/proc/stat").splitlines())
    cpu = list(map(int, stat["cpu"].split()))
    out = {"user_us": cpu[0] * TICK, "system_us": cpu[2] * TICK, "steal_us": cpu[7] * TICK, "forks": int(stat["processes"]),
           "switches": int(stat["ctxt"])}
    for column, file in (("psi_cpu_us", "cpu"), ("psi_io_us", "io")):
        with contextlib.suppress(OSError):
            out[column] = int(text(f"/proc/pressure/{file}").split("total=")[1].split()[0])
    return out


def disk_counters():
    out = {}
    for line in text("/proc/diskstats").splitlines():
        f = line.split()
        if os.path.exists(f"/sys/block/{f[2]}"):
            v = list(map(int, f[3:]))
            out[f[2]] = {"reads": v[0], "read_bytes": v[2] * 512, "writes": v[4], "write_bytes": v[6] * 512, "busy_us": v[9] * 1000}
    return out


def nic_counters():
    out = {}
    for line in text("/proc/net/dev").splitlines()[2:]:
        name, rest = line.split(":")
        v = list(map(int, rest.split()))
        out[name.strip()] = {"rx_bytes": v[0], "rx_packets": v[1], "tx_bytes": v[8], "tx_packets": v[9]}
    return out


def sums(store, table, columns, where="1"):
    rows = sql_all(store, f"SELECT {', '.join(f'sum({c}) AS {c}' for c in columns)} FROM {table} WHERE {where}")
    return {c: sum(r[c] or 0 for r in rows) for c in columns}


def assert_between(stored, marks):
    """marks: readings (before, after its first row, before its end, after)."""
    for column, n in stored.items():
        outer, inner = (marks[b][column] - marks[a][column] for a, b in ((0, 3), (1, 2)))
        assert inner <= n <= outer, f"{column}: {n} is not within {inner} and {outer}"


def first_row(store, table="host_row"):
    with contextlib.suppress(Exception):
        return bool(sql_all(store, f"SELECT 1 FROM {table} LIMIT 1"))
    return False


def write_direct(path, size):
    """`size` bytes past the page cache."""
    block = mmap.mmap(-1, 1 << 16)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    for _ in range(size >> 16):
        os.write(fd, block)
    os.fsync(fd)
    os.close(fd)


def talk(n):
    """n datagrams over lo."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as a, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as b:
        b.bind(("127.0.0.1", 0))
        for _ in range(n):
            a.sendto(b"x" * 1000, b.getsockname())
            b.recv(2000)


def test_what_the_host_its_disks_and_interfaces_used_is_what_the_kernel_counted(capture, store, scratch):
    marks = [(host_counters(), disk_counters(), nic_counters())]
    cap = capture(program="sonde-host")
    assert until(lambda: first_row(store), 20)
    marks.append((host_counters(), disk_counters(), nic_counters()))
    for _ in range(30):
        subprocess.run(["true"], check=True)
    write_direct(os.path.join(scratch, "direct"), 8 << 20)
    talk(100)
    marks.append((host_counters(), disk_counters(), nic_counters()))
    cap.stop()
    marks.append((host_counters(), disk_counters(), nic_counters()))
    host = sums(store, "host_stats", marks[0][0])
    assert_between(host, [m[0] for m in marks])
    assert host["forks"] >= 30
    written = 0
    for disk in marks[0][1]:
        stored = sums(store, "disk_stats", marks[0][1][disk], f"disk = '{disk}'")
        assert_between(stored, [m[1][disk] for m in marks])
        written += stored["write_bytes"]
    assert written >= 8 << 20
    lo = sums(store, "net_stats", marks[0][2]["lo"], "interface = 'lo'")
    assert_between(lo, [m[2]["lo"] for m in marks])
    assert lo["tx_bytes"] >= 100 * 1000
    mem = sql_all(store, "SELECT mem_total, mem_available, cpus FROM host_stats ORDER BY ts DESC LIMIT 1")[0]
    assert mem["mem_total"] == int(text("/proc/meminfo").split()[1]) * 1024 and 0 < mem["mem_available"] < mem["mem_total"]
    assert mem["cpus"] == os.sysconf("SC_NPROCESSORS_ONLN")


def test_what_sleeps_all_the_time_has_its_memory_too(capture, store):
    p = subprocess.Popen([sys.executable, "-c", "x = bytearray(30 << 20); print(1, flush=True); input()"], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
    p.stdout.readline()
    try:
        cap = capture(program="sonde-host")
        assert until(lambda: first_row(store), 20)
        cap.stop()
        (row,) = sql_all(store, f"SELECT max(rss) AS rss, sum(user_us) AS us FROM process_stats WHERE pid = {p.pid}")
        assert row["rss"] > 30 << 20 and not row["us"]
    finally:
        p.communicate("\n", timeout=120)


BUSY = """
import mmap, os, sys
os.set_blocking(0, True)
t = os.times()
while os.times().user - t.user < 0.3:
    pass
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_DIRECT)
block = mmap.mmap(-1, 1 << 16)
for _ in range(32):
    os.write(fd, block)
held = bytearray(40 << 20)
print("done", flush=True)
sys.stdin.readline()
"""


def busy(path):
    """A process that has used 0.3 s and written 2 MiB and holds 40 MiB, and now waits; with what the kernel says of it."""
    p = subprocess.Popen([sys.executable, "-c", BUSY, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    p.stdout.readline()
    stat = text(f"/proc/{p.pid}/stat").rsplit(")", 1)[1].split()
    io = dict(line.split(": ") for line in text(f"/proc/{p.pid}/io").splitlines())
    return p, {"user_us": int(stat[11]) * TICK, "system_us": int(stat[12]) * TICK, "minflt": int(stat[7]),
               "write_bytes": int(io["write_bytes"]), "read_bytes": int(io["read_bytes"])}


def rounds(store):
    return {r["ts"] for r in sql_all(store, "SELECT DISTINCT ts FROM host_stats")} if first_row(store) else set()


def two_rounds_later(store):
    before = rounds(store)
    assert until(lambda: len(rounds(store) - before) >= 2, 20)


def test_what_a_process_used_is_what_the_kernel_says_of_it(capture, store, scratch):
    cap = capture(program="sonde-host")
    assert until(lambda: first_row(store), 20)
    p, told = busy(os.path.join(scratch, "direct"))
    try:
        two_rounds_later(store)
        cap.stop()
        assert sums(store, "process_stats", told, f"pid = {p.pid}") == told
        row = sql_all(store, f"SELECT rss, threads, comm, self FROM process_stats WHERE pid = {p.pid} ORDER BY ts DESC LIMIT 1")[0]
        assert row["rss"] > 40 << 20 and row["threads"] == 1 and row["comm"].startswith("python") and not row["self"]
    finally:
        p.communicate("\n", timeout=120)


@pytest.mark.long
def test_a_recorder_that_is_started_again_makes_no_step(capture, store, scratch):
    p, told = busy(os.path.join(scratch, "direct"))
    try:
        for _ in range(2):
            cap = capture(program="sonde-host")
            assert until(lambda: first_row(store), 20)
            cap.stop()
        assert all(n == 0 for n in sums(store, "process_stats", told, f"pid = {p.pid}").values())
    finally:
        p.communicate("\n", timeout=120)


@pytest.mark.long
@pytest.mark.parametrize("jump", [3600, -7200])
def test_a_clock_that_is_set_makes_no_step(clock, capture, store, jump):  # noqa: F811
    before = host_counters()
    cap = capture(program="sonde-host", env=clock.env)
    assert until(lambda: first_row(store), 20)
    clock.set(utc=jump)
    two_rounds_later(store)
    cap.stop()
    after, stored = host_counters(), sums(store, "host_stats", before)
    for column, n in stored.items():
        assert 0 <= n <= after[column] - before[column], column
    seen = [r["ts"] for r in sql_all(store, "SELECT ts FROM host_stats ORDER BY ts")]
    assert max(seen) - min(seen) > abs(jump) / 2


@pytest.mark.long
def test_sonded_records_it_by_itself_with_no_right_to_load_programs(store):
    with Sonded(store, families=None) as d:
        assert d.running("cpu") and d.running("host"), d.said()
        status = text(f"/proc/{d.running('host')}/status").splitlines()
        caps = int(next(line for line in status if line.startswith("CapPrm")).split()[1], 16)
        assert caps & 1 << 19 and caps & 1 << 34 and not caps & (1 << 38 | 1 << 39), hex(caps)  # PTRACE, SYSLOG; PERFMON, BPF
        assert until(lambda: first_row(store), 25), d.said()
    (run,) = sql_all(store, "SELECT bucket_s, accounted, (SELECT count(*) FROM host_row) AS rows FROM run WHERE family = 'host'")
    assert run["bucket_s"] == 10 and run["rows"] >= 1 and run["accounted"] > 10


def cpu_of(path):
    """CPU time of a cgroup, by whichever hierarchy tells it."""
    for root, name in (("/sys/fs/cgroup/cpuacct", "cpuacct.usage"), ("/sys/fs/cgroup/cpu,cpuacct", "cpuacct.usage")):
        with contextlib.suppress(OSError):
            return int(text(f"{root}/{path}/{name}")) // 1000
    for root in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
        with contextlib.suppress(OSError):
            return int(text(f"{root}/{path}/cpu.stat").split()[1])
    return None


def all_roots():
    """Each hierarchy that has a controller or is v2."""
    roots = []
    for line in text("/proc/mounts").splitlines():
        _, where, kind, options = line.split()[:4]
        roots += [where] if kind == "cgroup2" or kind == "cgroup" and "cpuset" not in options else []
    return roots


def test_a_container_has_its_cpu_memory_and_limit_and_nothing_of_before(capture, store):
    container_id = secrets.token_hex(32)
    path = f"docker/{container_id}"
    with cgroups({root: path for root in all_roots()}) as (made, prefix):
        if not made:
            pytest.skip("missing: a cgroup hierarchy that can be written")
        limits = [f for f in (f"{d}/{n}" for d in made for n in ("memory.limit_in_bytes", "memory.max")) if os.path.exists(f)]
        for file in limits:
            with open(file, "w", encoding="ascii") as f:
                f.write(str(64 << 20))
        subprocess.run([*prefix, sys.executable, "-c", "sum(i for i in range(2000000))"], check=True)
        marks = [{"cpu": cpu_of(path)}]
        assert marks[0]["cpu"] > 0
        cap = capture(program="sonde-host")
        assert until(lambda: first_row(store, "cgroup_row"), 20)
        marks.append({"cpu": cpu_of(path)})
        p = subprocess.Popen([*prefix, sys.executable, "-c", "import mmap; x = bytearray(20 << 20); m = mmap.mmap(-1, 12 << 20); "
                              "m.write(b'x' * (12 << 20)); print(sum(i for i in range(3000000)), "
                              "flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        p.stdout.readline()
        marks.append({"cpu": cpu_of(path)})
        two_rounds_later(store)
        cap.stop()
        marks.append({"cpu": cpu_of(path)})
        p.communicate("\n", timeout=120)
    rows = sql_all(store, f"SELECT * FROM container_stats WHERE cgroup = '/{path}'")
    assert rows and all(r["container"] in ("", container_id[:12]) for r in rows)
    stored = {"cpu": sum((r["user_us"] or 0) + (r["system_us"] or 0) for r in rows)}
    # each of the two is rounded down to microseconds
    assert marks[2]["cpu"] - marks[1]["cpu"] - 20 <= stored["cpu"] <= marks[3]["cpu"] - marks[0]["cpu"] + 20
    if limits:
        assert {r["mem_limit"] for r in rows if r["mem_limit"]} == {64 << 20}
        # with shared memory, which the kernel counts as files, but cannot reclaim
        assert max(r["anon"] or 0 for r in rows) > 32 << 20


@pytest.mark.long
def test_a_cgroup_that_comes_and_goes_all_the_time_hurts_nothing(capture, store):
    need_root()
    roots = cgroup_roots()
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            for root in roots:
                for i in range(20):
                    with contextlib.suppress(OSError):
                        os.makedirs(f"{root}/sonde-churn/{i}")
                for i in range(20):
                    with contextlib.suppress(OSError):
                        os.rmdir(f"{root}/sonde-churn/{i}")
    t = threading.Thread(target=churn)
    t.start()
    try:
        cap = capture(program="sonde-host")
        assert until(lambda: len(rounds(store)) >= 3, 20)
        done = cap.stop()
    finally:
        stop.set()
        t.join()
        for root in roots:
            with contextlib.suppress(OSError):
                os.rmdir(f"{root}/sonde-churn")
    assert done["samples"] > 0 and not done["lost_total"]


def test_a_file_system_is_told_as_df_does_whatever_it_is_called(capture, store, scratch):
    point = os.path.join(scratch, "a\nb \\x")
    os.mkdir(point)
    with mounted(point, "tmpfs", data="size=8m,nr_inodes=100"):
        with open(os.path.join(point, "file"), "wb") as f:
            f.write(b"x" * (2 << 20))
        cap = capture(program="sonde-host")
        assert until(lambda: first_row(store, "fs_row"), 20)
        st = os.statvfs(point)
        two_rounds_later(store)
        cap.stop()
    rows = sql_all(store, "SELECT * FROM filesystem_stats WHERE size = 8388608 AND fstype = 'tmpfs' AND mount LIKE '%\\x0ab \\x'")
    assert rows, sql_all(store, "SELECT mount FROM filesystem_stats")
    assert rows[-1]["free"] == st.f_bfree * st.f_frsize and rows[-1]["inodes"] == 100 and rows[-1]["inodes_free"] == st.f_ffree
    assert rows[-1]["free"] <= 6 << 20 and rows[-1]["read_only"] == 0 and rows[-1]["hangs"] == 0


def test_a_file_system_that_hangs_holds_up_nothing_and_is_told(capture, store, scratch):
    """A FUSE server that never answers."""
    need_root()
    need("/dev/fuse", "/dev/fuse")
    fd = os.open("/dev/fuse", os.O_RDWR)
    point = os.path.join(scratch, "hangs")
    os.mkdir(point)
    try:
        with mounted(point, "fuse", data=f"fd={fd},rootmode=40000,user_id=0,group_id=0"):
            cap = capture(program="sonde-host")
            hanging = f"SELECT * FROM filesystem_stats WHERE mount = '{point}'"
            assert until(lambda: first_row(store, "fs_row") and sql_all(store, hanging), 30)
            before = rounds(store)
            assert until(lambda: len(rounds(store) - before) >= 2, 20)
            cap.stop()
            row = sql_all(store, hanging)[0]
            assert row["hangs"] == 1 and row["size"] is None
            assert sql_all(store, "SELECT 1 FROM filesystem_stats WHERE size > 0")
    finally:
        os.close(fd)


@pytest.mark.long
def test_what_the_rules_leave_out_has_no_rows(capture, store, scratch):
    cap = capture("--exclude", "command:python*", program="sonde-host")
    assert until(lambda: first_row(store), 20)
    p, _ = busy(os.path.join(scratch, "direct"))
    try:
        two_rounds_later(store)
        cap.stop()
        assert not sql_all(store, f"SELECT 1 FROM process_stats WHERE pid = {p.pid} OR comm LIKE 'python%'")
        assert sql_all(store, "SELECT 1 FROM process_stats LIMIT 1")
    finally:
        p.communicate("\n", timeout=120)


@pytest.mark.long
def test_traffic_of_a_container_with_a_network_of_its_own_is_its_own(capture, store):
    """Two namespaces and a veth between them; one is a container's."""
    need("ip")
    container_id = secrets.token_hex(32)
    name = f"sh{os.getpid() % 100000}"
    path = f"docker/{container_id}"
    with cgroups({root: path for root in all_roots()}) as (made, prefix):
        if not made:
            pytest.skip("missing: a cgroup hierarchy that can be written")
        cap = capture(program="sonde-host")
        assert until(lambda: first_row(store), 20)
        inside = subprocess.Popen([*prefix, "unshare", "-n", "sh", "-c", "echo in; read x"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        inside.stdout.readline()
        enter = ["nsenter", "-n", "-t", str(inside.pid)]
        try:
            for command in (f"ip link add {name} type veth peer name {name}p", f"ip link set {name}p netns {inside.pid}",
                            f"ip addr add 10.213.7.1/30 dev {name}", f"ip link set {name} up",
                            " ".join([*enter, f"ip addr add 10.213.7.2/30 dev {name}p"]),
                            " ".join([*enter, f"ip link set {name}p up"])):
                subprocess.run(command.split(), check=True)
            two_rounds_later(store)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                for _ in range(200):
                    s.sendto(b"x" * 1000, ("10.213.7.2", 9))
            said = subprocess.run([*enter, "cat", "/proc/net/dev"], capture_output=True, text=True, check=True).stdout
            two_rounds_later(store)
            cap.stop()
            later = subprocess.run([*enter, "cat", "/proc/net/dev"], capture_output=True, text=True, check=True).stdout
        finally:
            subprocess.run(["ip", "link", "del", name], check=False)
            inside.communicate("\n", timeout=120)
    told = [int(line.split(":")[1].split()[0]) for t in (said, later) for line in t.splitlines() if f"{name}p:" in line]
    (row,) = sql_all(store, f"SELECT sum(rx_bytes) AS rx, max(container) AS c FROM net_stats WHERE interface = '{name}p'")
    assert 200 * 1000 < told[0] and told[0] - 2000 <= row["rx"] <= told[1] and row["c"] == container_id[:12]
    (mine,) = sql_all(store, f"SELECT sum(rx_bytes) AS rx FROM container_stats WHERE cgroup = '/{path}'")
    assert told[0] - 2000 <= mine["rx"] <= told[1]
    (host,) = sql_all(store, f"SELECT sum(tx_bytes) AS tx FROM net_stats WHERE interface = '{name}' AND container = ''")
    assert host["tx"] >= 200 * 1000
