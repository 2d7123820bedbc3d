#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""compile-commands: from what `make -n -B V=1 objects` prints to compile_commands.json, which clangd and clang-tidy read.

    make -n -B V=1 objects | scripts/compile-commands.py > compile_commands.json
"""
import json
import os
import re
import shlex
import sys


def entries(printed):
    for line in printed.replace("\\\n", " ").splitlines():
        if " -c " in line and re.search(r"\.c -o \S+\.o$", line.rstrip()):
            words = shlex.split(line)
            yield {"directory": os.getcwd(), "file": words[words.index("-c") + 1], "arguments": words}


if __name__ == "__main__":
    found = list(entries(sys.stdin.read()))
    if not found:
        sys.exit("compile-commands: make printed no compiler command")
    json.dump(found, sys.stdout, indent=1)
