#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""summary: add up the JUnit XML under the given folders: what failed, what was skipped and why, and one last line.

    tests/summary.py [--slowest N] DIR...        exit 1: something failed, or nothing ran

--slowest: the N files of tests that took longest, first, with how long each kind of tests worked in all.
"""
import argparse
import collections
import os
import re
import sys
import xml.etree.ElementTree as ET


def files(folders):
    for folder in folders:
        for where, _, names in os.walk(folder):
            for name in sorted(names):
                if name.endswith(".xml"):
                    yield os.path.join(where, name)


def say(element):
    text = (element.get("message") or "").strip() or (element.text or "").strip()
    return text.splitlines()[-1].strip() if text else "no reason given"


def file_of(path, case):
    """What a case belongs to: a unit test's program, a file of end-to-end tests."""
    name = os.path.basename(path)
    if name.startswith("unit-"):
        return "unit/" + name[len("unit-"):].rsplit("_test-", 1)[0]
    return re.sub(r"^tests\.", "", case.get("classname") or name).replace(".", "/")


def print_slowest(times, n):
    kinds = collections.Counter()
    for name, seconds in times.items():
        kinds[name.split("/")[0]] += seconds
    print("seconds of work: " + ", ".join(f"{kind} {seconds:.0f}" for kind, seconds in kinds.most_common()))
    print("slowest: " + ", ".join(f"{name} {seconds:.0f}" for name, seconds in times.most_common(n)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slowest", type=int, default=0)
    parser.add_argument("folders", nargs="+")
    opts = parser.parse_args()
    times = collections.Counter()
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    failed, skipped = [], {}
    for path in files(opts.folders):
        try:
            cases = list(ET.parse(path).iter("testcase"))
        except ET.ParseError as e:
            counts["failed"] += 1
            failed.append((os.path.basename(path), f"result cannot be read: {e}"))
            continue
        for case in cases:
            times[file_of(path, case)] += float(case.get("time") or 0)
            name = "::".join(filter(None, (case.get("classname"), case.get("name"))))
            bad = case.find("failure") if case.find("failure") is not None else case.find("error")
            skip = case.find("skipped")
            if bad is not None:
                counts["failed"] += 1
                failed.append((name, say(bad)))
            elif skip is not None:
                counts["skipped"] += 1
                skipped.setdefault(say(skip), []).append(name)
            else:
                counts["passed"] += 1
    if opts.slowest:
        print_slowest(times, opts.slowest)
    for reason, names in sorted(skipped.items()):
        print(f"skipped {len(names)}: {reason}  ({names[0]}{', ...' if len(names) > 1 else ''})")
    for name, reason in failed:
        print(f"FAILED  {name}: {reason}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
