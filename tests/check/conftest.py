# SPDX-License-Identifier: Apache-2.0
"""What the layout tests share: the tracked files and the built programs."""
import os
import re
import shutil
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("B", "build"))
BIN = os.path.join(BUILD, "bin")


def run(*args, **kw):
    return subprocess.run(args, cwd=ROOT, capture_output=True, text=True, errors="replace", timeout=300,
                          stdin=subprocess.DEVNULL, **kw)


def families():
    """The families that there are, as schema/families/families.c lists them."""
    return re.findall(r'^\t\{\.name = "(\w+)"', text("schema/families/families.c"), re.M)


def tracked():
    """The files of this tree, as git knows them (a tree without git: all but what is built)."""
    if os.path.exists(os.path.join(ROOT, ".git")) and shutil.which("git"):
        done = run("git", "-c", f"safe.directory={ROOT}", "ls-files")
        assert done.returncode == 0, done.stderr
        return [f for f in done.stdout.splitlines() if os.path.isfile(os.path.join(ROOT, f))]
    found = []
    for where, folders, names in os.walk(ROOT):
        folders[:] = [d for d in folders if d not in ("build", "__pycache__") and not d.startswith(".")]
        found += [os.path.relpath(os.path.join(where, n), ROOT) for n in names]
    return sorted(found)


def text(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def program(name):
    path = os.path.join(BIN, name)
    if not os.path.exists(path):
        pytest.fail(f"{name} is not built")
    return path
