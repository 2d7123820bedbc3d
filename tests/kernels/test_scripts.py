# SPDX-License-Identifier: Apache-2.0
"""What must hold of script frames on each kernel: those of Debian's Python are walked in samples and in waits, each at its place (scripts.py)."""
import pytest

from test_kernels import assert_near, enough

WAYS = {"alpha": ["alpha"] + ["deep"] * 31 + ["spin"], "beta": ["beta", "beta.<locals>.<lambda>", "spin"]}


def stacks(report, name):
    """[(functions of the script, root first, how many)]; told by the step."""
    if "scripts" not in report.sections:
        pytest.skip("missing: Debian's python3.11")
    assert report.sections["scripts"].status == 0, report.sections["scripts"]
    known = {"<module>", "rest", *WAYS["alpha"], *WAYS["beta"]}
    return [([f for f in row["folded"].split(";") if f in known], row["folded"], row["n"]) for row in report.sections[name].told()]


def test_samples_have_each_frame_of_the_script(report):
    found = stacks(report, "scripts-stacks")
    told = next(o for o in report.sections["scripts"].told() if "turns" in o)
    by = dict.fromkeys(WAYS, 0)
    for functions, folded, n in found:
        way = next((w for w in WAYS if w in functions), None)
        if not way:
            continue
        mine = functions[1:]
        assert functions[0] == "<module>" and mine == WAYS[way][:len(mine)], folded
        by[way] += n
    samples = sum(by.values())
    enough(samples)
    for way, turns in told["turns"].items():
        assert_near(by[way] / samples, turns / sum(told["turns"].values()), samples, way)


def test_waits_have_each_frame_of_the_script(report):
    found = [(functions, folded, n) for functions, folded, n in stacks(report, "scripts-waits") if "nanosleep" in folded]
    whole = sum(n for functions, _, n in found if functions == ["<module>"] + ["rest"] * 31)
    assert sum(n for _, _, n in found) >= 90 and whole >= 0.9 * sum(n for _, _, n in found), found
