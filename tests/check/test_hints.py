# SPDX-License-Identifier: Apache-2.0
"""Hints can be typed: what a fix, a "next:" or the README names are verbs and options that there are, and none of the programs
that are installed in libexec, where no $PATH leads."""
import json
import os
import re

import pytest

from conftest import BUILD, program, run, text, tracked

SOURCES = [f for f in tracked() if re.match(r"(tools|schema|supervisor|loaders)/.+\.[ch]$", f)]
LITERAL = r'"(?:[^"\\]|\\.)*"'
# for whoever starts sonde-maps by its path
BY_HAND = {"sonde-maps --print, or --socket PATH", "start it: sonde-maps --socket %s"}


@pytest.fixture(scope="module")
def options():
    """By verb the names of its options."""
    verbs = json.loads(run(program("sonde"), "help", "--json").stdout)["rows"]
    tables = ("options", "json", "store", "range", "filters", "common")
    return {v["verb"]: {n for t in tables for o in v[t] for n in (f"--{o['name']}", f"-{o['letter']}" if o["letter"] else "")} for v in verbs}


def strings(code):
    return "".join(x[1:-1] for x in re.findall(LITERAL, code)).replace('\\"', '"')


def fixes():
    """(file, what err_fix or a check is given), with the literals of one argument put together."""
    for path in SOURCES:
        code = text(path)
        for call in re.finditer(r"\berr_fix\((?:[^;\"]|" + LITERAL + r")*;", code):
            for part in re.findall(rf"(?:{LITERAL}\s*(?:PRI\w+\s*)?)+", call[0]):
                yield path, strings(part)
        for call in re.finditer(r"CHECK_(?:FAIL|WARN),\s*((?:" + LITERAL + r"\s*)+),", code):
            yield path, strings(call[1])
        for literal in re.findall(LITERAL, code):
            if re.search(r"(^|[ \"])(next|fix|try): ", literal):
                yield path, strings(literal)


def commands(hint):
    """(verb, its words) of each command of sonde in a hint."""
    for part in re.split(r"    +|\s\(|\)|; |, |&&|\|", hint):
        for found in re.finditer(r"(?:^|[ ('`$])sonde ([a-z%][a-z-]*)((?: [^ ]+)*)", part):
            yield found[1], found[2].split()


def wrong(hint, options):
    for verb, words in commands(hint):
        if verb.startswith("%"):
            continue
        if verb not in options:
            return f"there is no verb {verb}"
        for word in words:
            word = word.split("=")[0].rstrip(":,.'\"`")
            if word == "--":
                break
            if re.match(r"--?[a-z]", word) and word not in options[verb] and not word.startswith("--vs-"):
                return f"sonde {verb} has no option {word}"
    return None


HINTS = sorted(set(fixes()))


def test_there_are_hints_to_look_at():
    assert len(HINTS) > 80


@pytest.mark.parametrize("path, hint", HINTS)
def test_what_a_hint_names_is_there(path, hint, options):
    assert not wrong(hint, options), f"{path}: {hint}"
    assert hint in BY_HAND or not re.search(r"\bsonde-(?!%)[a-z]+\b|\bsonded --", hint), f"{path}: nobody can type {hint}"
    assert not re.search(r"sudo sonde-", hint), f"{path}: {hint}"


@pytest.mark.parametrize("hint, why", [("sonde stakcs -n 3", "no verb stakcs"), ("sudo sonde record --durations 3", "no option --durations"),
                                       ("sonde stacks -n 30", None), ("sudo A=b sonde symbolize --debuginfod    sonde status -x", "no option -x")])
def test_a_wrong_hint_would_be_found(hint, why, options):
    said = wrong(hint, options)
    assert said is None if why is None else why in said


@pytest.mark.parametrize("line", [x for x in (text("README.md") + text("docs/GUIDE.md")).splitlines() if re.search(r"`[^`]*sonde[ -]", x)])
def test_what_the_readme_types_is_there(line, options):
    for code in re.findall(r"`([^`]+)`", line):
        typed = code.replace("build/bin/sonde", "sonde")
        assert not wrong(typed, options), code
        first = re.match(r"(?:sudo )?(?:build/bin/)?(sonde-[a-z]+|sonded)", code)
        assert not first or not os.path.exists(f"{BUILD}/bin/{first[1]}"), f"{code} is in libexec once installed"


def test_every_example_of_every_verb_is_there(options):
    for verb in json.loads(run(program("sonde"), "help", "--json").stdout)["rows"]:
        for example in verb["examples"]:
            assert not wrong(example, options), example
