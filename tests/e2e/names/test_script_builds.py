# SPDX-License-Identifier: Apache-2.0
"""Builds of CPython that no package has: without a GIL, and with musl's C library; made here of Debian's source, once (some minutes)."""
import fcntl
import glob
import os
import subprocess
import sys

import pytest

import test_pstack_python
import test_python_frames
from conftest import BUILD, ROOT, need, need_root

sys.path.insert(0, os.path.join(ROOT, "tests", "kernels"))

import debian  # noqa: E402

pytestmark = pytest.mark.live

CACHE = os.path.join(BUILD, "pythons")
# musl-gcc says the triplet of the compiler that it calls, which configure does not believe
MUSL_CC = '#!/bin/sh\n[ "$1" = --print-multiarch ] && { echo x86_64-linux-musl; exit; }\nexec musl-gcc "$@"\n'
KINDS = {"nogil": ["--disable-gil"], "musl": ["PKG_CONFIG=/bin/false"]}  # what this system's libraries have is not musl's


def source(folder):
    """Unpacks the source of python3.13 of Debian's trixie."""
    apt = debian.Suite("trixie", False, CACHE)
    with open(os.path.join(apt.root, "sources.list"), encoding="utf-8") as f:
        apt.write("sources.list", f.read().replace("deb [", "deb-src ["))
    apt.update()
    apt.apt("apt-get", "source", "-qq", "--download-only", "python3.13")
    [archive] = glob.glob(os.path.join(apt.root, "python3.13_*.orig.tar.xz"))
    subprocess.run(["tar", "-xJf", archive, "-C", folder, "--strip-components=1"], check=True)
    for path in glob.glob(os.path.join(apt.root, "python3.13_*")):
        os.unlink(path)


def built(kind):
    """The program python of that kind; skips where it cannot be made."""
    if kind == "musl":
        need("musl-gcc")
    folder = os.path.join(CACHE, f"3.13-{kind}")
    program = os.path.join(folder, "python")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(CACHE, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(os.path.join(folder, "made")):
            return program
        try:
            source(folder)
            compiler = os.path.join(folder, "musl-cc")
            with open(compiler, "w", encoding="utf-8") as f:
                f.write(MUSL_CC)
            os.chmod(compiler, 0o755)
            for command in (["./configure", "-q", "--without-ensurepip", "--disable-test-modules", "OPT=-O1",
                             *([f"CC={compiler}"] if kind == "musl" else []), *KINDS[kind]], ["make", "-j2"]):
                subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=3000, env=dict(os.environ, LC_ALL="C"))
        except (debian.Gone, OSError, ValueError, subprocess.SubprocessError) as e:
            pytest.skip(f"missing: CPython 3.13 ({kind}) made of Debian's source: {type(e).__name__}: {str(e)[:80]}")
        with open(os.path.join(folder, "made"), "w", encoding="utf-8"):
            pass
    return program


@pytest.mark.parametrize("kind", KINDS)
def test_frames_of_such_a_build_are_what_the_program_says(sonde, store, scratch, kind):
    need_root()
    test_pstack_python.check_all(sonde, store, [built(kind)], scratch)


@pytest.mark.parametrize("kind", KINDS)
def test_recorded_frames_of_such_a_build_are_what_the_program_says(sonde, store, kind):
    need_root()
    test_python_frames.check(sonde, store, [built(kind)])
