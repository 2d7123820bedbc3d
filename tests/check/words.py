#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""words: phrases that read as translated, in what users see and in comments.

    tests/check/words.py [--comments | --text | --docs] [PATH...]

Prints `file:line: phrase: text` for each one found below the paths (default: the whole tree), then a count. Text is what
users see: strings in C that are sentences, man pages, the page's scripts and HTML. test_words.py holds the counts.
"""
import argparse
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

DATA = {"loaders/lib/host/secrets/text.c"}  # its strings are names of accounts, not sentences

# Each is replaced by a verb with an actor: "the loader reports", not "it is told"; "beside" is "next to" or "with".
PHRASES = [
    r"stands?", r"stood", r"nobody", r"somebody", r"whoever", r"(?:is|are|was|were) none",
    r"(?:is|are|was|were|be) told", r"(?:tells?|told) of", r"of (?:its|their|his|our|one's) own", r"anew", r"beside",
    r"so (?:many|much)(?! as)", r"for want of", r"(?:is|are) to be", r"once more", r"for ever", r"(?:is|are|was|were|be) given back",
    r"the like", r"all together", r"what is (?:told|asked|said|known)", r"in vain", r"lest", r"wherever",
]
PATTERN = re.compile(r"(?<![\w-])(?:" + "|".join(PHRASES) + r")(?![\w-])", re.I)

COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|(/\*.*?\*/|//[^\n]*)', re.S)
STRING = re.compile(r'/\*.*?\*/|//[^\n]*|\'(?:\\.|[^\'\\\n])*\'|(?<![\w])((?:"(?:\\.|[^"\\\n])*"\s*)+)', re.S)
SQL = re.compile(r"\b(SELECT|INSERT|CREATE|DELETE|UPDATE|PRAGMA|WHERE|FROM)\b")


def tracked():
    done = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    names = done.stdout.splitlines()
    if done.returncode:
        names = [os.path.relpath(os.path.join(d, n), ROOT) for d, _, files in os.walk(ROOT) for n in files if "/build/" not in d + "/"]
    return [n for n in names if os.path.isfile(os.path.join(ROOT, n))]


def pieces(path, text, kind):
    """(offset, piece) of one kind in a file."""
    if kind == "comments" and path.endswith((".c", ".h")) and not path.startswith("tests/"):
        return [(m.start(1), m.group(1)) for m in COMMENT.finditer(text) if m.group(1)]
    if kind == "text" and path.endswith((".c", ".h")) and not path.startswith("tests/") and path not in DATA:
        return [(m.start(1), m.group(1)) for m in STRING.finditer(text) if m.group(1) and " " in m.group(1) and not SQL.search(m.group(1))]
    if kind == "text" and re.match(r"docs/man/.*\.[1-8]$|(tools|serve)/page/.*\.html$", path):
        return [(0, text)]
    if kind == "text" and re.match(r"(tools|serve)/page/.*\.js$", path):
        return [(m.start(), m.group(0)) for m in re.finditer(r"'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|`(?:\\.|[^`\\])*`", text)]
    if kind == "docs" and path.endswith(".md"):
        return [(0, text)]
    return []


def found(kind, paths=()):
    for path in tracked():
        if paths and not any(path == p.rstrip("/") or path.startswith(p.rstrip("/") + "/") for p in paths):
            continue
        with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as f:
            text = f.read()
        for at, piece in pieces(path, text, kind):
            for m in PATTERN.finditer(re.sub(r"\n[ \t]*\*? ?", lambda x: " " * len(x.group(0)), piece)):
                line = text.count("\n", 0, at + m.start()) + 1
                yield path, line, m.group(0), re.sub(r"\s+", " ", piece[max(0, m.start() - 50):m.end() + 50])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for kind in ("comments", "text", "docs"):
        parser.add_argument(f"--{kind}", dest="kinds", action="append_const", const=kind)
    parser.add_argument("paths", nargs="*")
    args = parser.parse_args()
    for kind in args.kinds or ["comments", "text"]:
        n = 0
        for path, line, phrase, context in found(kind, args.paths):
            print(f"{path}:{line}: {phrase}: {context}")
            n += 1
        print(f"{kind}: {n}")


if __name__ == "__main__":
    main()
