#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""long: run long tests, one after the other, and add up their results.

    tests/long.py --results DIR all
    tests/long.py --results DIR change [BASE]      those of tests/long.tsv whose paths differ from BASE
    tests/long.py --results DIR NAME...

The table for docs/TESTED.md is printed at the end. Exit 1: something failed.
"""
import argparse
import fnmatch
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def table():
    with open(os.path.join(ROOT, "tests", "long.tsv"), encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f if line.strip() and not line.startswith("#")]
    return {name: {"sets": sets.split(), "paths": paths.split(), "minutes": int(minutes)} for name, minutes, sets, paths in rows}


def git(*args):
    done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else None


def changed(base):
    for since in [base] if base else ["origin/main", "HEAD~1"]:
        files = git("diff", "--name-only", since)
        if files is not None:
            return files + (git("ls-files", "--others", "--exclude-standard") or [])
    sys.exit(f"long: no such commit: {base or 'origin/main, HEAD~1'}")


def touches(paths, files):
    return any(f == p or f.startswith(p.rstrip("/") + "/") or fnmatch.fnmatch(f, p) for p in paths for f in files)


def run(name, row, results):
    """(seconds, the last line that counts)."""
    began = time.monotonic()
    folder = os.path.join(results, name)
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["sh", "scripts/deps.sh", *row["sets"]], cwd=ROOT, check=False)
    with open(os.path.join(folder, "log"), "wb") as log:
        done = subprocess.Popen(["make", f"long-{name}", f"RESULTS={folder}"], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)
        for line in done.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.flush()
            log.write(line)
        done.wait()
    summed = subprocess.run([sys.executable, "tests/summary.py", folder], cwd=ROOT, capture_output=True, text=True, check=False)
    counted = summed.stdout.strip().splitlines()
    if not counted or re.match("0 passed, 0 failed, 0 skipped", counted[-1]):
        counted = ["1 passed, 0 failed, 0 skipped" if not done.returncode else
                   f"0 passed, 0 failed, 1 skipped" if done.returncode == 77 else "0 passed, 1 failed, 0 skipped"]
    elif done.returncode and ", 0 failed" in counted[-1]:
        counted.append(f"exit status {done.returncode}: {counted[-1].replace(', 0 failed', ', 1 failed')}")
    return time.monotonic() - began, counted


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--results", default="build/results/long")
    args.add_argument("what", nargs="+")
    args = args.parse_args()
    known = table()
    if args.what[0] == "all":
        names = list(known)
    elif args.what[0] == "change":
        files = changed(args.what[1] if len(args.what) > 1 else None)
        names = [n for n, row in known.items() if touches(row["paths"], files)]
        print(f"long: {len(files)} files differ: {', '.join(names) or 'nothing to run'}", flush=True)
    else:
        names = args.what
        if unknown := [n for n in names if n not in known]:
            sys.exit(f"long: there is no {unknown[0]}; known: {', '.join(known)}")
    told, failed = [], False
    for name in names:
        print(f"== long-{name}, about {known[name]['minutes']} minutes", flush=True)
        seconds, counted = run(name, known[name], args.results)
        print("\n".join(counted), flush=True)
        failed = failed or ", 0 failed" not in counted[-1]
        told.append((name, seconds, counted[-1]))
    commit = (git("rev-parse", "--short", "HEAD") or ["?"])[0]
    print("\n| target | result | took | commit | date |\n|---|---|---|---|---|")
    for name, seconds, counted in told:
        print(f"| long-{name} | {counted} | {seconds / 60:.0f} min | {commit} | {time.strftime('%Y-%m-%d')} |")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
