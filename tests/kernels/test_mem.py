# SPDX-License-Identifier: Apache-2.0
"""What sonde-mem told of memory that comes back from swap, and of the kernel's pages: only where their steps are asked for
(SONDE_KERNEL_STEPS=swap,pages)."""
import pytest


def told(report, name):
    if name not in report.sections:
        pytest.skip(f"missing: SONDE_KERNEL_STEPS={name.partition('-')[0]}")
    assert report.sections[name].status == 0, report.sections[name]
    return report.sections[name]


@pytest.mark.parametrize("device", ["slowswap", "zram0"])
def test_pages_that_come_back_from_swap_are_as_many_as_the_kernel_counts(report, device):
    told(report, "swap-make")
    (did,) = [x for x in told(report, f"swap-{device}").told() if "major" in x]
    assert did["major"] > 1000, did
    rows = told(report, f"swap-{device}-told").told()
    swapped = sum(r["n"] for r in rows if r["type"] == "majorfaults" and r["function"] == "[swap]")
    assert swapped == pytest.approx(did["major"], rel=0.03), (did, rows)
    by_reads = sum(x["n"] for x in told(report, f"swap-{device}-stacks").told() if ";reads;" in x["folded"])
    assert by_reads >= 0.9 * swapped, report.sections[f"swap-{device}-stacks"]


def test_who_waits_for_a_slow_swap_device_waits_for_memory(report):
    """Whether they are seen: an emulated CPU's clocks differ (test_families.py)."""
    rows = told(report, "swap-slowswap-told").told()
    stalled = int(told(report, "swap-slowswap").out.partition("total=")[2].split()[0]) * 1000
    waited = sum(r["value"] for r in rows if r["type"] == "memwait")
    print(report.name, "waited", waited, "PSI", stalled)
    assert stalled > 1e9 and 0.5 * stalled <= waited <= 2 * stalled, (stalled, rows)


def test_pages_are_there_as_long_as_their_program(report):
    most = told(report, "pages-most").told()
    assert most and most[0]["function"] == "[anonymous memory]" and most[0]["most"] == pytest.approx(48 << 20, rel=0.2), most
    assert sum(r["value"] for r in told(report, "pages-last").told()) < 4 << 20, report.sections["pages-last"]
