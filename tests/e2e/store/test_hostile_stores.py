# SPDX-License-Identifier: Apache-2.0
"""Stores that strangers made: files that are none, schemas that are not ours, a control.sock that never ends its answer, links. No verb
hangs, nothing raw reaches the terminal, nothing outside the store changes, and a refused file stays as it is to the byte."""
import glob
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import threading
import time

import pytest
from conftest import BIN, BUILD, need

VERBS = (["status"], ["stacks", "--rec", "last"], ["timeline"], ["ps"], ["waits"], ["export", "folded", "--rec", "last"],
         ["sql", "select count(*) from cpu_samples"])
LATER = "29990101T000000Z-0001.db"
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"


def ask(store, verb):
    p = subprocess.run([os.path.join(BIN, "sonde"), *verb, "--store", str(store)], capture_output=True, timeout=150, stdin=subprocess.DEVNULL)
    return p.returncode, p.stdout + p.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    program = os.path.join(BUILD, "tests", "makestore")
    need("build/tests/makestore", program)
    store = str(tmp_path_factory.mktemp("strangers") / "s")
    subprocess.run([program, store, "--rows", "2000"], check=True, stdout=subprocess.DEVNULL)
    return store


@pytest.fixture
def store(made, tmp_path):
    return shutil.copytree(made, str(tmp_path / "s"))


def only(store):
    return sorted(glob.glob(f"{store}/2*.db"))[-1]


def change(store, script):
    for path in glob.glob(f"{store}/2*.db"):
        db = sqlite3.connect(path)
        db.executescript(script)
        db.close()


def sock(path):
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.close()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, sock, lambda p: os.symlink("/dev/zero", p), lambda p: os.symlink("/dev/tty", p),
                                  lambda p: os.symlink("/nowhere", p)], ids=["fifo", "folder", "socket", "zero", "tty", "dangling"])
def test_what_is_no_file_is_left_out(made, store, make):
    make(f"{store}/{LATER}")
    for verb in VERBS:
        code, said = ask(store, verb)
        assert code == ask(made, verb)[0] and b"is not a regular file; left out" in said, (verb, said)


@pytest.mark.parametrize("end", ["-wal", "-journal"])
def test_a_fifo_beside_the_segment_is_refused(store, end):
    os.mkfifo(only(store) + end)
    for verb in VERBS:
        assert ask(store, verb)[0] == 6, verb


@pytest.mark.parametrize("script", [
    *(f"ALTER TABLE {t} RENAME TO {t}_; CREATE VIEW {t} AS {ENDLESS} SELECT {t}_.* FROM {t}_, c" for t in ("run", "meta", "process", "sample")),
    "CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM run; END",
    f"DROP VIEW cpu_samples; CREATE VIEW cpu_samples AS {ENDLESS} SELECT x AS samples FROM c"], ids=["run", "meta", "process", "sample", "trigger", "samples"])
def test_a_schema_that_is_not_ours_is_refused_and_stays(store, script):
    change(store, script)
    before = {p: open(p, "rb").read() for p in glob.glob(f"{store}/2*.db")}
    for verb in VERBS:
        code, said = ask(store, verb)
        assert code == 6 and b"another program has changed" in said, (verb, said)
    assert before == {p: open(p, "rb").read() for p in glob.glob(f"{store}/2*.db")}


def test_a_store_of_which_nothing_can_be_read_is_no_empty_one(store):
    for path in glob.glob(f"{store}/2*.db"):
        size = os.path.getsize(path)
        with open(path, "r+b") as f:
            f.seek(4096)
            f.write(b"\xaa" * (size - 4096))
    for verb in VERBS:
        assert ask(store, verb)[0] == 6, verb


def test_a_locked_store_is_no_empty_one(store):
    held = sqlite3.connect(only(store), isolation_level=None)
    held.execute("PRAGMA locking_mode = EXCLUSIVE")
    held.execute("BEGIN EXCLUSIVE")
    for verb in VERBS[:2]:
        assert ask(store, verb)[0] == 6, verb
    held.close()


@pytest.mark.parametrize("how", ["drip", "flood", "escape"])
def test_an_answer_of_control_sock_is_bounded_and_text(store, how):
    text = "\x1b]0;CASES\x07\x1b[2J"
    answer = {"sonded": {"pid": 1, "step": 1, "steps": [{"ts": 1, "what": text, "limit": text, "family": text}]},
              "services": [{"name": text, "state": text, "why": text, "fix": text, "store_error": text}]}
    s = socket.socket(socket.AF_UNIX)
    s.bind(f"{store}/control.sock")
    s.listen(4)
    over = threading.Event()

    def serve():
        c = s.accept()[0]
        try:
            c.recv(4096)
            while not over.is_set():
                c.sendall(json.dumps(answer).encode() if how == "escape" else b" " if how == "drip" else b"[" * 65536)
                if how == "escape":
                    break
                time.sleep(0.5 if how == "drip" else 0)
        except OSError:
            pass
        c.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    began = time.monotonic()
    code, said = ask(store, ["status"])
    over.set()
    thread.join(5)
    s.close()
    assert code == 0 and time.monotonic() - began < 10
    assert b"\x1b" not in said and b"\x07" not in said
    assert how != "escape" or b"CASES" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_no_link_below_the_store_is_followed(tmp_path):
    need("sonde-cpu", os.path.join(BIN, "sonde-cpu"))
    victim, store = tmp_path / "victim", tmp_path / "s"
    victim.mkdir()
    store.mkdir()
    for name in ("important.tally", "kallsyms"):
        (victim / name).write_text("not sonde's\n")
    for name in ("writers", "images"):
        os.symlink(victim, store / name)
    os.chown(store, 4242, 4242)
    subprocess.run([os.path.join(BIN, "sonde"), "record", "-d", "1s", "--store", str(store)], capture_output=True, timeout=360)
    assert {p.name: p.read_text() for p in victim.iterdir()} == {"important.tally": "not sonde's\n", "kallsyms": "not sonde's\n"}
