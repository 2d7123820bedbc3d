# SPDX-License-Identifier: Apache-2.0
"""agents: sonde in its forms, and its peers: how each is started, what it needs to be there, and how it says that it saw the load."""
import glob
import os
import shutil

import bench

PEERS = os.path.join(bench.BUILD, "tests", "peers")  # programs that build.py made
OFFCPU = ("tracepoint:sched:sched_switch { @since[args->prev_pid] = nsecs; @user[args->prev_pid] = ustack; @kernel[args->prev_pid] = kstack; "
          "$s = @since[args->next_pid]; if ($s) { @us[@user[args->next_pid], @kernel[args->next_pid]] = sum(nsecs - $s); "
          "delete(@since[args->next_pid]); delete(@user[args->next_pid]); delete(@kernel[args->next_pid]); } }")


class Agent:
    """`command(run)`: its command line, run.folder is its own; `needs`: its program; `sink`: it sends OTLP to run.grpc."""

    def __init__(self, name, command, needs=None, sink=False, note=""):
        self.name, self.command, self.needs, self.sink, self.note = name, command, needs, sink, note

    def missing(self):
        """Why it cannot run here; None: it can."""
        if not self.needs or (os.access(self.needs, os.X_OK) if "/" in self.needs else shutil.which(self.needs)):
            return None
        return f"no {os.path.basename(self.needs)}"


def record(families, freq=None):
    return lambda run: [f"{bench.BIN}/sonde", "record", "--store", f"{run.folder}/store", "--families", families, "-d", f"{run.seconds + 60:.0f}s",
                        *(["-F", str(freq)] if freq else [])]


def always(families=None):
    return lambda run: [f"{bench.BIN}/sonded", "--store", f"{run.folder}/store", "--cpu", "0",
                        *(["--families", families] if families else [])]


def otel(freq, offcpu=None):
    return lambda run: [f"{PEERS}/ebpf-profiler", "-collection-agent", f"127.0.0.1:{run.port}", "-disable-tls", "-samples-per-second", str(freq),
                        *(["-off-cpu-threshold", str(offcpu)] if offcpu else [])]


def perf(*how):
    return lambda run: ["perf", "record", "-q", "-F", "99", "-a", *how, "-o", f"{run.folder}/perf.data"]


def offcputime():
    found = shutil.which("offcputime") or next(iter(glob.glob("/usr/sbin/offcputime")), "/usr/sbin/offcputime")
    return lambda run: [found, "-m", "1", str(int(run.seconds) + 60)]


ALL = "cpu,offcpu,host,net,l7,goheap"
AGENTS = {a.name: a for a in [
    Agent("nothing", None),
    Agent("sonde 99 Hz", record("cpu", 99)),
    Agent("sonde 20 Hz", record("cpu", 20)),
    Agent("sonde offcpu", record("offcpu")),
    Agent("sonde cpu, offcpu", record("cpu,offcpu", 99)),
    Agent("sonde l7", record("l7")),
    Agent("sonded", always(), note="its defaults"),
    Agent("sonded, all", always(ALL), note=ALL),
    Agent("otel 20 Hz", otel(20), needs=f"{PEERS}/ebpf-profiler", sink=True, note="opentelemetry-ebpf-profiler at its default rate"),
    Agent("otel 99 Hz", otel(99), needs=f"{PEERS}/ebpf-profiler", sink=True),
    Agent("otel offcpu", otel(20, 1), needs=f"{PEERS}/ebpf-profiler", sink=True, note="needs a kprobe"),
    Agent("perf -g", perf("-g"), needs="perf", note="frame pointers; a file, named afterwards"),
    Agent("perf dwarf", perf("--call-graph", "dwarf"), needs="perf", note="a file, unwound afterwards"),
    Agent("bpftrace 99 Hz", lambda run: ["bpftrace", "-e", "profile:hz:99 { @[ustack, kstack, comm] = count(); }"], needs="bpftrace"),
    Agent("bpftrace offcpu", lambda run: ["bpftrace", "-e", OFFCPU], needs="bpftrace"),
    Agent("offcputime", offcputime(), needs="/usr/sbin/offcputime", note="libbpf-tools; frame pointers, no wakers"),
]}
