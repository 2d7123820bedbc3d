# SPDX-License-Identifier: Apache-2.0
"""The test files of Pyroscope's converters and of its reader of JFR (Go modules), and what speedscope ships as its example (npm; FlameGraph's own folded
stacks): each is imported with the sums that their own tests, `go tool pprof` or `jfr` say, or refused by a true sentence. What `perf script` prints in each
of its forms is imported with the sums that inferno's collapse-perf (crates) has. Nothing of them is kept here."""
import collections
import glob
import gzip
import json
import math
import os
import re
import shutil
import subprocess
import tarfile

import pytest
from conftest import BUILD, WORKLOADS, need, need_root, sql_all
from test_import_corpus import VALUES, sums
from test_import_java import counted

PYROSCOPE, READER, SPEEDSCOPE, INFERNO = "github.com/pyroscope-io/pyroscope@v0.37.2", "github.com/pyroscope-io/jfr-parser@v0.6.0", "speedscope@1.25.0", "0.12.8"
# of JavaScript's profilers: `space` is of what is in use
OTHER_NAMES = {"inuse": ["space/bytes", "objects/count"]}


def module(folder, name):
    need("go")
    with open(f"{folder}/go.mod", "w", encoding="utf-8") as f:
        f.write("module x\n\ngo 1.21\n")
    done = subprocess.run(["go", "mod", "download", "-json", name], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"missing: {name} by Go's module proxy")
    return json.loads(done.stdout)["Dir"]


@pytest.fixture(scope="module")
def pyroscope(tmp_path_factory):
    return module(tmp_path_factory.mktemp("pyroscope"), PYROSCOPE)


def folded_of(text):
    """{stack: sum} of folded stacks."""
    out = collections.Counter()
    for line in text.splitlines():
        stack, n = line.rsplit(" ", 1)
        out[stack] += int(n)
    return out


def exported(sonde, store, *args):
    """CPU as samples, all else in its unit."""
    done = sonde("export", "folded", "--self", "--rec", "last", *args, store=store, check=True)
    return folded_of(done.stdout)


def by_leaf(store, what, where="1"):
    table = "cpu_samples" if what in ("samples", "cpu_ns") else "amounts"
    return collections.Counter({r["f"]: r["n"] for r in sql_all(store, f"SELECT function AS f, sum({what}) AS n FROM {table} WHERE {where} GROUP BY 1")})


def leaves(stacks):
    out = collections.Counter()
    for stack, n in stacks.items():
        out[stack.rsplit(";", 1)[-1] or "[no stack]"] += n
    return out


def wrong_sums(sonde, path, store, out):
    """Of each value type that go tool pprof reads: (type, its sum, ours) where they differ."""
    theirs, wrong, compared = sums(path), [], 0
    done = sonde("import", path, store=store)
    if "may be alloc (memory allocated) or inuse (memory in use), and it does not say which" in done.stderr:
        done = sonde("import", path, "--type", "inuse", store=store)
    if done.returncode:
        return [] if done.returncode == 4 and not any(theirs.values()) else [(path, done.stderr)]
    for kind in VALUES:
        types = [t for t in VALUES[kind] + OTHER_NAMES.get(kind, []) if t in theirs]
        if not types or sonde("export", "pprof", "--self", "--type", kind, "--rec", "last", "-o", out, store=store).returncode:
            continue
        ours = sums(out)
        for t in types:
            mine = ours.get(t, ours.get({"space/bytes": "inuse_space/bytes", "objects/count": "inuse_objects/count",
                                         "wall/microseconds": "wall/nanoseconds"}.get(t)))
            if t == "wall/microseconds" and "wall/nanoseconds" in ours:
                mine = ours["wall/nanoseconds"] // 1000
            compared += 1
            wrong += [(path, t, theirs[t], mine)] if mine != theirs[t] else []
    if set(theirs) in ({"samples/count"}, {"/samples"}):
        compared += 1
        samples = sum(by_leaf(store, "samples").values())
        wrong += [(path, theirs, samples)] if samples != sum(theirs.values()) else []
    return wrong or ([] if compared or not any(theirs.values()) else [(path, "nothing was compared", theirs, done.stderr)])


@pytest.mark.long
def test_pprof_of_pyroscopes_converters_is_imported_with_equal_sums(sonde, pyroscope, tmp_path):
    found = [p for p in glob.glob(f"{pyroscope}/pkg/**/testdata/*", recursive=True) if re.search(r"\.(pprof|pb|pb\.gz)$", p)]
    wrong = []
    for i, path in enumerate(sorted(found)):
        wrong += wrong_sums(sonde, path, str(tmp_path / str(i)), f"{tmp_path}/{i}.pb.gz")
    print(f"{len(found)} files of pprof")
    assert len(found) >= 10 and not wrong, wrong


def by_speedscopes_schema(path):
    """{stack: sum} by the published schema, of all profiles of the file."""
    with open(path, encoding="utf-8") as f:
        file = json.load(f)
    names, out = [frame["name"] for frame in file["shared"]["frames"]], collections.Counter()
    for p in file["profiles"]:
        scale = {"none": 1, "nanoseconds": 1, "microseconds": 10**3, "milliseconds": 10**6, "seconds": 10**9, "bytes": 1}[p["unit"]]
        if p["type"] == "sampled":
            for stack, weight in zip(p["samples"], p["weights"]):
                out[";".join(names[i] for i in stack)] += weight * scale
            continue
        stack, last = [], p["startValue"]
        for e in p["events"]:
            if stack:
                out[";".join(names[i] for i in stack)] += (e["at"] - last) * scale
            last = e["at"]
            stack = stack + [e["frame"]] if e["type"] == "O" else stack[:-1]
    return +out


@pytest.mark.long
def test_speedscopes_files_of_pyroscopes_converters_are_imported_with_equal_sums(sonde, pyroscope, tmp_path):
    found = sorted(glob.glob(f"{pyroscope}/pkg/convert/speedscope/testdata/*.json"))
    assert len(found) >= 2
    for i, path in enumerate(found):
        store, theirs = str(tmp_path / str(i)), by_speedscopes_schema(path)
        sonde("import", path, store=store, check=True)
        assert set(exported(sonde, store)) == set(theirs), path
        assert by_leaf(store, "samples" if "simple" in path else "cpu_ns") == leaves(theirs), path


@pytest.mark.long
def test_jfr_of_pyroscopes_converters_has_the_stacks_that_its_own_tests_expect(sonde, pyroscope, tmp_path):
    folder, store = f"{pyroscope}/pkg/server/testdata/jfr/no_labels", str(tmp_path / "store")

    def expected(*names):
        out = collections.Counter()
        for name in names:
            with open(f"{folder}/jfr-{name}.txt", encoding="utf-8") as f:
                out += folded_of(f.read().replace("/", "."))
        return out
    sonde("import", f"{folder}/jfr.bin.gz", store=store, check=True)
    assert by_leaf(store, "n", "type = 'wallclock'") == leaves(expected("wall"))
    assert set(exported(sonde, store, "--type", "wallclock")) == set(expected("wall"))
    assert by_leaf(store, "n", "type = 'alloc'") == leaves(expected("alloc_in_new_tlab_objects", "alloc_outside_tlab_objects"))
    assert exported(sonde, store, "--type", "alloc") == expected("alloc_in_new_tlab_bytes", "alloc_outside_tlab_bytes")
    locks = sql_all(store, "SELECT sum(n) AS n FROM amounts WHERE type IN ('mutex', 'block')")[0]["n"]
    assert locks == sum(expected("lock_count").values())


@pytest.mark.long
def test_jfr_of_pyroscopes_reader_has_the_events_that_jfr_counts(sonde, tmp_path):
    need("jfr")
    [packed] = glob.glob(module(tmp_path, READER) + "/parser/testdata/*.jfr.gz")
    path, store = f"{tmp_path}/example.jfr", str(tmp_path / "store")
    with gzip.open(packed) as a, open(path, "wb") as b:
        shutil.copyfileobj(a, b)
    theirs = counted(path)
    sonde("import", packed, store=store, check=True)
    ours = {r["type"]: r["n"] for r in sql_all(store, "SELECT type, sum(n) AS n FROM amounts GROUP BY 1")}
    samples = sql_all(store, "SELECT sum(samples) AS n FROM cpu_samples")[0]["n"] or ours.get("wallclock", 0)
    print(theirs)
    assert samples == theirs.get("jdk.ExecutionSample", 0) + theirs.get("jdk.NativeMethodSample", 0) * (ours.get("wallclock", 0) > 0), (theirs, ours)
    assert ours.get("mutex", 0) == theirs.get("jdk.JavaMonitorEnter", 0)
    assert ours.get("block", 0) == sum(theirs.get(f"jdk.{n}", 0) for n in ("ThreadPark", "JavaMonitorWait", "ThreadSleep"))


@pytest.mark.long
def test_flamegraphs_folded_stacks_that_speedscope_ships_come_back_without_their_marks(sonde, tmp_path):
    """_[k] after a name says that it is the kernel's."""
    need("npm")
    if subprocess.run(["npm", "pack", "--silent", SPEEDSCOPE], cwd=tmp_path, capture_output=True).returncode:
        pytest.skip(f"missing: {SPEEDSCOPE} by npm")
    with tarfile.open(glob.glob(f"{tmp_path}/*.tgz")[0]) as t:
        names = [n for n in t.getnames() if re.search(r"collapsed.*\.txt$", n)]
        text = t.extractfile(names[0]).read().decode()
    (tmp_path / "x.txt").write_text(text)
    store = str(tmp_path / "store")
    sonde("import", tmp_path / "x.txt", store=store, check=True)
    assert exported(sonde, store) == folded_of(re.sub(r"_\[[kij]\](?=[; ])", "", text))


# --- perf script, beside inferno's collapse-perf ---

@pytest.fixture(scope="module")
def collapse():
    need("cargo")
    root = os.path.join(BUILD, "inferno")
    program = os.path.join(root, "bin", "inferno-collapse-perf")
    if not os.path.exists(program) and subprocess.run(["nice", "cargo", "install", "--quiet", "--root", root, "inferno", "--version", INFERNO, "--no-default-features",
                                                       "--features", "cli"], capture_output=True).returncode:
        pytest.skip(f"missing: inferno {INFERNO} by crates.io")
    return lambda text: subprocess.run([program], input=text, capture_output=True, check=True).stdout.decode()


RECORDED = {"threads": ["-g"], "dwarf": ["--call-graph", "dwarf,4096"], "kernel and user": ["-g", "-e", "cpu-clock"]}
# what people and their scripts ask perf script for
PRINTED = [[], ["--header"], ["-F", "comm,pid,tid,time,event,ip,sym,dso"], ["-F", "+cpu"], ["-F", "+period"], ["-F", "+srcline"], ["-F", "-time"], ["--show-task-events"],
           ["--no-inline"], ["-F", "comm,pid,tid,cpu,time,period,event,ip,sym,dso,symoff"], ["-F", "comm,tid,time,event,ip,sym,dso"], ["--ns"]]


@pytest.mark.long
@pytest.mark.parametrize("how", RECORDED)
def test_each_form_of_perf_script_has_the_sums_of_infernos_collapse_perf(sonde, collapse, tmp_path, how):
    need_root()
    need("perf")
    data = f"{tmp_path}/perf.data"
    burn = os.path.join(WORKLOADS, "burn")
    need("burn (make workloads)", burn)
    subprocess.run(["perf", "record", "-F", "199", "-o", data, *RECORDED[how], "--", burn, "700", "3", "x"], check=True, capture_output=True)
    compared = 0
    for i, form in enumerate(PRINTED):
        done = subprocess.run(["perf", "script", "-i", data, *form], capture_output=True, check=False)
        if done.returncode or not done.stdout.strip():
            continue
        (tmp_path / f"{i}.perf").write_bytes(done.stdout)
        store = str(tmp_path / str(i))
        theirs = folded_of(collapse(done.stdout))
        each = math.gcd(*theirs.values())  # it counts periods where the text has them, which are all the same here
        theirs = {stack: n // (each if each > 1_000_000 else 1) for stack, n in theirs.items()}
        sonde("import", tmp_path / f"{i}.perf", store=store, check=True)
        ours = by_leaf(store, "samples")
        assert sum(ours.values()) == sum(theirs.values()), (form, ours)
        assert ours["burn_leaf"] == leaves(theirs)["burn_leaf"] > 50, form
        compared += 1
    print(f"{how}: {compared} forms")
    assert compared >= 8
