# SPDX-License-Identifier: Apache-2.0
"""From a clone to the first flame graph: at most two commands, the packages named"""
import glob
import os
import re

from common import ROOT, Scratch, check, holds, need_root, run

need_root()
readme = open(os.path.join(ROOT, "README.md"), encoding="utf-8").read()
commands = [x for x in re.search(r"^```sh\n(.*?)^```", readme, re.M | re.S)[1].splitlines() if x.strip()]
packages = open(os.path.join(ROOT, "scripts", "deps.sh"), encoding="utf-8").read()
check(len(commands) <= 2, f"README asks for {len(commands)} commands")
check("libbpf-dev" in packages, "scripts/deps.sh does not name the packages")
with Scratch() as folder:
    clone = os.path.join(folder, "sonde")
    check(run("git", "clone", "-q", ROOT, clone).returncode == 0, "git clone failed")
    # what is built stands for the build: check 2 makes it anew
    run("cp", "-a", os.path.join(ROOT, "build"), clone)
    run("find", os.path.join(clone, "build"), "-type", "f", "-exec", "touch", "{}", "+")
    done = run("sh", "-c", " && ".join(commands), cwd=clone, env={"XDG_STATE_HOME": folder}, timeout=280)
    page = glob.glob(os.path.join(clone, "*.html"))
    check(done.returncode == 0 and page, f"{commands}: exit {done.returncode}\n{done.stdout[-800:]}{done.stderr[-800:]}")
    holds(f"{len(commands)} command: {commands[0]}; the page has {os.path.getsize(page[0]) >> 10} KiB")
