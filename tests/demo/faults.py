# SPDX-License-Identifier: Apache-2.0
"""The demo's workload: at the first line of its input it touches PAGES new pages and prints how many, and how many page faults the kernel
counted; at the second it ends."""
import json
import mmap
import os
import resource
import sys

PAGES = 20_000

print("ready", flush=True)
sys.stdin.readline()
memory = mmap.mmap(-1, PAGES * mmap.PAGESIZE)
memory.madvise(mmap.MADV_NOHUGEPAGE)
for i in range(PAGES):
    memory[i * mmap.PAGESIZE] = 1
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"pages": PAGES, "all": used.ru_minflt + used.ru_majflt}), flush=True)
sys.stdin.readline()
os._exit(0)
