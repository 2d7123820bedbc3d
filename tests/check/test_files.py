# SPDX-License-Identifier: Apache-2.0
"""What every tracked file must be."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT, run, text, tracked

FILES = tracked()
CODE = [f for f in FILES if f.endswith((".c", ".h", ".cc", ".py", ".rs", ".go", ".sh", ".sql", ".js", ".css", ".proto"))]
LINES_MAX = 960


@pytest.mark.parametrize("path", CODE)
def test_a_source_file_begins_with_its_licence(path):
    found = re.search(r"SPDX-License-Identifier: (.+?)\s*(\*/)?$", "\n".join(text(path).splitlines()[:4]), re.M)
    assert found, f"{path}: no SPDX line"
    expected = "GPL-2.0-only OR BSD-2-Clause" if path.startswith(("probes/", "tests/demo/probes/")) or ".bpf." in path else "Apache-2.0"
    assert found.group(1) == expected, path


def test_every_licence_that_is_named_is_there():
    for name in ("Apache-2.0", "GPL-2.0-only", "BSD-2-Clause"):
        assert len(text(f"LICENSES/{name}.txt")) > 500


def test_no_file_of_code_is_too_long():
    long = {f: n for f in CODE if (n := text(f).count("\n")) > LINES_MAX}
    assert not long, f"more than {LINES_MAX} lines: split them"


def test_a_unit_test_that_is_skipped_says_what_is_missing():
    bare = [f for f in FILES if f.startswith("tests/unit/") and f.endswith(".c") and re.search(r"\bskip\(\)", text(f))]
    assert not bare, "write skip_missing(\"what is missing\") of tests/unit/missing.h"


def test_each_file_that_a_fuzzer_says_it_covers_is_read_and_exists():
    sys.path.insert(0, os.path.join(ROOT, "tests/fuzz"))
    import run as fuzz  # noqa: PLC0415
    for path in [f for f in FILES if f.startswith("tests/fuzz/") and f.endswith("_fuzz.c")]:
        head = " ".join(re.findall(r"covers:.*?\*/", text(path), re.S))
        named = re.findall(r"[\w./-]+/[\w.-]+\.[ch]\b", head)
        read = fuzz.covers(os.path.basename(path)[:-2])
        assert sorted(read) == sorted(named), f"{path}: write `covers: FILE FILE...`"
        assert all(os.path.isfile(os.path.join(ROOT, f)) for f in read), path


def test_every_room_says_what_it_owns():
    rooms = {os.path.dirname(f) for f in FILES if f.endswith((".c", ".sql")) and not f.startswith("tests/")}
    rooms |= {"tests", "tests/e2e", "tests/workloads", "tests/check", "tests/bench", "tests/fuzz", "tests/kernels", "docs/decisions", "scripts"}
    missing = sorted(r for r in rooms if f"{r}/README.md" not in FILES)
    assert not missing


def package_hosts():
    """The hosts that this machine takes packages from, and its proxies: nobody else's business."""
    hosts = set()
    lists = [os.path.join(d, f) for d, _, names in os.walk("/etc/apt") for f in names if f.endswith((".list", ".sources"))]
    for path in lists:
        with open(path, errors="replace") as f:
            hosts |= set(re.findall(r"https?://([^/\s:]+)", f.read()))
    for name, value in os.environ.items():
        if re.search(r"proxy|index_url|registry", name, re.I):
            hosts |= set(re.findall(r"https?://(?:[^@/\s]+@)?([^/\s:]+)", value))
    return {h for h in hosts if h not in ("localhost", "127.0.0.1")}


def test_no_path_of_one_machine_and_no_package_host_is_committed():
    here = r"(?<![\w$}])" + re.escape(ROOT) + r"\b"
    words = [re.escape(h) for h in package_hosts()] + [r"/home/(?!user)\w+/", r"(?<![\w}])/root/\w", here]
    pattern = re.compile("|".join(words))
    found = [(f, m.group(0)) for f in FILES if f != "tests/check/test_files.py" and not f.startswith("LICENSES/")
             for m in [pattern.search(text(f))] if m]
    assert not found


def test_nothing_is_left_for_later():
    """A thing is finished or left out. (The marks are put together here so that this file is not one.)"""
    marks = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b(?!X)")
    found = [(f, m.group(0)) for f in CODE for m in [marks.search(text(f))] if m and not f.startswith("tests/check/")]
    assert not found


def test_migrations_are_numbered_without_a_gap():
    names = sorted(os.path.basename(f) for f in FILES if re.match(r"schema/sql/\d{4}-.+\.sql$", f))
    assert names and [int(n[:4]) for n in names] == list(range(19, 19 + len(names)))  # 1 to 18 were before the first release


def test_a_released_migration_is_never_edited():
    git = ["git", "-c", f"safe.directory={ROOT}"]
    tags = run(*git, "tag", "--list", "v*").stdout.split()
    if not tags:
        pytest.skip("missing: a release (no tag v* yet)")
    for tag in tags:
        for path in run(*git, "ls-tree", "-r", "--name-only", tag, "schema/sql").stdout.splitlines():
            if path.endswith(".sql"):
                old = subprocess.run([*git, "show", f"{tag}:{path}"], cwd=ROOT, capture_output=True, check=True).stdout
                assert old.decode() == text(path), f"{path} differs from {tag}"


def test_every_table_and_column_has_a_comment():
    for path in [f for f in FILES if re.match(r"schema/sql/\d{4}-.+\.sql$", f)]:
        inside = False
        for n, line in enumerate(text(path).splitlines(), 1):
            if line.startswith("CREATE TABLE"):
                inside = True
                assert "--" in line, f"{path}:{n}: {line}"
            elif line.startswith(")"):
                inside = False
            elif inside and re.match(r"\s+(?!id )[a-z_]+ (INTEGER|TEXT|BLOB|REAL|ANY)", line):
                assert "--" in line, f"{path}:{n}: {line}"


def test_scripts_are_sound_shell():
    for path in [f for f in FILES if f.endswith(".sh") or f == ".ci/run"]:
        shell = "bash" if "bash" in text(path).splitlines()[0] else "sh"
        done = run(shell, "-n", path)
        assert done.returncode == 0, done.stderr


def test_c_is_as_the_formatter_writes_it():
    """Lines of at most 100 columns, but strings and tables between `clang-format off` and `on`."""
    if not shutil.which("clang-format") or " 14." not in run("clang-format", "--version").stdout:
        pytest.skip("missing: clang-format 14 (Debian 12's)")
    files = [f for f in FILES if f.endswith((".c", ".h"))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(lambda some: run("clang-format", "--dry-run", "--Werror", "--style=file", *some), [files[i::20] for i in range(20)]))
    wrong = sorted({m for d in done for m in re.findall(r"^(\S+?):\d+:\d+: error", d.stderr, re.M)})
    assert not wrong, "clang-format -i --style=file FILE... mends it (scripts/pre-commit does so before each commit)"
