# SPDX-License-Identifier: Apache-2.0
"""`sonde import` of profiles in JSON, in every form that speedscope's schema and the Firefox Profiler's versions have: what each holds is
known."""
import collections
import gzip
import json

import pytest
from conftest import sql_all

FRAMES = [{"name": "main"}, {"name": "work", "file": "w.c", "line": 7}, {"name": "idle"}]


def folded(sonde, store):
    done = sonde("export", "folded", "--rec", "last", store=store, check=True)
    return collections.Counter({k: int(n) for k, n in (x.rsplit(" ", 1) for x in done.stdout.splitlines())})


def imported(sonde, tmp_path, profile, *args, name="x.json", pack=False):
    data = json.dumps(profile, ensure_ascii=False).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if pack else data)
    store = str(tmp_path / ("store-" + name))
    return store, sonde("import", tmp_path / name, *args, store=store, check=True).stderr


def leaves(store):
    return {r["function"]: r["ns"] for r in sql_all(store, "SELECT function, sum(cpu_ns) AS ns FROM cpu_samples GROUP BY 1")}


def scope(*profiles):
    return {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": FRAMES}, "profiles": list(profiles)}


def sampled(unit, samples, weights, **more):
    return {"type": "sampled", "name": more.get("name", "one"), "unit": unit, "startValue": 0, "endValue": sum(weights), "samples": samples, "weights": weights}


def evented(unit, events, **more):
    return {"type": "evented", "name": more.get("name", "two"), "unit": unit, "startValue": events[0][2], "endValue": events[-1][2],
            "events": [{"type": t, "frame": f, "at": at} for t, f, at in events]}


@pytest.mark.parametrize("unit, scale", [("nanoseconds", 1), ("microseconds", 1000), ("milliseconds", 10**6), ("seconds", 10**9)])
def test_sampled_and_evented_profiles_in_each_unit_of_time(sonde, tmp_path, unit, scale):
    store, _ = imported(sonde, tmp_path, scope(
        sampled(unit, [[0, 1], [0], []], [3, 4, 1], name="t1"),
        evented(unit, [("O", 0, 10), ("O", 1, 12), ("C", 1, 15), ("C", 0, 20), ("O", 2, 30), ("C", 2, 31)], name="t2")))
    assert leaves(store) == {"work": 6 * scale, "main": 11 * scale, "idle": scale, "[no stack]": scale}
    assert {r["thread"]: r["ns"] for r in sql_all(store, "SELECT thread, sum(cpu_ns) AS ns FROM cpu_samples GROUP BY 1")} == {"t1": 8 * scale, "t2": 11 * scale}


def test_profiles_of_several_units_of_time_are_one_sum(sonde, tmp_path):
    store, said = imported(sonde, tmp_path, scope(sampled("milliseconds", [[0]], [5]), sampled("seconds", [[1]], [2]), sampled("none", [[2]], [9])))
    assert leaves(store) == {"main": 5_000_000, "work": 2_000_000_000} and "1 of profiles in another unit" in said


def test_small_weights_lose_nothing_by_rounding(sonde, tmp_path):
    store, _ = imported(sonde, tmp_path, scope(sampled("nanoseconds", [[0]] * 1000, [0.3] * 1000), sampled("microseconds", [[1]] * 1000, [0.0014] * 1000)))
    assert abs(leaves(store)["main"] - 300) <= 1 and abs(leaves(store)["work"] - 1400) <= 1


def test_large_whole_weights_are_kept_to_the_last_digit(sonde, tmp_path):
    store, _ = imported(sonde, tmp_path, scope(sampled("bytes", [[0], [1], [0]], [2**52 + 1, 3, 2**52 - 7])), "--type", "alloc")
    assert {r["function"]: r["v"] for r in sql_all(store, "SELECT function, sum(value) AS v FROM amounts GROUP BY 1")} == {"main": 2**53 - 6, "work": 3}


@pytest.mark.parametrize("change, says", [
    (lambda p: p["profiles"][0]["weights"].pop(), "no weight"), (lambda p: p["profiles"][0]["weights"].append(2), "more weights than samples"), (lambda p: p["profiles"][0].update(weights=[-1]), "negative"),
    (lambda p: p["profiles"][0].update(samples=[[9]]), "not in shared.frames"), (lambda p: p["profiles"][0].update(unit="bytes"), "--type alloc"),
    (lambda p: p["profiles"][0].update(unit="parsecs"), "no unit of speedscope"), (lambda p: p.pop("shared"), "neither speedscope"),
])
def test_what_is_wrong_is_said(sonde, tmp_path, change, says):
    profile = scope(sampled("none", [[0]], [1]))
    change(profile)
    (tmp_path / "x.json").write_text(json.dumps(profile))
    done = sonde("import", tmp_path / "x.json", store=str(tmp_path / "store"))
    assert done.returncode == 2 and says in done.stderr, done.stderr


def test_frames_that_are_open_at_the_end_last_until_then(sonde, tmp_path):
    profile = {**evented("nanoseconds", [("O", 0, 10), ("O", 1, 30)]), "endValue": 100}
    store, _ = imported(sonde, tmp_path, scope(profile))
    assert leaves(store) == {"main": 20, "work": 70}


def test_a_frame_that_is_not_the_innermost_is_not_closed(sonde, tmp_path):
    (tmp_path / "x.json").write_text(json.dumps(scope(evented("none", [("O", 0, 0), ("O", 1, 4), ("C", 0, 6), ("C", 1, 9)]))))
    done = sonde("import", tmp_path / "x.json", store=str(tmp_path / "store"))
    assert done.returncode == 2 and "not the innermost" in done.stderr, done.stderr


def test_events_out_of_order_are_refused(sonde, tmp_path):
    (tmp_path / "x.json").write_text(json.dumps(scope(evented("none", [("O", 0, 10), ("C", 0, 4)]))))
    assert sonde("import", tmp_path / "x.json", store=str(tmp_path / "store")).returncode == 2


@pytest.mark.parametrize("text, stacks", [
    ("{main};run 3\n", {"{main};run": 3}), ("[unknown];main 2\n", {"[unknown];main": 2}), ("\ufeffmain;a 4\r\nmain;b 1\r\n", {"main;a": 4, "main;b": 1}),
    ("main;a 4 6\nmain;b 0 1\n", {"main;a": 6, "main;b": 1}), ("main;f 4 6\nmain;b 1\n", {"main;f 4": 6, "main;b": 1}),
])
def test_folded_stacks_that_look_like_something_else(sonde, tmp_path, text, stacks):
    (tmp_path / "x.folded").write_text(text)
    store = str(tmp_path / "store")
    said = sonde("import", tmp_path / "x.folded", store=store, check=True).stderr
    assert folded(sonde, store) == stacks and ("difference" in said) == (text == "main;a 4 6\nmain;b 0 1\n")


# --- the Firefox Profiler ---
STRINGS = ["main", "work", "idle", "app", "w.c", "0x1234", "[kernel.kallsyms]", "sys_read"]
THREAD = {"name": "worker", "processName": "app", "pid": "41", "tid": 42}
SAMPLES = {"stack": [1, 2, None, 1], "time": [0, 1, 2, 3]}
TABLES = {  # main > work, main > sys_read of the kernel
    "stackTable": {"length": 3, "prefix": [None, 0, 0], "frame": [0, 1, 2]},
    "frameTable": {"length": 3, "func": [0, 1, 2], "line": [3, 7, None], "inlineDepth": [0, 0, 0], "address": [16, 32, 64]},
    "funcTable": {"length": 3, "name": [0, 1, 7], "fileName": [None, 4, None], "resource": [0, 0, 1]},
    "resourceTable": {"length": 2, "name": [3, 6], "lib": [0, None]},
}
META = {"interval": 10, "startTime": 1795144200000, "preprocessedProfileVersion": 48, "version": 28}
LIBS = [{"name": "app", "path": "/usr/bin/app", "codeId": "aa11"}]


def rows(names, *data):
    return {"schema": {n: i for i, n in enumerate(names)}, "data": [list(d) for d in data]}


FORMS = {
    "columns of each thread": {"meta": META, "libs": LIBS, "threads": [{**THREAD, **TABLES, "samples": SAMPLES, "stringArray": STRINGS}]},
    "libs of each thread": {"meta": META, "threads": [{**THREAD, **TABLES, "libs": LIBS, "samples": SAMPLES, "stringArray": STRINGS}]},
    "strings of all": {"meta": META, "libs": LIBS, "shared": {"stringArray": STRINGS}, "threads": [{**THREAD, **TABLES, "samples": SAMPLES}]},
    "tables of all, and sources": {
        "meta": META, "libs": LIBS, "threads": [{**THREAD, "samples": {"stack": SAMPLES["stack"], "timeDeltas": [0, 1, 1, 1]}}],
        "shared": {**TABLES, "stringArray": STRINGS, "sources": {"filename": [4]},
                   "funcTable": {**{k: v for k, v in TABLES["funcTable"].items() if k != "fileName"}, "source": [None, 0, None]}}},
    "weights": {"meta": META, "libs": LIBS, "threads": [{**THREAD, **TABLES, "stringArray": STRINGS, "samples": {
        "stack": [1, 2], "time": [0, 1], "weight": [2, 1], "weightType": "samples"}}]},
    "rows of Gecko": {"meta": META, "libs": [], "threads": [], "processes": [{"meta": META, "libs": [], "threads": [{
        **THREAD, "stringTable": STRINGS[:7] + ["work (w.c:7)", "sys_read (in [kernel.kallsyms])"],
        "samples": rows(["stack", "time", "responsiveness"], [1, 0, 0], [2, 1, 0], [None, 2, 0], [1, 3, 0]),
        "stackTable": rows(["prefix", "frame"], [None, 0], [0, 1], [0, 2]),
        "frameTable": rows(["location", "relevantForJS", "line"], [0, False, None], [7, False, None], [8, False, None])}]}]},
}
FORMS["of the developer tools"] = {"label": "x", "profile": FORMS["columns of each thread"]}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_the_firefox_profiler(sonde, tmp_path, form):
    store, _ = imported(sonde, tmp_path, FORMS[form], pack=form == "weights")
    kernel = "sys_read (in [kernel.kallsyms])" if "Gecko" in form else "sys_read"
    assert leaves(store) == {"work": 20_000_000, kernel: 10_000_000}
    row = sql_all(store, "SELECT comm, pid, thread, tid, file, line FROM cpu_samples WHERE function = 'work'")[0]
    assert row == {"comm": "app", "pid": 41, "thread": "worker", "tid": 42, "file": "w.c", "line": 7}
    if "Gecko" not in form:
        assert {r["module"] for r in sql_all(store, "SELECT module FROM cpu_samples")} == {"app", "[kernel]"}


def test_cpu_time_of_samples_is_what_counts(sonde, tmp_path):
    profile = json.loads(json.dumps(FORMS["columns of each thread"]))
    profile["meta"]["sampleUnits"] = {"time": "ms", "threadCPUDelta": "\u00b5s"}
    profile["threads"][0]["samples"]["threadCPUDelta"] = [None, 500, 7, 20]
    store, _ = imported(sonde, tmp_path, profile)
    assert leaves(store) == {"sys_read": 500_000, "[no stack]": 7_000, "work": 20_000}


def test_addresses_that_nobody_named_are_places_in_their_files(sonde, tmp_path):
    profile = json.loads(json.dumps(FORMS["columns of each thread"]))
    profile["threads"][0]["funcTable"]["name"][1] = 5
    store, _ = imported(sonde, tmp_path, profile)
    assert leaves(store) == {"app+0x20": 20_000_000, "sys_read": 10_000_000}
