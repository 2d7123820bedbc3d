# SPDX-License-Identifier: Apache-2.0
"""Programs that copied their text to other pages at its old place (tests/workloads/movetext.c): their functions keep their names."""
import os
import subprocess

import pytest

from conftest import BUILD, need_root
from scripting import stacks

MOVETEXT = os.path.join(BUILD, "tests", "workloads", "movetext")


def share(store):
    found = stacks(store, "cpu")
    named = sum(n for frames, n in found if any(f[1] == "spin_in_moved_text" for f in frames) and any(f[1] == "main" for f in frames))
    return named, sum(n for _, n in found)


@pytest.mark.parametrize("how", ["remap", "map"])
def test_text_that_was_copied_before_the_recording_has_its_names(sonde, store, how):
    need_root()
    child = subprocess.Popen([MOVETEXT, how, "60"], stdout=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"moved\n"
        sonde("record", "-q", "--families", "cpu", "--freq", "499", "-d", "2s", "--pid", child.pid, store=store, check=True)
    finally:
        child.kill()
        child.wait(20)
        child.stdout.close()
    named, all_ = share(store)
    assert all_ > 20 and named >= 0.9 * all_, (named, all_)


@pytest.mark.parametrize("how", ["remap", "map"])
def test_text_that_is_copied_during_the_recording_has_its_names(sonde, store, how):
    need_root()
    sonde("record", "-q", "--families", "cpu", "--freq", "499", "--", MOVETEXT, how, "2", store=store, check=True)
    found = stacks(store, "cpu")
    inside = sum(n for frames, n in found if any(f[1] == "spin_in_moved_text" for f in frames))
    assert inside > 20 and inside >= 0.8 * sum(n for frames, n in found if any(f[1] == "main" for f in frames) or any((f[1] or "").startswith("[anon]") for f in frames))
