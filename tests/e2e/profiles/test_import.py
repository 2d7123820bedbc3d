# SPDX-License-Identifier: Apache-2.0
"""`sonde import`: what another program's profile holds is what the store says then, by every verb and by plain SQL. Profiles are
sonde's own exports (whose contents other tests compare with go tool pprof), those that Go's runtime wrote, folded stacks, and
the output of perf script, whose lines here are known."""
import collections
import gzip
import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import BIN, BUILD, WORKLOADS, need, segments, sql_all
from test_seal import files, packed, seal

AT = 1795144200
RANGE = ["--from", str(AT - 900), "--to", str(AT + 60)]
PERF = """# captured on: some day
my app   812/815   [001]  1234.500000:   10101010 cpu-clock:pppH:
\t    55d0c0ffee work+0x1c (/usr/bin/app)
\t    55d0c0ff00 main+0x10 (/usr/bin/app)
\t    7f0000001234 [unknown] (/usr/lib/libx.so.6)

my app   812/816   [000]  1234.700000:   10101010 cpu-clock:pppH:
\t    55d0c0fff0 small (inlined)
\t    55d0c0ffee work+0x1c (/usr/bin/app)
\t    55d0c0ff00 main+0x10 (/usr/bin/app)

:-1     7 [000]  1237.600000: 10101010 cpu-clock:
\tffffffff81000000 do_syscall_64+0x12 ([kernel.kallsyms])
\t    55d0c0ff00 operator()(int, char**) (.isra.0)+0x10 (/usr/bin/my (odd) app)

java 900/901 [001] 1238.000000: 10101010 cpu-clock:
\t    7f12aa00 Lfoo/Bar;::run+0x8 (/tmp/perf-900.map)

"""
PERF_STACKS = {
    "libx.so.6+0x7f0000001234;main;work": 1, "main;work;small": 1,
    "operator()(int, char**) (.isra.0);do_syscall_64": 1, "Lfoo/Bar\\x3b::run": 1,
}


def folded(sonde, store, *args):
    done = sonde("export", "folded", "--self", *args, store=store, check=True)
    return collections.Counter({k: int(n) for k, n in (x.rsplit(" ", 1) for x in done.stdout.splitlines())})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    program = os.path.join(BUILD, "tests", "makestore")
    need("build/tests/makestore", program)
    path = str(tmp_path_factory.mktemp("import") / "store")
    subprocess.run([program, path, "--rows", "3000", "--at", str(AT), "--hostile"], check=True, stdout=subprocess.DEVNULL)
    return path


def test_pprof_comes_back_as_it_was(sonde, made, tmp_path):
    sonde("export", "pprof", "--self", *RANGE, "-o", f"{tmp_path}/x.pb.gz", store=made, check=True)
    store = str(tmp_path / "other")
    done = sonde("import", f"{tmp_path}/x.pb.gz", store=store, check=True)
    assert done.stdout == "" and "next:  sonde stacks --from" in done.stderr
    assert folded(sonde, store, *RANGE) == folded(sonde, made, *RANGE)
    def processes(where):
        return {(r["pid"], r["comm"], r["container"]): r["samples"]
                for r in json.loads(sonde("ps", "--self", "-n", 1000, "--json", *RANGE, store=where, check=True).stdout)["rows"]}
    assert processes(store) == processes(made)
    one, two = (sql_all(s, "SELECT sum(samples) AS n, sum(cpu_ns) AS ns FROM cpu_samples")[0] for s in (made, store))
    assert one == two
    for verb in (["timeline"], ["stacks"], ["containers"], ["sql", "@hottest"], ["flame", "-o", f"{tmp_path}/x.html"]):
        assert sonde(*verb, *([] if verb[0] == "sql" else RANGE), store=store).returncode == 0, verb


def test_the_time_of_a_profile_is_kept(sonde, made, tmp_path):
    sonde("export", "pprof", "--self", *RANGE, "-o", f"{tmp_path}/x.pb.gz", store=made, check=True)
    store = str(tmp_path / "other")
    sonde("import", f"{tmp_path}/x.pb.gz", store=store, check=True)
    (was,), (run,) = (sql_all(s, "SELECT * FROM runs") for s in (made, store))
    assert run["family"] == "import" and run["state"] == "ended" and run["period_ns"] == was["period_ns"]
    assert abs(run["from_ns"] - was["from_ns"]) <= run["bucket_s"] * 10**9 + 10**9 and run["bucket_s"] <= 11
    buckets = sql_all(store, "SELECT ts, sum(samples) AS n FROM cpu_samples GROUP BY 1 ORDER BY 1")
    assert 50 <= len(buckets) <= 61


def test_folded_stacks_are_samples_at_the_rate_that_is_given(sonde, made, tmp_path):
    text = sonde("export", "folded", "--self", *RANGE, store=made, check=True).stdout
    (tmp_path / "my work.folded").write_text(text)
    store = str(tmp_path / "other")
    sonde("import", str(tmp_path / "my work.folded"), "--at", AT, "--freq", 200, store=store, check=True)
    assert folded(sonde, store, "--from", AT - 3600, "--to", AT + 60) == folded(sonde, made, *RANGE)
    row = sql_all(store, "SELECT sum(cpu_ns) AS ns, sum(samples) AS n, min(comm) AS comm, max(ts) AS last FROM cpu_samples")[0]
    assert row["ns"] == row["n"] * 5_000_000 and row["comm"] == "my work" and AT - 60 <= row["last"] <= AT


def test_the_output_of_perf_script(sonde, tmp_path):
    (tmp_path / "x.perf").write_text(PERF)
    store = str(tmp_path / "other")
    sonde("import", str(tmp_path / "x.perf"), "--at", AT, store=store, check=True)
    assert folded(sonde, store, *RANGE) == PERF_STACKS
    rows = {(r["pid"], r["comm"]): r for r in json.loads(sonde("ps", "--json", *RANGE, store=store, check=True).stdout)["rows"]}
    assert {k: r["samples"] for k, r in rows.items()} == {(812, "my app"): 2, (7, ":-1"): 1, (900, "java"): 1}
    assert rows[812, "my app"]["cpu_ns"] == 2 * 10101010
    times = sql_all(store, "SELECT ts, pid, thread, tid, module FROM cpu_samples ORDER BY ts, tid")
    assert [(r["ts"] - times[0]["ts"], r["pid"], r["tid"], r["module"]) for r in times] == [
        (0, 812, 815, "app"), (0, 812, 816, "app"), (3, 7, 7, "[kernel]"), (3, 900, 901, "[jit]")]
    assert sql_all(store, "SELECT max(inlined) AS i FROM stack_frames WHERE function = 'small'")[0]["i"] == 1
    gz = tmp_path / "y.perf"
    gz.write_bytes(gzip.compress(PERF.encode()))
    told = json.loads(sonde("diff", str(tmp_path / "x.perf"), str(gz), "--json", check=True).stdout)
    assert told["before"]["samples"] == told["after"]["samples"] == 4


def test_what_is_exported_as_perf_script(sonde, made, tmp_path):
    """By a reader of its own, and back into a store."""
    out = tmp_path / "x.perf"
    done = sonde("export", "perf-script", "--self", *RANGE, store=made, check=True)
    sonde("flame", "--self", *RANGE, "-o", out, store=made, check=True)
    assert out.read_text() == done.stdout
    stacks, pids, last = collections.Counter(), collections.Counter(), 0.0
    for block in done.stdout.split("\n\n"):
        if not block.strip():
            continue
        head, *frames = block.strip("\n").split("\n")
        pid, at, period = re.search(r" (\d+)/\d+ \[000\] (\d+\.\d{6}): (\d+) cpu-clock:$", head).groups()
        assert float(at) >= last and int(period) == 10101010
        last = float(at)
        names = [re.match(r"\t *[0-9a-f]+ (.*) \(([^()]*(?:\([^()]*\)[^()]*)*)\)$", f).groups() for f in frames]
        assert all(names)
        stacks[len(names)] += 1
        pids[int(pid)] += 1
    assert pids == {r["pid"]: r["n"] for r in sql_all(made, "SELECT pid, sum(samples) AS n FROM cpu_samples GROUP BY 1")}
    depths = collections.Counter()
    for stack, n in folded(sonde, made, *RANGE).items():
        depths[len(stack.split(";"))] += n
    assert stacks == depths
    store = str(tmp_path / "other")
    sonde("import", out, "--at", AT, store=store, check=True)
    named = {k: n for k, n in folded(sonde, made, *RANGE).items() if not re.search(r"0x|<|x0|x1|%|\\", k)}
    back = folded(sonde, store, *RANGE)
    assert named and {k: back[k] for k in named} == named and sum(back.values()) == sum(stacks.values())
    for args in (["--type", "alloc"], ["--lines"]):
        assert sonde("export", "perf-script", *args, *RANGE, store=made).returncode == 2


@pytest.mark.parametrize("head, what", [
    ("a b c 12 [000] 5.25: 1 cycles:u:", ("a b c", 12, 12)), ("x 1/2 5.25: cycles:", ("x", 1, 2)), ("x 1/2", ("x", 1, 2)),
    ("x  1/2 [003]", ("x", 1, 2)), ("kworker/0:1-ev 15 [000] 5.250000: 99 cpu-clock:", ("kworker/0:1-ev", 15, 15)),
    ("x 1 5.25:", ("x", 1, 1)),
])
def test_the_fields_of_perf_script_that_may_be_missing(sonde, tmp_path, head, what):
    (tmp_path / "x.perf").write_text(f"{head}\n\t  abcdef main+0x1 (/bin/x)\n\n{head}\n\t  abcdef main+0x1 (/bin/x)\n\n")
    store = str(tmp_path / "other")
    sonde("import", str(tmp_path / "x.perf"), "--at", AT, store=store, check=True)
    rows = sql_all(store, "SELECT comm, pid, tid, sum(samples) AS n, sum(cpu_ns) AS ns FROM cpu_samples")
    assert (rows[0]["comm"], rows[0]["pid"], rows[0]["tid"]) == what and rows[0]["n"] == 2
    assert rows[0]["ns"] == (2 * 99 if "cpu-clock" in head else 2 * (10**9 // 99))


def test_a_heap_profile_has_both_its_kinds(sonde, tmp_path):
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    who = {"pid": 40, "comm": "app", "label": 0}
    lines = [{"run": "goheap", "from": AT - 60, "to": AT, "bucket_s": 10},
             *({**who, "kind": k, "at": AT - 30, "n": n, "value": 1000 * n, "stack": ["main", f]}
               for k, f, n in (("alloc", "keep", 9), ("alloc", "drop", 70), ("inuse", "keep", 7)))]
    store, other = str(tmp_path / "store"), str(tmp_path / "other")
    subprocess.run([program, store], input="\n".join(map(json.dumps, lines)), text=True, check=True)
    sonde("export", "pprof", "--type", "alloc", "-o", f"{tmp_path}/heap.pb.gz", store=store, check=True)
    sonde("import", f"{tmp_path}/heap.pb.gz", "--at", AT, store=other, check=True)
    for kind in ("alloc", "inuse"):
        for unit in ("bytes", "objects"):
            one, two = (folded(sonde, x, "--type", kind, "--unit", unit, *RANGE) for x in (store, other))
            assert one == two and one


GO_KINDS = [  # file, what go tool pprof calls its values, --type, does the file's own default take it?
    ("cpu", "cpu", "cpu", True), ("heap", "inuse_space", "inuse", True), ("heap", "alloc_space", "alloc", False),
    ("allocs", "alloc_space", "alloc", True), ("allocs", "inuse_space", "inuse", False), ("goroutine", "goroutine", "goroutine", True),
    ("threadcreate", "threadcreate", "threadcreate", True), ("block", "delay", "block", True), ("mutex", "delay", "mutex", True),
]


@pytest.fixture(scope="module")
def go_profiles(tmp_path_factory):
    program = os.path.join(WORKLOADS, "profiles-go")
    need("profiles-go (make workloads, with go)", program)
    need("go")
    folder = str(tmp_path_factory.mktemp("profiles"))
    subprocess.run([program, folder], check=True)
    return folder


def oracle(path, index):
    """By function what go tool pprof says is its own, in the smallest unit."""
    unit = {"cpu": "ns", "delay": "ns"}.get(index) or ("B" if index.endswith("space") else "count")
    text = subprocess.run(["go", "tool", "pprof", "-top", "-flat", f"-sample_index={index}", f"-unit={unit}", "-nodecount=1000000",
                           "-nodefraction=0", "-edgefraction=0", path], capture_output=True, text=True, check=True).stdout
    flat = {}
    for line in text.splitlines()[text.splitlines().index(next(x for x in text.splitlines() if x.split()[:2] == ["flat", "flat%"])) + 1:]:
        own, _, _, _, _, name = line.split(None, 5)
        flat[name.removesuffix(" (inline)").removesuffix(" (partial-inline)")] = int(re.match(r"\d+", own)[0])
    return {k: v for k, v in flat.items() if v}


def own(sonde, store, kind):
    rows = json.loads(sonde("stacks", "--type", kind, "--json", "-n", 100000, "--from", "-1h", "--to", "now", store=store, check=True).stdout)["rows"]
    flat = collections.Counter()
    for r in rows:
        flat[r["function"]] += r["self_ns" if kind == "cpu" else "self_value"]
    return {k: v for k, v in flat.items() if v}


@pytest.mark.parametrize("name, index, kind, by_default", GO_KINDS)
def test_each_of_gos_profiles_is_what_go_tool_pprof_says(sonde, go_profiles, tmp_path, name, index, kind, by_default):
    path, store = f"{go_profiles}/{name}.pb.gz", str(tmp_path / "store")
    done = sonde("import", path, *([] if by_default else ["--type", kind]), store=store, check=True)
    assert (f"--type {kind} " in done.stderr) == (kind != "cpu"), done.stderr
    theirs = oracle(path, index)
    if name == "threadcreate":  # pprof leaves out what has no name
        assert sum(own(sonde, store, kind).values()) == int(re.search(r"profile: total (\d+)", open(f"{go_profiles}/{name}.txt").read())[1])
    else:
        assert theirs and own(sonde, store, kind) == theirs
    kinds = {r["type"] for r in sql_all(store, "SELECT DISTINCT type FROM amounts")}
    both = {"alloc", "inuse"} if by_default and name in ("heap", "allocs") else {kind} - {"cpu"}
    assert kinds == both and (kind == "cpu") == bool(sql_all(store, "SELECT count(*) AS n FROM cpu_samples")[0]["n"])


def test_profiles_of_one_moment_stand_beside_each_other(sonde, go_profiles, tmp_path):
    """As a program's /debug/pprof gives them: none hides another, and what is of one file is of one process."""
    store = str(tmp_path / "store")
    for name in ("goroutine", "heap", "mutex", "block", "threadcreate"):
        sonde("import", f"{go_profiles}/{name}.pb.gz", store=store, check=True)
    for name, index, kind, by_default in GO_KINDS:
        if kind != "cpu" and name != "threadcreate" and (by_default or name == "heap") and name != "allocs":
            assert own(sonde, store, kind) == oracle(f"{go_profiles}/{name}.pb.gz", index), kind
    processes = sql_all(store, "SELECT DISTINCT comm, process_id FROM amounts ORDER BY comm")
    assert sorted(r["comm"] for r in processes) == ["block", "goroutine", "heap", "mutex", "threadcreate"]


def test_what_goroutines_do_goes_out_and_comes_back(sonde, go_profiles, tmp_path):
    store = str(tmp_path / "store")
    sonde("import", f"{go_profiles}/goroutine.pb.gz", store=store, check=True)
    assert own(sonde, store, "goroutine")["runtime.gopark"] >= 7
    sonde("export", "pprof", "--type", "goroutine", "--from", "-1h", "-o", f"{tmp_path}/x.pb.gz", store=store, check=True)
    assert oracle(f"{tmp_path}/x.pb.gz", "goroutine") == oracle(f"{go_profiles}/goroutine.pb.gz", "goroutine")
    said = json.loads(sonde("diff", f"{tmp_path}/x.pb.gz", f"{go_profiles}/goroutine.pb.gz", "--json", check=True).stdout)
    assert said["before"]["samples"] == said["after"]["samples"]


def test_old_forms_are_named_with_what_makes_them_new(sonde, go_profiles, tmp_path):
    for name in ("heap", "goroutine", "threadcreate", "block", "mutex"):
        old, new, store = f"{go_profiles}/{name}.txt", str(tmp_path / f"{name}.pb.gz"), str(tmp_path / name)
        done = sonde("import", old, store=store)
        assert done.returncode == 2 and "an old text form of pprof" in done.stderr and not os.path.exists(store)
        fix = re.search(r"fix: (go tool pprof -proto .*?) && ", done.stderr)[1].replace("PROGRAM", f"{WORKLOADS}/profiles-go")
        subprocess.run(fix.replace("new.pb.gz", new), shell=True, check=True, capture_output=True)
        sonde("import", new, *(["--type", name] if name in ("block", "mutex") else []), store=store, check=True)
        assert sql_all(store, "SELECT sum(n) AS n FROM amounts")[0]["n"] > 0
    done = sonde("import", f"{go_profiles}/dump.txt", store=str(tmp_path / "dump"))
    assert done.returncode == 2 and "debug=0" in done.stderr


def test_what_no_store_has_is_refused_with_what_it_is(sonde, go_profiles, tmp_path):
    done = sonde("import", f"{go_profiles}/handles.pb.gz", store=str(tmp_path / "store"))
    assert done.returncode == 2 and "holds example.com/handles (count): a store has no such kind" in done.stderr
    done = sonde("import", f"{go_profiles}/heap.pb.gz", "--type", "cpu", store=str(tmp_path / "store"))
    assert done.returncode == 2 and "it holds alloc_objects (count), alloc_space (bytes), inuse_objects" in done.stderr
    assert not os.path.exists(tmp_path / "store")


def test_profiles_that_go_wrote(sonde, tmp_path):
    need("go")
    base = os.environ.get("GOROOT") or subprocess.run(["go", "env", "GOROOT"], capture_output=True, text=True, check=True).stdout.strip()
    found = [os.path.join(d, f) for d, _, files in os.walk(os.path.join(base, "src")) for f in files if f.endswith((".pprof", ".prof"))]
    if not found:
        pytest.skip("missing: a profile in Go's sources")
    for path in found[:4]:
        store = str(tmp_path / os.path.basename(path))
        done = sonde("import", path, store=store)
        if done.returncode in (2, 4):   # no samples, or an old form: said
            assert done.stderr
            continue
        top = subprocess.run(["go", "tool", "pprof", "-raw", path], capture_output=True, text=True, check=True).stdout
        assert done.returncode == 0 and top and segments(store)


@pytest.mark.parametrize("name, text, code, says", [
    ("x.perf", "x 1 5.0: c:\n\t  abcdef main (/bin/x)\n\t zz main (/bin/x)\n", 2, "does not begin with an address"),
    ("x.perf", "\t  abcdef main (/bin/x)\n", 2, "is not a sample"),
    ("x.perf", "word\n\t  abcdef main (/bin/x)\n", 2, "line 1 is not a sample"),
    ("x.folded", "no number here\n", 2, "line 1"), ("x.folded", "", 4, "holds no samples"),
    ("x.folded", "main;a -3\nmain;b 4\n", 2, "line 1 has a count below 0"), ("x.folded", "main;a 1e3\n", 2, "has a count that is not written as 1500"),
    ("x.pb", "\x0a\x05abc", 2, ""),
])
def test_what_is_no_profile_is_said_and_leaves_nothing(sonde, tmp_path, name, text, code, says):
    (tmp_path / name).write_text(text)
    done = sonde("import", str(tmp_path / name), store=str(tmp_path / "other"))
    assert done.returncode == code and says in done.stderr, done.stderr
    assert not os.path.exists(tmp_path / "other")


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(tag, v):
    return varint(tag << 3) + varint(v) if isinstance(v, int) else varint(tag << 3 | 2) + varint(len(v)) + v


def pprof(path, types, stacks, period=0, seconds=1.0, labels=()):
    """stacks: (leaf function, values); labels: (key, text) of each sample."""
    strings, body = [""], b""

    def text(s):
        if s not in strings:
            strings.append(s)
        return strings.index(s)
    for t, unit in types:
        body += field(1, field(1, text(t)) + field(2, text(unit)))
    for i, (name, values) in enumerate(stacks, 1):
        body += field(5, field(1, i) + field(2, text(name))) + field(4, field(1, i) + field(4, field(1, i)))
        body += field(2, field(1, i) + b"".join(field(2, v) for v in values)
                      + b"".join(field(3, field(1, text(k)) + field(2, text(v))) for k, v in labels))
    body += field(11, field(1, text(types[-1][0])) + field(2, text(types[-1][1]))) + (field(12, period) if period else b"")
    body += field(9, AT * 10**9) + field(10, int(seconds * 1e9)) + b"".join(field(6, s.encode()) for s in strings)
    path.write_bytes(gzip.compress(body))
    return str(path)


NS = [("cpu", "nanoseconds")]


@pytest.mark.parametrize("period, values, unit", [
    (10**7, {"small": 4_000_000, "big": 200_000_000}, 4_000_000), (0, {"alpha": 315_789_468, "beta": 52_631_578}, 52_631_578),
    (10**9, {"a": 1_200_000_000, "b": 90_000_000, "c": 10_000_000}, 10_000_000), (10**7, {"a": 31_234_567, "b": 2_345_678}, 1),
    (10**7, {"a": 300_000_000, "b": 100_000_000}, 10**7),
])
def test_samples_of_any_length_keep_their_sums(sonde, tmp_path, period, values, unit):
    path, store = pprof(tmp_path / "x.pb.gz", NS, [(k, [v]) for k, v in values.items()], period), str(tmp_path / "store")
    said = sonde("import", path, store=store, check=True).stderr
    rows = sql_all(store, "SELECT function, sum(cpu_ns) AS ns, sum(samples) AS n FROM cpu_samples GROUP BY 1")
    assert {r["function"]: r["ns"] for r in rows} == values and {r["ns"] // r["n"] for r in rows} == {unit}
    assert (f"counted in units of {unit} ns" in said) == (unit != period)


@pytest.mark.parametrize("short", [(7,), (7, 20, 3), ()])
def test_a_sample_without_one_value_for_each_type_is_refused(sonde, tmp_path, short):
    pprof(tmp_path / "x.pb", [("samples", "count"), ("cpu", "nanoseconds")], [("a", short), ("b", (3, 20))])
    done = sonde("import", tmp_path / "x.pb", store=str(tmp_path / "store"))
    assert done.returncode == 2 and "more or fewer values than the profile has types" in done.stderr, done.stderr


@pytest.mark.parametrize("seconds, samples, cores", [(1.1, 110, 1.0), (2.002, 176, 0.879), (30, 3000, 1.0), (0.25, 50, 2.0)])
def test_cores_of_short_profiles(sonde, tmp_path, seconds, samples, cores):
    path, store = pprof(tmp_path / "x.pb.gz", NS, [("a", [samples * 10**7])], 10**7, seconds), str(tmp_path / "store")
    assert f"imported {samples} samples" in sonde("import", path, store=store, check=True).stderr.replace(" 000", "000")
    assert abs(json.loads(sonde("stacks", "--json", store=store, check=True).stdout)["cores"] - cores) < 0.005


def test_without_a_range_all_of_an_import_is_answered(sonde, tmp_path):
    (tmp_path / "x.folded").write_text("main;a 100000\nmain;b 78200\n")
    store = str(tmp_path / "store")
    sonde("import", str(tmp_path / "x.folded"), store=store, check=True)
    assert folded(sonde, store) == {"main;a": 100000, "main;b": 78200}


def test_counts_with_fractions(sonde, tmp_path):
    (tmp_path / "x.folded").write_text("a 1.5\nb 2\nc 31.25\n")
    store = str(tmp_path / "store")
    said = sonde("import", str(tmp_path / "x.folded"), "--freq", 100, store=store, check=True).stderr
    assert folded(sonde, store) == {"a": 6, "b": 8, "c": 125} and "units of 1/4" in said
    assert sql_all(store, "SELECT sum(cpu_ns) AS ns FROM cpu_samples")[0]["ns"] == 347_500_000


@pytest.mark.parametrize("kind, other", [("inuse", "alloc"), ("alloc", "inuse")])
def test_one_value_type_of_a_heap(sonde, tmp_path, kind, other):
    path, store = pprof(tmp_path / "x.pb.gz", [(f"{kind}_space", "bytes")], [("a", [5000])], 524288), str(tmp_path / "store")
    said = sonde("import", path, store=store, check=True).stderr
    assert "no number of objects" in said
    assert sql_all(store, "SELECT type, sum(value) AS v FROM amounts GROUP BY 1") == [{"type": kind, "v": 5000}]


def test_labels_of_other_names(sonde, tmp_path):
    labels = [("thread_name", "worker 3"), ("thread_id", "77"), ("process_name", "shop"), ("process_id", "41"), ("colour", "red")]
    path, store = pprof(tmp_path / "x.pb.gz", NS, [("a", [10**7])], 10**7, labels=labels), str(tmp_path / "store")
    sonde("import", path, store=store, check=True)
    row = sql_all(store, "SELECT comm, pid, thread, tid FROM cpu_samples")[0]
    assert row == {"comm": "shop", "pid": 41, "thread": "worker 3", "tid": 77}
    assert sql_all(store, "SELECT labels, value FROM labelled_samples") == [{"labels": '{"colour":"red"}', "value": 10**7}]


def labelled(path, samples):
    """samples: (function, ns, [(key, text or number, unit)])."""
    strings, body, names = [""], b"", []

    def text(s):
        if s not in strings:
            strings.append(s)
        return strings.index(s)
    for name, ns, labels in samples:
        if name not in names:
            names.append(name)
            body += field(5, field(1, len(names)) + field(2, text(name))) + field(4, field(1, len(names)) + field(4, field(1, len(names))))
        body += field(2, field(1, names.index(name) + 1) + field(2, ns) + b"".join(
            field(3, field(1, text(k)) + (field(2, text(v)) if isinstance(v, str) else field(3, v & 2**64 - 1)) + (field(4, text(u)) if u else b""))
            for k, v, u in labels))
    body += field(1, field(1, text("cpu")) + field(2, text("nanoseconds"))) + field(12, 10**7)
    body += field(11, field(1, text("cpu")) + field(2, text("nanoseconds"))) + field(9, AT * 10**9) + field(10, 10**9)
    path.write_bytes(gzip.compress(body + b"".join(field(6, s.encode()) for s in strings)))
    return str(path)


LABELLED = [("alpha", 10**7, [("endpoint", "/a", ""), ("size", 12, "bytes"), ("Thread Name", "w1", ""), ("process.pid", 5, "")]),
            ("alpha", 3 * 10**7, [("endpoint", "/b", ""), ("neg", -5, "")]), ("beta", 2 * 10**7, [("endpoint", "/a", ""), ("tag", "x", ""), ("tag", "y", "")]),
            ("beta", 4 * 10**7, [])]


def test_labels_are_columns_and_filters(sonde, tmp_path):
    path, store = labelled(tmp_path / "x.pb.gz", LABELLED), str(tmp_path / "store")
    sonde("import", path, store=store, check=True)
    rows = sql_all(store, "SELECT labels ->> 'endpoint' AS e, sum(value) AS ns, max(labels ->> 'size') AS size, max(labels ->> 'size_unit') AS unit,"
                   " min(labels ->> 'neg') AS neg, max(labels ->> '$.tag[1]') AS tag FROM labelled_samples GROUP BY 1 ORDER BY 1")
    assert [tuple(r.values()) for r in rows] == [("/a", 3 * 10**7, 12, "bytes", None, "y"), ("/b", 3 * 10**7, None, None, -5, None)]
    for args, stacks in ((["endpoint=/a"], {"alpha": 1, "beta": 2}), (["endpoint"], {"alpha": 4, "beta": 2}), (["!endpoint=/a"], {"alpha": 3, "beta": 4}),
                         (["~^endpoint=/[bc]"], {"alpha": 3}), (["neg=-5", "tag"], {"alpha": 3, "beta": 2})):
        assert folded(sonde, store, "--rec", "last", *[x for a in args for x in ("--label", a)]) == stacks
    assert sonde("export", "folded", "--rec", "last", "--label", "nothing", store=store).returncode == 4
    done = sonde("ps", "--rec", "last", "--label", "endpoint", store=store)
    assert done.returncode == 0 or "--label" in done.stderr


def test_labels_survive_in_an_archive(sonde, tmp_path):
    path, store = labelled(tmp_path / "x.pb.gz", LABELLED), str(tmp_path / "store")
    sonde("import", path, store=store, check=True)
    ask = "SELECT labels, function, thread, sum(n) AS n, sum(value) AS v FROM labelled_samples GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"

    def answers():
        rows = json.loads(sonde("sql", "--json", ask, store=store, check=True).stdout)["rows"]
        stacks = [folded(sonde, store, "--rec", "1", *args) for args in ([], ["--label", "endpoint=/a"], ["--label", "!endpoint"], ["--label", "neg=-5"])]
        sonde("export", "pprof", "--rec", "1", "-o", f"{tmp_path}/out.pb.gz", store=store, check=True)
        again = f"{tmp_path}/again"
        shutil.rmtree(again, ignore_errors=True)
        sonde("import", f"{tmp_path}/out.pb.gz", store=again, check=True)
        return rows, stacks, sql_all(again, "SELECT labels, sum(value) AS v FROM labelled_samples GROUP BY 1 ORDER BY 1")
    before = answers()
    assert len(before[0]) == 3 and before[1][1] == {"alpha": 1, "beta": 2}
    [segment] = files(store)
    shutil.copy(segment, segment.replace(os.path.basename(segment), "20990101T000000Z-0001.db"))  # the newest one is not finished
    assert seal(store)["segments"] == 1 and packed(segment)
    os.remove(files(store)[1])
    assert answers() == before


def test_labels_go_out_as_they_came_in(sonde, tmp_path):
    need("go")
    path, store = labelled(tmp_path / "x.pb.gz", LABELLED), str(tmp_path / "store")
    sonde("import", path, store=store, check=True)
    sonde("export", "pprof", "--rec", "last", "-o", f"{tmp_path}/y.pb.gz", store=store, check=True)

    def tags(p):
        raw = subprocess.run(["go", "tool", "pprof", "-raw", p], capture_output=True, text=True, check=True).stdout
        return sorted(re.findall(r"(?:endpoint|size|neg|tag):\[[^]]*\]", raw))
    assert tags(f"{tmp_path}/y.pb.gz") == tags(path) and len(tags(path)) == 6
    again = str(tmp_path / "again")
    sonde("import", f"{tmp_path}/y.pb.gz", store=again, check=True)
    ask = "SELECT labels, sum(value) AS v FROM labelled_samples GROUP BY 1 ORDER BY 1"
    assert sql_all(again, ask) == sql_all(store, ask)


FRAMES = "\t    1100 spin+0x25 (/bin/x)\n\t    1200 main+0x2 (/bin/x)\n\n"


@pytest.mark.parametrize("text", [
    "x 1 [000] 5.25: 1 cycles: \n" + FRAMES, "x 1 cycles: \n" + FRAMES, "x 1 U      5.25: 1 cycles:P: \n" + FRAMES,
    "x 1 cycles:\n1100 spin (x)\n1200 main (x)\n\n", "  x  1 5.25:   1 cycles:   1100 spin+0x25 (/bin/x)\n",
    "x 1 5.25: 1 cycles: \n\t 1100 spin+0x25 (/bin/x)\n  x.c:7\n\t 1200 main+0x2 (/bin/x)\n  x[1200]\n\n",
    "x 1 5.2: PERF_RECORD_COMM exec: x:1/1\nx 1 5.25: 1 cycles: \n" + FRAMES,
    "x 1 5.25: 1 cycles: \n" + FRAMES + "x 1 5.3: 1 page-faults: \n\t 1300 fault (/bin/x)\n\n" * 9,
])
def test_the_forms_of_perf_script(sonde, tmp_path, text):
    (tmp_path / "x.perf").write_text(text * 3)
    store = str(tmp_path / "store")
    said = sonde("import", str(tmp_path / "x.perf"), "--at", AT, store=store, check=True).stderr
    got = folded(sonde, store)
    assert set(got) <= {"main;spin", "spin"} and sum(got.values()) == 3
    assert ("left out: 27 samples of page-faults" in said) == ("page-faults" in text)
    if "x.c:7" in text:
        assert sql_all(store, "SELECT DISTINCT file, line FROM cpu_samples") == [{"file": "x.c", "line": 7}]


def test_another_event_is_read_where_it_is_named(sonde, tmp_path):
    (tmp_path / "x.perf").write_text("x 1 5.25: 1 cycles:u: \n" + FRAMES + "x 1 5.3: 1 page-faults: \n\t 1300 fault (/bin/x)\n\n" * 9)
    store = str(tmp_path / "store")
    done = sonde("import", str(tmp_path / "x.perf"), "--event", "faults", store=store)
    assert done.returncode == 2 and "its events are cycles (1), page-faults (9)" in done.stderr
    sonde("import", str(tmp_path / "x.perf"), "--event", "page-faults:k", store=store, check=True)
    assert folded(sonde, store) == {"fault": 9}


@pytest.mark.parametrize("head, says", [
    (b"PERFILE2" + bytes(500), "perf script -i"), (b"FLR\0\0\2\0\0", "Java Flight Recorder"), (b"SQLite format 3\0", "--store"),
    (b"\x7fELF\2\1\1\0", "ELF"), (b"PK\3\4", "zip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"<!doctype html>", "HTML"),
])
def test_files_that_are_no_profiles_are_called_what_they_are(sonde, tmp_path, head, says):
    (tmp_path / "perf.data").write_bytes(head)
    done = sonde("import", str(tmp_path / "perf.data"), store=str(tmp_path / "store"))
    assert done.returncode == 2 and says in done.stderr and not os.path.exists(tmp_path / "store")


SHARED = {"frames": [{"name": "main"}, {"name": "work", "file": "a.c", "line": 7}]}
GECKO = {"stackTable": {"prefix": [None, 0], "frame": [0, 1]}, "frameTable": {"func": [0, 1], "line": [None, 7]},
         "funcTable": {"name": [0, 1], "fileName": [None, 2], "resource": [0, -1]}, "resourceTable": {"name": [3], "lib": [0]},
         "stringArray": ["main", "work", "a.c", "libx.so"]}
THREAD = {"name": "T", "processName": "p", "pid": "12", "tid": "13"}


def scope(unit, **more):
    return {"shared": SHARED, "profiles": [{"name": "T", "unit": unit, "startValue": 0, "endValue": 12.5, **more}]}


def gecko(meta, shared, **samples):
    return {"meta": {"interval": 2.0, "startTime": AT * 1000, **meta}, "shared": GECKO if shared else {},
            "threads": [{**THREAD, "samples": {"time": [1, 2, 3], **samples}, **({} if shared else GECKO)}]}


@pytest.mark.parametrize("profile, ns", [
    (scope("milliseconds", type="sampled", samples=[[0, 1], [0], [0, 1]], weights=[1.5, 2, 3]), {"work": 4_500_000, "main": 2_000_000}),
    (scope("microseconds", type="evented", events=[{"type": "O", "frame": 0, "at": 1}, {"type": "O", "frame": 1, "at": 3},
                                                   {"type": "C", "frame": 1, "at": 10}, {"type": "C", "frame": 0, "at": 10}]),
     {"work": 7000, "main": 2000}),
    (scope("none", type="sampled", samples=[[0, 1], [0]], weights=[3, 1]), {"work": 3 * 10**9 // 100, "main": 10**9 // 100}),
    (gecko({"sampleUnits": {"threadCPUDelta": "\u00b5s"}}, False, stack=[1, 0, 1], threadCPUDelta=[0, 900, 1000]), {"work": 1_000_000, "main": 900_000}),
    (gecko({}, True, stack=[1, 0, None], weight=[3, 1, 1]), {"work": 6_000_000, "main": 2_000_000}),
])
def test_profiles_in_json(sonde, tmp_path, profile, ns):
    (tmp_path / "x.json").write_text(json.dumps(profile))
    store = str(tmp_path / "store")
    sonde("import", str(tmp_path / "x.json"), "--freq", 100, store=store, check=True)
    rows = sql_all(store, "SELECT function, thread, tid, pid, sum(cpu_ns) AS ns, max(file) AS file, max(line) AS line FROM cpu_samples GROUP BY 1")
    assert {r["function"]: r["ns"] for r in rows} == ns and {r["thread"] for r in rows} == {"T"}
    assert {(r["file"], r["line"]) for r in rows if r["function"] == "work"} == {("a.c", 7)}
    assert {(r["pid"], r["tid"]) for r in rows} == ({(12, 13)} if "meta" in profile else {(0, 0)})


@pytest.mark.parametrize("text, says", [
    ('{"shared": [', "near end of file"), ('{"a": 1}', "neither speedscope's nor"),
    (json.dumps(scope("none", samples=[[9]], weights=[1])), "not in shared.frames"), (json.dumps(scope("bytes", samples=[[0]], weights=[1])), "--type alloc"),
    (json.dumps(gecko({}, True, stack=[7])), "stack that is not there"), (json.dumps(scope("none", samples=[[0]], weights=[-1])), "negative"),
])
def test_json_that_is_no_profile(sonde, tmp_path, text, says):
    (tmp_path / "x.json").write_text(text)
    done = sonde("import", str(tmp_path / "x.json"), store=str(tmp_path / "store"))
    assert done.returncode == 2 and says in done.stderr and not os.path.exists(tmp_path / "store")


def test_speedscope_comes_back_as_it_was(sonde, made, tmp_path):
    sonde("export", "speedscope", "--self", *RANGE, "-o", f"{tmp_path}/x.json", store=made, check=True)
    store = str(tmp_path / "store")
    sonde("import", f"{tmp_path}/x.json", "--at", AT, store=store, check=True)
    one, two = (sql_all(s, "SELECT sum(samples) AS n, sum(cpu_ns) AS ns FROM cpu_samples")[0] for s in (made, store))
    assert one["ns"] == two["ns"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_a_full_disk_ends_an_import_and_leaves_nothing_of_it(sonde, tmp_path):
    (tmp_path / "small.folded").write_text("main;a 30\n")
    (tmp_path / "large.folded").write_text("".join(f"main;a{i % 173};b{i % 211};f{i} 1\n" for i in range(30000)))
    (tmp_path / "disk").mkdir()
    script = """mount -t tmpfs -o size=3m tmpfs "$1/disk" || exit 77
        "$2" import "$1/small.folded" --store "$1/disk/s" && timeout 20 "$2" import "$1/large.folded" --store "$1/disk/s"; echo $?
        timeout 20 "$2" import "$1/large.folded" --store "$1/disk/new"; echo $?
        "$2" export folded --store "$1/disk/s"; ls "$1/disk" "$1/disk/s" | grep -c 'importing\\|new' """
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", tmp_path, f"{BIN}/sonde"], capture_output=True, text=True)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("cannot mount a file system")
    assert done.stdout.split("\n")[:4] == ["6", "6", "main;a 30", "0"], done.stderr


def test_what_a_killed_import_left_is_removed_by_the_next(sonde, tmp_path):
    (tmp_path / "x.folded").write_text("a 3\n")
    store = tmp_path / "store"
    (store / "importing.abcdef" / "writers").mkdir(parents=True)
    (store / "importing.abcdef" / "20260101T000000Z-0001.db").write_bytes(b"half")
    sonde("import", str(tmp_path / "x.folded"), store=str(store), check=True)
    assert not [n for n in os.listdir(store) if n.startswith("importing.")] and folded(sonde, str(store)) == {"a": 3}


def test_usage_and_a_missing_helper(sonde, tmp_path):
    (tmp_path / "x.folded").write_text("main;work 3\n")
    for args in ([], ["a", "b"], [str(tmp_path / "x.folded"), "--type", "colour"], [str(tmp_path / "x.folded"), "--at", "noonish"],
                 [str(tmp_path / "x.folded"), "--freq", "9999999"]):
        assert sonde("import", *args, store=str(tmp_path / "other")).returncode == 2, args
    assert sonde("import", "/nonexistent", store=str(tmp_path / "other")).returncode == 2
    os.makedirs(tmp_path / "bin")
    shutil.copy(f"{BIN}/sonde", tmp_path / "bin" / "sonde")
    done = subprocess.run([tmp_path / "bin" / "sonde", "import", tmp_path / "x.folded", "--store", tmp_path / "other"],
                          capture_output=True, text=True)
    assert done.returncode == 3 and "sonde-import" in done.stderr


@pytest.mark.parametrize("lines, says", [
    ('{"frame": "x"}', "no run"), ("[1]", "not a JSON object"), ('{"run": "x", "from_ns": 5, "to_ns": 5, "bucket_s": 1}', "to_ns"),
    ('{"run": "x", "from_ns": 0, "to_ns": 5, "bucket_s": 1}\n{"add": "cpu", "process": 3, "times": []}', "process 3 was not defined"),
    ('{"run": "x", "from_ns": 0, "to_ns": 5, "bucket_s": 1}\n{"process": "a"}\n{"add": "cpu", "process": 0, "stack": [9], "times": []}', "frame 9"),
    ('{"run": "x", "from_ns": 0, "to_ns": 5, "bucket_s": 1}\n{"add": "cpu", "process": 0, "times": [1, 2]}', "'times'"),
    ('{"run": "x", "from_ns": 0, "to_ns": 5, "bucket_s": 1}\n{"add": "colour", "process": 0}', "'add'"),
])
def test_the_helper_takes_no_nonsense(tmp_path, lines, says):
    done = subprocess.run([f"{BIN}/sonde-import", "--store", tmp_path / "other"], input=lines, capture_output=True, text=True)
    assert done.returncode == 1 and says in done.stderr


def test_command_lines_of_imported_processes_are_masked(tmp_path):
    """Whatever a reader tells: sonde-import masks as the recorders do."""
    lines = "\n".join(map(json.dumps, [
        {"run": "x", "from_ns": 10**18, "to_ns": 10**18 + 10**9, "bucket_s": 1, "period_ns": 10**7}, {"frame": "main", "module": "app"},
        {"process": "app", "pid": 7, "args": "app --password S3cr3tPassw0rd --user eve https://u:S3cr3tPassw0rd@h/"},
        {"add": "cpu", "process": 0, "thread": "app", "tid": 7, "stack": [0], "times": [10**18, 1, 10**7]}])) + "\n"
    done = subprocess.run([f"{BIN}/sonde-import", "--store", tmp_path / "store"], input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    args = json.loads(subprocess.run([f"{BIN}/sonde", "sql", "--store", tmp_path / "store", "--json", "select args from processes where pid = 7"],
                                     capture_output=True, text=True, check=True).stdout)["rows"][0]["args"]
    assert "S3cr3t" not in args and "--user eve" in args, args
