# SPDX-License-Identifier: Apache-2.0
"""What the BPF programs need of a kernel that this host's own may not ask for.

Older kernels let a loop go back by a jump alone. check_cfg walks the instructions depth first; where one that is no jump, or a
call, is followed by an instruction that is on the way to it, the program is refused (push_insn, loop_ok; seen with 5.10).

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
KERNEL = ("bpf_preempt_disable", "bpf_preempt_enable", "bpf_task_from_pid", "bpf_task_release", "bpf_rdonly_cast")  # functions of the kernel's own, which have another stack
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


def edges(text):
    """{name: {place: [(place that may follow, whether a loop may go back so)]}}, in the order in which the kernel goes; places are in
    eight bytes from the section's begin."""
    out, name, section = {}, None, None
    for line in text.splitlines():
        if m := re.match(r"Disassembly of section (\S+):", line):
            section = m[1]
        elif m := re.match(r"[0-9a-f]+ <(.+)>:$", line):
            if not re.match(r"LBB\d", m[1]):
                name = f"{section} {m[1]}"
                out[name] = {}
        elif name and (m := re.match(r"\s*(\d+):\t((?:[0-9a-f]{2} )+)", line)):
            code = bytes.fromhex(m[2])
            at, op, jump = int(m[1]), code[0], int.from_bytes(code[2:4], "little", signed=True)
            kind, after = op & 7, int(m[1]) + (2 if op == 0x18 else 1)
            if kind not in (5, 6) or op & 0xf0 == 0x80:  # a call among them
                out[name][at] = [(after, False)]
            elif op & 0xf0 == 0x90:
                out[name][at] = []
            else:
                out[name][at] = [(at + 1 + jump, True)] if op & 0xf0 == 0 else [(after, True), (at + 1 + jump, True)]
    return out


def refused(after):
    """Where older kernels refuse this function: (an instruction, the one behind it that the way there came from)."""
    begin, done, on_the_way = min(after), set(), {}
    stack = [(begin, iter(after[begin]))]
    on_the_way[begin] = True
    while stack:
        at, rest = stack[-1]
        for to, loop in rest:
            if to in on_the_way:
                if not loop:
                    yield at, to
            elif to not in done and to in after:
                on_the_way[to] = True
                stack.append((to, iter(after[to])))
                break
        else:
            done.add(at)
            del on_the_way[at]
            stack.pop()


@pytest.mark.parametrize("path", OBJECTS, ids=os.path.basename)
def test_loops_go_back_by_jumps(path):
    if not shutil.which("llvm-objdump"):
        pytest.skip("missing: llvm-objdump")
    known = edges(run("llvm-objdump", "-d", path).stdout)
    assert known and not {name: found for name, after in known.items() if (found := list(refused(after)))}


def test_such_a_loop_is_found():
    call, jump, goto, leave = "85 10 00 00 ff ff ff ff", "55 00 01 00 00 00 00 00", "05 00 fd ff 00 00 00 00", "95 00 00 00 00 00 00 00"
    text = "Disassembly of section .text:\n0000000000000000 <f>:\n" + "".join(
        f"       {i}:\t{code} \tx\n" for i, code in enumerate(["05 00 01 00 00 00 00 00", call, jump, "05 00 fd ff 00 00 00 00", leave]))
    assert list(refused(edges(text)[".text f"])) == [(1, 2)]
    text = "Disassembly of section .text:\n0000000000000000 <f>:\n" + "".join(f"       {i}:\t{code} \tx\n" for i, code in enumerate([call, jump, goto, leave]))
    assert not list(refused(edges(text)[".text f"]))


def test_there_are_programs_to_look_at():
    assert {"cpu.bpf.o", "offcpu.bpf.o", "maps.bpf.o"} <= {os.path.basename(p) for p in OBJECTS}
