# SPDX-License-Identifier: Apache-2.0
"""The page prints durations and sizes as schema/base/units.c does: by the cases of its unit test."""
import json
import re
import shutil
import subprocess

import pytest

from conftest import ROOT, text

NAMES = {"S": 10**9, "MIN": 60 * 10**9, "H": 3600 * 10**9, "INT64_MAX": 2**63 - 1, "UINT64_MAX": 2**64 - 1}


def cases(test):
    body = text("tests/unit/schema/base/units_test.c").split(f"TEST({test})", 1)[1].split("\n}\n", 1)[0]
    found = re.findall(r'\{(.+?),\s*"([^"]+)"\}', body)
    return [(eval(re.sub(r"(?<=\d)u?ll\b", "", number), {}, NAMES), said) for number, said in found]


@pytest.mark.skipif(not shutil.which("node"), reason="missing: node")
@pytest.mark.parametrize("function, test", [("formatTime", "durations_have_three_digits_or_two_units"), ("formatBytes", "sizes_have_three_digits")])
def test_the_page_says_numbers_as_the_programs_do(function, test):
    known = cases(test)
    assert len(known) > 5
    script = text("tools/page/script/format.js") + f"\nconsole.log(JSON.stringify({json.dumps([n for n, _ in known])}.map({function})))"
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert [s.replace("\u00b5s", "us") for s in json.loads(done.stdout)] == [said for _, said in known]
