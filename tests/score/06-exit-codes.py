# SPDX-License-Identifier: Apache-2.0
"""Exit codes are those of the table, in twelve cases and more"""
import os
import subprocess

from common import BIN, SONDE, Scratch, check, e2e, holds, lived_in, sonde, tests

with Scratch() as folder:
    store = lived_in(folder)
    broken = os.path.join(folder, "broken.db")
    open(broken, "wb").write(os.urandom(8192))
    alone = os.path.join(folder, "sonde")
    os.link(SONDE, alone) if os.stat(SONDE).st_dev == os.stat(folder).st_dev else __import__("shutil").copy(SONDE, alone)
    at = ["--at", "2026-11-20T03:00:00Z"]
    cases = [
        (0, ["stacks", *at]), (0, ["ps", *at]), (0, ["version"]), (0, []),
        (1, ["stacks", *at, ">/dev/full"]),
        (2, ["stacsk"]), (2, ["stacks", "--nonesuch"]), (2, ["stacks", "no-such-name"]), (2, ["sql", "selct"]),
        (3, ["ALONE", "record", "-d", "1s"]),
        (4, ["stacks", "--at", "2001-01-01"]), (4, ["flame", "--comm", "nobody", *at]),
        (5, ["NOBODY", "stacks", *at]),
        (6, ["stacks", "--store", os.path.join(folder, "none")]), (6, ["stacks", "--store", broken]),
    ]
    for code, words in cases:
        prefix, out = [SONDE], subprocess.DEVNULL
        if words[:1] == ["ALONE"]:
            prefix, words = [alone], words[1:]
        if words[:1] == ["NOBODY"]:
            if os.geteuid() != 0:
                continue
            prefix, words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", SONDE], words[1:]
        if words[-1:] == [">/dev/full"]:
            out, words = open("/dev/full", "w"), words[:-1]
        done = subprocess.run([*prefix, *words], stdout=out, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                              env=dict(os.environ, SONDE_STORE=store))
        check(done.returncode == code, f"{words}: exit {done.returncode}, should be {code}\n{done.stderr}")
    check(os.path.exists(BIN), "")
    holds(f"{len(cases)} cases here, and {tests(e2e('test_tool_frame.py'), '-k', 'exit_codes', least=12)}")
