# SPDX-License-Identifier: Apache-2.0
"""Every verb that reads has --json; jq reads it, stdout has nothing else"""
import subprocess

from common import SONDE, Scratch, check, e2e, holds, lived_in, sonde, tests

said = tests(e2e("test_every_verb.py"), "-k", "json or what_it_prints", least=15)
with Scratch() as folder:
    store = lived_in(folder)
    for words in (["ps"], ["stacks"], ["timeline"], ["status"]):
        text = sonde(*words, "--json", store=store).stdout
        done = subprocess.run(["jq", "-e", ".schema and (.rows | length > 0)"], input=text, text=True, capture_output=True)
        check(done.returncode == 0, f"{words}: {done.stderr or done.stdout}")
holds(said)
