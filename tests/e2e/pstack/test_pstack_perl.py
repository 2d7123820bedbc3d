# SPDX-License-Identifier: Apache-2.0
"""sonde pstack of Perl programs that were started without any option: each Perl frame against what the program itself says by caller()
(tests/workloads/scripts/perlstand.pl)."""
import contextlib
import glob
import json
import os
import sqlite3
import subprocess

import pytest

from conftest import BUILD, ROOT, need, need_root
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
    assert [f["function"] for f in seen["plain"]["frames"]][-1] == "_start"
    assert all(not r["end"] for r in seen.values())


@pytest.mark.live
@pytest.mark.parametrize("version", SUITES)
def test_perls_of_debian_s_other_suites_are_read_right(sonde, store, scratch, version):
    """Their headers say the same as the layouts."""
    need_root()
    suite, packages = SUITES[version]
    usr = unpacked(suite, packages)
    libraries = os.path.join(usr, "lib", "x86_64-linux-gnu")
    command = [os.path.join(libraries, "ld-linux-x86-64.so.2"), "--library-path", libraries, os.path.join(usr, "bin", "perl")]
    for where in ("perl-base", os.path.join("perl", version), os.path.join("perl-base", version)):
        command += ["-I", os.path.join(libraries, where)]
    check_all(sonde, store, scratch, command)
    done = subprocess.run([os.path.join(BUILD, "tests", "unit", "index_perlpart_test")], capture_output=True, text=True,
                          env=dict(os.environ, SONDE_PERL_HEADERS=os.path.join(libraries, "perl", version, "CORE")))
    assert done.returncode == 0, done.stdout + done.stderr


# what the view `frames` calls a runtime, it takes from a list that a migration made: the kind of the image is what counts
STACKS = """SELECT k.frames, sum(x.n) FROM (SELECT series, n FROM sample UNION ALL SELECT series, n FROM amount) x JOIN series e ON e.id = x.series
 JOIN task t ON t.id = e.task JOIN process p ON p.id = t.process JOIN run r ON r.id = t.run JOIN stack_list k ON k.stack_id = e.stack
 WHERE r.family = ? AND p.pid = ? GROUP BY k.stack_id"""
FRAMES = "SELECT f.id, i.kind = 22, f.function, f.file, f.line FROM frames f JOIN frame r ON r.id = f.id LEFT JOIN image i ON i.id = r.image"


def perl_stacks(store, family, pid):
    """[([[function, file, line], ...] innermost first, samples)]"""
    out = []
    for path in sorted(glob.glob(os.path.join(store, "*.db"))):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            frame = {i: (own, [function, file, line]) for i, own, function, file, line in db.execute(FRAMES)}
            for frames, n in db.execute(STACKS, (family, pid)):
                out.append(([frame[i][1] for i in reversed(json.loads(frames)) if frame[i][0]], n))
    return out


BUSY = ["recursion", "mutual", "sort", "named_sort", "map", "text", "closure", "autoload", "destroy", "overload", "tied", "signal", "goto", "latin", "main"]


def test_samples_of_busy_perl_programs_have_the_frames_that_they_say(sonde, store, scratch):
    need_root()
    need("perl")
    programs = {scene: subprocess.Popen(["/usr/bin/perl", STAND, "busy", scene, "60"], stdout=subprocess.PIPE, cwd=scratch) for scene in BUSY}
    try:
        told = {scene: json.loads(p.stdout.readline()) for scene, p in programs.items()}
        sonde("record", "--freq", "999", "--duration", "2s", *[a for p in programs.values() for a in ("--pid", p.pid)], store=store, check=True)
    finally:
        for p in programs.values():
            p.kill()
            p.wait(20)
            p.stdout.close()
    right = whole = 0
    for scene, p in programs.items():
        inner, *outer = told[scene]
        for frames, n in perl_stacks(store, "cpu", p.pid):
            at = [i for i, f in enumerate(frames) if f[0] == inner[0]]
            if not at:  # its stack could not be followed
                continue
            [i] = at
            assert frames[i][1] == inner[1] and frames[i + 1:] == outer, (scene, frames, told[scene])
            assert frames[:i] == [] and frames[i][2] in (0, inner[2]), (scene, frames)
            right += n
        whole += sum(n for _, n in perl_stacks(store, "cpu", p.pid))
    assert right >= 0.95 * whole > 100, (right, whole)
