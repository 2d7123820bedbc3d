# SPDX-License-Identifier: Apache-2.0
"""Days and sums where a store is not alone or does not stay as it is: twenty hosts at once, a copied folder of archives alone, files that retention removes while
a question reads them, and a range in slices of time."""
import contextlib
import glob
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import threading

from conftest import BIN
from test_days import ALL, ask, made, seal, without_days  # noqa: F401 (made is a fixture)
from test_range_sums import AT, END, FILE, FILES, put, rows, run

HOSTS = 20


def said(words, *options, code=(0,)):
    done = subprocess.run([os.path.join(BIN, "sonde"), *words, *options], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in code, (words, done.stderr)
    return done


def host_at(folder, i):
    """A store of one archive and a newest file; how many samples it has."""
    store, r = f"{folder}/host{i:02}", random.Random(i)
    put(f"{folder}/part{i}", [run("cpu", END + 9000), {"kind": "cpu", "at": END + 9001, "n": 1, "stack": ["main"], "pid": 1, "comm": "x"}])
    os.rename(f"{folder}/part{i}", store)
    at = AT + i % 3 * FILE
    samples = [{"kind": "cpu", "at": at + t, "n": r.randrange(1, 9), "stack": ["main", f"f{t % 4}"], "pid": 100 + i, "comm": f"app-{i}"} for t in range(0, FILE, 10)]
    shutil.move(put(f"{folder}/more{i}", [run("cpu", at), *samples]), f"{store}/20200101T000000Z-0001.db")
    shutil.rmtree(f"{folder}/more{i}")
    for path in glob.glob(f"{store}/*.db"):
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE meta SET value = ?1 WHERE key = 'host'", (f"host{i:02}",))
            db.commit()
    return sum(x["n"] for x in samples)


def test_twenty_hosts_are_the_sum_of_each_before_and_after_sealing(tmp_path):
    folder = str(tmp_path / "hosts")
    os.mkdir(folder)
    samples = [host_at(folder, i) for i in range(HOSTS)]
    words = ["stacks", "-n", "1000", "--json", "--from", str(AT), "--to", str(END), "--store", f"{folder}/*"]
    before = json.loads(said(words).stdout)
    assert before["samples"] == sum(samples)
    for i in range(HOSTS):
        seal(f"{folder}/host{i:02}")
    after = json.loads(said(words).stdout)
    assert {k: sorted(map(json.dumps, v)) if isinstance(v, list) else v for k, v in after.items()} == {
        k: sorted(map(json.dumps, v)) if isinstance(v, list) else v for k, v in before.items()}
    of_ps = json.loads(said(["ps", "-n", "1000", "--json", "--from", str(AT), "--to", str(END), "--store", f"{folder}/*"]).stdout)
    assert sorted(row["pid"] for row in of_ps["rows"]) == [100 + i for i in range(HOSTS)]


def test_a_copied_folder_of_archives_alone_answers_as_its_store(made, tmp_path):  # noqa: F811
    """Without the newest segment, locks and days; then with days."""
    copy = str(tmp_path / "copy")
    os.mkdir(copy)
    for path in glob.glob(f"{made}/2020010[12]*.db"):
        shutil.copy(path, copy)
    asked = [["ps", "-n", "1000"], ["stacks", "-n", "1000"], ["waits"], ["requests"]]
    for words in asked:
        assert ask(words, copy, *ALL) == ask(words, made, *ALL), words
    shutil.copytree(f"{made}/days", f"{copy}/days")
    for words in asked:
        assert ask(words, copy, *ALL) == ask(words, made, *ALL), words


def test_a_prune_in_the_midst_of_a_question_leaves_an_answer(made, tmp_path):  # noqa: F811
    """Whatever is gone when: the answer is that of the files that were there, and no file is called damaged."""
    whole = json.loads(said(["stacks", "--json", "--store", made, "--from", str(ALL[0]), "--to", str(ALL[1])]).stdout)["samples"]
    for round_ in range(3):
        store = str(tmp_path / f"store{round_}")
        shutil.copytree(made, store)
        paths = sorted(glob.glob(f"{store}/2020010[12]*.db"))
        days = glob.glob(f"{store}/days/*.db")
        removing = threading.Thread(target=lambda gone=[*days[:1], *paths[: 2 + round_]]: [os.unlink(p) for p in gone])
        questions = [subprocess.Popen([os.path.join(BIN, "sonde"), verb, "--json", "--store", store, "--from", str(ALL[0]), "--to", str(ALL[1])],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for verb in ("stacks", "waits", "ps", "requests")]
        removing.start()
        answers = [q.communicate(timeout=120) for q in questions]
        removing.join()
        for q, (out, err) in zip(questions, answers):
            assert q.returncode == 0 and "damaged" not in err, err
            assert json.loads(out)
        assert 0 < json.loads(answers[0][0])["samples"] <= whole


def samples_of(store, path, first, last):
    """Of the samples when they were, which says how many each slice has, and their threads and stacks."""
    said(["flame", "-o", path, "--store", store, "--from", str(first), "--to", str(last)])
    with open(path, encoding="utf-8") as f:
        samples = [re.fullmatch(r"(.*) (\S+): (\d+ cpu-clock:.*)", x, re.DOTALL).groups() for x in f.read().strip().split("\n\n")]
    return sorted(at for _, at, _ in samples), sorted(who + stack for who, _, stack in samples)


def test_samples_in_slices_are_the_same_before_and_after_sealing(tmp_path):
    """Of a long range a slice has all of a file, whose sums are then enough; of a short one it has a part of it."""
    store, r = str(tmp_path / "store"), random.Random(9)
    put(store, [run("cpu", END + 9000), {"kind": "cpu", "at": END + 9001, "n": 1, "stack": ["main"], "pid": 1, "comm": "x"}])
    for i in range(FILES):
        of_cpu = [x for x in rows(r, AT + i * FILE) if x.get("run") == "cpu" or x.get("kind") == "cpu"]
        shutil.move(put(str(tmp_path / f"part{i}"), of_cpu), f"{store}/2020010{i + 1}T000000Z-0001.db")
    spans = [(AT, END), (AT + 333, END - 100), (END - 40 * 86400, END), (END - 3 * 86400 - 77, END + 500), (AT - 5 * 86400, AT + FILE + 35)]
    before = [samples_of(store, str(tmp_path / "x.perf"), *span) for span in spans]
    seal(store)
    assert [samples_of(store, str(tmp_path / "y.perf"), *span) for span in spans] == before
    assert min(len(times) for times, _ in before) > 50
