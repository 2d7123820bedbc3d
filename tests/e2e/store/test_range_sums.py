# SPDX-License-Identifier: Apache-2.0
"""An answer about any range is the same before its files are archived and after, and as the rows add up: whether it comes from the sums
that an archive keeps, from its columns, or from rows."""
import glob
import json
import os
import random
import shutil
import sqlite3
import subprocess

import pytest

from conftest import BUILD, need

AT = 1795003200
FILE = 600  # seconds
FILES = 3
END = AT + FILE * FILES
NAMES = ["web", "db", "queue"]
PIDS = range(100, 118)
VERBS = [["ps", "-n", "1000"], ["containers"], ["requests"], ["waits"], ["net"], ["map"], ["stacks", "-n", "1000"], ["timeline"], ["flame"]]
# a part of the threads: what is kept is by thread
OF_SOME = [["stacks", "--container", "web"], ["ps", "--comm", "db-1"], ["timeline", "--container", "queue"]]


def who(pid):
    name = NAMES[pid % 3]
    return {"pid": pid, "comm": f"{name}-{pid % 4}", "start": AT - 1000 - pid, "container": name, "container_id": name[0] * 64}


def some(r, **columns):
    return {c: r.randrange(most) for c, most in columns.items() if r.random() < 0.8}


def run(family, start):
    return {"run": family, "from": start, "to": start + FILE, "bucket_s": 10, "period_ns": 10_000_000}


def of_others(r, t):
    """Who ended waits, had the CPU meanwhile, or what was waited on; and time that a quota or the hypervisor took."""
    pids = r.sample(PIDS, 4)
    mate = {"pid": pids[3], **{k: v for k, v in who(pids[3]).items() if k != "pid"}, "thread": "mate", "stack": ["main", f"k{r.randrange(3)}"]}
    yield {"wake": r.choice([1, 3]), "context": r.choice([0, 1]), "at": t, "n": 1, "total_ns": r.randrange(10**8), **who(pids[0]), "by": mate}
    yield {"culprit": 0, "at": t, "n": 1, "total_ns": r.randrange(10**7), **who(pids[1]), "by": mate}
    yield {"on": r.choice(["/a/file", "10.0.0.5:5432"]), "class": 3, "at": t, "n": 1, "total_ns": r.randrange(10**8), **who(pids[2]),
           "stack": ["main", "w1"], "by": mate}
    yield {"throttle": f"/docker/{r.choice(NAMES)}", "at": t, "periods": 10, "throttled": r.randrange(9), "throttled_ns": r.randrange(10**7)}
    yield {"steal": r.randrange(10**6), "idle_ns": r.randrange(10**9), "cpu_ns": 2 * 10**10, "at": t}


def rows(r, start):
    yield run("cpu", start)
    for t in range(start, start + FILE, 10):
        for pid in r.sample(PIDS, 5):
            yield {"kind": "cpu", "at": t, "n": r.randrange(1, 9), "stack": ["main", f"f{r.randrange(4)}"], **who(pid)}
    yield run("offcpu", start)
    for t in range(start, start + FILE, 10):
        for pid in r.sample(PIDS, 6):
            wait = r.choice([1, 2, 3, 4, 5])
            yield {"wait": wait, "flags": 0, "at": t, "n": 3, "total_ns": r.randrange(10**9), "max_ns": r.randrange(10**8),
                   "lengths": [r.randrange(1, 10**8) for _ in range(3)], **who(pid)}
            yield {"kind": "offcpu", "at": t, "n": 3, "value": r.randrange(10**9), "label": wait, "stack": ["main", f"w{r.randrange(3)}"], **who(pid),
                   **some(r, max=10**8, n_variance=50, value_variance=10**6), "lengths": [r.randrange(1, 10**8)]}
            yield {"kind": "runqueue", "at": t, "n": 2, "value": r.randrange(10**8), "label": 16, "stack": ["main", f"w{r.randrange(3)}"], **who(pid)}
        yield from of_others(r, t)
    yield run("host", start)
    for t in range(start, start + FILE, 10):
        yield {"fact": "host_row", "at": t, "user_us": r.randrange(10**6), "nice_us": 0, "system_us": 9, "irq_us": 0, "softirq_us": 0}
        for name in NAMES:
            yield {"fact": "cgroup_row", "at": t, "cgroup": f"/docker/{name}", "container": name, "container_id": name[0] * 64,
                   **some(r, user_us=10**6, system_us=10**5, working=1 << 30, anon=1 << 29, read_bytes=1 << 20, write_bytes=1 << 20,
                          rx_bytes=1 << 20, tx_bytes=1 << 20, throttled_us=1000)}
        for pid in r.sample(PIDS, 9):
            yield {"fact": "process_row", "at": t, "user_us": r.randrange(10**6), "system_us": r.randrange(10**5), **who(pid),
                   **some(r, read_bytes=1 << 20, write_bytes=1 << 20, rss=1 << 28, swap=1 << 20)}
        if r.random() < 0.5:
            yield {"fact": "process_mem_row", "at": t, "file": r.randrange(1 << 20), **who(r.choice(PIDS))}
        name = r.choice(NAMES)
        yield {"fact": "ended_row", "at": t, "container": name, "container_id": name[0] * 64,
               "columns": {"cgroup": f"/docker/{name}", "comm": r.choice(["sh", "cc1"]), "n": r.randrange(1, 9), "self": 0,
                           "user_us": r.randrange(10**6), "system_us": 0, "lived_us": r.randrange(10**6), "rss_max": r.randrange(1 << 20)}}
    yield run("net", start)
    for t in range(start, start + FILE, 10):
        for pid in r.sample(PIDS, 6):
            yield {"fact": "flow_row", "at": t, **who(pid), "mate": who(r.choice(PIDS)),
                   "columns": {"side": r.choice(["client", "server"]), "protocol": "tcp", "peer": f"10.0.0.{pid}", "port": "5432", "owner": "opener",
                               "open_now": r.randrange(9), "opened": 1, "tx_bytes": r.randrange(10**6), "rx_bytes": r.randrange(10**6)}}
    yield run("l7", start)
    for t in range(start, start + FILE, 10):
        for pid in r.sample(PIDS, 6):
            yield {"request": f"GET /{r.randrange(5)}", "protocol": "http", "service": "10.0.0.1:80", "status": r.choice(["200", "500"]),
                   "result": r.choice([0, 0, 0, 1, 5]), "at": t, "n": r.randrange(1, 9), "total_ns": r.randrange(10**9), "max_ns": r.randrange(10**8),
                   "request_bytes": 10, "response_bytes": 20, "side": r.choice([1, 2]), "part": r.choice([0, 0, 1, 2]), **who(pid)}
            yield {"fact": "request_bytes_row", "at": t, **who(pid),
                   "columns": {"side": "client", "protocol": "http", "service": "10.0.0.1:80", "seen": r.randrange(10**6), "parsed": 7}}


def put(store, lines):
    subprocess.run([os.path.join(BUILD, "tests", "putstore"), store], input="\n".join(map(json.dumps, lines)), text=True, check=True)
    (path,) = glob.glob(f"{store}/2*.db")
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Three files of ten minutes, and the newest, which has nothing of them."""
    need("build/tests/putstore", os.path.join(BUILD, "tests", "putstore"))
    folder = tmp_path_factory.mktemp("sums")
    store, r = str(folder / "store"), random.Random(46)
    put(store, [run("cpu", END + 9000), {"kind": "cpu", "at": END + 9001, "n": 1, "stack": ["main"], "pid": 1, "comm": "x"}])
    for i in range(FILES):
        shutil.move(put(str(folder / f"part{i}"), rows(r, AT + i * FILE)), f"{store}/2020010{i + 1}T000000Z-0001.db")
    return store


def ranges():
    r = random.Random(7)
    yield AT, END
    yield AT + FILE, AT + 2 * FILE
    yield AT - 100, AT + FILE + 35
    for _ in range(2):
        first = r.randrange(AT, END - 60)
        yield first, r.randrange(first + 30, END + 50)


def answers(sonde, store, verbs=VERBS):
    out = {}
    for first, last in ranges():
        for verb in verbs:
            done = sonde(*verb, "--json", "--from", str(first), "--to", str(last), store=store, check=True)
            out[first - AT, last - AT, verb[0]] = json.loads(done.stdout)
    return out


def order(answer):
    """Rows of one rank have no order."""
    return {k: sorted(map(json.dumps, v)) if isinstance(v, list) else v for k, v in answer.items()}


def assert_same(before, after):
    for key, answer in before.items():
        assert order(after[key]) == order(answer), key


PART = "max(0, min(ts + seconds, {last} + 1) - max(ts, {first})) / (1.0 * seconds)"


def used_by_rows(sonde, store, first, last):
    """CPU time by process: what its rows come to, each counted by its share of the range."""
    part = PART.format(first=first, last=last - 1)
    query = (f"SELECT pid, CAST(round(sum((user_us + system_us) * {part})) AS INTEGER) AS us FROM process_stats"
             f" WHERE ts BETWEEN {first} - 60 AND {last - 1} GROUP BY pid")
    return {row["pid"]: row["us"] for row in json.loads(sonde("sql", "--json", query, store=store, check=True).stdout)["rows"] if row["us"]}


def used_by_ps(answer):
    return {row["pid"]: row["cpu_used_ns"] // 1000 for row in answer["rows"] if row.get("cpu_used_ns")}


def test_archives_answer_as_their_rows_did_over_any_range(sonde, made, tmp_path):
    store = str(tmp_path / "store")
    shutil.copytree(made, store)
    before, of_some = answers(sonde, store), answers(sonde, store, OF_SOME)
    for first, last in ranges():
        rows_say, ps_says = used_by_rows(sonde, store, first, last), used_by_ps(before[first - AT, last - AT, "ps"])
        # each of three files rounds by itself, here as there in microseconds
        assert rows_say.keys() >= ps_says.keys() and all(abs(ps_says.get(pid, 0) - us) <= FILES for pid, us in rows_say.items() if pid in ps_says)
        assert ps_says
    sonde("seal", store=store, check=True)
    assert_same(before, answers(sonde, store))
    assert_same(of_some, answers(sonde, store, OF_SOME))
    sonde("seal", "--fine", "1d", store=store, check=True)  # rows of a minute: of whole files the sums are what they were
    minutes = answers(sonde, store, [["ps", "-n", "1000"]])
    assert used_by_ps(minutes[0, END - AT, "ps"]) == used_by_ps(before[0, END - AT, "ps"])
    assert used_by_ps(minutes[FILE, 2 * FILE, "ps"]) == used_by_ps(before[FILE, 2 * FILE, "ps"])
    # and once more with the oldest gone
    plain, store = str(tmp_path / "plain"), str(tmp_path / "sealed")
    shutil.copytree(made, store)
    sonde("seal", store=store, check=True)
    os.unlink(f"{store}/20200101T000000Z-0001.db")
    shutil.copytree(made, plain)
    os.unlink(f"{plain}/20200101T000000Z-0001.db")
    assert_same(answers(sonde, plain, VERBS[:1]), answers(sonde, store, VERBS[:1]))


MIXED = [["ps", "-n", "1000"], ["waits"], ["stacks", "-n", "1000"], ["timeline"], ["flame"]]
OF_STORES = [["ps", "-n", "1000"], ["stacks", "-n", "1000"], ["flame"], ["containers"]]


def some_answers(sonde, store, *options, verbs=tuple(MIXED)):
    """Over all of it, and over a range that cuts two files."""
    return {(first, verb[0]): json.loads(sonde(*verb, "--json", "--from", str(AT + first), "--to", str(AT + last), *options, store=store, check=True).stdout)
            for first, last in ((0, FILE * FILES), (FILE // 3, FILE * FILES - FILE // 3)) for verb in verbs}


def sealed(sonde, made, store):
    shutil.copytree(made, store)
    sonde("seal", store=store, check=True)
    return [f"{store}/2020010{i + 1}T000000Z-0001.db" for i in range(FILES)]


def test_archives_among_other_files_answer_as_rows_do(sonde, made, tmp_path):
    rows = some_answers(sonde, made)
    files = sealed(sonde, made, str(tmp_path / "mixed"))
    shutil.copy(f"{made}/{os.path.basename(files[1])}", files[1])
    with sqlite3.connect(files[2]) as db:  # as an archive of an older sonde is
        db.execute("DELETE FROM meta WHERE key = 'sums'")
    db.close()
    assert_same(rows, some_answers(sonde, str(tmp_path / "mixed")))


def test_a_damaged_archive_costs_itself_alone(sonde, made, tmp_path):
    files = sealed(sonde, made, str(tmp_path / "damaged"))
    os.truncate(files[1], os.path.getsize(files[1]) // 2)
    shutil.copytree(made, str(tmp_path / "without"))
    os.unlink(f"{tmp_path}/without/{os.path.basename(files[1])}")
    said = some_answers(sonde, str(tmp_path / "damaged"))
    for answer in said.values():
        others = [word for word in answer["warnings"] if os.path.basename(files[1]) not in word]
        assert len(others) < len(answer["warnings"])
        answer["warnings"] = others
    assert_same(some_answers(sonde, str(tmp_path / "without")), said)


def test_archives_of_several_stores_answer_as_their_rows_do(sonde, made, tmp_path):
    parts = {}
    for kind in ("rows", "archives"):
        store = str(tmp_path / kind)
        if kind == "rows":
            shutil.copytree(made, store)
        else:
            sealed(sonde, made, store)
        os.mkdir(f"{store}-2")
        shutil.move(f"{store}/20200102T000000Z-0001.db", f"{store}-2")
        parts[kind] = some_answers(sonde, store, "--store", store, "--store", f"{store}-2", verbs=OF_STORES)
    assert_same(parts["rows"], parts["archives"])


def test_a_copy_of_a_store_counts_once_archived_or_not(sonde, made, tmp_path):
    copy, hard = str(tmp_path / "copy"), str(tmp_path / "hard")
    sealed(sonde, made, copy)
    shutil.copytree(made, hard, copy_function=os.link)
    verb = ["stacks", "--json", "-n", "1000", "--from", str(AT), "--to", str(END)]
    once = json.loads(sonde(*verb, store=made, check=True).stdout)
    for other in (copy, hard):
        twice = sonde(*verb, "--store", made, "--store", other, check=True)
        assert "it counts once" in twice.stderr
        assert json.loads(twice.stdout)["samples"] == once["samples"]


def test_a_store_mounted_at_a_second_place_counts_once(sonde, made, tmp_path):
    place = str(tmp_path / "place")
    os.mkdir(place)
    if subprocess.run(["mount", "--bind", made, place], capture_output=True, check=False).returncode:
        pytest.skip("mount --bind is refused: it needs root")
    try:
        twice = sonde("stacks", "--json", "--from", str(AT), "--to", str(END), "--store", made, "--store", place, check=True)
    finally:
        subprocess.run(["umount", place], check=True)
    once = sonde("stacks", "--json", "--from", str(AT), "--to", str(END), store=made, check=True)
    assert json.loads(twice.stdout) == json.loads(once.stdout)
    assert "counts once" in twice.stderr


def test_the_same_store_named_twice_counts_once_and_a_word_says_so(sonde, made, tmp_path):
    link = str(tmp_path / "link")
    os.symlink(made, link)
    once = sonde("ps", "--json", "--from", str(AT), "--to", str(END), store=made, check=True)
    for again in (made, link, made + "/", sorted(glob.glob(f"{made}/*.db"))[0]):
        twice = sonde("ps", "--json", "--from", str(AT), "--to", str(END), "--store", made, "--store", again, check=True)
        assert json.loads(twice.stdout) == json.loads(once.stdout)
        assert "counts once" in twice.stderr
        turned = sonde("ps", "--json", "--from", str(AT), "--to", str(END), "--store", again, "--store", made, check=True)  # a file before its folder
        assert json.loads(turned.stdout) == json.loads(once.stdout)
        assert "counts once" in turned.stderr


def test_flame_json_has_the_largest_frames_and_the_sum_of_the_rest(sonde, tmp_path):
    store = str(tmp_path / "store")
    put(store, [run("cpu", AT), *({"kind": "cpu", "at": AT + 1, "n": 1, "stack": ["main", f"f{i}"], "pid": 1, "comm": "x"} for i in range(21000))])
    said = json.loads(sonde("flame", "--json", store=store, check=True).stdout)
    assert len(said["rows"]) <= 20001 and said["elided"] >= 1000 and said["samples"] == 21000
    assert sum(row["self_samples"] for row in said["rows"]) == 21000
    whole = json.loads(sonde("flame", "--json", "--nodes", "100000", store=store, check=True).stdout)
    assert len(whole["rows"]) > 21000 and not whole["elided"]
