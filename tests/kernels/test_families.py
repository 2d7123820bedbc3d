# SPDX-License-Identifier: Apache-2.0
"""What must hold of each family on each kernel: what it cannot do without loads and attaches."""
import re

import pytest


@pytest.mark.parametrize("family", ["cpu", "offcpu", "net", "l7", "host", "mem", "disk", "probe"])
def test_its_programs_load(report, family):
    section = report.sections[f"check-{family}"]
    assert section.status == 0 and section.json()["ok"], section


def test_the_kernel_warns_of_nothing_that_was_loaded(report):
    """Once in a boot for each place, and to everyone who reads its log."""
    warned = re.findall(r"WARNING: .* at kernel/(?:bpf|trace|events)/.*", report.sections["bye"].out)
    assert not warned, report.sections["bye"].out.partition("cut here")[2][:3000]


def test_sleeps_above_memory_high_are_waits_for_memory(report):
    """Whether they are seen; how long they are is judged on a real CPU (tests/e2e/heap/test_mem_oom.py): the kernel's account goes by
    another clock than ours, and an emulated CPU's clocks differ by a quarter."""
    if "memory-told" not in report.sections:
        pytest.skip("missing: SONDE_KERNEL_STEPS=memory, as it takes 20 minutes")
    (told,) = [r for r in report.sections["memory-told"].json()["rows"] if r["comm"] == "dd"]
    stalled = int(report.sections["memory-high"].out.partition("total=")[2].split()[0]) * 1000
    assert stalled and 0.5 * stalled <= told["ns"] <= 2 * stalled, (stalled, told)
