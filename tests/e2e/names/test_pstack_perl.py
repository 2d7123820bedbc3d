# SPDX-License-Identifier: Apache-2.0
"""sonde pstack of Perl programs that were started without any option: each Perl frame against what the program itself says by caller()
(tests/workloads/scripts/perlstand.pl)."""
import os
import subprocess

import pytest

from conftest import ROOT, need, need_root
from scripting import Standing, rows, script, unpacked

STAND = os.path.join(ROOT, "tests", "workloads", "scripts", "perlstand.pl")
LIBC = "libc6 libcrypt1".split()
# version -> suite, its packages
SUITES = {"5.32": ("bullseye", ["perl-base", "libperl5.32", *LIBC]), "5.40": ("trixie", ["perl-base", "libperl5.40", *LIBC]),
          "5.42": ("sid", ["perl-base", "libperl5.42", *LIBC])}


def check_all(sonde, store, scratch, command):
    """Every frame of every scene. Returns the rows by scene."""
    required = os.path.join(scratch, "required.pl")
    with open(required, "w", encoding="utf-8") as f:
        f.write("\n\nmain::recursion(1);\n1;\n")
    scenes = subprocess.run([*command, STAND, "list"], capture_output=True, text=True, check=True).stdout.split()
    assert len(scenes) > 20
    seen = {}
    for scene in scenes:
        with Standing([*command, STAND, scene, required], cwd=scratch) as s:
            [row] = rows(sonde, store, "-p", s.pid)
        assert not row["moved"], row
        assert script(row, "perl") == s.told, scene
        seen[scene] = row
    return seen


def test_perl_frames_are_what_the_program_says(sonde, store, scratch):
    need_root()
    need("perl")
    seen = check_all(sonde, store, scratch, ["/usr/bin/perl"])
    native = [f["function"] for r in seen.values() for f in r["frames"] if not f["runtime"]]
    assert "Perl_runops_standard" not in native
    assert [f["function"] for f in seen["plain"]["frames"]][-1] == "_start"
    assert all(not r["end"] for r in seen.values())
