# SPDX-License-Identifier: Apache-2.0
"""docs/THREATS.md: each test that a claim names is there."""
import glob
import os
import re

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def text_of(pattern):
    return "".join(open(path, encoding="utf-8").read() for path in glob.glob(f"{ROOT}/{pattern}", recursive=True))


with open(f"{ROOT}/docs/THREATS.md", encoding="utf-8") as f:
    NAMED = sorted(set(re.findall(r"`(test_\w+::test_\w+|\w+: \w+)`", f.read())))


def test_claims_name_tests():
    assert len(NAMED) > 30


@pytest.mark.parametrize("name", NAMED)
def test_the_test_of_a_claim_is_there(name):
    if "::" in name:
        module, function = name.split("::")
        found = re.search(rf"^def {function}\(", text_of(f"tests/**/{module}.py"), re.M)
    else:
        binary, function = name.split(": ")
        found = re.search(rf"^[A-Z]*_?TEST(_WITH)?\(\s*{function}\b", text_of(f"tests/unit/**/{binary.split('_')[-1]}_test.c"), re.M)
    assert found, f"docs/THREATS.md names {name}, which is not there"
