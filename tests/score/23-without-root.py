# SPDX-License-Identifier: Apache-2.0
"""Reading needs no root but the group; recording needs its few capabilities, not root"""
import grp
import os

from common import SONDE, Scratch, check, e2e, holds, need_root, run, sonde, tests

need_root()
with Scratch() as folder:
    store = os.path.join(folder, "store")
    check(sonde("record", "-d", "2s", "-q", store=store).returncode == 0, "record")
    some = grp.getgrnam("games").gr_gid
    run("chgrp", "-R", "games", store)
    member = ["setpriv", "--reuid=65534", f"--regid={some}", "--clear-groups", SONDE]
    for words in (["flame", "-o", "/dev/null.html"], ["stacks"], ["sql", "select count(*) from cpu_samples"], ["status"], ["ps"], ["timeline"]):
        words = ["export", "folded"] if words[0] == "flame" else words
        done = run(*member, *words, store=store)
        check(done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stderr}")
    stranger = run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", SONDE, "stacks", store=store)
    check(stranger.returncode == 5 and "fix:" in stranger.stderr, f"exit {stranger.returncode}\n{stranger.stderr}")
    holds(f"six verbs as a member of the group; {tests(e2e('test_sonded.py'), '-k', 'ordinary_user')}")
