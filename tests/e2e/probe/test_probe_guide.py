# SPDX-License-Identifier: Apache-2.0
"""The table of bcc's tools in docs/GUIDE.md: what it tells people to type is recorded here."""
import os
import re
import shlex
import subprocess

import pytest

from conftest import BIN, need_root

pytestmark = pytest.mark.long
GUIDE = os.path.join(os.path.dirname(__file__), "..", "..", "..", "docs", "GUIDE.md")
# of programs and kernels that need not be here: only their words are checked
ELSEWHERE = ("/usr/bin/app", "caps", "readline", "javagc", "pygc", "rubygc", "nodegc", "*ruby*", "pgquery")


def told():
    with open(GUIDE, encoding="utf-8") as f:
        table = f.read().split("## What bcc's tools answer")[1].split("\n## ")[0]
    for row in (line for line in table.splitlines() if line.startswith("| ") and "|---" not in line):
        for command in re.findall(r"`([^`]+)`", row):
            words = shlex.split(command.replace("\\|", "|"))
            yield from ((row.split("|")[1].strip(), words[i + 1]) for i, word in enumerate(words) if word == "--probe")


def recorded(store, specs):
    named = [spec if re.match(r"\w+=", spec) else f"t{i}={spec}" for i, spec in enumerate(specs)]
    return subprocess.run([os.path.join(BIN, "sonde-probe"), "--store", store, "--duration", "100ms", *(w for spec in named for w in ("--probe", spec))],
                          capture_output=True, text=True, timeout=300, check=False)


def test_each_command_of_the_table_of_bccs_tools_records(store):
    need_root()
    specs = sorted({spec for _, spec in told()})
    here = [spec for spec in specs if not any(word in spec for word in ELSEWHERE)]
    assert len(specs) > 30 and len(here) > 20
    for i in range(0, len(here), 16):
        said = recorded(store, here[i:i + 16])
        assert said.returncode == 0, said.stderr
    for spec in set(specs) - set(here):
        said = recorded(store, [spec])
        assert said.returncode in (0, 2, 3) and "column" not in said.stderr, said.stderr
