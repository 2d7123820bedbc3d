#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""summary: add up the JUnit XML under the given folders: what failed, what was skipped and why, and one last line.

    tests/summary.py [--quiet-skips] DIR...        exit 1: something failed, or nothing ran
"""
import os
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


def main():
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    failed, skipped = [], {}
    for path in files([a for a in sys.argv[1:] if not a.startswith("--")]):
        try:
            cases = list(ET.parse(path).iter("testcase"))
        except ET.ParseError as e:
            counts["failed"] += 1
            failed.append((os.path.basename(path), f"result cannot be read: {e}"))
            continue
        for case in cases:
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
    for reason, names in sorted(skipped.items()):
        print(f"skipped {len(names)}: {reason}  ({names[0]}{', ...' if len(names) > 1 else ''})")
    for name, reason in failed:
        print(f"FAILED  {name}: {reason}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
