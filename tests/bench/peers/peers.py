#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""peers: what sonde takes beside its peers: one agent at a time over the same load, in turn.

    tests/bench/peers/peers.py [--loads busy,forks] [--agents NAME,...] [--rounds 5] [--warmup 60] [--seconds 25] [--smoke] [--list]
                               [--rows FILE] [--write docs/BENCHMARKS.md]

A run starts the load in a cgroup of its own, then the agent in a cgroup of its own, waits --warmup, and counts --seconds. The
order of the agents moves on by one with each round. Medians of the rounds, with the lowest and the highest.

    agent      CPU time that the kernel charged to the agent's cgroup, % of one core
    programs   run time of the BPF programs that its processes hold, by themselves or by a link, % of one core (BPF_ENABLE_STATS: its
               own two readings of the clock, some 40 ns a run, are in it). Charged to whatever ran, not to the agent
    memory     Pss of the agent's processes at the end, MB: what several of them share is counted once
    start      CPU time before the window, s
    app        CPU time of the servers against the same round's run with no agent
    other      CPU time of all that is neither agent nor load, % of one core: above 10 the machine was not quiet

--rows appends one line of JSON for each run, and takes up what is in the file already. Exit 77: something is missing.
"""
import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import agents  # noqa: E402
import bench  # noqa: E402
import build  # noqa: E402
import groups  # noqa: E402
import loads  # noqa: E402
import ratchet  # noqa: E402


def held_programs(pids):
    """Numbers of the BPF programs that these processes hold, by a descriptor of the program or of a link to it."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fdinfo"):
                with contextlib.suppress(OSError), open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii", errors="replace") as f:
                    found |= {int(line.split()[1]) for line in f if line.startswith("prog_id:")}
    return found


def run_times():
    """{number: (ns, runs)} of all programs that are loaded."""
    for _ in range(5):  # one may go while they are listed
        said = subprocess.run(["bpftool", "prog", "show", "-j"], capture_output=True, text=True, check=False).stdout
        with contextlib.suppress(ValueError):
            return {p["id"]: (p.get("run_time_ns", 0), p.get("run_cnt", 0)) for p in json.loads(said) if "id" in p}
    return {}


def pss_mb(pids):
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
            total += next((int(line.split()[1]) for line in f if line.startswith("Pss:")), 0)
    return total / 1024


def host_busy_ns():
    with open("/proc/stat", encoding="ascii") as f:
        cpu = f.readline().split()
    return sum(int(cpu[i]) for i in (1, 2, 3, 6, 7)) * 1_000_000_000 // bench.TICK


class Look:
    """The counters at one moment."""

    def __init__(self, run):
        self.ns, self.busy = time.monotonic_ns(), host_busy_ns()
        self.agent, self.load, self.app, self.sink = (g.cpu_ns() for g in (run.agent, run.load, run.app, run.sink))
        self.pids = run.agent.pids()
        self.held, self.times = held_programs(self.pids), run_times()


def between(a, b):
    """The figures of a run, from two looks."""
    ns, mine = b.ns - a.ns, a.held | b.held
    ran = {i: (b.times[i][0] - a.times.get(i, (0, 0))[0], b.times[i][1] - a.times.get(i, (0, 0))[1]) for i in mine & set(b.times)}
    others = b.busy - a.busy - sum(getattr(b, part) - getattr(a, part) for part in ("agent", "load", "app", "sink"))
    return {"agent_cpu": 100 * (b.agent - a.agent) / ns, "programs": 100 * sum(v[0] for v in ran.values()) / ns,
            "runs": sum(v[1] for v in ran.values()) / ns * 1e9, "start": a.agent / 1e9, "app": 100 * (b.app - a.app) / ns,
            "load_cpu": 100 * (b.load - a.load) / ns, "other": 100 * others / ns, "memory": pss_mb(b.pids), "processes": len(b.pids)}


class Run:
    """One agent over one load."""

    def __init__(self, agent, load, opts):
        self.what, self.opts, self.seconds = agent, opts, opts.warmup + opts.seconds
        self.folder, self.child, self.sinks, self.port = tempfile.mkdtemp(prefix="sonde-peers-"), None, None, loads.free_port()
        self.agent, self.load, self.app, self.sink = (groups.Group(name) for name in ("agent", "load", "app", "sink"))
        self.beside = load(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child and self.child.poll() is None:
            self.child.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.child.wait(60)
        for group in (self.agent, self.load, self.app, self.sink):
            group.end()
        for group in (self.agent, self.load, self.app, self.sink):
            group.remove()
        shutil.rmtree(self.folder, ignore_errors=True)

    def begin(self):
        self.beside.begin()
        time.sleep(1)
        if not self.what.command:
            return
        if self.what.sink:
            self.sinks = loads.start([f"{agents.PEERS}/sink", str(self.port)], self.sink, stdout=subprocess.PIPE)
            loads.await_port(self.port)
        with open(f"{self.folder}/said", "wb") as said:
            self.child = loads.start(self.what.command(self), self.agent, stdout=said, stderr=said, cwd=self.folder,
                                     env={k: v for k, v in os.environ.items() if not k.startswith("SONDE_")} | {"SONDE_CONFIG": "/nonexistent"})

    def alive(self):
        if self.child and self.child.poll() is not None:
            with open(f"{self.folder}/said", encoding="utf-8", errors="replace") as f:
                raise RuntimeError(f"it ended with {self.child.returncode}: {f.read()[-300:].strip()}")

    def measure(self):
        self.begin()
        time.sleep(self.opts.warmup)
        self.alive()
        before = Look(self)
        time.sleep(self.opts.seconds)
        found = between(before, Look(self))
        self.alive()
        found["clients"] = self.beside.clients()
        if self.sinks:
            self.sinks.terminate()
            found["sent"] = json.loads(self.sinks.communicate(timeout=10)[0] or "{}")
        return found


def one(load, name, number, opts):
    row = {"load": load, "agent": name, "round": number}
    try:
        with Run(agents.AGENTS[name], loads.LOADS[load], opts) as run:
            row.update(run.measure())
            if run.what.sink and not row["sent"]:
                raise RuntimeError("it sent nothing: it was not at work")
    except (OSError, RuntimeError, ValueError, subprocess.TimeoutExpired) as e:
        row["failed"] = str(e)[:300]
    return row


def span(values, form="{:.2f}"):
    if not values:
        return "-"
    text = form.format(statistics.median(values))
    return text if len(values) < 2 else f"{text} ({form.format(min(values))}-{form.format(max(values))})"


def line_of(rows, name):
    mine = [r for r in rows if r["agent"] == name and "failed" not in r]
    if not mine:
        why = next((r["failed"] for r in rows if r["agent"] == name), "no run")
        return f"| {name} | failed: {why.splitlines()[-1][:100].replace('|', '/')} | | | | | | |"
    alone = {r["round"]: r["app"] for r in rows if r["agent"] == "nothing" and r.get("app", 0) > 0.1}
    ratio = [r["app"] / alone[r["round"]] for r in mine if r["round"] in alone]
    cells = [span([r["agent_cpu"] for r in mine]), span([r["programs"] for r in mine]), span([r["agent_cpu"] + r["programs"] for r in mine]),
             span([r["memory"] for r in mine], "{:.0f}"), span([r["start"] for r in mine], "{:.1f}"), span(ratio, "{:.3f}"),
             span([r["other"] for r in mine], "{:.0f}")]
    return f"| {name} | " + " | ".join(cells) + " |"


def table(rows, opts):
    text = [f"Machine: {bench.machine()}. Date: {time.strftime('%Y-%m-%d')}. Command: `{bench.command()}` ({opts.warmup:.0f} s of warm-up, "
            f"{opts.seconds:.0f} s counted; median, lowest-highest). {build.versions()}."]
    for load in dict.fromkeys(r["load"] for r in rows):
        mine = [r for r in rows if r["load"] == load]
        text += ["", f"| {load}: {loads.LOADS[load].__doc__.strip().splitlines()[0] if loads.LOADS[load].__doc__ else 'nothing happens'} | agent, % | programs, % | "
                 "sum, % | memory, MB | start, s | app | other, % |", "|---|---|---|---|---|---|---|---|"]
        text += [line_of(mine, name) for name in dict.fromkeys(r["agent"] for r in mine)]
    return "\n".join(text)


def kept(path):
    if not path or not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def chosen(opts):
    """[(load, [agent, ...])] of what can run here; says what cannot."""
    plan = []
    for load in opts.loads:
        names = [n for n in opts.agents or loads.LOADS[load].agents if not agents.AGENTS[n].missing()]
        plan += [(load, names)] if names else []
    for name in sorted({n for load in opts.loads for n in opts.agents or loads.LOADS[load].agents}):
        why = agents.AGENTS[name].missing()
        if why:
            print(f"left out: {name}: {why}", file=sys.stderr)
    return plan


def all_rounds(plan, opts):
    rows = kept(opts.rows)
    done = {(r["load"], r["agent"], r["round"]) for r in rows}
    for load, names in plan:
        for number in range(opts.rounds):
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                if (load, name, number) in done:
                    continue
                row = one(load, name, number, opts)
                rows.append(row)
                print(json.dumps(row), file=sys.stderr, flush=True)
                if opts.rows:
                    with open(opts.rows, "a", encoding="utf-8") as f:
                        f.write(json.dumps(row) + "\n")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: [n.strip() for n in text.split(",") if n.strip()]  # noqa: E731
    parser.add_argument("--loads", type=names, default=list(loads.LOADS))
    parser.add_argument("--agents", type=names)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warmup", type=float, default=60)
    parser.add_argument("--seconds", type=float, default=25)
    parser.add_argument("--smoke", action="store_true", help="a short round of each: does it give data")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--rows")
    parser.add_argument("--write", help="put the table between the markers of this file")
    opts = parser.parse_args()
    unknown = [n for n in opts.loads if n not in loads.LOADS] + [n for n in opts.agents or [] if n not in agents.AGENTS]
    if unknown:
        parser.error(f"not known: {', '.join(unknown)}")
    if opts.list:
        for name, load in loads.LOADS.items():
            print(f"{name:10} {', '.join(load.agents)}")
        return 0
    if os.geteuid() != 0 or not shutil.which("bpftool"):
        print("missing: root and bpftool")
        return 77
    if opts.smoke:
        opts.rounds, opts.warmup, opts.seconds = 1, 4, 4
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    build.programs()
    for name, why in build.peers().items():
        print(f"left out: {name}: {why}", file=sys.stderr)
    stats = ratchet.enable_stats()
    try:
        text = table(all_rounds(chosen(opts), opts), opts)
    finally:
        os.close(stats)
    print(text)
    if opts.write:
        bench.put_between(opts.write, "peers", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
