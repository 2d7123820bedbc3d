# SPDX-License-Identifier: Apache-2.0
"""The commands of README, help and man pages run; man pages lint clean; completions load in three shells"""
import os
import re

from common import ROOT, Scratch, check, e2e, holds, need_root, run, sonde, tests

need_root()
said = [tests("tests/check/test_docs.py"), tests(e2e("test_every_verb.py"), "-k", "example", least=40),
        tests(e2e("test_tool_completion.py"), least=5), tests(e2e("test_tool_queries.py")), tests(e2e("test_schema_doc.py"))]
readme = open(os.path.join(ROOT, "README.md"), encoding="utf-8").read()
shown = [re.sub(r"^\$ (?:sudo )?build/bin/", "", x) for x in re.findall(r"^\$ .*$", readme, re.M) if "build/bin/sonde" in x]
with Scratch() as folder:
    store = os.path.join(folder, "store")
    for line in shown:
        done = run("bash", "-c", os.path.join(ROOT, "build/bin", line), store=store, cwd=folder)
        check(done.returncode == 0, f"README: {line}\n{done.stderr}")
    for line in ("doctor --json", "pstack --json", "record -d 1s --families cpu,offcpu", "report -o x.html --last 10m",
                 "up", "status", "status --log", "config show --origin", "config check", "down"):
        done = sonde(*line.split(), store=store, cwd=folder)
        check(done.returncode == 0, f"sonde {line}\n{done.stdout[-500:]}{done.stderr}")
holds(f"{len(shown)} commands of README, ten on the live host, and {'; '.join(said)}")
