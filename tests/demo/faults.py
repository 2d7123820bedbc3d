# SPDX-License-Identifier: Apache-2.0
"""The demo's workload: touches PAGES new pages, once it is told to; says how many, and what the kernel counted of it at the end."""
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
os._exit(0)
