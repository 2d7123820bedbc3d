# SPDX-License-Identifier: Apache-2.0
"""Family java on real Java virtual machines: what is stored equals what the program counted itself, and nothing is left running."""
import contextlib
import json
import os
import signal
import socket
import subprocess
import time

import pytest

from conftest import BIN, need, need_root, sql_all
from scripting import TEMURIN, compiled, java_8_root, other_jdk
from sonded import Sonded, until

PROGRAM = "sonde-java"
THREAD_DUMP = "Full thread dump"


def attached(pid, command):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        nspid = next(line for line in f if line.startswith("NSpid")).split()[-1]
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(f"/proc/{pid}/root/tmp/.java_pid{nspid}")
        s.sendall(b"1\0jcmd\0" + command.encode() + b"\0\0\0")
        return b"".join(iter(lambda: s.recv(65536), b"")).decode()


class Jvm:
    """In a session of its own, as a service is: where the kernel shares CPUs by session, the loaders do not take its part."""

    def __init__(self, *options, java=("java",), prefix=(), cwd=None, classes=None, main="JavaInside"):
        if not prefix:
            need(java[0])
        self.child = subprocess.Popen([*prefix, *java, "-Xmx128m", *options, "-cp", classes or compiled(main), main], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=cwd, start_new_session=True)
        self.said, self.apart = [], bool(prefix)
        self.told()

    @property
    def pid(self):
        return self.child.pid

    def told(self, line="so far"):
        """What it has done until now."""
        self.child.stdin.write(f"{line}\n".encode())
        self.child.stdin.flush()
        while True:
            text = self.child.stdout.readline().decode()
            assert text, self.said
            if text.startswith("{"):
                return json.loads(text)
            self.said.append(text)

    def jcmd(self, command):
        """By JDK 17's own client; of a machine in another root, which that client does not find, over the socket that is open already."""
        if self.apart:
            return attached(self.pid, command)
        return subprocess.run(["jcmd", str(self.pid), command], capture_output=True, text=True, check=True, timeout=120).stdout

    def close(self):
        """Ends it; all that it printed besides its numbers."""
        if self.child.stdout.closed:
            return "".join(self.said)
        if self.child.poll() is None:
            with contextlib.suppress(BrokenPipeError):
                self.child.stdin.close()
            try:
                self.child.wait(60)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        self.said.append(self.child.stdout.read().decode())
        self.child.stdout.close()
        return "".join(self.said)


@pytest.fixture
def jvm():
    need_root()
    running = []

    def begin(*options, **kw):
        running.append(Jvm(*options, **kw))
        return running[-1]
    yield begin
    for j in running:
        assert THREAD_DUMP not in j.close()


@pytest.fixture
def folder(scratch):
    return os.path.join(scratch, "recorded")


def recorded(capture, folder, *args, **kw):
    """A capture, once it says that it records."""
    cap = capture("--record-dir", folder, *args, program=PROGRAM, **kw)
    assert until(lambda: "is recorded" in cap.said(), 180), cap.said()
    return cap


def flame(sonde, store, kind):
    """[(frames, root first, value)] of the folded flame graph."""
    path = f"{store}.{kind}.folded"
    sonde("flame", "--type", kind, "-o", path, store=store, check=True)
    with open(path, encoding="utf-8") as f:
        return [(line.rsplit(" ", 1)[0].split(";"), int(line.rsplit(" ", 1)[1])) for line in f]


def sum_of(rows, *functions):
    return sum(value for frames, value in rows if all(any(fn in f for f in frames) for fn in functions))


def compare(sonde, store, before, after, share):
    """What was recorded against what the program counted from `before` to `after`, both taken while it was recorded."""
    did = {k: after[k] - before[k] for k in before}
    alloc, lock = flame(sonde, store, "java-alloc"), flame(sonde, store, "java-lock")
    small, large = sum_of(alloc, "JavaInside.small", "new byte[]"), sum_of(alloc, "JavaInside.large", "new int[]")
    truth = did["small"] / (did["small"] + did["large"])
    assert abs(small / (small + large) - truth) <= share, (small, large, did)
    waits = sql_all(store, "SELECT class, owner, place, sum(n) AS n, sum(ns) AS ns FROM java_waits WHERE kind = 'monitor' GROUP BY 1, 2, 3")
    mine = [w for w in waits if w["class"] == "JavaInside$Till" and w["place"].startswith("JavaInside.pay:")]
    assert mine and {w["owner"] for w in mine} == {"holds"}, waits
    assert sum_of(lock, "JavaInside.pay", "monitor JavaInside$Till") == pytest.approx(sum(w["ns"] for w in mine), rel=0.001)
    thrown = sum_of(flame(sonde, store, "java-exception"), "java.lang.IllegalStateException", "JavaInside.refuse")
    parked = sum_of(flame(sonde, store, "java-park"), "JavaInside.doze")
    # it was recorded a little longer than from one number to the other
    assert did["waited"] * 0.9 <= sum(w["ns"] for w in mine), (waits, did)
    assert did["waits"] - 2 <= sum(w["n"] for w in mine) and did["thrown"] - 1 <= thrown and did["parked"] * 0.95 <= parked, (waits, thrown, parked, did)
    return {"small": small, "large": large, "waited": sum(w["ns"] for w in mine), "thrown": thrown, "parked": parked}, did


def record(capture, jvm, store, folder, sonde, seconds, *args, share=0.03):
    cap = recorded(capture, folder, "--interval", "2s", *(args or ("--pid", jvm.pid)))
    before, began = jvm.told(), time.monotonic()
    time.sleep(seconds)
    after, ended = jvm.told(), time.monotonic()
    cap.stop()
    told, did = compare(sonde, store, before, after, share)
    print(cap.said(), told, did, f"{ended - began:.2f} s")
    return cap, told, did


def test_what_a_java_program_does_is_recorded_as_it_counts_it_and_the_recording_ends(capture, store, sonde, jvm, folder):
    """Shares of what was allocated are an estimate, which six seconds of a busy host move: by how much in eight is asked of each JDK in test_other_jdks."""
    j = jvm()
    cap, _, _ = record(capture, j, store, folder, sonde, 6, share=0.15)
    assert "keeps four threads" in cap.said()
    assert "No available recordings" in j.jcmd("JFR.check") and not os.listdir(folder)
    said = sql_all(store, "SELECT state, reason, version, pid FROM java_recorded")
    assert [(s["state"], s["reason"], s["pid"]) for s in said] == [("recorded", "", j.pid)] and said[0]["version"].startswith("17."), said


def end(cap):
    """One that has recorded nothing, which is no success."""
    cap.child.send_signal(signal.SIGINT)
    assert cap.wait(120) and cap.rc


def check_nothing_is_left(j, folder, others=()):
    """No recording of ours, and those of others are there."""
    assert until(lambda: "name=sonde" not in j.jcmd("JFR.check"), 60), j.jcmd("JFR.check")
    assert until(lambda: not os.listdir(folder), 60)
    for name in others:
        assert f"name={name} " in j.jcmd("JFR.check")


@pytest.mark.live
def test_a_recording_of_somebody_else_is_not_touched(capture, store, jvm, folder):
    """One of the same name keeps sonde away; one of another name goes on beside it."""
    j = jvm()
    j.jcmd("JFR.start name=mine")
    j.jcmd("JFR.start name=sonde")
    cap = capture("--record-dir", folder, "--pid", j.pid, program=PROGRAM)
    assert until(lambda: "is not recorded: a recording named sonde runs there already" in cap.said(), 120), cap.said()
    end(cap)
    said = sql_all(store, "SELECT state, reason FROM java_recorded")
    assert [s["state"] for s in said] == ["not recorded"] and "named sonde runs there already" in said[0]["reason"]
    left = j.jcmd("JFR.check")
    assert "name=mine " in left and "name=sonde " in left and not os.listdir(folder)
    j.jcmd("JFR.stop name=sonde")
    recorded(capture, folder, "--pid", j.pid).stop()
    check_nothing_is_left(j, folder, ["mine"])


@pytest.mark.live
def test_one_that_would_print_its_threads_is_never_signalled(capture, store, jvm, folder):
    """And one without a handler, which listens from its start, is recorded without a signal."""
    j, deaf = jvm("-XX:+DisableAttachMechanism"), jvm("-Xrs")
    cap = capture("--record-dir", folder, "--pid", j.pid, program=PROGRAM)
    assert until(lambda: any("DisableAttachMechanism" in s["reason"] for s in sql_all(store, "SELECT reason FROM java_recorded")), 120), cap.said()
    end(cap)
    assert [s["state"] for s in sql_all(store, "SELECT state FROM java_recorded")] == ["not recorded"]
    assert j.told()["thrown"] and THREAD_DUMP not in j.close()
    recorded(capture, folder, "--pid", deaf.pid, store=f"{store}2").stop()
    assert deaf.told()["thrown"] and not os.listdir(folder)


@pytest.mark.live
def test_whatever_ends_the_loader_ends_the_recording(store, jvm, folder):
    """kill -9 in each state: before it attaches, while the machine's recorder begins, while it records, while it stops; and a terminal's Ctrl-C."""
    j = jvm()
    for i, delay in enumerate((0, 0.2, 0.5, 1, 1.5, 2, 3, 5)):
        with open(f"{store}.said", "wb") as out:
            child = subprocess.Popen([os.path.join(BIN, PROGRAM), "--store", f"{store}{i}", "--record-dir", folder, "--pid", str(j.pid)], stderr=out, stdout=out,
                                     start_new_session=True)
            time.sleep(delay)
            if i % 2:
                child.kill()
            else:
                os.killpg(child.pid, signal.SIGINT)
                time.sleep(0.02 * i)
                child.kill()
            child.wait()
        if os.path.isdir(folder):
            check_nothing_is_left(j, folder)
    assert j.told()["small"] > 0


@pytest.mark.live
def test_the_next_loader_stops_what_killed_ones_left(capture, store, jvm, folder):
    """Loader and helper are killed together, as the kernel's out-of-memory killer would."""
    j, other = jvm(), jvm()
    cap = recorded(capture, folder, "--pid", j.pid)
    helper = [p for p in os.listdir("/proc") if p.isdigit() and parent(p) == cap.pid and comm(p) == "sonde-jvm"]
    assert len(helper) == 1
    os.kill(int(helper[0]), signal.SIGKILL)
    os.kill(cap.pid, signal.SIGKILL)
    cap.child.wait()
    assert "name=sonde " in j.jcmd("JFR.check") and len(os.listdir(folder)) == 1
    recorded(capture, folder, "--pid", other.pid, store=f"{store}2")
    assert until(lambda: "name=sonde" not in j.jcmd("JFR.check"), 60)
    assert "name=sonde " in other.jcmd("JFR.check") and len(os.listdir(folder)) == 1


def parent(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        return int(f.read().rsplit(")", 1)[1].split()[1])
    return 0


def comm(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as f:
        return f.read().strip()
    return ""


@pytest.mark.live
def test_one_of_another_user_in_namespaces_of_its_own(capture, store, sonde, scratch, folder):
    """As in a container: its pid is 1 there, its /tmp another one, its user nobody."""
    need_root()
    tmp = os.path.join(scratch, "tmp")
    os.mkdir(tmp)
    os.chmod(tmp, 0o1777)
    os.chmod(scratch, 0o755)
    prefix = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "sh", "-c",
              f"mount --make-rprivate / && mount --bind {tmp} /tmp && mount -t proc proc /proc && exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$@\"", "sh"]
    subprocess.run(["cp", "-r", compiled("JavaInside"), f"{tmp}/classes"], check=True)
    j = Jvm(prefix=prefix, classes="/tmp/classes", cwd="/")
    try:
        pid = next(p for p in os.listdir("/proc") if p.isdigit() and parent(p) == j.pid)
        record(capture, j, store, folder, sonde, 6, "--pid", pid)
        names = {r["thread"] for r in sql_all(store, "SELECT DISTINCT t.thread FROM task t WHERE t.tid > 0")}
        assert {"asks", "allocates"} <= names
        tids = {r["tid"] for r in sql_all(store, "SELECT DISTINCT t.tid FROM task t WHERE t.thread = 'asks'")}
        assert tids <= {int(t) for t in os.listdir(f"/proc/{pid}/task")}
        assert not [f for f in os.listdir(tmp) if f.startswith((".attach_pid", ".sonde"))]
    finally:
        assert THREAD_DUMP not in j.close()


@pytest.mark.live
@pytest.mark.parametrize("version", ["8", "11", "17", "21", "25"])
def test_other_jdks(capture, store, sonde, jvm, folder, version):
    """8 and 11 by dumps, of which the shares are of what the machine reports (8 leaves out what compiled code allocates straight); 8 in a root of its own."""
    if version == "8":
        root = java_8_root()
        subprocess.run(["cp", "-r", compiled("JavaInside", 8), f"{root}/tmp/"], check=True)
        prefix = ["unshare", "--mount", "sh", "-c", f"mount --make-rprivate / && mount -t proc proc {root}/proc && exec chroot {root} \"$@\"", "sh"]
        j = jvm(java=("/usr/lib/jvm/java-8-openjdk-amd64/jre/bin/java",), prefix=prefix, classes="/tmp/JavaInside.8")
    elif version == "17":
        j = jvm()
    else:
        j = jvm(java=[TEMURIN] if version == "25" else other_jdk(version), classes=compiled("JavaInside", 8))
    record(capture, j, store, folder, sonde, 8, share={"8": 0.3, "11": 0.3}.get(version, 0.03))
    said = sql_all(store, "SELECT state, version, mode FROM java_recorded")
    assert [(s["state"], s["mode"]) for s in said] == [("recorded", "by dumps" if int(version) < 17 else "")] and said[0]["version"].startswith(version), said
    check_nothing_is_left(j, folder)


@pytest.mark.live
def test_a_storm_of_exceptions_is_left_out(capture, store, sonde, jvm, folder):
    j = jvm()
    cap = recorded(capture, folder, "--interval", "1s", "--pid", j.pid)
    j.told("storm")
    assert until(lambda: "exceptions a second: they are recorded no longer" in cap.said(), 120), cap.said()
    assert until(lambda: any(s["mode"] == "without exceptions" for s in sql_all(store, "SELECT mode FROM java_recorded")), 60)
    time.sleep(3)
    cap.stop()
    assert sum_of(flame(sonde, store, "java-alloc"), "JavaInside.small") > 0
    check_nothing_is_left(j, folder)


@pytest.mark.live
def test_many_cycles_of_attach_and_stop_leave_a_program_as_it_was(store, jvm, folder):
    """Stopped in order, and killed at any moment, by turns: no thread dump, no recording, no more threads or memory from one cycle to the next."""
    j = jvm()
    cycles = int(os.environ.get("CYCLES") or 100)
    first = None
    for i in range(cycles):
        out = open(f"{store}.said", "wb")
        child = subprocess.Popen([os.path.join(BIN, PROGRAM), "--store", store, "--record-dir", folder, "--pid", str(j.pid)], stderr=out, stdout=out)
        if i % 2:
            time.sleep((i * 37 % 200) / 100)
            child.kill()
        else:
            assert until(lambda: b"is recorded" in open(f"{store}.said", "rb").read(), 120)
            child.terminate()
        child.wait()
        out.close()
        if os.path.isdir(folder):
            assert until(lambda: not os.listdir(folder), 60)
        if i == 10:
            first = len(os.listdir(f"/proc/{j.pid}/task"))
    check_nothing_is_left(j, folder)
    assert len(os.listdir(f"/proc/{j.pid}/task")) <= first + 2 and j.told()["small"] > 0


@pytest.mark.live
def test_sonded_records_the_programs_of_its_setting_and_no_others(store, jvm, scratch):
    os.symlink(os.path.realpath(subprocess.run(["which", "java"], capture_output=True, text=True, check=True).stdout.strip()), os.path.join(scratch, "shopjvm"))
    chosen, other = jvm(java=(os.path.join(scratch, "shopjvm"),)), jvm()
    with Sonded(store, "--families", "java", "--java", "command:shopjvm") as d:
        assert until(lambda: any(s["state"] == "recorded" for s in sql_all(store, "SELECT state FROM java_recorded")), 60), d.said()
        assert "name=sonde " in attached(chosen.pid, "JFR.check") and "No available" in other.jcmd("JFR.check")
    assert until(lambda: "name=sonde " not in attached(chosen.pid, "JFR.check"), 60)
    assert {s["pid"] for s in sql_all(store, "SELECT pid FROM java_recorded")} == {chosen.pid}
