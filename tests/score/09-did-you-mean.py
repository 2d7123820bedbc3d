# SPDX-License-Identifier: Apache-2.0
"""A mistyped verb, flag or name is told what was meant"""
from common import Scratch, check, holds, lived_in, sonde

CASES = [(["recrod"], "record"), (["flmae"], "flame"), (["timelin"], "timeline"), (["help", "stakcs"], "stacks"),
         (["stacks", "--contaner", "x"], "--container"), (["flame", "--outptu", "x"], "--output"),
         (["flame", "ngnix"], "nginx"), (["stacks", "posgres"], "postgres"), (["ps", "promethus"], "prometheus"),
         (["sql", "@hotest"], "@hottest"), (["flame", "--type", "offpcu"], "offcpu"), (["ps", "--sort", "naem"], "name"),
         (["export", "pporf"], "pprof"), (["stacks", "--callers", "compres_block"], "compress_block"),
         (["lines", "compres_block"], "compress_block"), (["stacks", "--container", "wbe"], "web"),
         (["completion", "bsh"], "bash"), (["timeline", "--by", "contaner"], "container")]
with Scratch() as folder:
    store = lived_in(folder)
    for words, meant in CASES:
        done = sonde(*words, store=store)
        check(done.returncode in (2, 4) and meant in done.stderr, f"{words}: exit {done.returncode}\n{done.stderr}")
holds(f"{len(CASES)} cases")
