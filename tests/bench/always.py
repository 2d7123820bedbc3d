#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""always: what cpu and offcpu together cost while both are always on, on a busy host with 20 containers and 100 forks a second.

    tests/bench/always.py [--seconds 60] [--settle 180] [--rate 25] [--limit PERCENT] [--smoke] [--write docs/BENCHMARKS.md]

The load: on each CPU one program that never stops; 20 containers made by hand (a cgroup, and namespaces of their own), in each a
service with a client (mix/service.c: --rate requests a second, five threads); one that starts a program 100 times a second. Over
it sonded with both families and its default limits.

What it costs is not asked of sonde: it is the CPU time of the cgroup that sonded and all its children are in, and the run time
of the BPF programs that they hold (kernel.bpf_stats_enabled, whose own reading of the clock is in it). Beside it stands what
sonde says of itself for the same time.
"""
import argparse
import collections
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import bench

sys.path[:0] = [os.path.join(bench.ROOT, "tests", "e2e", d) for d in ("", "lib", "lib/servers")]
from sonded import Sonded  # noqa: E402

CONTAINERS, FORKS = 20, 100
GROUP = f"sonde-bench-{os.getpid()}"


def hierarchies():
    """Where a container has a group: of version 1 the controllers that sonde reads, else the one tree of version 2."""
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        return ["/sys/fs/cgroup"]
    return [p for p in (f"/sys/fs/cgroup/{name}" for name in ("memory", "pids", "cpuacct", "unified")) if os.path.isdir(p)]


class Groups:
    """Cgroups of this run, removed at its end."""
    def __init__(self):
        self.made = []

    def make(self, name):
        for tree in hierarchies():
            path = os.path.join(tree, GROUP, name)
            os.makedirs(path, exist_ok=True)
            self.made.append(path)

    def enter(self, name):
        """For the child that is to be in it, before its program starts."""
        for tree in hierarchies():
            with open(os.path.join(tree, GROUP, name, "cgroup.procs"), "w", encoding="ascii") as f:
                f.write("0")

    def close(self):
        for path in self.made + [os.path.join(tree, GROUP) for tree in hierarchies()]:
            for _ in range(50):
                try:
                    os.rmdir(path)
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.1)


def inside(name):
    """What a command is begun with to run in that group."""
    return ["sh", "-c", 'for g; do [ "$g" = -- ] && break; echo 0 > "$g"; shift; done; shift; exec "$@"', "sh",
            *(os.path.join(t, GROUP, name, "cgroup.procs") for t in hierarchies()), "--"]


def charged_ns(name):
    """CPU time of a group, by the kernel."""
    for path, factor in (("/sys/fs/cgroup/cpuacct", None), ("/sys/fs/cgroup", 1000)):
        try:
            if factor is None:
                with open(f"{path}/{GROUP}/{name}/cpuacct.usage", encoding="ascii") as f:
                    return int(f.read())
            with open(f"{path}/{GROUP}/{name}/cpu.stat", encoding="ascii") as f:
                return factor * int(dict(line.split() for line in f)["usage_usec"])
        except OSError:
            continue
    raise RuntimeError("missing: a cgroup that tells CPU time")


def build():
    mix = bench.build_mix()
    for name in ("service", "spawner"):
        subprocess.run(["gcc", "-O2", "-pthread", "-o", f"{bench.MIX}/{name}", f"{bench.ROOT}/tests/bench/mix/{name}.c"], check=True)
    return mix[0]


@contextlib.contextmanager
def load(groups, burner, opts):
    """20 containers, the forks, and as much work as there are CPUs."""
    seconds = str(opts.settle + opts.seconds + 120)
    children = [subprocess.Popen([*burner, seconds], stdout=subprocess.DEVNULL) for _ in range(os.cpu_count())]
    for i in range(CONTAINERS):
        name = f"c{i:02}"
        groups.make(name)
        argv = ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", f"{bench.MIX}/service", seconds, str(opts.rate)]
        children.append(subprocess.Popen(argv, stdout=subprocess.DEVNULL, preexec_fn=lambda name=name: groups.enter(name)))
    groups.make("build")
    children.append(subprocess.Popen([f"{bench.MIX}/spawner", seconds, str(FORKS), "/bin/true"], stdout=subprocess.DEVNULL,
                                     preexec_fn=lambda: groups.enter("build")))
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


def host():
    """Switches and forks since the boot."""
    with open("/proc/stat", encoding="ascii") as f:
        words = dict(line.split(None, 1) for line in f)
    return int(words["ctxt"]), int(words["processes"])


def names():
    """{id: name} of all BPF programs."""
    said = subprocess.run(["bpftool", "prog", "show", "-j"], capture_output=True, text=True, check=False).stdout
    return {p["id"]: p.get("name", "?") for p in json.loads(said or "[]")}


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return "?"


class Look:
    """What has been charged so far."""
    def __init__(self, d):
        pids = bench.tree(d.child.pid)
        self.at = time.monotonic()
        self.group = charged_ns("own")
        self.programs = bench.bpf_state(pids)[0]
        self.processes = {p: (comm(p), bench.cpu_ns(p)) for p in pids}
        self.switches, self.forks = host()
        self.said = d.ask(do="status")["sonded"]["cpu_ns"]


def between(a, b):
    took = (b.at - a.at) * 1e9
    named = names()
    parts = collections.Counter()
    for pid, (name, ns) in b.processes.items():
        parts[name] += 100 * (ns - a.processes.get(pid, (name, 0))[1]) / took
    group = 100 * (b.group - a.group) / took
    parts["its children that have ended"] = group - sum(parts.values())
    bpf = collections.Counter()
    for i, (ns, runs) in b.programs.items():
        before = a.programs.get(i, (0, 0))
        bpf[f"bpf:{named.get(i, i)}"] += 100 * (ns - before[0]) / took
    return {"group": group, "bpf": sum(bpf.values()), "said": 100 * (b.said - a.said) / took, "parts": parts + bpf,
            "switches": (b.switches - a.switches) / took * 1e9, "forks": (b.forks - a.forks) / took * 1e9}


def measure(opts, burner, folder):
    groups = Groups()
    groups.make("own")
    stats = bench.bpf_stats(1)
    try:
        with load(groups, burner, opts):
            flags = ["--families", opts.families]
            with Sonded(os.path.join(folder, "store"), *flags, prefix=inside("own"), limit=opts.limit,
                        env={"SONDE_PATIENCE": opts.patience} if opts.patience else None) as d:
                time.sleep(opts.settle)
                before = Look(d)
                time.sleep(opts.seconds)
                out = between(before, Look(d))
                status = d.ask(do="status")
                out["steps"] = [(s["family"], s["what"], s["step"]) for s in status["sonded"]["steps"]]
                out["services"] = {s["name"]: s for s in status["services"]}
                d.stop()
                return out
    finally:
        bench.bpf_stats(stats)
        groups.close()


def table(opts, r):
    steps = "; ".join(f"{family} {what}, step {step}" for family, what, step in r["steps"]) or "none"
    rows = [("all of sonde: CPU time of its cgroup and run time of its BPF programs", r["group"] + r["bpf"], "3"),
            ("of it its processes", r["group"], ""), ("of it BPF programs", r["bpf"], ""),
            ("what sonded says of the same time", r["said"], "")]
    rows += [(f"- {name}", share, "") for name, share in r["parts"].most_common() if share >= 0.02]
    return "\n".join([
        f"Machine: {bench.machine()}. Date: {time.strftime('%Y-%m-%d')}. Command: `{bench.command()}` "
        f"({opts.seconds:.0f} s, after {opts.settle:.0f} s).", "",
        f"{r['switches']:.0f} switches and {r['forks']:.0f} forks a second on the whole host; steps that sonded took: {steps}.", "",
        "| cpu and offcpu always on, 20 containers | % of one core | to reach |", "|---|---|---|",
        *(f"| {name} | {share:.2f} | {reach} |" for name, share, reach in rows)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--settle", type=float, default=180, help="until sonded has found its step")
    parser.add_argument("--rate", type=int, default=25, help="requests a second in each container")
    parser.add_argument("--families", default="cpu,offcpu")
    parser.add_argument("--limit", default=None, help="percent of a core, instead of the default")
    parser.add_argument("--patience", help="how long sonded lets itself be over its limit, instead of a minute")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--write", help="put the table between the markers of this file")
    opts = parser.parse_args()
    if os.geteuid() != 0:
        print("missing: root")
        return 77
    if opts.smoke:
        opts.seconds, opts.settle = 2, 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = tempfile.mkdtemp(prefix="sonde-bench-")
    try:
        r = measure(opts, build(), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    text = table(opts, r)
    print(text)
    if opts.write:
        bench.put_between(opts.write, "always", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
