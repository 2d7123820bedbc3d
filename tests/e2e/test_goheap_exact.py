# SPDX-License-Identifier: Apache-2.0
"""The profiles that Go's runtime keeps in a process, read from outside, are those that the program itself reports: every
record, its values, its stack, and the names of its frames."""
import collections
import os
import re
import shutil

import pytest

import goheap
from conftest import need_root

DEEPEST = 32  # program counters of a record that the program itself can report


def toolchains():
    """Everyday: the one on the path. SONDE_GO_VERSIONS ("1.15 1.27", all): those of Debian's suites, and every form."""
    if not os.environ.get("SONDE_GO_VERSIONS"):
        return [("go", form) for form in ("plain", "pie-sw", "renamed")]
    return [(version, form) for version in goheap.gomatrix.chosen() for form in goheap.FORMS]


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
        assert collections.Counter((tuple(told_frames(r)) if named else (), *r["values"]) for r in told[profile] if r["values"][1]) == \
            collections.Counter((tuple(read_frames(b)) if named else (), *contention_of(b, kind)) for b in buckets)
