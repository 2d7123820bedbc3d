# SPDX-License-Identifier: Apache-2.0
"""What makes a flaw in a program harder to use, as readelf finds it in each program that is built."""
import glob
import os
import re

import pytest

from conftest import BUILD, ROOT, program, run, text

BUILT = sorted(glob.glob(f"{BUILD}/bin/sonde*")) + [f"{BUILD}/lib/sonde.so"]
FORTIFIED = r"__(?:\w+_chk|fdelt_warn)\b"


@pytest.mark.parametrize("path", BUILT, ids=os.path.basename)
def test_a_program_is_hardened(path):
    head, dynamic, segments, symbols = (run("readelf", "-W", o, path).stdout for o in ("-h", "-d", "-l", "--dyn-syms"))
    assert re.search(r"Type:\s+DYN", head), "it has one place in memory: not PIE"
    assert path.endswith(".so") or re.search(r"FLAGS_1.*\bPIE\b", dynamic), "not PIE"
    assert "GNU_RELRO" in segments and re.search(r"BIND_NOW|FLAGS.*\bNOW\b", dynamic), "no full RELRO"
    assert re.search(r"GNU_STACK.* RW +0x", segments), "its stack may be executed"
    assert not re.search(r"LOAD .* RWE ", segments), "memory that is written and executed"
    assert "__stack_chk_fail" in symbols, "no stack protector"
    # the extension calls nothing that could be
    assert path.endswith(".so") or re.search(FORTIFIED, symbols), "not fortified"


def test_no_program_says_where_it_was_built():
    for path in BUILT:
        with open(path, "rb") as f:
            assert ROOT.encode() + b"/" not in f.read(), path


def test_the_version_is_that_of_the_changelog():
    version = re.match(r"sonde \(([0-9][0-9.~a-z]*)\) ", text("debian/changelog")).group(1)
    assert run(program("sonde"), "version").stdout.startswith(f"sonde {version} ")
    assert run(program("sonde-cpu"), "--version").stdout == f"sonde-cpu {version}\n"
