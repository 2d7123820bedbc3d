# SPDX-License-Identifier: Apache-2.0
"""Docs that agree with the programs; install puts things where they belong."""
import glob
import os
import re
import shutil

import pytest

from conftest import BUILD, ROOT, program, run, text, tracked

FILES = tracked()
MAN = [f for f in FILES if re.match(r"docs/man/.+\.[1-8]$", f)]


def verbs():
    out = run(program("sonde"), "help")
    assert out.returncode == 0, out.stderr
    return re.findall(r"^  ([a-z]{2,12})  +\S", out.stdout, re.M)


def test_the_tool_has_the_verbs_of_this_release():
    assert {"doctor", "record", "flame", "stacks", "export", "sql", "status", "version", "help"} <= set(verbs())


def test_schema_md_names_every_table_and_view():
    names = set()
    for path in sorted(f for f in FILES if re.match(r"schema/sql/\d{4}-.+\.sql$", f)):
        names -= set(re.findall(r"^DROP (?:TABLE|VIEW) (\w+)", text(path), re.M))
        names |= set(re.findall(r"^CREATE (?:TABLE|VIEW) (?:IF NOT EXISTS )?(\w+)", text(path), re.M))
    doc = text("docs/SCHEMA.md")
    assert names
    assert not [n for n in names if not re.search(rf"\b{n}\b", doc)]


@pytest.mark.parametrize("name", ["processes", "containers", "functions", "stacks", "stack_frames", "cpu_samples",
                                  "functions_top", "loss", "cost", "runs", "amounts", "kinds"])
def test_each_view_has_a_query_in_schema_md(name):
    blocks = re.findall(r"^```sql\n(.*?)^```", text("docs/SCHEMA.md"), re.M | re.S)
    assert any(re.search(rf"\b(from|join)\s+{name}\b", b, re.I) for b in blocks)


def test_every_verb_is_in_the_man_pages_and_the_guide():
    pages = "\n".join(text(f) for f in MAN)
    readme = text("README.md") + text("docs/GUIDE.md")
    for verb in set(verbs()) - {"help", "version"}:
        assert re.search(rf"\b{verb}\b", pages), f"no man page tells of {verb}"
        assert re.search(rf"\bsonde {verb}\b", readme), f"neither README.md nor docs/GUIDE.md uses {verb}"


@pytest.mark.parametrize("path", MAN)
def test_a_man_page_is_clean(path):
    if not shutil.which("mandoc"):
        pytest.skip("missing: mandoc")
    said = [line for line in run("mandoc", "-T", "lint", "-W", "warning", path).stdout.splitlines()
            if "referenced manual not found" not in line]
    assert not said
    shown = re.sub(".\x08", "", run("mandoc", "-T", "utf8", path).stdout)
    assert not re.search(r"\b(?:[A-Z]+)?(?:Cm|Ar|Fl|Ns|Op|Oo|Oc|Ic|Xr|Pq)(?= )", shown), "a macro's name is in the text"


def test_what_the_pages_have_from_the_tables_is_what_the_tables_say():
    done = run("/usr/bin/python3", "scripts/manpages.py")
    assert done.returncode == 0, f"make man:\n{done.stdout}{done.stderr}"


def test_every_program_verb_file_and_format_has_a_man_page():
    for page in [f"sonde-{v}.1" for v in verbs()] + ["sonde.conf.5", "sonde-schema.7"]:
        assert f"docs/man/{page}" in MAN
    for name in [os.path.basename(p) for p in glob.glob(f"{BUILD}/bin/sonde*")]:
        assert [f for f in MAN if re.search(rf"/{name}\.[18]$", f)], name


def test_the_pages_of_sonded_have_every_key_of_its_configuration():
    page, described = text("docs/man/sonded.8"), text("docs/man/sonde.conf.5")
    keys = re.findall(r"^(\S+) +=", run(f"{BUILD}/bin/sonded", "--show-config").stdout, re.M)
    assert len(keys) > 10
    for key in keys:
        assert f".Op Fl -{key} " in page, key
        assert f".It Cm {key}\n" in described and f".Ev SONDE_{key.upper().replace('-', '_')} .\n" in described, key


@pytest.mark.parametrize("doc", [f for f in FILES if f.endswith(".md")])
def test_links_between_documents_lead_somewhere(doc):
    here = os.path.dirname(os.path.join(ROOT, doc))
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text(doc)):
        if "://" not in target:
            assert os.path.exists(os.path.join(here, target)), f"{doc}: {target}"


def test_the_readme_has_its_two_command_lines():
    assert len(text("README.md").splitlines()) <= 130
    for n in (1, 2):
        done = run("sh", "scripts/readme-line.sh", str(n))
        assert done.returncode == 0 and len(done.stdout.strip().splitlines()) == 1
    assert "@" + "OUTPUT@" not in text("README.md")


def test_commands_in_the_docs_exist():
    known, targets = set(verbs()), set()
    for doc in ("README.md", "docs/GUIDE.md", "docs/ARCHITECTURE.md", "CONTRIBUTING.md"):
        for verb in re.findall(r"`(?:sudo )?(?:build/bin/)?sonde ([a-z]+)\b", text(doc)):
            assert verb in known, f"{doc}: sonde {verb}"
        for script in re.findall(r"`?(?:sh |\./)?((?:scripts|tests)/[\w/.-]+\.(?:sh|py))`?", text(doc)):
            assert os.path.exists(os.path.join(ROOT, script)), f"{doc}: {script}"
        targets |= set(re.findall(r"`make ([a-z-]+)[` ]", text(doc)))
    done = run("make", "-n", *sorted(targets), "DESTDIR=/nonexistent")
    assert done.returncode == 0, f"one of {targets}\n{done.stderr}"


def test_install_and_uninstall(tmp_path):
    done = run("make", "-s", "install", f"DESTDIR={tmp_path}", "PREFIX=/usr", f"B={os.path.relpath(BUILD, ROOT)}")
    assert done.returncode == 0, done.stderr
    for path in ("usr/bin/sonde", "usr/libexec/sonde/sonde-cpu", "usr/libexec/sonde/sonde-maps",
                 "usr/libexec/sonde/sonde-index", "usr/lib/sonde/sonde.so", "usr/share/man/man1/sonde.1"):
        assert (tmp_path / path).is_file(), path
    assert run(str(tmp_path / "usr/bin/sonde"), "version").returncode == 0
    done = run("make", "-s", "uninstall", f"DESTDIR={tmp_path}", "PREFIX=/usr", f"B={os.path.relpath(BUILD, ROOT)}")
    assert done.returncode == 0, done.stderr
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


@pytest.mark.parametrize("note", [f for f in FILES if re.match(r"docs/decisions/(old/)?\d{4}-.+\.md$", f)])
def test_a_decision_says_its_status_and_stands_in_the_table(note):
    lines = text(note).splitlines()
    old = "/old/" in note
    assert re.match(rf"# {os.path.basename(note)[:4]}: \S", lines[0])
    assert re.match(r"status: superseded by \[\d{4}\]" if old else r"status: accepted(; .*)?$", lines[2]), lines[2]
    assert f"]({note.removeprefix('docs/decisions/')})" in text("docs/decisions/README.md")


def test_the_tours_breakpoints_are_functions_of_its_programs():
    """gdb knows a function that was inlined everywhere by no symbol of its own."""
    first, second = text("docs/TOUR.md").split("build/bin/sonde flame")[0:2]
    for part, name in ((first, "sonde-cpu"), (second.split("\n    gdb")[0], "sonde")):
        there = set(re.findall(r" [TU] (\w+)", run("nm", program(name)).stdout))
        stops = re.findall(r"tbreak (\w+)", part)
        assert len(stops) > 2 and not set(stops) - there, name


def test_make_help_names_targets_that_there_are():
    lines = re.findall(r"^make (\S.*?)(?:  |$)", run("make", "-s", "help").stdout, re.M)
    targets = {t for line in lines for t in re.split(r",? +", line) if re.fullmatch(r"[a-z][a-z_.-]+", t)}
    assert len(targets) > 15
    done = run("make", "-n", *sorted(targets), "DESTDIR=/nonexistent")
    assert done.returncode == 0, done.stderr
