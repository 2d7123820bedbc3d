# SPDX-License-Identifier: Apache-2.0
"""Several stores in one question: of several hosts, whose containers, functions and rows are told apart."""
import json
import os
import shutil
import sqlite3
import subprocess
import time

import pytest

from conftest import BIN

NOW = int(time.time())


def make(folder, host, profile, at):
    """A store of one host: `profile` is folded stacks; all runs in a container called web, but on green."""
    store, text = f"{folder}/{host}", f"{folder}/{host}.folded"
    with open(text, "w", encoding="ascii") as f:
        f.write(profile)
    subprocess.run([f"{BIN}/sonde", "import", text, "--at", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)), "--store", store, "-q"], check=True,
                   stdout=subprocess.DEVNULL)
    [segment] = [f"{store}/{f}" for f in os.listdir(store) if f.endswith(".db")]
    with sqlite3.connect(segment) as db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'host'", (host,))
        c = db.execute("INSERT INTO container(hash, name, runtime, runtime_id, image, cgroup) VALUES(1, 'web', 'docker', ?, 'web:1', '/web')",
                       (host * 8,)).lastrowid
        if host != "green":
            db.execute("UPDATE process SET container = ?", (c,))
    return store


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hosts")
    return [make(folder, "red", "web;main;serve 30\ncron;main;tick 5\n", NOW - 20), make(folder, "blue", "web;main;serve 10\nweb;main;wait 4\n", NOW - 10)]


def sonde(*args, ok=True):
    done = subprocess.run([f"{BIN}/sonde", *map(str, args)], capture_output=True, text=True, check=False)
    assert not ok or done.returncode == 0, done.stderr
    return done.stdout if ok else done


def several(stores):
    return [x for s in stores for x in ("--store", s)]


def rows(*args):
    return json.loads(sonde(*args, "--json"))["rows"]


def leaves(*args):
    return {r["function"]: r["self_samples"] for r in rows("stacks", *args) if r["self_samples"]}


def names(stores, *args):
    return leaves(*several(stores), *args)


def test_profiles_of_all_hosts_are_one_and_each_can_be_had_alone(stores):
    assert names(stores) == {"serve": 40, "tick": 5, "wait": 4}
    assert names(stores, "--host", "red") == {"serve": 30, "tick": 5}
    assert names(stores, "--host", "!red") == names(stores, "--host", "~^bl") == {"serve": 10, "wait": 4}


def test_folded_stacks_are_the_sum_of_both(stores):
    both = sonde("export", "folded", *several(stores))
    counts = {}
    for line in both.splitlines():
        stack, n = line.rsplit(" ", 1)
        counts[stack.split(";")[-1]] = counts.get(stack.split(";")[-1], 0) + int(n)
    assert counts == {"serve": 40, "tick": 5, "wait": 4}


def test_containers_of_one_name_are_told_apart(stores, scratch):
    green = make(scratch, "green", "cron;main;sweep 3\n", NOW - 15)
    all_three = [*stores, green]
    got = {r["container"]: r["cpu_ns"] for r in rows("containers", *several(all_three))}
    assert set(got) == {"red/web", "blue/web", "green"}
    assert {r["container"] for r in rows("ps", *several(all_three))} == {"red/web", "blue/web", "green"}
    assert names(all_three, "--container", "red/web") == {"serve": 30, "tick": 5}
    assert names(all_three, "--container", "web") == names(stores)
    assert names(all_three, "--container", "green") == {"sweep": 3}


def test_a_process_has_no_parent_on_another_host(stores):
    assert not [r for r in rows("ps", *several(stores)) if r.get("parent_comm")]


def test_sql_has_a_column_host_behind_the_others(stores):
    query = "SELECT host, sum(samples) AS n FROM cpu_samples GROUP BY host ORDER BY host"
    assert [(r["host"], r["n"]) for r in rows("sql", *several(stores), query)] == [("blue", 14), ("red", 35)]
    assert [r["n"] for r in rows("sql", *several(stores), "SELECT sum(samples) AS n FROM cpu_samples WHERE host = 'red'")] == [35]
    assert {r["name"] for r in rows("sql", *several(stores), "SELECT name FROM containers")} == {"red/web", "blue/web"}
    single = rows("sql", "--store", stores[0], "SELECT * FROM cpu_samples LIMIT 1")[0]
    assert "host" not in single
    assert "WHERE host" in sonde("sql", *several(stores), "--host", "red", query, ok=False).stderr


def test_an_archive_and_a_plain_file_are_asked_alike(stores, scratch):
    copy = f"{scratch}/red"
    subprocess.run(["cp", "-r", stores[0], copy], check=True)
    [segment] = [f"{copy}/{f}" for f in os.listdir(copy) if f.endswith(".db")]
    newer = f"{copy}/{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(NOW + 60))}-0009.db"  # the newest one stays as it is
    shutil.copy(segment, newer)
    done = subprocess.run([f"{BIN}/sonde-seal", "--json", "--store", copy], check=True, capture_output=True, text=True)
    assert json.loads(done.stdout)["segments"] == 1
    os.remove(newer)
    mixed = [copy, stores[1]]
    assert names(mixed) == names(stores)
    query = "SELECT host, container, sum(samples) AS n FROM cpu_samples GROUP BY 1, 2 ORDER BY 1, 2"
    assert rows("sql", *several(mixed), query) == rows("sql", *several(stores), query)


def test_a_pattern_names_copied_files(stores):
    pattern = os.path.join(os.path.dirname(stores[0]), "*", "*.db")
    assert leaves("--store", pattern) == names(stores)
    assert "there is no store" in sonde("stacks", "--store", pattern + ".no*", ok=False).stderr


def test_two_hosts_are_compared(stores):
    changed = rows("diff", *several(stores), "--host", "red", "--vs-host", "blue", "--from", NOW - 600, "--to", NOW + 1)
    assert {r["function"] for r in changed} >= {"serve", "wait"}


@pytest.mark.parametrize("verb", ["timeline", "waits", "top", "record", "seal", "status", "check"])
def test_who_answers_of_one_store_says_so(stores, verb):
    done = sonde(verb, *several(stores), ok=False)
    assert done.returncode == 2 and "one store at a time" in done.stderr


def test_host_is_no_filter_of_one_store(stores):
    done = sonde("stacks", "--store", stores[0], "--host", "red", ok=False)
    assert done.returncode == 2 and "selects among several stores" in done.stderr


def test_what_is_missing_among_several_is_an_error(stores):
    done = sonde("stacks", *several(stores), "--store", "/nonexistent/store", ok=False)
    assert done.returncode == 6 and "/nonexistent/store" in done.stderr
