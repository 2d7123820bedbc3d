# SPDX-License-Identifier: Apache-2.0
"""The profiles that Go's runtime keeps in a process, read from outside, are those that the program itself reports: every
record, its values, its stack, and the names of its frames."""
import collections
import os
import re
import shutil
import subprocess

import pytest

import goheap
from conftest import need_root

DEEPEST = 32  # program counters of a record that the program itself can report


def toolchains():
    """Everyday: the one on the path. With SONDE_GO_MATRIX (make long-goheap) those of Debian's suites, in every form."""
    if not os.environ.get("SONDE_GO_MATRIX"):
        return [("go", form) for form in ("plain", "pie-sw", "renamed")]
    return [(version, form) for version in ["1.19", *goheap.gomatrix.chosen()] for form in goheap.FORMS]


@pytest.fixture
def program(request, scratch):
    need_root()
    version, form = request.param
    if version == "go":
        go = shutil.which("go")
        if not go:
            pytest.skip("missing: go")
        go = os.path.realpath(go)
    elif version == "1.19":
        go = "/usr/lib/go-1.19/bin/go"
    else:
        try:
            go = goheap.gomatrix.toolchain(version)
        except goheap.gomatrix.debian.Gone as e:
            pytest.skip(f"missing: Go {version}: {e}")
    if not os.path.exists(go):
        pytest.skip(f"missing: {go}")
    p = goheap.Program(goheap.build(go, scratch, form), scratch)
    p.form = form
    yield p
    p.end()


def told_memory(records):
    return collections.Counter((tuple(r["pcs"][:DEEPEST]), tuple(r["values"])) for r in records if any(r["values"]))


def read_memory(buckets):
    """What was allocated since the program wrote its report is not published yet."""
    return collections.Counter((tuple(b["pcs"][:DEEPEST]), published(b)) for b in buckets if b["kind"] == 1 and any(published(b)))


def published(b):
    return tuple(b["published"])


def told_frames(record):
    return [(f["name"], os.path.basename(f["file"]), f["line"]) for f in record["frames"]][:DEEPEST]


def read_frames(bucket):
    """As runtime.CallersFrames tells them: types of generic functions are left out, and the wrappers of defer and go."""
    return [(re.sub(r"\[.*\]", "[...]", name), os.path.basename(file), line) for name, file, line in bucket["frames"]
            if not re.search(r"\.(defer|go)wrap[0-9]+$", name)][:DEEPEST]


def contention_of(record, kind):
    """Count, at least 1 in a block profile, and ticks; the runtime's own locks go on being recorded, as nothing."""
    return (max(1, int(record["count"])) if kind == 2 else int(record["count"]), record["ticks"])


def is_runtimes(frames):
    return all(name.startswith("runtime.") for name, *_ in frames)


@pytest.mark.parametrize("program", toolchains(), ids="-".join, indirect=True)
def test_every_record_is_the_programs_own(program):
    told, read = program.told(), program.read()
    assert read["states"] == [0, 0, 0, 0], read["text"]
    assert not read["dropped"]
    memory = [b for b in read["buckets"] if b["kind"] == 1]
    assert len(told["memory"]) > 50
    assert told_memory(told["memory"]) == read_memory(memory)
    assert read["rate"] == (told["rate"] if program.form != "renamed" else -1)

    names = {tuple(b["pcs"][:DEEPEST]): read_frames(b) for b in memory}
    wrong = [(told_frames(r), names[tuple(r["pcs"])]) for r in told["memory"]
             if any(r["values"]) and told_frames(r)[:len(r["pcs"])] != names[tuple(r["pcs"])]]
    assert not wrong, wrong[0]

    for kind, profile in ((2, "block"), (3, "mutex")):
        buckets = [b for b in read["buckets"] if b["kind"] == kind and b["ticks"]]
        named = program.form != "renamed"  # else wrappers cannot be told from other functions
        assert told[profile]
        # of the runtime's own locks there may be more by the second reading
        mine = collections.Counter((tuple(told_frames(r)) if named else (), *r["values"]) for r in told[profile]
                                   if r["values"][1] and not (named and is_runtimes(told_frames(r))))
        ours = collections.Counter((tuple(read_frames(b)) if named else (), *contention_of(b, kind)) for b in buckets
                                   if not (named and is_runtimes(read_frames(b))))
        assert mine == ours or (not named and len(mine - ours) + len(ours - mine) <= 4), (mine, ours)
        assert mine or profile == "mutex"
    if program.form != "renamed":
        assert read["ticks_per_second"] == told["ticks_per_second"]


# ---- with the Go on the path ----

@pytest.fixture
def started(scratch):
    """started(OPTIONS...) -> the program, in its plain form."""
    need_root()
    go = shutil.which("go")
    if not go:
        pytest.skip("missing: go")
    running = []

    def start(*options):
        running.append(goheap.Program(goheap.build(os.path.realpath(go), scratch, "plain"), scratch, *options))
        return running[-1]
    yield start
    for p in running:
        p.end()


def resident_kb(process):
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))


@pytest.mark.long  # a program that has not ended its first collection yet has fresh ones
def test_ten_thousand_known_buckets_cost_few_calls_and_no_memory(started):
    program = started("-sites", "10000", "-rate", "1")
    reader = program.reading(QUIET="1")
    first = program.read(reader)
    assert first["counts"][0] >= 10000 and first["fresh"] == sum(first["counts"])
    steady = [program.read(reader) for _ in range(5)]
    before = resident_kb(reader)
    steady += [program.read(reader) for _ in range(20)]
    assert resident_kb(reader) <= before + 64
    reader.stdin.close()
    reader.wait(timeout=120)
    assert all(s["fresh"] == 0 and s["dropped"] == 0 and s["reads"] <= 32 for s in steady)
    assert min(s["cpu_ms"] for s in steady) <= 10  # the least: others use this machine too


def test_a_new_report_is_read_with_its_new_buckets(started):
    program = started("-sites", "10")
    program.read()
    program.ask("again")
    told, read = program.told(), program.read()
    assert told_memory(told["memory"]) == read_memory(read["buckets"])


@pytest.mark.long
def test_a_program_that_allocates_and_collects_all_the_time_is_read_soundly(started):
    program = started("-sites", "200", "-rate", "512")
    program.ask("churn")
    reader = program.reading(NO_FRAMES="1")
    before = {}
    dropped = told = 0
    for _ in range(25):
        read = program.read(reader)
        assert read["states"][0] == 0 and read["states"][1] == 0, read["text"]
        now = {b["index"]: published(b) for b in read["buckets"] if b["kind"] == 1}
        assert all(frees <= allocs and freed <= allocated for allocs, frees, allocated, freed in now.values())
        assert all(before[i] <= now[i] and before[i][1] <= now[i][1] for i in before.keys() & now.keys())
        before.update(now)
        dropped += read["dropped"]
        told += len(now)
    reader.stdin.close()
    reader.wait(timeout=120)
    assert dropped <= told * 0.01


def test_a_program_that_is_killed_while_it_is_read_is_gone(started):
    program = started("-sites", "1000", "-rate", "1")
    program.ask("churn")
    program.read()
    program.process.kill()
    program.process.wait(timeout=120)
    read = program.read()
    assert read["states"][0] == 6 and not read["buckets"] and read["text"] == "it ended, or became another program"


QUIET = """package main
import ("bufio"; "fmt"; "os")
var kept [][]byte
func main() {
	for i := 0; i < 100; i++ { kept = append(kept, make([]byte, 1 << 20)) }
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadString('\\n')
}
"""


def test_a_program_whose_profiling_the_linker_left_out_is_told_as_off(scratch):
    need_root()
    if not shutil.which("go"):
        pytest.skip("missing: go")
    path = os.path.join(scratch, "quiet")
    with open(path + ".go", "w", encoding="utf-8") as f:
        f.write(QUIET)
    go = os.path.realpath(shutil.which("go"))
    subprocess.run([go, "build", "-o", path, path + ".go"], env=goheap.environment(go, scratch, "plain"), cwd=scratch, check=True)
    program = goheap.Program(path, scratch)
    read = program.read()
    program.end()
    assert read["rate"] == 0 and read["states"][:2] == [0, 2] and len(read["buckets"]) < 10
    assert read["text"] == "memory profiling is off in this program (MemProfileRate is 0)"
