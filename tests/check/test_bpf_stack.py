# SPDX-License-Identifier: Apache-2.0
"""What the BPF programs need of a kernel that this host's own may not ask for.

Before Linux 6.13 a program and the functions that it calls have 512 bytes of stack together, along each chain of calls; a
function's part is rounded up to 32 (check_max_stack_depth in kernel/bpf/verifier.c). Newer kernels give some programs more.
"""
import glob
import os
import re
import shutil

import pytest

from conftest import BUILD, run

STACK = 512
KERNEL = ("bpf_preempt_disable", "bpf_preempt_enable", "bpf_task_from_pid", "bpf_task_release")  # functions of the kernel's own, which have another stack
OBJECTS = sorted(glob.glob(os.path.join(BUILD, "obj", "probes", "*.bpf.o")))


def functions(text):
    """{name: (bytes of its own stack, names that it calls)} of llvm-objdump's words, which have each instruction's bytes too."""
    own, calls, starts, name, section, copies = {}, {}, {}, None, None, set()
    for line in text.splitlines():
        if m := re.match(r"Disassembly of section (\S+):", line):
            section = m[1]
        elif m := re.match(r"([0-9a-f]+) <(.+)>:$", line):
            if not re.match(r"LBB\d", m[2]):
                name = starts[section, int(m[1], 16) // 8] = m[2]
                own[name], calls[name] = 0, []
        elif m := re.search(r"R_BPF_64_32\s+(\S+)", line):  # of the call before: by name, or by the section and where in it
            calls[name][-1] = (m[1], calls[name][-1][2] + 1) if m[1].startswith(".") else m[1]
        elif m := re.match(r"\s*(\d+):\t85 10 .*call (-?\d+)", line):  # of a function, not of a helper of the kernel's
            calls[name].append((section, int(m[1]) + int(m[2]) + 1, int(m[2])))
        elif name:
            below = [int(x, 0) for x in re.findall(r"r10 - (0x[0-9a-f]+|\d+)", line)]
            if m := re.search(r"\b(r\d) \+= -(0x[0-9a-f]+|\d+)$", line):
                below += [int(m[2], 0)] if m[1] in copies else []  # a copy of r10 that was lowered
            elif m := re.search(r"\b(r\d) = (\S+)", line):
                (copies.add if m[2] == "r10" else copies.discard)(m[1])
            own[name] = max([own[name], *(x for x in below if x <= STACK)])
    callees = {n: [t if isinstance(t, str) else starts[t[:2]] for t in calls[n]] for n in own}
    return {n: (own[n], [t for t in callees[n] if t not in KERNEL]) for n in own}


def deepest(known, name, above=()):
    own, calls = known[name]
    here = (*above, (name, -(-own // 32) * 32))
    return max((deepest(known, c, here) for c in calls), key=lambda chain: sum(n for _, n in chain), default=here)


@pytest.mark.parametrize("path", OBJECTS, ids=os.path.basename)
def test_each_chain_of_calls_fits_into_the_stack_of_older_kernels(path):
    if not shutil.which("llvm-objdump"):
        pytest.skip("missing: llvm-objdump")
    known = functions(run("llvm-objdump", "-d", "-r", path).stdout)
    assert known
    chain = max((deepest(known, name) for name in known), key=lambda c: sum(n for _, n in c))
    assert sum(n for _, n in chain) <= STACK, chain


def test_there_are_programs_to_look_at():
    assert {"cpu.bpf.o", "offcpu.bpf.o", "maps.bpf.o"} <= {os.path.basename(p) for p in OBJECTS}
