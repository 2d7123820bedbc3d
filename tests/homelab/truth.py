# SPDX-License-Identifier: Apache-2.0
"""What happened, by others than sonde: the kernel's accounts of each container, Docker's events, and what sonde itself cost."""
import glob
import json
import os
import subprocess
import threading
import time


def controller(name):
    """Where a controller's hierarchy is mounted: v1's of that name, else v2's."""
    with open("/proc/mounts", encoding="utf-8") as f:
        rows = [line.split()[:4] for line in f]
    v1 = [where for _, where, kind, options in rows if kind == "cgroup" and name in options.split(",")]
    return (v1 or [where for _, where, kind, _ in rows if kind == "cgroup2"])[0]


def cpu_of(path):
    """ns of CPU time charged to a cgroup, or None."""
    try:
        if os.path.exists(f"{path}/cpuacct.usage"):
            with open(f"{path}/cpuacct.usage", encoding="ascii") as f:
                return int(f.read())
        with open(f"{path}/cpu.stat", encoding="ascii") as f:
            return 1000 * int(dict(line.split() for line in f)["usage_usec"])
    except (OSError, KeyError):
        return None


def throttled_of(path):
    """(periods held back, ns held back) of a cgroup, or None."""
    try:
        with open(f"{path}/cpu.stat", encoding="ascii") as f:
            stat = {k: int(v) for k, v in (line.split() for line in f)}
    except OSError:
        return None
    return stat.get("nr_throttled", 0), stat.get("throttled_time", 1000 * stat.get("throttled_usec", 0))


def bpf_run_times(cgroup):
    """{id: ns} of the BPF programs that processes of a cgroup hold, where the kernel counts it (kernel.bpf_stats_enabled)."""
    found = {}
    try:
        with open(f"{cgroup}/cgroup.procs", encoding="ascii") as f:
            pids = f.read().split()
    except OSError:
        return found
    for path in (p for pid in pids for p in glob.glob(f"/proc/{pid}/fdinfo/*")):
        try:
            with open(path, encoding="ascii") as f:
                told = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
        except OSError:
            continue
        if "prog_id" in told and "run_time_ns" in told:
            found[int(told["prog_id"])] = int(told["run_time_ns"])
    return found


class Truth:
    """Reads once a second until stop(). `cgroups`: where Docker's containers are, below each hierarchy."""

    def __init__(self, engine, own_cgroup, folder, ask):
        self.engine, self.own_cgroup, self.ask = engine, own_cgroup, ask
        self.names, self.samples, self.throttled, self.bpf, self.own, self.status = {}, [], {}, {}, [], []
        self.base = os.path.join(controller("cpuacct"), "docker")
        self.cpu_base = os.path.join(controller("cpu"), "docker")
        self.events = open(os.path.join(folder, "events.json"), "w+", encoding="utf-8")
        self.listener = subprocess.Popen(["docker", "-H", engine.socket, "events", "--format", "{{json .}}"], stdout=self.events)
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self.follow)
        self.thread.start()

    def look(self):
        now = time.time()
        charged = {}
        try:
            ids = [d for d in os.listdir(self.base) if len(d) == 64]
        except FileNotFoundError:
            ids = []
        for container in ids:
            if (ns := cpu_of(f"{self.base}/{container}")) is not None:
                charged[container] = ns
            if held := throttled_of(f"{self.cpu_base}/{container}"):
                self.throttled.setdefault(container, []).append((now, *held))
        self.samples.append((now, charged))
        if self.own_cgroup:
            self.own.append((now, cpu_of(self.own_cgroup)))
            self.bpf.update(bpf_run_times(self.own_cgroup))

    def follow(self):
        turn = 0
        while not self.ending.wait(1):
            self.look()
            if turn % 10 == 0:
                self.status.append((time.time(), self.ask()))
            turn += 1

    def stop(self):
        self.look()
        self.ending.set()
        self.thread.join()
        self.listener.terminate()
        self.listener.wait()
        self.events.seek(0)
        told = [json.loads(line) for line in self.events if line.strip()]
        self.events.close()
        for e in told:
            if e.get("Type") == "container" and "name" in e["Actor"]["Attributes"]:
                self.names[e["Actor"]["ID"]] = e["Actor"]["Attributes"]["name"]
        return {"samples": self.samples, "throttled": self.throttled, "bpf_ns": sum(self.bpf.values()), "own": self.own,
                "names": self.names, "status": self.status,
                "events": [{"at": e["timeNano"] / 1e9, "what": e["Action"], "id": e["Actor"]["ID"],
                            "name": e["Actor"]["Attributes"].get("name"), "exit": e["Actor"]["Attributes"].get("exitCode")}
                           for e in told if e.get("Type") == "container"]}
