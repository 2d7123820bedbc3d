# SPDX-License-Identifier: Apache-2.0
"""Each kind of value and each setting of a family has all the words that programs print of it."""
import re

import pytest

from conftest import families, text

KINDS = re.findall(r"^\t(STORE_KIND_\w+) = \d+", text("schema/store/model/kinds.h"), re.M)
ENTRIES = dict(re.findall(r"^\t\[(STORE_KIND_\w+)\] = \{(.*?)\},\n(?=\t\[|\};)", text("schema/store/model/kinds.c"), re.M | re.S))
WORDS = re.compile(r'"[^"]+",\s*\{"[^"]+", "[^"]+", "[^"]+"\}')  # what it is; used, began to use, used before


def test_each_kind_has_an_entry():
    assert KINDS and sorted(ENTRIES) == sorted(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_all_its_words(kind):
    assert WORDS.search(ENTRIES[kind]), f"{kind}: what it is, and how `sonde explain` puts it, in kinds.c"


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_of_a_family_that_there_is(kind):
    family = re.search(r'\.family = "(\w+)"', ENTRIES[kind])
    assert not family or family[1] in families()


def test_a_family_s_setting_says_what_it_is_and_what_it_takes():
    code = text("schema/families/families.c")
    settings = re.findall(r'\{\{"([a-z-]+)"(.*?)\}', code, re.S)
    assert settings
    for name, rest in settings:
        for field in ("fallback", "like", "help"):
            assert re.search(rf'\.{field} = "', rest), f"{name}: .{field}"
