# SPDX-License-Identifier: Apache-2.0
"""What a sample and a short process cost sonde's own programs, in instructions over fixed input: more than the recorded ones fails
(tests/bench/ratchet.py --fixed; --write records what a change is worth)."""
import os
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT, need


@pytest.mark.long
def test_a_sample_and_a_short_process_take_no_more_instructions_than_recorded():
    need("valgrind")
    if "san" in os.path.basename(BUILD):
        pytest.skip("the recorded figures are of a build without sanitizers")
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tests/bench/ratchet.py"), "--fixed"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("recorded") >= 3


def test_a_figure_that_is_16_percent_above_the_recorded_one_fails_and_a_slower_clock_excuses_no_instruction(monkeypatch, capsys):
    monkeypatch.syspath_prepend(os.path.join(ROOT, "tests/bench"))
    import ratchet  # pylint: disable=import-outside-toplevel,import-error
    limits = {"process-user": (100, 10), "fixed-process": (100, 10)}
    assert ratchet.compare({"process-user": (116, 10)}, limits) == 1
    assert ratchet.compare({"process-user": (114, 10), "fixed-process": (114, 10)}, limits) == 0
    assert ratchet.compare({"process-user": (150, 15)}, limits) == 0  # the machine was slower
    assert ratchet.compare({"fixed-process": (150, 15)}, limits) == 1
    assert capsys.readouterr().out.count("ABOVE") == 2
