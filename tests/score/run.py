#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""score: run the scripts of this folder and print the score.

  tests/score/run.py [--least N] [--json FILE] [NUMBER...]     all of them by default; exit 1 below N (default 24)

They want what `make all workloads unit-tests` builds; `make score SCORE="4 9"` builds it first.
"""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(os.path.dirname(os.path.dirname(HERE)), os.environ.get("B", "build"))
BUILT = [os.path.join(BUILD, *name) for name in (("bin", "sonde"), ("tests", "makestore"), ("tests", "workloads", "burn"),
                                                 ("tests", "unit"))]
WORDS = {0: "holds", 1: "FAILS", 77: "later"}
LIMIT_S = 900


def scripts(numbers):
    found = {int(os.path.basename(p)[:2]): p for p in sorted(glob.glob(os.path.join(HERE, "[0-9][0-9]-*.py")))}
    return {n: p for n, p in found.items() if not numbers or n in numbers}


def title(path):
    with open(path, encoding="utf-8") as f:
        return re.search(r'^"""(.+?)"*$', f.read(), re.M)[1]


def ask(path):
    began = time.monotonic()
    try:
        done = subprocess.run([sys.executable, "-B", path], capture_output=True, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, timeout=LIMIT_S)
        code = done.returncode if done.returncode in WORDS else 1
        said = (done.stdout.strip() or done.stderr.strip()).splitlines() or [""]
    except subprocess.TimeoutExpired:
        code, said = 1, [f"not done after {LIMIT_S} s"]
    return code, said, time.monotonic() - began


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--least", type=int, default=24)
    p.add_argument("--json")
    p.add_argument("numbers", type=int, nargs="*")
    opts = p.parse_args()
    if missing := [path for path in BUILT if not os.path.exists(path)]:
        p.error(f"missing: {', '.join(missing)}\n  fix: make all workloads unit-tests")
    rows, all_ = [], scripts(opts.numbers)
    for n, path in all_.items():
        code, said, seconds = ask(path)
        rows.append({"number": n, "check": title(path), "result": WORDS[code], "said": said[0], "seconds": round(seconds, 1)})
        print(f"{n:2}  {WORDS[code]}  {title(path)}\n           {said[0]}  ({seconds:.0f} s)", flush=True)
        if code == 1:
            print("".join(f"           {x}\n" for x in said[1:25]), end="")
    held = sum(r["result"] == "holds" for r in rows)
    waiting = [f"{r['number']} ({r['said']})" for r in rows if r["result"] == "later"]
    if waiting:
        print(f"not asked, or waiting: {'; '.join(waiting)}")
    print(f"score: {held} of {len(rows)}")
    if opts.json:
        with open(opts.json, "w", encoding="utf-8") as f:
            json.dump({"held": held, "of": len(rows), "rows": rows}, f, indent=1)
    return held < (opts.least if not opts.numbers else len(rows))


if __name__ == "__main__":
    sys.exit(main())
