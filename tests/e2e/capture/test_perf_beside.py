# SPDX-License-Identifier: Apache-2.0
"""perf records as ever while sonde does: the side-band events of one must not mark the records of the other."""
import contextlib
import os
import subprocess
import sys
import time

import pytest

from conftest import BIN, ROOT, need, need_root

sys.path.insert(0, os.path.join(ROOT, "tests", "kernels"))
import debian  # noqa: E402

TRIES = 20


def debians_perf(suite, folder):
    """perf of another suite, with the libraries and the loader that it was built for."""
    root = f"{folder}/root"
    apt = debian.Suite(suite, False, folder)
    apt.update()
    for deb in apt.download_all("linux-perf"):
        subprocess.run(["dpkg", "-x", deb, root], check=True, timeout=120)
        os.unlink(deb)
    return [f"{root}/usr/lib64/ld-linux-x86-64.so.2", "--library-path", f"{root}/usr/lib/x86_64-linux-gnu", f"{root}/usr/bin/perf"]


def others():
    """Does anybody else record here who may ask for build-ids: a perf, a sonde of another version?"""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
                comm = f.read().strip()
            if comm == "perf" or comm == "sonde-maps" and os.readlink(f"/proc/{pid}/exe") != os.path.join(BIN, "sonde-maps"):
                found.append(pid)
    return found


def alone():
    for _ in range(TRIES):
        if not others():
            return
        time.sleep(0.5)
    pytest.skip("missing: a time without another sonde or perf on this host")


def recorded(perf, scratch, *args):
    """Its exit code, of a time when nobody else was there."""
    for _ in range(TRIES):
        alone()
        done = subprocess.run([*perf, "record", "-o", f"{scratch}/perf.data", "-e", "cpu-clock", "-F", "999", *args],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=60)
        if done.returncode == 0 or not others():
            break
    return done.returncode, done.stderr[-300:]


def check_beside(perf, capture, scratch):
    if recorded(perf, scratch, "--", "true")[0]:
        pytest.skip("missing: a perf that records here without sonde")
    alone()
    before = subprocess.Popen([*perf, "record", "-o", f"{scratch}/before.data", "-e", "cpu-clock", "-F", "99", "-a", "--", "sleep", "3"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    busy = subprocess.Popen(["sh", "-c", "while :; do ls / >/dev/null; done"])
    try:
        time.sleep(0.5)
        c = capture("--freq", 99)
        _, said = before.communicate(timeout=360)
        assert before.returncode == 0 or others(), said
        for args in (("--", "true"), ("-a", "--", "sleep", "0.5"), ("-p", busy.pid, "--", "sleep", "0.5"), ("--", "sh", "-c", "ls; ls"),
                     ("--buildid-mmap", "-a", "--", "sleep", "0.5")):
            code, said = recorded(perf, scratch, *map(str, args))
            assert code == 0, (args, said)
        c.stop()
    finally:
        busy.kill()
        busy.wait()
        before.kill()
        before.wait()


def test_perf_records_a_command_a_process_and_the_host_beside_sonde_whichever_came_first(capture, scratch):
    need_root()
    need("perf")
    check_beside(["perf"], capture, scratch)


@pytest.mark.long
@pytest.mark.parametrize("suite", ["trixie", "sid"])
def test_so_does_the_perf_of_a_newer_debian(capture, scratch, suite):
    need_root()
    try:
        perf = debians_perf(suite, scratch)
    except (debian.Gone, subprocess.SubprocessError) as e:
        pytest.skip(f"missing: linux-perf of Debian {suite} ({e})")
    check_beside(perf, capture, scratch)
