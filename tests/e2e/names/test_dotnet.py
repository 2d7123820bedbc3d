# SPDX-License-Identifier: Apache-2.0
"""Programs of .NET are asked to write the names of their functions while sonde records, and to stop at its end. No .NET that has the command can be had
where these tests run: a program plays one (dotnetlike.py). A real one, of 2019, writes its names where it is told to by its environment."""
import os
import signal
import subprocess
import time

import pytest

from conftest import BUILD, need_root
from scripting import stacks

LIKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dotnetlike.py")
NAME = "void [app] Program::Spin(int32)[Tier0]"
BEGIN, END = "4 5 02000000 0", "4 6  0"


class Program:
    def __init__(self, *args, user=None, **env):
        self.child = subprocess.Popen(["/usr/bin/python3", LIKE, *args], stdout=subprocess.PIPE, text=True, user=user, group=user,
                                      extra_groups=[] if user else None, env=dict(os.environ, **env))
        assert self.child.stdout.readline() == "ready\n"
        self.where = env.get("TMPDIR", "/tmp")
        self.dump = f"{self.where}/jit-{self.child.pid}.dump"

    def writes(self):
        """Does it begin its jitdump?"""
        until = time.monotonic() + 60
        while not os.path.exists(self.dump) and time.monotonic() < until:
            time.sleep(0.05)
        return os.path.exists(self.dump)

    def ran(self):
        with open(f"/proc/{self.child.pid}/stat", encoding="utf-8") as f:
            return int(f.read().rsplit(")", 1)[1].split()[11]) / os.sysconf("SC_CLK_TCK")

    def runs(self, seconds):
        """So much CPU time from now on, and at least a second, after which a loader looks for names again."""
        most, until = time.monotonic() + 60, self.ran() + seconds
        time.sleep(1)
        while self.ran() < until and time.monotonic() < most:
            time.sleep(0.05)

    def end(self):
        """What it was asked."""
        self.child.kill()
        said = self.child.stdout.read()
        self.child.stdout.close()
        self.child.wait(20)
        for name in os.listdir(self.where):
            if name.startswith(f"dotnet-diagnostic-{self.child.pid}-"):
                os.unlink(os.path.join(self.where, name))
        return said.splitlines()


def gone(path):
    for _ in range(100):
        if not os.path.exists(path):
            return True
        time.sleep(0.1)
    return False


def test_a_program_is_asked_for_names_and_made_to_stop_and_others_are_left_alone(sonde, store, scratch):
    need_root()
    os.chmod(scratch, 0o777)
    others, refuses, names_itself, silent, idle = (Program(user=65534, TMPDIR=scratch), Program("refuse"), Program(DOTNET_PerfMapEnabled="1"),
                                                   Program("silent", TMPDIR=scratch), Program(TMPDIR=scratch))
    programs = (others, refuses, names_itself, silent)
    try:
        record = subprocess.Popen([os.path.join(BUILD, "bin", "sonde"), "record", "--store", store, "--freq", "499",
                                   *[str(a) for p in programs for a in ("--pid", p.child.pid)]],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=dict(os.environ, SONDE_DOTNET="on"))
        assert others.writes() and silent.writes()
        others.runs(0.3)
        record.send_signal(signal.SIGINT)
        told = record.communicate(timeout=120)[1]
        assert gone(others.dump)
        said = [p.end() for p in (*programs, idle)]
    finally:
        for p in (*programs, idle):
            p.child.kill()
    assert said[0] == [BEGIN, END]
    assert said[1] == [BEGIN]
    assert said[2] == said[4] == []  # one was started with names, one is not recorded
    assert said[3] == [BEGIN, END]  # it began, and did not say so
    assert f"process {refuses.child.pid}: .NET's functions have no names: its .NET does not know the command: that takes .NET 8 or later" in told
    spun = [n for frames, n in stacks(store, "cpu") if any(f[1] == NAME for f in frames)]
    assert sum(spun) > 0, stacks(store, "cpu")[:5]


@pytest.mark.live
def test_nothing_is_asked_unless_somebody_wants_it_and_a_killed_recorder_leaves_nothing(sonde, store):
    need_root()
    program = Program()
    try:
        sonde("record", "--duration", "1s", "--pid", program.child.pid, store=store, check=True)
        record = subprocess.Popen([os.path.join(BUILD, "bin", "sonde-cpu"), "--store", store, "--pid", str(program.child.pid)], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, env=dict(os.environ, SONDE_DOTNET="on"))
        assert program.writes()
        maps = [int(pid) for pid in subprocess.run(["pgrep", "-P", str(record.pid), "sonde-maps"], capture_output=True, text=True, check=True).stdout.split()]
        os.kill(maps[0], 9)
        record.kill()
        record.wait(20)
        assert gone(program.dump)
    finally:
        said = program.end()
    assert said == [BEGIN, END]
