# SPDX-License-Identifier: Apache-2.0
"""Paths that documents and comments name exist; folders stay small; a README lists all of its folder's files or none."""
import collections
import glob
import os
import re

import pytest

from conftest import ROOT, text, tracked
from test_rooms import TOOLS
from words import COMMENT

FILES = tracked()
FOLDERS = {f[:m.start()] for f in FILES for m in re.finditer("/", f)}
TOP = "loaders|schema|tools|tests|probes|supervisor|serve|export|docs|scripts|packaging"
PATH = re.compile(rf"(?<![\w./$@{{}}-])(?:{TOP})/[\w./*{{}},<>-]*[\w*}}>/]")
# a family or file that the reader is to make, and what stands for many
PLACEHOLDER = re.compile(r"/(?:x|NAME|FOLDER|NNNN|VERB)(?:_test)?\b|/<")
# other people's trees, and programs below build/
ELSEWHERE = {"docs/native-protocol", "tools/gen-postmortem-metadata.py", "tools/perf/Documentation/jitdump-specification.txt",
             "tests/putstore", "tests/makepage", "tests/goheap_read", "tools/sonde"}
DEMO = "tests/demo/"  # lies as it goes into the tree: its paths hold there
FOLDER_MAX = 30
SOURCE = (".c", ".h", ".js", ".py", ".sh", ".go", ".rs", ".css", ".java", ".rb", ".php", ".sql")
# one file a protocol; data that tests compare with or send; one file a query or migration
MANY = ("loaders/lib/protocols", "tests/unit/loaders/lib/protocols", "tests/e2e/golden", "tests/e2e/captures", "docs", "schema/sql")


def prose(path):
    """(offset, piece) of what people read in a file: a document whole, of code the comments."""
    whole = text(path)
    if path.endswith(".md"):
        return [(0, whole)]
    if path.endswith((".c", ".h")):
        return [(m.start(1), m.group(1)) for m in COMMENT.finditer(whole) if m.group(1)]
    if path.endswith((".py", ".sh", ".mk")) or path.endswith("Makefile"):
        return [(m.start(), m.group(0)) for m in re.finditer(r"^\s*#.*", whole, re.M)]
    return []


def exists(name):
    name = name.rstrip("/")
    if name in FOLDERS or name in ELSEWHERE or os.path.isfile(os.path.join(ROOT, name)):
        return True
    if any(c in name for c in "*{"):
        names = [name]
        while any("{" in n for n in names):  # {a,b} as the shell has it
            names = [re.sub(r"\{[^{}]*\}", part, n, count=1) for n in names
                     for part in (re.search(r"\{([^{}]*)\}", n) or [0, ""])[1].split(",")]
        return all(glob.glob(os.path.join(ROOT, n)) for n in names)
    if re.fullmatch(r"docs/decisions/\d{4}", name):
        return bool(glob.glob(os.path.join(ROOT, name + "-*.md")))
    return any(f"{name}{end}" in FILES for end in (".c", ".h", ".bpf.c", ".bpf.h"))


def test_nothing_that_a_run_made_is_in_the_tree():
    stray = {f for f in FILES if f.split("/")[0].startswith("-") or f.endswith((".db", ".db-wal", ".sndb", "/lock"))}
    assert not stray


def test_paths_that_prose_names_exist():
    wrong = []
    for path, at, piece in [(f, at, piece) for f in FILES for at, piece in prose(f)]:
        for m in PATH.finditer(piece):
            name = m.group(0)
            if not exists(name) and not PLACEHOLDER.search(name) and not (path.startswith(DEMO) and exists(DEMO + name)):
                wrong.append(f"{path}:{text(path).count(chr(10), 0, at + m.start()) + 1}: {name}")
    assert not wrong


def test_a_path_that_is_not_there_would_be_found():
    assert exists("schema/store/files/*.c") and exists("docs/decisions/0190") and exists("schema/base/{err,log}.c")
    assert not exists("schema/store/nothing.c") and not exists("schema/base/{err,nothing}.c") and not exists("docs/decisions/9999")


def test_no_folder_holds_more_files_than_a_reader_can_survey():
    count = collections.Counter(os.path.dirname(f) for f in FILES if f.endswith(SOURCE))
    full = {d: n for d, n in count.items() if n > FOLDER_MAX and not any(d == m or d.startswith(m + "/") for m in MANY)}
    assert not full, f"more than {FOLDER_MAX} source files: these are several rooms"


# rooms whose README still names most of its files and not all: the list only becomes shorter
@pytest.mark.parametrize("readme", [f for f in FILES if f.endswith("/README.md")])
def test_a_readme_lists_all_files_of_its_folder_or_none(readme):
    """A list is a table or bullets that begin with files; naming some in a sentence is none."""
    room = os.path.dirname(readme)
    nouns = {os.path.basename(f).split(".")[0] for f in FILES if os.path.dirname(f) == room and f.endswith(SOURCE)} - {"main"}
    page = text(readme)
    rows = "\n".join(re.findall(r"^(?:\| *|[-*] )`[^|:]*", page, re.M))
    listed, named = ({n for n in nouns if re.search(rf"`(?:[\w/]*/)?{re.escape(n)}(?:\.\w+)*`", where)} for where in (rows, page))
    assert len(listed) < 3 or named == nouns, f"{readme} lists files, but not {sorted(nouns - named)}"


def test_the_table_of_the_query_tools_rooms_is_the_order_that_is_held():
    assert re.findall(r"^\| `(\w+)` \|", text("tools/README.md"), re.M) == TOOLS
