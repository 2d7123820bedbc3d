# SPDX-License-Identifier: Apache-2.0
"""A family that is made as CONTRIBUTING.md says (tests/demo) works in a copy of the tree, from the kernel to stacks, sql, the archive
and sonded's settings, and is short. Builds that copy: `make long-demo`."""
import glob
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time

import pytest

from conftest import BUILD, ROOT, need_root

DEMO = os.path.join(ROOT, "tests", "demo")
MOST = 300
MOST_EDITS = 8
EVERY = 10
UNIT = ("store_facts_test", "store_amounts_test")  # of its rows, and of its kind
PARTS = ("obj", "lib", "bin", "gen")  # of what is built, so that only what differs is made anew

pytestmark = pytest.mark.long


def files_of(folder):
    return sorted(os.path.relpath(p, folder) for p in glob.glob(f"{folder}/**/*", recursive=True) if os.path.isfile(p))


def family_files():
    return [f for f in files_of(DEMO) if "/" in f]


def edits():
    with open(os.path.join(DEMO, "edits.tsv"), encoding="utf-8") as f:
        for line in f:
            name, before, text = line.rstrip("\n").split("\t")
            yield name, *(x.replace("\\n", "\n").replace("\\t", "\t") for x in (before, text))


def lines(path):
    with open(path, encoding="utf-8") as f:
        return f.read().count("\n")


def test_the_family_is_short():
    code = [f for f in [*family_files(), "edits.tsv"] if f.endswith((".c", ".h", ".sql", ".tsv"))]
    assert sum(lines(os.path.join(DEMO, f)) for f in code) <= MOST
    assert len(list(edits())) <= MOST_EDITS
    assert sum(name in ("schema/families/families.c", "Makefile") for name, _, _ in edits()) == 1, "one line says that it exists"


def tracked():
    done = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [f for f in done.stdout.splitlines() if os.path.isfile(os.path.join(ROOT, f))]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of this tree, and of what was built of it, with the family put in and built."""
    there = str(tmp_path_factory.mktemp("demo") / "tree")
    for name in tracked():
        os.makedirs(os.path.dirname(os.path.join(there, name)), exist_ok=True)
        shutil.copy2(os.path.join(ROOT, name), os.path.join(there, name))
    for part in PARTS:
        shutil.copytree(os.path.join(BUILD, part), os.path.join(there, "build", part), symlinks=True)
    last = max(int(os.path.basename(p)[:4]) for p in glob.glob(f"{there}/schema/sql/[0-9]*.sql"))
    for name in family_files():
        to = os.path.join(there, name.replace("sql/demo.sql", f"sql/{last + 1:04}-demo.sql"))
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(os.path.join(DEMO, name), to)
    for name, before, text in edits():
        path = os.path.join(there, name)
        with open(path, encoding="utf-8") as f:
            old = f.read()
        assert old.count(before) == 1, f"{name}: {before!r}"
        with open(path, "w", encoding="utf-8") as f:
            f.write(old.replace(before, text + before))
    programs = [f"build/bin/{p}" for p in ("sonde", "sonded", "sonde-demo", "sonde-maps", "sonde-index", "sonde-seal", "sonde-prune")]
    done = subprocess.run(["make", "-j2", "WERROR=1", *programs, *(f"build/tests/unit/{t}" for t in UNIT)], cwd=there, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    yield there
    shutil.rmtree(there)


@pytest.mark.parametrize("test", UNIT)
def test_its_declaration_is_its_table(tree, test):
    done = subprocess.run([f"{tree}/build/tests/unit/{test}"], cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_it_counts_is_what_a_program_did_and_stays_when_it_is_archived(tree, tmp_path):
    need_root()
    store = str(tmp_path / "store")

    def sonde(*args):
        done = subprocess.run([f"{tree}/build/bin/sonde", *args, "--store", store], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def rows(query):
        return json.loads(sonde("sql", "--json", query))["rows"]

    demo = [f"{tree}/build/bin/sonde-demo", "--store", store]
    with subprocess.Popen([sys.executable, f"{DEMO}/faults.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as work, \
            subprocess.Popen([*demo, "--every", str(EVERY), "--bucket", "1s", "--progress-fd", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True) as record:
        assert work.stdout.readline() == "ready\n"
        while '"ready"' not in (line := record.stdout.readline()):
            assert line, record.stderr.read()
        print("go", file=work.stdin, flush=True)
        did = json.loads(work.stdout.readline())
        time.sleep(3)  # a bucket of a second is over: its memory has been read
        print("end", file=work.stdin, flush=True)
        work.wait()
        time.sleep(1)
        record.send_signal(2)
        said = record.communicate()[1]
    assert record.returncode == 0, said
    asked = f"SELECT sum(n) AS faults, count(nullif(function, '[no stack]')) AS stacks FROM amounts WHERE type = 'fault' AND pid = {work.pid}"
    memory = f"SELECT max(resident) AS pages FROM resident_memory WHERE pid = {work.pid}"
    plain = rows(asked) + rows(memory)
    # one in EVERY by chance, each of which stands for EVERY: of 20 000 the estimate is within 10 % but once in a million
    assert 0.9 * did["pages"] <= plain[0]["faults"] <= 1.1 * (did["all"] + 1000)
    assert plain[1]["pages"] >= did["pages"]
    assert plain[0]["stacks"] > 0
    folded = sonde("export", "folded", "--type", "fault", "--pid", str(work.pid))
    assert sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()) == plain[0]["faults"]
    # the newest file is never archived: there is to be one after it
    subprocess.run([*demo, "--duration", "1s", "--segment-bytes", "4096"], check=True, stderr=subprocess.PIPE)
    assert json.loads(sonde("seal", "--json"))["segments"] >= 1
    with sqlite3.connect(min(glob.glob(f"{store}/*.db"))) as db:
        assert db.execute("SELECT count(*) FROM packed_table").fetchone()[0] > 0
    db.close()
    assert rows(asked) + rows(memory) == plain


def test_sonded_has_its_setting_and_starts_its_loader_with_it(tree, tmp_path):
    need_root()
    sonded = f"{tree}/build/bin/sonded"
    shown = subprocess.run([sonded, "--show-config"], capture_output=True, text=True, check=True, env={**os.environ, "SONDE_FAULT_EVERY": "50"})
    assert "\nfault-every  = 50\n" in shown.stdout
    assert "--fault-every" in subprocess.run([sonded, "--help"], capture_output=True, text=True, check=True).stdout
    wrong = subprocess.run([sonded, "--check-config", "--fault-every", "0"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "fault-every '0' is not a number from 1 to 1000000" in wrong.stderr
    with subprocess.Popen([sonded, "--store", str(tmp_path / "s"), "--families", "demo", "--fault-every", "50"], stderr=subprocess.PIPE,
                          text=True) as daemon:
        for line in daemon.stderr:
            if "ready: " in line:
                break
        with open(f"/proc/{daemon.pid}/task/{daemon.pid}/children", encoding="ascii") as f:
            children = f.read().split()
        started = []
        for pid in children:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8") as f:
                started.append(f.read())
        daemon.terminate()
        daemon.stderr.read()
    assert [x for x in started if "sonde-demo\0" in x and "\0--every\x0050\0" in x], started


def test_doctor_knows_it(tree, tmp_path):
    need_root()
    done = subprocess.run([f"{tree}/build/bin/sonde", "doctor", "--json", "--store", str(tmp_path / "s")], capture_output=True, text=True)
    assert [r for r in json.loads(done.stdout)["rows"] if "demo" in json.dumps(r)], done.stdout
