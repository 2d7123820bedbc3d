# SPDX-License-Identifier: Apache-2.0
"""Time by source line: what the workload says of its lines is what `sonde lines`, SQL, pprof and folded stacks show."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

import pytest

from conftest import ROOT, WORKLOADS, Capture, Work, about, need, need_root, scale, sql_all

PROGRAMS = {"C": "hotlines", "C++": "hotlines-cpp", "Go": "hotlines-go"}
SOURCE = os.path.join(ROOT, "tests", "workloads", "hotlines.c")


@pytest.fixture(scope="module")
def recorded():
    """Both programs once with their indexes already made: {language: what it told}, the store."""
    need_root()
    base = tempfile.mkdtemp(prefix="sonde-test-")
    store = os.path.join(base, "store")
    there = {lang: name for lang, name in PROGRAMS.items() if os.path.exists(os.path.join(WORKLOADS, name))}
    warm = Capture(store, "--freq", "997").start()
    for name in there.values():
        Work(name, 1).told()
    warm.stop()
    for path in [f for f in os.listdir(store) if ".db" in f]:
        os.unlink(os.path.join(store, path))
    c = Capture(store, "--freq", "1997").start()
    told = {}
    for pair in (("C", "C++"), ("Go",)):  # there are two CPUs
        works = {lang: Work(there[lang], scale(2, 30)) for lang in pair if lang in there}
        told.update({lang: w.told() for lang, w in works.items()})
    c.stop()
    yield told, store
    c.close()
    warm.close()
    shutil.rmtree(base, ignore_errors=True)


def lines_of(sonde, store, told, function, *args):
    """{line: (self, total) share of the function} as `sonde lines --json` has it."""
    done = sonde("lines", rf"^(main\.)?{function}(\(|$)", "--json", "--pid", told["pid"], *args, store=store, check=True)
    rows = [r for r in json.loads(done.stdout)["rows"] if r["line"]]
    assert all(r["file"] in (SOURCE, SOURCE[:-2] + ".go") for r in rows), rows
    assert all(r["function"].split("(")[0].split(".")[-1] == function for r in rows)
    return {r["line"]: r for r in rows}


@pytest.mark.long
@pytest.mark.parametrize("language", PROGRAMS)
def test_shares_of_lines_are_what_the_workload_did(sonde, recorded, language):
    all_, store = recorded
    told = all_.get(language) or pytest.skip(f"missing: workload {PROGRAMS[language]}")
    for function in ("hot", "outer", "step", "nano"):
        seen = lines_of(sonde, store, told, function)
        samples = sum(r["total_samples"] for r in seen.values())
        for line, share in told[function].items():
            assert seen[int(line)]["total_share"] == about(share, samples), (function, line, seen)
        rest = sum(r["total_share"] for line, r in seen.items() if str(line) not in told[function])
        assert rest < 0.02, (function, seen)
    outer = lines_of(sonde, store, told, "outer")
    call, own = map(int, told["outer"])
    assert outer[call]["self_share"] < 0.01, "the time at the call is the inlined function's"
    assert outer[own]["self_share"] == about(0.5, outer[call]["total_samples"] + outer[own]["total_samples"])
    assert lines_of(sonde, store, told, "nano")[int(list(told["nano"])[0])]["inlined"]


def test_the_text_stands_beside_the_numbers(sonde, recorded):
    told, store = recorded[0]["C"], recorded[1]
    text = open(SOURCE, encoding="utf-8").read().splitlines()
    done = sonde("lines", "hot", "--pid", told["pid"], "--wide", store=store, check=True)
    for line in told["hot"]:
        n = int(line)
        row = next(r for r in done.stdout.splitlines() if re.search(rf"\s{n}  ", r) and "%" in r)
        assert text[n - 1].strip() in row
    assert text[int(list(told["hot"])[0]) - 3].strip() in done.stdout, "the lines around it too"
    assert "SELF" in done.stdout and "hotlines" in done.stdout.splitlines()[0]


def test_the_source_is_found_where_it_was_moved(sonde, recorded, scratch):
    told, store = recorded[0]["C"], recorded[1]
    os.makedirs(os.path.join(scratch, "workloads"))
    with open(os.path.join(scratch, "workloads", "hotlines.c"), "w", encoding="utf-8") as f:
        f.write("".join(f"moved line {n}\n" for n in range(1, 60)))
    line = int(list(told["hot"])[0])
    for where in (scratch, f"{ROOT}/tests={scratch}"):
        rows = lines_of(sonde, store, told, "hot", "--source-dir", where)
        assert rows[line]["text"] == f"moved line {line}"


def test_sql_has_file_and_line_of_leaves_and_of_callers(recorded):
    told, store = recorded[0]["C"], recorded[1]
    rows = sql_all(store, "SELECT function, file, line, sum(samples) AS n FROM cpu_samples WHERE pid = ? GROUP BY 1, 2, 3",
                   (told["pid"],))
    total = sum(r["n"] for r in rows)
    for line, share in told["hot"].items():
        n = sum(r["n"] for r in rows if (r["function"], r["file"], r["line"]) == ("hot", SOURCE, int(line)))
        whole = told["turns"]["hot"] / sum(told["turns"].values())
        assert n / total == about(share * whole, total)
    chains = sql_all(store, "SELECT DISTINCT k.folded FROM cpu_samples c JOIN stacks k ON k.id = c.stack_id "
                            "WHERE c.pid = ? AND c.function = 'nano'", (told["pid"],))
    assert chains and all(c["folded"].endswith("outer;step;nano") for c in chains)
    frames = sql_all(store, "SELECT DISTINCT f.function, f.line, f.inlined FROM stack_frames f JOIN cpu_samples c "
                            "ON c.stack_id = f.stack_id WHERE c.pid = ? AND c.function = 'nano' "
                            "AND f.function IN ('outer', 'step', 'nano')", (told["pid"],))
    assert {(f["function"], f["line"], f["inlined"]) for f in frames} == {
        ("outer", int(list(told["outer"])[0]), 0), ("step", int(list(told["step"])[0]), 1),
        ("nano", int(list(told["nano"])[0]), 1)}


def test_folded_stacks_by_line_and_without_inlined_functions(sonde, recorded):
    told, store = recorded[0]["C"], recorded[1]
    pid = ("--pid", told["pid"])
    by_line = sonde("export", "folded", "--lines", *pid, store=store, check=True).stdout
    (hot70, hot30), nano = map(int, told["hot"]), int(list(told["nano"])[0])
    counts = {line: sum(int(r.rsplit(" ", 1)[1]) for r in by_line.splitlines() if f";hot (hotlines.c:{line}) " in r)
              for line in (hot70, hot30)}
    assert counts[hot70] / sum(counts.values()) == about(0.7, sum(counts.values()))
    assert f"nano (hotlines.c:{nano}) " in by_line
    plain = sonde("export", "folded", "--no-inline", *pid, store=store, check=True).stdout
    assert not re.search(r";(nano|step)[; ]", plain) and ";outer " in plain  # the kernel has a step_into
    samples = [sum(int(r.rsplit(" ", 1)[1]) for r in t.splitlines()) for t in (by_line, plain)]
    assert samples[0] == samples[1]
    assert "nano (inlined)" in sonde("stacks", *pid, store=store, check=True).stdout
    assert "inlined" not in sonde("stacks", "--no-inline", *pid, store=store, check=True).stdout


@pytest.fixture(scope="module")
def pprof(sonde, recorded, tmp_path_factory):
    need("go")
    path = str(tmp_path_factory.mktemp("p") / "cpu.pb.gz")
    sonde("export", "pprof", "--pid", recorded[0]["C"]["pid"], "-o", path, store=recorded[1], check=True)

    def ask(*args):
        done = subprocess.run(["go", "tool", "pprof", *args, path], capture_output=True, text=True, timeout=110,
                              env=dict(os.environ, PPROF_TMPDIR=os.path.dirname(path)))
        assert done.returncode == 0, done.stderr
        return done.stdout
    return ask


def test_go_tool_pprof_lists_the_lines(recorded, pprof):
    told = recorded[0]["C"]
    out = pprof("-sample_index=samples", "-list", "^hot$")
    rows = {int(m[3]): int(m[1]) for m in re.finditer(r"^ +(\d+) +(\d+) +(\d+):", out, re.M)}
    assert sum(rows.values()) > 100
    for line, share in told["hot"].items():
        assert rows[int(line)] / sum(rows.values()) == about(share, sum(rows.values())), out
    assert "SPIN(x, turns / 10 * 7)" in out, "it found the text by our file name"


def test_go_tool_pprof_has_inlined_functions_of_one_location(recorded, pprof):
    told = recorded[0]["C"]
    top = pprof("-sample_index=samples", "-lines", "-top")
    assert re.search(rf"nano .*hotlines\.c:{list(told['nano'])[0]} \(inline\)", top), top
    assert re.search(rf"step .*hotlines\.c:{list(told['step'])[0]} \(inline\)", top), top
    raw = pprof("-raw")
    chain = rf"nano {SOURCE}:{list(told['nano'])[0]}:0 s=0\s+step {SOURCE}:{list(told['step'])[0]}:0 s=0\s+outer {SOURCE}:"
    assert re.search(chain, raw), raw[-3000:]
    assert re.search(r"/hotlines .*\[FN\]", raw), raw[-1500:]


def test_what_has_no_lines_is_said_with_the_way_to_get_them(sonde, recorded):
    told, store = recorded[0]["C"], recorded[1]
    near = sonde("lines", "outre", "--pid", told["pid"], store=store)
    assert near.returncode == 4 and "did you mean 'outer'" in near.stderr
    kernel = sql_all(store, "SELECT function FROM frames WHERE module = '[kernel]' AND named LIMIT 1")
    done = sonde("lines", kernel[0]["function"], store=store)
    assert done.returncode == 4 and "for kernel functions" in done.stderr and "fix:" in done.stderr
    libc = sonde("lines", "^__libc_start_call_main$", "--pid", told["pid"], store=store)
    if libc.returncode == 4: # libc6-dbg is not installed
        assert "no debug information" in libc.stderr and "sonde symbolize" in libc.stderr
    assert sonde("lines", store=store).returncode == 2
    assert sonde("lines", "a", "b", store=store).returncode == 2
    assert sonde("lines", "hot", "--context", "x", store=store).returncode == 2


def seen_of(store, pid):
    return sql_all(store, "SELECT function, line, sum(samples) AS n FROM cpu_samples WHERE pid = ? GROUP BY 1, 2", (pid,))


def has_lines(rows, told):
    own = {(r["function"], r["line"]) for r in rows}
    return own >= {*(("hot", int(line)) for line in told["hot"]), ("nano", int(list(told["nano"])[0]))}


def test_lines_that_take_long_to_read_reach_what_was_recorded_before(scratch, store):
    """A program with much debug information, met for the first time: its lines come while it is recorded, and reach the
    samples taken before."""
    need_root()
    need("objcopy")
    program, strings = os.path.join(scratch, "large"), os.path.join(scratch, "strings")
    shutil.copy(os.path.join(WORKLOADS, "hotlines"), program)
    subprocess.run(["objcopy", "-O", "binary", "--only-section=.debug_str", "--set-section-flags", ".debug_str=alloc", program,
                    strings], check=True)
    with open(strings, "ab") as f:
        f.write(b"x" * 3000000 + b"\0")
    subprocess.run(["objcopy", "--update-section", f".debug_str={strings}", program], check=True)
    told = {"turns": {"outer": 0}}  # a busy host may leave so short a run no turn of one kind, whose lines it knows nothing of then
    while not told["turns"]["outer"]:
        told = json.loads(subprocess.run([program, "0.1"], capture_output=True, text=True, check=True).stdout)
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    build_id, images = notes.split("Build ID: ")[1].split()[0], os.path.join(store, "images")
    c = Capture(store, "--freq", "499", "--comm", "large").start()  # a busy host's dictionary may begin anew meanwhile
    child = subprocess.Popen([program, "120"], stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 100
        while sum(name.startswith(build_id) for name in os.listdir(images)) < 2:  # without lines, then with them
            assert time.monotonic() < end and c.pump(0.1), c.said()
        while not has_lines(seen_of(store, child.pid), told):  # they are written by batches
            assert time.monotonic() < end and c.pump(0.1), c.said()
        child.kill()
        c.stop()
    finally:
        child.kill()
        child.wait()
        c.close()
    rows = seen_of(store, child.pid)
    assert has_lines(rows, told), rows
    assert sum(r["n"] for r in rows if r["function"] == "hot" and not r["line"]) == 0, rows
