#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""host: what family host takes with 30 containers and 500 processes, and how much it stores.

30 cgroups of Docker's form, in each a process that wakes ten times a second and 15 that sleep. Recorded in buckets of ten seconds,
as sonded does. To reach: half a percent of a core, 25 MB of memory. Exit 1 where that is missed (not with --smoke).
"""
import argparse
import contextlib
import glob
import os
import secrets
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOADER = os.path.join(os.environ.get("B", os.path.join(ROOT, "build")), "bin", "sonde-host")
WAKES = "import time\nwhile True: time.sleep(0.1)"
TABLES = ("host_row", "cgroup_row", "cgroup_disk_row", "process_row", "disk_row", "nic_row", "fs_row", "sensor_row")


def hierarchies():
    with open("/proc/mounts", encoding="utf-8") as f:
        mounts = [line.split()[:4] for line in f]
    return [m[1] for m in mounts if m[2] == "cgroup2" or m[2] == "cgroup" and "cpuset" not in m[3]]


@contextlib.contextmanager
def containers(n, sleepers):
    made, running = [], []
    try:
        for _ in range(n):
            name = secrets.token_hex(32)
            paths = [f"{root}/docker/{name}" for root in hierarchies()]
            for path in paths:
                os.makedirs(path)
                made.append(path)
            join = "".join(f"echo $$ >{path}/cgroup.procs; " for path in paths)
            running.append(subprocess.Popen(["sh", "-c", join + "sleep 3600 & " * sleepers + f'exec {sys.executable} -c "$0"', WAKES],
                                            start_new_session=True))
        yield
    finally:
        for p in running:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
        for path in made:
            for _ in range(100):
                with contextlib.suppress(OSError):
                    os.rmdir(path)
                    break
                time.sleep(0.05)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=int, default=120)
    p.add_argument("--smoke", action="store_true", help="that it runs")
    a = p.parse_args()
    seconds = 12 if a.smoke else a.seconds
    with tempfile.TemporaryDirectory() as store, containers(3 if a.smoke else 30, 15):
        subprocess.run([LOADER, "--store", store, "--bucket", "10s", "--duration", f"{seconds}s"], check=True)
        (path,) = glob.glob(f"{store}/*.db")
        db = sqlite3.connect(path)
        (cpu_ns, private), = db.execute("SELECT sum(cpu_ns), max(private_bytes) FROM cost_row WHERE program = 'sonde-host'")
        # the first and the last bucket have everything
        inner = {t: db.execute(f"SELECT count(*) FROM {t} WHERE ts > (SELECT min(ts) FROM host_row) AND ts < (SELECT max(ts) FROM"
                               " host_row)").fetchone()[0] for t in TABLES}
        buckets = max(1, inner["host_row"])
    share = 100 * cpu_ns / 1e9 / seconds
    print(f"sonde-host: {share:.3f} % of one core (0.5), {private / 1e6:.1f} MB private (25)")
    print("rows a bucket: " + ", ".join(f"{t} {n / buckets:.1f}" for t, n in inner.items() if n))
    return 0 if a.smoke or (share <= 0.5 and private <= 25e6) else 1


if __name__ == "__main__":
    sys.exit(main())
