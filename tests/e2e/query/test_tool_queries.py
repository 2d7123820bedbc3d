# SPDX-License-Identifier: Apache-2.0
"""The queries that ship: `sonde sql @NAME`. docs/QUERIES.md shows each with what it says of two stores whose contents are
known; `tests/e2e/query/test_tool_queries.py --write` makes that document anew. What they say is compared with plain SQL, and
with what was put in."""
import csv
import glob
import io
import json
import os
import re
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from conftest import BIN, BUILD, ROOT, need, segments  # noqa: E402

AT = 1795144200
DOC = os.path.join(ROOT, "docs", "QUERIES.md")
NAMES = sorted(os.path.basename(p)[:-4] for p in glob.glob(os.path.join(ROOT, "tools", "sql", "queries", "*.sql")))
OF_KINDS = {"allocators", "growth", "waiting", "restarts", "oom", "throttling", "memory", "traffic", "disks", "full", "fills"}
APP = {"pid": 40, "comm": "app", "tid": 40, "thread": "app"}
SITES = {"leak": ["main", ["leak", "app.go", 12]], "cache": ["main", ["cache", "app.go", 30]],
         "late": ["main", ["late", "app.go", 44]]}
KINDS = [
    {"run": "goheap", "from": AT, "to": AT + 60, "bucket_s": 10},
    *({**APP, "kind": "alloc", "label": 64, "at": AT + 10 * i, "n": 5 + i, "value": 64 * (5 + i), "stack": SITES["leak"]}
      for i in range(3)),
    {**APP, "kind": "alloc", "label": 512, "at": AT + 10, "n": 9, "value": 4608, "stack": SITES["cache"]},
    *({**APP, "kind": "inuse", "label": 64, "at": AT + 10 * i, "n": 5 + 6 * i, "value": 64 * (5 + 6 * i),
       "stack": SITES["leak"]} for i in range(3)),
    *({**APP, "kind": "inuse", "label": 512, "at": AT + 10 * i, "n": 9, "value": 4608, "stack": SITES["cache"]}
      for i in range(3)),
    {**APP, "kind": "inuse", "label": 32, "at": AT + 20, "n": 2, "value": 64, "stack": SITES["late"]},
    {"run": "offcpu", "from": AT, "to": AT + 60, "bucket_s": 10},
    *({**APP, "wait": 2, "at": AT + i, "n": 3, "total_ns": 9000000, "max_ns": 5000000 + i} for i in range(2)),
    {**APP, "wait": 17, "at": AT + 1, "n": 8, "total_ns": 2000000, "max_ns": 900000},
    *({"end": 3, "status": 9, "at": AT + 5 + i, "pid": 50 + i, "comm": "hog", "container": "memhog"} for i in range(3)),
    *({"end": 1, "status": 1, "at": AT + 12 * i, "pid": 60 + i, "comm": "crash", "container": "loop", "restarts": i,
       "started": f"2026-11-20T03:10:{12 * i:02}Z"} for i in range(4)),
    {"end": 1, "status": 0, "at": AT + 9, "pid": 70, "comm": "job", "container": "web"},
    *({"throttle": c, "at": AT + 10 * i, "periods": 10, "throttled": n, "throttled_ns": 70000000 * n}
      for i in range(2) for c, n in (("web", 4), ("memhog", 0))),
    {"run": "host", "from": AT, "to": AT + 60, "bucket_s": 10},
    *({"fact": "cgroup_row", "cgroup": f"/docker/{c}", "container": c, "at": AT + 10 * i, "working": (10 * i + n) << 20,
       "mem_limit": limit << 20, "mem_max": i, "read_bytes": n << 20, "write_bytes": 0, "rx_bytes": n << 10, "tx_bytes": 0,
       "rx_drops": 0, "tx_drops": 1, "psi_mem_us": 500 * i}
      for i in range(3) for c, n, limit in (("web", 4, 64), ("memhog", 40, 128))),
    *({"fact": "disk_row", "disk": "sda", "at": AT + 10 * i, "reads": 10, "read_bytes": 1 << 20, "read_us": 5000, "writes": i,
       "write_bytes": i << 20, "write_us": 3000 * i, "busy_us": 2000000 * i, "in_flight": 0} for i in range(3)),
    *({"fact": "fs_row", "mount": m, "source": m, "fstype": "ext4", "size": 100 << 30, "available": (left - i) << 30, "inodes": 1000,
       "inodes_free": 900, "at": AT + 10 * i} for i in range(3) for m, left in (("/", 50), ("/var", 10))),
    *({"fact": "cgroup_row", "cgroup": f"/docker/{c}", "container": c, "at": AT + 40, "write_bytes": n << 20} for c, n in (("web", 30), ("memhog", 20))),
    *({**APP, "fact": "process_row", "at": AT + 40 + 10 * i, "write_bytes": 100 << 20} for i in range(2)),
    *({"fact": "event_row", "at": AT + 40 + i, "columns": {"kind": "fills", "subject": "file system", "name": "/var", "detail": detail, "n": 1,
                                                           "at_us": (AT + 40 + i) * 10**6}}
      for i, detail in enumerate(("file /var/log/app.log: 2.10 GiB, written to in the last hour",
                                  "deleted file /var/tmp/sort: 1.20 GiB, open in app (40)", "file /var/log/app.log: 2.10 GiB, written to in the last hour"))),
]


def make(folder):
    """Two stores: samples of CPU; kinds of a heap and a waiting family."""
    cpu, kinds = (os.path.join(folder, name) for name in ("cpu", "kinds"))
    for tool in ("makestore", "putstore"):
        need(f"build/tests/{tool}", os.path.join(BUILD, "tests", tool))
    subprocess.run([os.path.join(BUILD, "tests", "makestore"), cpu, "--rows", "3000", "--at", str(AT)], check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run([os.path.join(BUILD, "tests", "putstore"), kinds], input="\n".join(map(json.dumps, KINDS)), text=True,
                   check=True)
    return {name: kinds if name in OF_KINDS else cpu for name in NAMES}


def words(name):
    text = open(os.path.join(ROOT, "tools", "sql", "queries", f"{name}.sql"), encoding="utf-8").read()
    return [f"@{name}"] + (["n=5"] if ":n" in text else [])


def ask(store, *args):
    return subprocess.run([os.path.join(BIN, "sonde"), "sql", "--store", store, *args], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=60, env=dict(os.environ, TZ="UTC"))


def shown(name, store):
    done = ask(store, *words(name))
    assert done.returncode == 0, done.stderr
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    return "    $ sonde sql " + " ".join(words(name)) + "\n" + "".join(f"    {line}\n" for line in lines)


def heads():
    """{name: (summary, [parameters])}"""
    out = {}
    for name in NAMES:
        lines = open(os.path.join(ROOT, "tools", "sql", "queries", f"{name}.sql"), encoding="utf-8").read().splitlines()
        notes = [line[3:] for line in lines if line.startswith("-- ")]
        assert notes[0].startswith("SPDX") and notes[1].startswith(f"{name}: "), name
        out[name] = notes[1].split(": ", 1)[1], notes[2:]
    return out


def document(stores):
    text = ("# The queries that ship\n\n"
            "`sonde sql @NAME [KEY=VALUE...]` runs one, `sonde sql @` lists them, and every form of `sonde sql` does for them\n"
            "(`--csv`, `--json`, `--ndjson`). `from` and `to` take the times that `--from` takes. Each is a file in\n"
            "[tools/sql/queries/](../tools/sql/queries/README.md), a start for queries of your own; the views are in\n"
            "[SCHEMA.md](SCHEMA.md). What is shown was printed of two small made-up stores, and a test compares it.\n"
            "\n## Ranges and filters\n\n"
            "`sonde sql` takes the ranges and filters of every verb: `--last 10m`, `--from 03:10 --to 03:24`, `--container web`,\n"
            "`--comm '!nginx'`, ... They narrow\n\n"
            "- the queries that ship: `sonde sql @hottest --last 10m --container web`. `from=` and `to=` still count, within it. One that\n"
            "  is about the whole store, as `@incomplete`, says so;\n"
            "- the views `win_NAME`, of the same columns as `NAME`, for queries of your own: `sonde sql --last 2m \"select comm,\n"
            "  sum(cpu_ns) from win_cpu_samples group by 1\"`. Without any range they are the newest recording, and sonde's own\n"
            "  processes are left out unless there is `--self`, as by every verb. `processes` are those that ran in the range,\n"
            "  `containers` theirs; what is of no process (`loss`, `cost`, `steal`) has the range alone. What has neither times nor\n"
            "  processes has no such view;\n"
            "- `:from` and `:to`, in any query, in seconds since 1970.\n\n"
            "`win_waits` and `win_wait_objects` have one more column, `idle`: 1 where the thread waited for work\n"
            "(a pool's worker, an event loop), by the functions in its stack, as in `sonde waits`. `win_wait_totals` has it by\n"
            "the kind of wait alone, as it has no stacks.\n")
    for name, (summary, parameters) in heads().items():
        text += f"\n## @{name}\n\n{summary[0].upper() + summary[1:]}.\n\n"
        text += "".join(f"- `{p.split(':')[0]}`:{p.split(':', 1)[1]}\n" for p in parameters) + ("\n" if parameters else "")
        text += shown(name, stores[name])
    return text


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    return make(str(tmp_path_factory.mktemp("queries")))


def rows(store, *args):
    done = ask(store, "--json", *args)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["rows"]


def plain(store, query):
    """By the sqlite3 program, of a store of one segment."""
    need("sqlite3")
    (path,) = segments(store)
    done = subprocess.run(["sqlite3", "-readonly", "-csv", "-header", path, query], capture_output=True, text=True,
                          timeout=60, check=True)
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_the_document_shows_what_the_queries_say(stores):
    assert len(NAMES) >= 12
    assert open(DOC, encoding="utf-8").read() == document(stores), "make it anew: tests/e2e/query/test_tool_queries.py --write"


def test_the_list_names_each_with_what_it_answers(stores):
    listed = dict(re.match(r"@(\S+)\s+(.+)", line).groups() for line in ask(stores["who"], "@").stdout.splitlines())
    assert listed == {name: summary for name, (summary, _) in heads().items()}


def test_the_hottest_functions_are_those_of_plain_sqlite(stores):
    mine = [(r["function"], r["module"], r["samples"]) for r in rows(stores["hottest"], "@hottest", "n=10000")]
    theirs = [(r["function"], r["module"], int(r["self"])) for r in plain(
        stores["hottest"], "SELECT function, module, sum(self) AS self FROM functions_top GROUP BY 1, 2 HAVING self > 0")]
    assert sorted(mine) == sorted(theirs) and len(mine) > 10


def test_keys_narrow_and_times_are_those_of_every_verb(stores):
    store = stores["hottest"]
    assert len(rows(store, "@hottest", "n=3")) == 3
    comm = rows(store, "@who", "n=1")[0]["comm"]
    (few,) = plain(store, f"SELECT sum(samples) AS n FROM cpu_samples WHERE comm = '{comm}'")
    assert sum(r["samples"] for r in rows(store, "@hottest", "n=10000", f"comm={comm}")) == int(few["n"])
    (half,) = plain(store, f"SELECT sum(samples) AS n FROM cpu_samples WHERE NOT self AND ts >= {AT - 300}")
    for when in (str(AT - 300), "2026-11-20T03:05:00Z"):
        assert sum(r["samples"] for r in rows(store, "@hottest", "n=10000", f"from={when}")) == int(half["n"])
    assert all("03:05" <= r["minute"][11:] < "03:07"
               for r in rows(store, "@minutes", f"from={AT - 300}", f"to={AT - 180}"))


def test_memory_that_grew_is_counted_from_the_first_reading(stores):
    grew = {r["function"]: r["grew_bytes"] for r in rows(stores["growth"], "@growth")}
    assert grew == {"leak": 64 * 12, "late": 64}  # cache did not grow, late began at 0


def test_waits_and_allocations_add_up_to_what_was_put_in(stores):
    waits = {(r["state"], r["reason"]): (r["count"], r["total_s"]) for r in rows(stores["waiting"], "@waiting")}
    assert sorted(waits.values()) == [(6, 0.018), (8, 0.002)]
    assert {r["function"]: r["bytes"] for r in rows(stores["allocators"], "@allocators")} == {
        "leak": 64 * 18, "cache": 4608}


def test_what_containers_went_through_is_what_was_put_in(stores):
    store = stores["oom"]
    assert [(r["container"], r["comm"], r["times"]) for r in rows(store, "@oom")] == [("memhog", "hog", 3)]
    (loop,) = rows(store, "@restarts")
    assert (loop["container"], loop["instances"], loop["restarts"], loop["ends"]) == ("loop", 4, 3, "4 x exit 1")
    (web,) = rows(store, "@throttling")
    assert (web["container"], web["throttled"], web["periods"], web["percent"], web["lost_s"]) == ("web", 8, 20, 40.0, 0.56)
    (most, *_) = rows(stores["containers"], "@containers")
    (plainly,) = plain(stores["containers"], f"SELECT count(DISTINCT pid) AS n FROM cpu_samples WHERE container = '{most['container']}'")
    assert most["processes"] == int(plainly["n"]) and most["image"]


def test_what_containers_and_disks_used_is_what_was_put_in(stores):
    store = stores["memory"]
    used = {r["container"]: r for r in rows(store, "@memory")}
    assert list(used) == ["memhog", "web"] and (used["memhog"]["most_mib"], used["memhog"]["limit_mib"]) == (60.0, 128.0)
    assert (used["web"]["percent"], used["web"]["met_limit"], used["web"]["oom_kills"]) == (37.5, 3, None)
    (most, _) = rows(store, "@traffic")
    assert (most["container"], most["read_mib"], most["written_mib"], most["drops"]) == ("memhog", 120.0, 20.0, 3)
    (sda,) = rows(store, "@disks")
    assert (sda["busiest_percent"], sda["ms_a_read"], sda["ms_a_write"]) == (40.0, 0.5, 3.0)
    assert [(r["mount"], r["percent"], r["inodes_percent"]) for r in rows(store, "@full")] == [("/var", 92.0, 10.0), ("/", 52.0, 10.0)]
    fills = [(r["kind"], r["name"], r["bytes"] and r["bytes"] / 2**20) for r in rows(store, "@fills")]
    assert fills == [("found", "/var", None), ("found", "/var", None), ("file system", "/", 2048.0), ("file system", "/var", 2048.0), ("container", "web", 30.0), ("container", "memhog", 20.0),
                     ("process", "app (40)", 200.0)]
    assert {r["container"] for r in rows(store, "@memory", "--container", "web")} == {"web"}
    assert rows(store, "@memory", "--from", str(AT), "--to", str(AT + 10))[1]["most_mib"] == 4.0


def test_ranges_and_filters_narrow_the_queries_that_ship(stores):
    store = stores["hottest"]
    when = ["--from", str(AT - 300), "--to", str(AT - 180)]
    for name in sorted(set(NAMES) - OF_KINDS):
        done = ask(store, "--json", f"@{name}", *when)
        assert done.returncode == (2 if name == "incomplete" else 0), (name, done.stderr)
    assert "covers the whole store" in ask(store, "@incomplete", *when).stderr
    container = rows(store, "@containers", "n=1")[0]["container"]
    where = f"WHERE NOT self AND ts >= {AT - 300} AND ts < {AT - 180}"
    for more, sql in (([], where), (["--container", container], f"{where} AND container = '{container}'"),
                      (["--container", f"!{container}"], f"{where} AND container <> '{container}'")):
        (few,) = plain(store, f"SELECT sum(samples) AS n FROM cpu_samples {sql}")
        assert sum(r["samples"] for r in rows(store, "@hottest", "n=10000", *when, *more)) == int(few["n"]) > 0, more
    assert rows(stores["oom"], "@oom", "--container", "memhog", "--from", str(AT), "--to", str(AT + 60))[0]["times"] == 3
    assert not rows(stores["oom"], "@oom", "--container", "web", "--from", str(AT), "--to", str(AT + 60))
    assert rows(stores["oom"], "@throttling", "--container", "memhog", "--from", str(AT), "--to", str(AT + 60)) == []


def test_wrong_names_keys_and_values_are_told_with_what_there_is(stores):
    store = stores["who"]
    for args, word in ((("@hottes",), "@hottest"), (("@who", "m=3"), "n, from, to"), (("@who", "n=many"), "not a number"),
                       (("@who", "from=whenever"), "not a time"), (("@losses", "n=3"), "it has none")):
        done = ask(store, *args)
        assert done.returncode == 2 and word in done.stderr and not done.stdout, args


def test_no_rows_are_said(stores):
    done = ask(stores["who"], "@who", "from=2030-01-01")
    assert done.returncode == 0 and "@who: no rows" in done.stderr


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as made, open(DOC, "w", encoding="utf-8") as out:
        out.write(document(make(made)))
