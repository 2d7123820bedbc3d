# SPDX-License-Identifier: Apache-2.0
"""`sonde doctor --pid`: what it says of a process is what /proc says it has mapped, and what its recording holds."""
import json
import os
import re
import subprocess
import sys

import pytest

from conftest import BIN, need, need_root


@pytest.fixture(autouse=True)
def as_root():
    need_root()


def mapped(pid):
    """(executable files by name, executable memory without a file in bytes) of /proc."""
    files, anonymous = set(), 0
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as f:
        for line in f:
            fields = line.split(None, 5)
            if "x" not in fields[1] or "[vsyscall]" in line:
                continue
            start, end = (int(x, 16) for x in fields[0].split("-"))
            if len(fields) > 5:
                files.add(os.path.basename(fields[5].strip()))
            else:
                anonymous += end - start
    return files, anonymous


def test_a_process_is_explained_by_what_it_has_mapped(sonde, store):
    with subprocess.Popen([sys.executable, "-c", "import ssl, sys; print(1, flush=True); sys.stdin.read()"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        p.stdout.readline()
        told = json.loads(sonde("doctor", "--pid", p.pid, "--json", store=store, check=True).stdout)
        files, anonymous = mapped(p.pid)
        text = sonde("doctor", "--pid", p.pid, store=store, check=True).stdout
        p.stdin.close()
    process = told["process"]
    assert process["exe"] == os.path.realpath(sys.executable)
    assert {os.path.basename(f["path"]) for f in process["files"]} == files
    assert process["anonymous"]["bytes"] == anonymous
    assert all(f["state"] == "ready" and f["rows"] > 0 for f in process["files"]), process["files"]
    assert re.search(r"ok +libc\.so\.6 +[\d ]+ rows", text), text
    assert "no recording has samples of this program" in text


def test_code_without_a_file_and_the_recorded_ends_are_told(sonde, store, work, capture):
    w = work("jit", 60)
    c = capture("--freq", 299)
    c.wait_event("first")
    told = json.loads(sonde("doctor", "--pid", w.pid, "--json", store=store, check=True).stdout)
    _, anonymous = mapped(w.pid)
    c.stop()
    assert anonymous > 0
    assert told["process"]["anonymous"]["bytes"] == anonymous
    assert any(r["name"] == "[jit]" and "frame pointers are used" in r["text"] for r in told["rows"])
    text = sonde("doctor", "--pid", w.pid, store=store, check=True).stdout
    assert re.search(r"recorded stacks +[\d.]+ % of [\d ]+ complete in rec 1", text), text


@pytest.mark.parametrize("command,name,state,says", [
    (["/usr/bin/python3", "-c", "import time; print(1, flush=True); time.sleep(99)"], "python", "ok", r"version 3\.\d+\.\d+: script frames have function"),
    (["php", "-n", "-r", "echo 1; sleep(99);"], "php", "ok", r"version [78]\.\d: script frames have function"),
    (["ruby", "-e", "puts 1; $stdout.flush; sleep"], "ruby", "ok", r"version [23]\.\d: script frames have function"),
    (["perl", "-e", "$| = 1; print 1; sleep 99"], "perl", "ok", r"version 5\.\d+: script frames have function"),
    (["erl", "-noshell", "-eval", 'io:put_chars("1"), timer:sleep(99000).'], "erlang", "ok", r"version of OTP \d\d: script frames have function"),
    (["lua5.4", "-e", "io.write(1); io.flush(); while true do end"], "lua", "warn", r".*debug\.sethook"),
    (["luajit", "-e", "io.write(1); io.flush(); while true do end"], "luajit", "warn", r".*luajit -jp SCRIPT"),
    (["node", "-e", "console.log(1); setTimeout(() => {}, 99000)"], "javascript", "ok",
     r"version \d+\.\d+\.\d+ \(V8 \d+\.\d+\): script frames have function")])
def test_whether_frames_of_scripts_have_names_and_why_not(sonde, store, command, name, state, says):
    need(command[0])
    with subprocess.Popen(command, stdout=subprocess.PIPE) as p:
        p.stdout.read(1)
        rows = json.loads(sonde("doctor", "--pid", p.pid, "--json", store=store, check=True).stdout)["rows"]
        p.kill()
    found = [r for r in rows if r["name"] == name and not re.search(r"\d rows", r["text"])]  # perl is also the name of a file
    assert [r["state"] for r in found] == [state], rows
    assert re.match(says, ' '.join(str(found[0][x]) for x in ('text', 'fix'))), found


def test_a_pid_that_nobody_has_is_said_so(sonde, store):
    for pid in (2**22 + 1, 2**32 + os.getpid()):
        done = sonde("doctor", "--pid", pid, store=store)
        assert done.returncode == 2, done
        assert "no process" in done.stderr


def test_without_sonde_maps_it_says_what_is_missing(store, tmp_path):
    sonde = tmp_path / "sonde"
    sonde.write_bytes(open(os.path.join(BIN, "sonde"), "rb").read())
    sonde.chmod(0o755)
    done = subprocess.run([sonde, "doctor", "--pid", "1", "--store", store], capture_output=True, text=True)
    assert done.returncode == 3 and "sonde-maps" in done.stderr, done


@pytest.mark.parametrize("command,library", [
    (["/usr/bin/python3", "-c", "import ssl, time; print(1, flush=True); time.sleep(99)"], "openssl"),
    (["node", "-e", "console.log(1); setTimeout(() => {}, 99000)"], "openssl"),
    (["java", "-version"], "java")])
def test_which_tls_library_is_read_and_which_is_not(sonde, store, tmp_path, command, library):
    need(command[0])
    if library == "java":
        need("javac")
        (tmp_path / "S.java").write_text("class S { public static void main(String[] a) throws Exception { System.out.println(1); Thread.sleep(99000); } }")
        command = ["java", str(tmp_path / "S.java")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
        p.stdout.read(1)
        told = json.loads(sonde("doctor", "--pid", p.pid, "--json", store=store, check=True).stdout)
        p.kill()
    found = [f["tls"] for f in told["process"]["files"] if "tls" in f]
    assert [t["library"] for t in found] == [library], told["process"]["files"]
    row = next(r for r in told["rows"] if r["name"] == "requests in TLS")
    if library == "java":
        assert found[0]["read"] == "no" and row["state"] == "warn", found
    else:
        assert found[0]["read"] == "emulated" and found[0]["probes"] >= 4 and row["state"] == "ok", found
