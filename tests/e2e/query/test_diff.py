# SPDX-License-Identifier: Apache-2.0
"""`sonde diff`: what was planted is found, what is noise is not called a change, and the numbers are the store's."""
import gzip
import json
import os
import re
import subprocess

import pytest
from conftest import BIN, BUILD, need, scale

AT = 1795144200
# what really is different in the second window: what was planted, and everything above it
CHANGED = {"planted_20", "planted_5", "planted_gone", "planted_callee", "planted_new", "main"} | \
    {f"{kind}_{n}" for kind in ("service", "caller") for n in (1, 2, 3, 5)}


def maker(name, *args):
    program = os.path.join(BUILD, "tests", name)
    need(f"build/tests/{name}", program)
    return json.loads(subprocess.run([program, *map(str, args)], check=True, capture_output=True, text=True).stdout)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("diff") / "store")
    return path, maker("plantstore", path, "--seed", 3)


def diff(sonde, store, said, *args):
    done = sonde("diff", "--json", "-n", 100000, "--from", said["middle"], "--to", said["to"], *args, store=store, check=True)
    told = json.loads(done.stdout)
    return told, {r["function"]: r for r in told["rows"]}


def marked(rows):
    return {name for name, r in rows.items() if r["significant"]}


# --- numbers ---

def test_both_sides_are_what_sql_counts(sonde, sql, planted):
    path, said = planted
    told, rows = diff(sonde, path, said)
    assert (told["unit"], told["test"], told["before"]["slices"], told["after"]["slices"]) == ("cores", "welch", 60, 60)
    for side, start, end in (("before", said["from"], said["middle"]), ("after", said["middle"], said["to"])):
        wanted = {r["function"]: r for r in sql(
            path, "SELECT function, sum(samples) AS n, sum(cpu_ns) AS ns FROM cpu_samples WHERE ts >= ? AND ts < ? "
                  "GROUP BY 1", (start, end))}
        assert told[side]["samples"] == sum(r["n"] for r in wanted.values())
        assert told[side]["cpu_ns"] == sum(r["ns"] for r in wanted.values())
        assert told[side]["seconds"] == 600
        for name, r in rows.items():
            n = wanted.get(name, {"n": 0, "ns": 0})
            assert (r["self"][f"{side}_samples"], r["self"][f"{side}_ns"]) == (n["n"], n["ns"]), name
            assert r["self"][side] == pytest.approx(n["ns"] / 600e9)
    service = sql(path, "SELECT sum(c.samples) AS n FROM cpu_samples c WHERE c.ts >= ? AND EXISTS (SELECT 1 FROM stack_frames f "
                        "WHERE f.stack_id = c.stack_id AND f.function = 'service_2')", (said["middle"],))[0]["n"]
    assert rows["service_2"]["total"]["after_samples"] == service


def test_what_was_planted_is_told(sonde, planted):
    path, said = planted
    told, rows = diff(sonde, path, said)
    for p in said["planted"]:
        if p["function"] != "planted_callee":
            r = rows[p["function"]]
            assert r["significant"] and (r["self"]["before_samples"], r["self"]["after_samples"]) == (p["before"], p["after"])
    assert rows["planted_gone"]["self"]["after"] == 0 and rows["planted_gone"]["self"]["change_percent"] == -100
    new = rows["planted_callee"]["new_callers"]
    assert [(c["function"], c["significant"]) for c in new] == [("planted_new", True)]
    assert rows["planted_gone"]["gone_callers"][0]["function"] == "caller_3"
    assert abs(rows["planted_gone"]["since_ns"] / 1e9 - said["middle"]) <= 20
    assert marked(rows) <= CHANGED
    assert told["functions_significant"] == len(marked(rows))
    quiet = [r for r in rows.values() if not r["significant"] and r["self"]["tested"]]
    assert quiet and all(r["self"]["detectable"] > 0 for r in quiet)


def test_text_fits_and_marks_what_is_noise(sonde, planted):
    path, said = planted
    done = sonde("diff", "--from", said["middle"], "--to", said["to"], "-n", 12, store=path, check=True,
                 env={"COLUMNS": "80", "TZ": "UTC"})
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[0].startswith("before: 2026-11-20 02:50:00 to") and lines[2].startswith("after:  2026-11-20 03:00:00 to")
    assert re.search(r"change: [+-]0\.\d{4} cores .*(within the noise: 0\.\d+ cores would have shown|more than noise)", done.stdout)
    table = lines[lines.index(next(x for x in lines if "FUNCTION" in x)) + 1:]
    assert len(table) == 12 and {x[0] for x in table} == {"*", "~"}
    assert re.search(r"^\* +-0\.0\d+ +gone .* planted_gone .*0[23]:\d\d:\d\d$", done.stdout, re.M)
    assert re.search(r"^~ .*noise: \d+ % would show$", done.stdout, re.M)
    assert "Welch's test over 60 and 60 slices of 10 and 10 s" in done.stderr
    coloured = sonde("diff", "--from", said["middle"], "--to", said["to"], "--color", "always", store=path, check=True)
    assert "\x1b[31m" in coloured.stdout and "\x1b[2m" in coloured.stdout


# --- what is compared ---

def test_ways_to_say_the_same_two_windows(sonde, planted, tmp_path):
    path, said = planted
    told, rows = diff(sonde, path, said)
    for args in (["--baseline", "10m"], ["--vs-from", said["from"], "--vs-to", said["middle"]],
                 ["--before", path, "--vs-from", said["from"], "--vs-to", said["middle"]]):
        assert diff(sonde, path, said, *args)[0]["rows"] == told["rows"]
    for start, end, name in ((said["from"], said["middle"], "a"), (said["middle"], said["to"], "b")):
        sonde("export", "pprof", "-o", tmp_path / f"{name}.pb.gz", "--from", start, "--to", end, store=path, check=True)
        sonde("export", "folded", "-o", tmp_path / f"{name}.folded", "--from", start, "--to", end, store=path, check=True)
    told = json.loads(sonde("diff", "--json", "-n", 100000, tmp_path / "a.pb.gz", tmp_path / "b.pb.gz", check=True).stdout)
    assert (told["test"], told["unit"]) == ("counts", "cores") and told["warnings"]
    for r in told["rows"]:
        for key in ("before_samples", "after_samples", "before_ns", "after_ns"):
            assert r["function"] not in rows or (r["self"][key], r["total"][key]) == \
                (rows[r["function"]]["self"][key], rows[r["function"]]["total"][key])
    told = json.loads(sonde("diff", "--json", "-n", 100000, tmp_path / "a.folded", "--after", tmp_path / "b.folded",
                            check=True).stdout)
    assert told["unit"] == "share" and told["before"]["seconds"] is None
    for r in told["rows"]:
        assert r["function"] not in rows or r["self"]["after_samples"] == rows[r["function"]]["self"]["after_samples"]
    one = sonde("diff", "--json", "--before", tmp_path / "a.pb.gz", "--from", said["middle"], "--to", said["to"], store=path,
                check=True)
    assert {r["function"] for r in json.loads(one.stdout)["rows"]} & CHANGED


def test_two_filters_two_recordings_two_stores(sonde, tmp_path):
    path = str(tmp_path / "two")
    made = maker("makestore", path, "--rows", 6000, "--two-runs", "--at", AT)
    told = json.loads(sonde("diff", "--json", "--rec", 1, "--comm", "server-2", "--vs-comm", "server-1", store=path,
                            check=True).stdout)
    assert told["before"]["samples"] == told["after"]["samples"] == 600 * 99
    assert not [r for r in told["rows"] if r["significant"]] or told["functions_tested"]
    told = json.loads(sonde("diff", "--json", "--rec", 2, "--vs-rec", 1, store=path, check=True).stdout)
    assert (told["before"]["samples"], told["after"]["samples"]) == (made["samples"], made["fine_samples"])
    assert told["all"]["before"] == pytest.approx(10, rel=0.02) and told["all"]["after"] == pytest.approx(10, rel=0.02)
    done = sonde("diff", "--rec", 1, store=path)
    assert done.returncode == 4 and "no recording before rec 1" in done.stderr
    other = str(tmp_path / "other")
    maker("makestore", other, "--rows", 6000, "--at", AT - 86400)
    files = [next(os.path.join(d, f) for f in os.listdir(d) if f.endswith(".db")) for d in (other, path)]
    for pair in (files, [f"{other}/", f"{path}/"]):
        told = json.loads(sonde("diff", "--json", *pair, check=True).stdout)
        assert told["after"]["samples"] == made["fine_samples"] and told["before"]["seconds"] == pytest.approx(600)


@pytest.mark.parametrize("args, code, says", [
    (["--per", "mile"], 2, "--per must be"),
    (["a.folded", "b.folded", "c.folded"], 2, "not three"),
    (["-o", "x.html5"], 2, "cannot tell the format"),
    (["--before", "/nonexistent/x.pb.gz"], 2, "before: cannot read /nonexistent/x.pb.gz"),
    (["--before", "/nonexistent/store"], 6, "before: "),
    (["--baseline", "1h", "--vs-last", "1h"], 2, "both select"),
    (["--baseline", "30d"], 4, "before: no CPU samples"),
    (["--baselin", "soon"], 2, "takes a duration"),
    (["--basline", "1h"], 2, "did you mean '--baseline'"),
    (["--vs-at", "noonish"], 2, "before: --at: 'noonish' is not a time"),
    (["--type", "memory"], 2, "memory"),
    (["--type", "inuse"], 4, "after: "),
    (["lod"], 2, "did you mean 'load'"),
    (["load", "burn"], 2, "one word"),
])
def test_errors(sonde, planted, args, code, says, tmp_path):
    path, said = planted
    done = sonde("diff", "--from", said["middle"], "--to", said["to"], *args, store=path, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert says in done.stderr and done.stdout == ""
    assert not list(tmp_path.iterdir())


def test_files_that_are_no_profile(sonde, tmp_path):
    good = tmp_path / "good.folded"
    good.write_text("main;work 5\n# a comment\n\nmain;a\\x3bb 7\r\n")
    for name, data, says in (("a.folded", b"main;work\n", "line 1 does not end"),
                             ("b.pb.gz", gzip.compress(b"\x0a\x04\x08\x01\x10\x02")[:-9], "damaged or ends early"),
                             ("c.pb.gz", gzip.compress(b"\x12\x04\x0a\x02\x01\x02"), "is not a readable pprof profile"),
                             ("d.folded", b"\n", "holds no samples")):
        (tmp_path / name).write_bytes(data)
        done = sonde("diff", tmp_path / name, good)
        assert done.returncode == (4 if "samples" in says else 2) and says in done.stderr, done.stderr
    told = json.loads(sonde("diff", "--json", good, good, check=True).stdout)
    assert told["after"]["samples"] == 12 and told["rows"] == []


# --- for other programs ---

def test_pprof_shows_what_its_own_diff_base_shows(sonde, planted, tmp_path):
    need("go")
    path, said = planted
    for start, end, name in ((said["from"], said["middle"], "a"), (said["middle"], said["to"], "b")):
        sonde("export", "pprof", "-o", tmp_path / f"{name}.pb.gz", "--from", start, "--to", end, store=path, check=True)
    sonde("diff", "-o", tmp_path / "d.pb.gz", "--from", said["middle"], "--to", said["to"], store=path, check=True)

    def top(*args):
        out = subprocess.run(["go", "tool", "pprof", "-top", "-nodecount=400", "-nodefraction=0", *map(str, args)],
                             capture_output=True, text=True, check=True, env=dict(os.environ, PPROF_TMPDIR=str(tmp_path)))
        return sorted(x for x in out.stdout.splitlines() if "%" in x and "Duration" not in x)
    ours, theirs = top(tmp_path / "d.pb.gz"), top("-diff_base", tmp_path / "a.pb.gz", tmp_path / "b.pb.gz")
    assert len(ours) > 300 and ours == theirs


def test_what_go_writes_is_read(sonde, planted, tmp_path):
    """`go tool pprof -proto` writes the profile anew, by Go's encoder: it is the same one."""
    need("go")
    path, said = planted
    sonde("export", "pprof", "-o", tmp_path / "a.pb.gz", "--from", said["middle"], "--to", said["to"], store=path, check=True)
    subprocess.run(["go", "tool", "pprof", "-proto", "-output", tmp_path / "go.pb.gz", tmp_path / "a.pb.gz"], check=True,
                   capture_output=True, env=dict(os.environ, PPROF_TMPDIR=str(tmp_path)))
    assert gzip.decompress((tmp_path / "go.pb.gz").read_bytes()) != gzip.decompress((tmp_path / "a.pb.gz").read_bytes())
    told = json.loads(sonde("diff", "--json", "-n", 1000, tmp_path / "go.pb.gz", tmp_path / "a.pb.gz", check=True).stdout)
    assert told["rows"] == [] and told["before"]["samples"] == told["after"]["samples"] > 200000
    told = json.loads(sonde("diff", "--json", "--before", tmp_path / "go.pb.gz", "--from", said["middle"], "--to", said["to"],
                            store=path, check=True).stdout)
    assert told["rows"] == [] and told["before"]["cpu_ns"] == told["after"]["cpu_ns"]


def put(store, lines):
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    subprocess.run([program, store], input="\n".join(map(json.dumps, lines)), check=True, text=True)


def test_kinds_of_value(sonde, tmp_path):
    """Allocations per second, and memory in use as it stood on average; what grew is told by its function."""
    path, start = str(tmp_path / "heap"), AT - 400
    lines = [{"run": "goheap", "from": start, "to": AT, "bucket_s": 10, "period_ns": 0}]
    for i in range(40):
        who = {"at": start + 10 * i + 1, "pid": 100, "comm": "app", "thread": "app", "tid": 100}
        noise = (i * 7) % 5
        lines.append({"kind": "alloc", "n": 100 + noise, "value": (100 + noise) * 1024, "stack": ["main", "steady"], **who})
        lines.append({"kind": "inuse", "n": 50 + noise, "value": 4096 * (50 + noise), "stack": ["main", "cache"], **who})
        more = 0 if i < 20 else 105
        lines.append({"kind": "inuse", "n": 20 + noise + more, "value": 1024 * (20 + noise + more), "stack": ["main", "grown"],
                      **who})
    put(path, lines)
    window = ["--from", AT - 200, "--to", AT]
    told = json.loads(sonde("diff", "--json", "--type", "inuse", *window, store=path, check=True).stdout)
    rows = {r["function"]: r for r in told["rows"]}
    assert (told["type"], told["unit"], told["test"]) == ("inuse", "bytes", "welch")
    wanted = [1024 * sum(20 + (i * 7) % 5 + (0 if i < 20 else 105) for i in part) / 20
              for part in (range(20), range(20, 40))]
    assert [rows["grown"]["self"][k] for k in ("before", "after")] == pytest.approx(wanted, abs=1)
    assert rows["grown"]["significant"] and ("cache" not in rows or not rows["cache"]["significant"])
    told = json.loads(sonde("diff", "--json", "--type", "alloc", *window, store=path, check=True).stdout)
    assert told["unit"] == "bytes per second" and not [r for r in told["rows"] if r["significant"]]
    assert told["all"]["after"] == pytest.approx(1024 * sum(100 + (i * 7) % 5 for i in range(20, 40)) / 200)
    text = sonde("diff", "--type", "inuse", *window, store=path, check=True).stdout
    assert re.search(r"^\* +\+10\d KiB .* grown", text, re.M) and "memory in use" in text
    both = sonde("diff", *window, store=path)
    assert both.returncode == 0 and "this is --type inuse; there is also alloc" in both.stderr
    for end in ("pb.gz", "json", "folded"):
        sonde("diff", "--type", "inuse", "-o", tmp_path / f"x.{end}", *window, store=path, check=True)
    sonde("export", "pprof", "--type", "inuse", *window, "-o", tmp_path / "heap.pb.gz", store=path, check=True)
    told = json.loads(sonde("diff", "--json", "--type", "inuse", "--before", tmp_path / "heap.pb.gz", *window, store=path,
                            check=True).stdout)
    assert (told["type"], told["unit"]) == ("inuse", "bytes")
    done = sonde("diff", "--type", "alloc", "--before", tmp_path / "heap.pb.gz", "--vs-last", "1h", *window, store=path)
    assert done.returncode == 0, done.stderr


def test_folded_and_tree_hold_both_sides(sonde, planted, tmp_path):
    path, said = planted
    window = ["--from", said["middle"], "--to", said["to"]]
    sonde("diff", "-o", tmp_path / "d.folded", *window, store=path, check=True)
    sonde("diff", "-o", tmp_path / "d.json", *window, store=path, check=True)
    two = {s.rsplit(" ", 2)[0]: tuple(map(int, s.rsplit(" ", 2)[1:])) for s in (tmp_path / "d.folded").read_text().splitlines()}
    for k, (start, end) in enumerate(((said["from"], said["middle"]), (said["middle"], said["to"]))):
        one = sonde("export", "folded", "--from", start, "--to", end, store=path, check=True).stdout
        assert {s.rsplit(" ", 1)[0]: int(s.rsplit(" ", 1)[1]) for s in one.splitlines()} == \
            {stack: n[k] for stack, n in two.items() if n[k]}
    tree = json.loads((tmp_path / "d.json").read_text())
    assert tree["schema"] == "sonde.diff.tree/1" and tree["rows"][0]["parent"] is None
    for side in ("before", "after"):
        assert tree["rows"][0][f"{side}_total_samples"] == tree[side]["samples"]
        for node in tree["rows"]:
            children = [n for n in tree["rows"] if n["parent"] == node["id"]] if node["id"] < 20 else []
            assert not children or node[f"{side}_total_ns"] == node[f"{side}_self_ns"] + sum(
                n[f"{side}_total_ns"] for n in children)


# --- chance ---

def test_planted_changes_are_found_over_many_seeds(sonde, tmp_path):
    """+20 % of 2 200 samples, +5 % of 22 000, a function that is gone, a new caller: found; false alarms at most 5 %."""
    seeds = scale(10, 50)
    found = dict.fromkeys(("planted_20", "planted_5", "planted_gone", "planted_new"), 0)
    false = 0.0
    for seed in range(seeds):
        path = str(tmp_path / str(seed))
        said = maker("plantstore", path, "--seed", 1000 + seed)
        told, rows = diff(sonde, path, said)
        names = marked(rows)
        for name in ("planted_20", "planted_5", "planted_gone"):
            found[name] += name in names
        found["planted_new"] += any(c["significant"] for c in rows["planted_callee"]["new_callers"])
        false += len(names - CHANGED) / max(1, len(names))
        subprocess.run(["rm", "-r", path], check=True)
    print(f"of {seeds} seeds: {found}, false discovery rate {false / seeds:.4f}")
    assert found["planted_gone"] == found["planted_new"] == seeds
    assert found["planted_20"] >= 0.97 * seeds - 1 and found["planted_5"] >= 0.9 * seeds - 1
    assert false / seeds <= 0.05


@pytest.mark.parametrize("load, most", [((), 0.05), (("--bursty",), 0.12)])
def test_two_windows_of_one_steady_load_do_not_differ(sonde, tmp_path, load, most):
    """A load whose services wander by 30 % over half minutes is no steady one: there more is called a change."""
    pairs = scale(10, 200)
    alarms = 0
    for seed in range(pairs):
        path = str(tmp_path / str(seed))
        said = maker("plantstore", path, "--steady", "--seed", 5000 + seed, *load)
        told, rows = diff(sonde, path, said)
        alarms += bool(marked(rows)) or any(c["significant"] for r in rows.values() for c in r["new_callers"] + r["gone_callers"])
        subprocess.run(["rm", "-r", path], check=True)
    print(f"of {pairs} pairs of a steady load {load} {alarms} had something significant")
    assert alarms <= max(3, most * pairs)
