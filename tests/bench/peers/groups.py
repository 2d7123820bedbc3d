# SPDX-License-Identifier: Apache-2.0
"""groups: cgroups of one run. What an agent takes is what the kernel charged to the group that it and all its children are in; it
is asked for nothing itself. Version 1 (cpuacct, memory) and version 2."""
import contextlib
import os
import signal
import time

ROOT = "/sys/fs/cgroup"
BASE = f"sonde-peers-{os.getpid()}"


def trees():
    """The hierarchies in which a group is made: the one of version 2, or those of version 1 that count CPU time and memory."""
    if os.path.exists(f"{ROOT}/cgroup.controllers"):
        return [ROOT]
    return [p for p in (f"{ROOT}/{name}" for name in ("cpuacct", "memory", "unified")) if os.path.isdir(p)]


def numbers(path):
    with open(path, encoding="ascii") as f:
        return {w[0]: int(w[1]) for w in (line.split() for line in f) if len(w) == 2}


class Group:
    """A group in each hierarchy; `with` ends what is in it, and removes it."""

    def __init__(self, name):
        self.paths = [f"{tree}/{BASE}/{name}" for tree in trees()]
        for path in self.paths:
            os.makedirs(path, exist_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        self.remove()

    def enter(self):
        """For a child that is to be in it, before its program starts."""
        for path in self.paths:
            with open(f"{path}/cgroup.procs", "w", encoding="ascii") as f:
                f.write("0")

    def cpu_ns(self):
        path = self.paths[0]
        if os.path.exists(f"{path}/cpuacct.usage"):
            with open(f"{path}/cpuacct.usage", encoding="ascii") as f:
                return int(f.read())
        return 1000 * numbers(f"{path}/cpu.stat")["usage_usec"]

    def pids(self):
        found = set()
        for folder, _, _ in os.walk(self.paths[0]):
            with contextlib.suppress(OSError), open(f"{folder}/cgroup.procs", encoding="ascii") as f:
                found |= {int(x) for x in f.read().split()}
        return found

    def end(self, seconds=5):
        """Only what this run put there can be in it."""
        for sig in (signal.SIGTERM, signal.SIGKILL):
            until = time.monotonic() + seconds
            while self.pids() and time.monotonic() < until:
                for pid in self.pids():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, sig)
                time.sleep(0.1)

    def remove(self):
        for top in self.paths:
            for folder, _, _ in os.walk(top, topdown=False):
                self.remove_one(folder)
            with contextlib.suppress(OSError):  # others of this run may be in it
                os.rmdir(os.path.dirname(top))

    @staticmethod
    def remove_one(folder):
        for _ in range(50):
            try:
                os.rmdir(folder)
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.1)
