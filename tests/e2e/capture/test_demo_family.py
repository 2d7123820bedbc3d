# SPDX-License-Identifier: Apache-2.0
"""A family that is made as CONTRIBUTING.md says (tests/demo) works in a copy of the tree, from the kernel to sql and the archive, and
is short. Builds that copy: `make long-demo`."""
import glob
import json
import os
import shutil
import sqlite3
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT, need_root

DEMO = os.path.join(ROOT, "tests", "demo")
MOST = 250
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
    assert sum(name in ("schema/families/families.c", "Makefile") for name, _, _ in edits()) == 2, "one line of the descriptors, one word of the build"


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
    programs = [f"build/bin/{p}" for p in ("sonde", "sonde-demo", "sonde-maps", "sonde-index", "sonde-seal")]
    done = subprocess.run(["make", "-j2", "WERROR=1", *programs, "build/tests/unit/store_facts_test"], cwd=there, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    yield there
    shutil.rmtree(there)


def test_its_declaration_is_its_table(tree):
    done = subprocess.run([f"{tree}/build/tests/unit/store_facts_test"], cwd=tree, capture_output=True, text=True)
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

    with subprocess.Popen([sys.executable, f"{DEMO}/faults.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as work, \
            subprocess.Popen([f"{tree}/build/bin/sonde", "record", "--families", "demo", "--store", store], stderr=subprocess.PIPE,
                             text=True) as record:
        assert work.stdout.readline() == "ready\n"
        said = ""
        while "recording demo" not in said:
            line = record.stderr.readline()
            assert line, said
            said += line
        work.stdin.write("go\n")
        work.stdin.flush()
        did = json.loads(work.stdout.readline())
        work.wait()
        record.send_signal(2)
        said += record.stderr.read()
    assert record.returncode == 0, said
    asked = f"SELECT sum(faults) AS faults, max(resident) AS resident FROM page_faults WHERE pid = {work.pid}"
    plain = rows(asked)
    # the kernel's own faults for it are not counted, and it says what it had a moment before it ends
    assert did["pages"] <= plain[0]["faults"] <= did["all"] + 1000
    assert [r for r in rows("SELECT resident FROM page_faults") if (r["resident"] or 0) > 0]
    events = rows(f"SELECT e.kind, e.name, e.n FROM events e WHERE e.kind = 'many page faults' AND e.pid = {work.pid}")
    assert len(events) == 1 and events[0]["n"] == 1
    # the newest file is never archived: there is to be one after it
    subprocess.run([f"{tree}/build/bin/sonde-demo", "--duration", "1s", "--segment-bytes", "4096", "--store", store], check=True, stderr=subprocess.PIPE)
    assert json.loads(sonde("seal", "--json"))["segments"] >= 1
    with sqlite3.connect(min(glob.glob(f"{store}/*.db"))) as db:
        assert db.execute("SELECT count(*) FROM packed_table").fetchone()[0] > 0
    db.close()
    assert rows(asked) == plain


def test_doctor_knows_it(tree, tmp_path):
    need_root()
    done = subprocess.run([f"{tree}/build/bin/sonde", "doctor", "--json", "--store", str(tmp_path / "s")], capture_output=True, text=True)
    assert [r for r in json.loads(done.stdout)["rows"] if "demo" in json.dumps(r)], done.stdout
