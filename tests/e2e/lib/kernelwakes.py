# SPDX-License-Identifier: Apache-2.0
"""How long the kernel takes from a waker's first step (sched_waking) until the thread is in a queue (sched_wakeup), as
the kernel itself traces it: the test makes an instance of tracefs."""
import collections
import contextlib
import os
import re

import pytest

TRACEFS = "/sys/kernel/tracing"
EVENT = re.compile(r"\[\d+\] +\S+ +(\d+)\.(\d+): (sched_waking|sched_wakeup): comm=.* pid=(\d+) prio=")


def put(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


class KernelWakes:
    def __init__(self, folder):
        self.folder = folder
        #: by thread: ns between the two, all its wake-ups together
        self.ns = collections.defaultdict(int)

    def stop(self):
        put(f"{self.folder}/tracing_on", "0")
        begun = {}
        with open(f"{self.folder}/trace", encoding="utf-8", errors="replace") as f:
            for m in filter(None, map(EVENT.search, f)):
                at, tid = int(m[1]) * 10**9 + int(m[2].ljust(9, "0")), int(m[4])
                if m[3] == "sched_waking":
                    begun[tid] = at
                elif tid in begun:
                    self.ns[tid] += at - begun.pop(tid)


@contextlib.contextmanager
def kernel_wakes(comm):
    """Of the threads whose name matches `comm`; .ns is filled by stop()."""
    if not os.path.isdir(f"{TRACEFS}/instances"):
        pytest.skip(f"missing: tracefs at {TRACEFS}")
    folder = f"{TRACEFS}/instances/sonde-test-{os.getpid()}"
    os.mkdir(folder)
    try:
        put(f"{folder}/buffer_size_kb", "4096")
        put(f"{folder}/trace_clock", "mono")
        for event in ("sched_waking", "sched_wakeup"):
            put(f"{folder}/events/sched/{event}/filter", f'comm ~ "{comm}"')
            put(f"{folder}/events/sched/{event}/enable", "1")
        yield KernelWakes(folder)
    finally:
        for event in ("sched_waking", "sched_wakeup"):
            with contextlib.suppress(OSError):
                put(f"{folder}/events/sched/{event}/enable", "0")
        os.rmdir(folder)
