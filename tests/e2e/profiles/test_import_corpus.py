# SPDX-License-Identifier: Apache-2.0
"""The public test files of google/pprof (its module, by Go's proxy) and of Go itself: each that `go tool pprof` reads is imported with equal sums
of each of its values, or refused by a sentence that is true. Nothing of them is kept here."""
import glob
import json
import os
import re
import subprocess

import pytest
from conftest import need

# value types by the kind that they are stored as
VALUES = {"cpu": ["cpu/nanoseconds"], "wallclock": ["wall/nanoseconds", "wall/microseconds"], "alloc": ["alloc_space/bytes", "alloc_objects/count"],
          "inuse": ["inuse_space/bytes", "inuse_objects/count"], "mutex": ["contentions/count", "delay/nanoseconds"],
          "block": ["contentions/count", "delay/nanoseconds"], "goroutine": ["goroutine/count"], "threadcreate": ["threadcreate/count"]}
TRUE = (r"is a profile in an old (text|binary) form of pprof", r"a store has no such kind of value", r"which may be (mutex|block) ",
        r"it has negative values: it is a difference of profiles", r"holds no samples")


def sums(path):
    """By value type, as `go tool pprof -raw` lists the samples; None: it does not read the file."""
    done = subprocess.run(["go", "tool", "pprof", "-symbolize=none", "-raw", path], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    if done.returncode or "Samples:" not in lines:
        return None
    at = lines.index("Samples:")
    types = [t.replace("[dflt]", "") for t in lines[at + 1].split()]
    out = [0] * len(types)
    for line in lines[at + 2:lines.index("Locations")]:
        m = re.match(r"\s+(-?\d+(?:\s+-?\d+)*):(?: |$)", line)
        if m and len(m[1].split()) == len(types):
            out = [a + int(b) for a, b in zip(out, m[1].split())]
    return dict(zip(types, out))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    need("go")
    folder = str(tmp_path_factory.mktemp("corpus"))
    with open(f"{folder}/go.mod", "w", encoding="utf-8") as f:
        f.write("module x\n\ngo 1.21\n")
    done = subprocess.run(["go", "mod", "download", "-json", "github.com/google/pprof@latest"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("missing: github.com/google/pprof by Go's module proxy")
    root = json.loads(done.stdout)["Dir"]
    found = [p for p in glob.glob(f"{root}/**/testdata/*", recursive=True) if os.path.isfile(p)]
    goroot = subprocess.run(["go", "env", "GOROOT"], capture_output=True, text=True, check=True).stdout.strip()
    return sorted(found + glob.glob(f"{goroot}/src/**/*.pprof", recursive=True))


@pytest.mark.long
def test_what_go_tool_pprof_reads_is_imported_or_truly_refused(sonde, files, tmp_path):
    read, wrong = 0, []
    for i, path in enumerate(files):
        theirs = sums(path)
        if not theirs:
            continue
        read += 1
        store = str(tmp_path / str(i))
        done = sonde("import", path, store=store)
        if done.returncode:
            if not any(re.search(t, done.stderr) for t in TRUE):
                wrong.append((path, done.stderr))
            continue
        for kind, types in VALUES.items():
            out = f"{tmp_path}/{i}-{kind}.pb.gz"
            if not set(types) & set(theirs) or sonde("export", "pprof", "--self", "--type", kind, "--rec", "last", "-o", out, store=store).returncode:
                continue
            ours = sums(out)
            wrong += [(path, t, theirs[t], ours.get(t)) for t in types if t in theirs and ours.get(t) != theirs[t]]
    print(f"{read} files that go tool pprof reads")
    assert read >= 20 and not wrong, wrong


@pytest.mark.long
def test_old_forms_that_go_made_new_are_imported_with_equal_sums(sonde, files, tmp_path):
    made = 0
    for i, path in enumerate(files):
        new, store = f"{tmp_path}/{i}.pb.gz", str(tmp_path / str(i))
        if "old" not in sonde("import", path, store=store).stderr:
            continue
        if subprocess.run(["go", "tool", "pprof", "-symbolize=none", "-proto", "-output", new, path], capture_output=True).returncode:
            continue
        theirs = sums(new)
        for kind in VALUES:
            done = sonde("import", new, "--type", kind, store=store + kind)
            if done.returncode:
                assert done.returncode in (2, 4), done.stderr
                continue
            made += 1
            out = f"{tmp_path}/{i}-{kind}.pb.gz"
            sonde("export", "pprof", "--self", "--type", kind, "--rec", "last", "-o", out, store=store + kind, check=True)
            ours, value = sums(out), VALUES[kind][-1 if kind in ("mutex", "block") else 0]
            if value in theirs:
                assert ours[value] == theirs[value], (path, kind)
    assert made >= 5
