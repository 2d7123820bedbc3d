#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""run: the unit tests, as many programs at a time as there are CPUs, each with a time limit, results as JUnit XML.

    tests/run.py --results DIR [--timeout S] [--jobs N] PROGRAM...
    tests/run.py --results DIR --timeout S --step NAME -- COMMAND...

A unit test is a cmocka program: it writes its own XML. One that dies before it has written any, or is still running
at its limit, is one failed case. With --step one whole command is one case: rc 0 passed, 77 skipped (its last line
says why), anything else failed; its output goes to DIR/NAME.log and, when it failed, its tail to stderr.
"""
import argparse
import concurrent.futures
import glob
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

SKIP = 77

# What takes longest begins first, so that nobody waits for it at the end.
LONGEST = ("store_crowd_test", "store_seal_test", "index_gosteps_test", "index_oracle_test", "store_writer_test", "openin_test",
           "index_child_test", "store_retention_test", "index_gopart_test", "index_gorows_test", "index_golines_test")


def end_group(child):
    """A command that is over time takes all it started with it."""
    for sig in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, sig)
        except ProcessLookupError:
            return
        try:
            child.wait(5)
            return
        except subprocess.TimeoutExpired:
            pass


def run(command, timeout, env, log):
    """(exit status or None when over time, seconds)."""
    began = time.monotonic()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=env,
                             start_new_session=True)
    try:
        status = child.wait(timeout)
    except subprocess.TimeoutExpired:
        end_group(child)
        status = None
    return status, time.monotonic() - began


def tail(path, lines=25):
    with open(path, "rb") as f:
        f.seek(0, os.SEEK_END)
        f.seek(max(0, f.tell() - 16384))
        text = f.read().decode("utf-8", "replace")
    # XML holds no control bytes
    text = re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd]", "?", text)
    return "\n".join(text.splitlines()[-lines:])


def write_case(path, suite, name, seconds, kind=None, text=""):
    root = ET.Element("testsuite", name=suite, tests="1")
    case = ET.SubElement(root, "testcase", classname=suite, name=name, time=f"{seconds:.2f}")
    if kind:
        ET.SubElement(case, kind, message=text.splitlines()[-1] if text else "").text = text
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def how(status, timeout):
    if status is None:
        return f"still running after {timeout} s"
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return f"exit status {status}"


def cases_in(path):
    try:
        return len(list(ET.parse(path).iter("testcase")))
    except (OSError, ET.ParseError):
        return 0


def tell_skips(paths, log):
    """cmocka says that a test was skipped, and not why: the reason is what the test printed (tests/unit/missing.h)."""
    with open(log, errors="replace") as f:
        why = dict(re.findall(r"^skipped (\w+): (.+)$", f.read(), re.M))
    for path in paths:
        try:
            tree = ET.parse(path)
        except ET.ParseError:
            continue
        for case in tree.iter("testcase"):
            skipped = case.find("skipped")
            if skipped is not None:
                skipped.set("message", why.get(case.get("name"), "no reason given"))
        tree.write(path, encoding="utf-8", xml_declaration=True)


def unit_test(program, results, timeout):
    name = os.path.basename(program)
    stem = os.path.join(results, "unit-" + name)
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="XML", CMOCKA_XML_FILE=f"{stem}-%g.xml")
    for old in glob.glob(glob.escape(stem) + "-*.xml"):  # cmocka overwrites nothing
        os.unlink(old)
    with open(stem + ".log", "wb") as log:
        status, seconds = run([program], timeout, env, log)
    made = glob.glob(glob.escape(stem) + "-*.xml")
    cases = sum(cases_in(f) for f in made)
    tell_skips(made, stem + ".log")
    if status == 0 and cases:
        print(f"  ok    {name}  {cases} tests, {seconds:.1f} s\n", end="", flush=True)
        return True
    # cmocka's status is its number of failures, and those stand in its XML
    told = status is not None and status > 0 and cases
    if not told:
        text = tail(stem + ".log") + "\n" + (how(status, timeout) if status != 0 else "ran no test")
        write_case(stem + "-end.xml", name, "runs to its end", seconds, "failure", text)
    said = "".join(f"        {line}\n" for line in tail(stem + ".log").splitlines())
    print(f"  FAIL  {name}  {how(status, timeout)}, {seconds:.1f} s\n{said}", end="", flush=True)
    return False


def step(name, command, results, timeout):
    path = os.path.join(results, name)
    print(f"== {name}: {' '.join(command)}", flush=True)
    with open(path + ".log", "wb") as log:
        status, seconds = run(command, timeout, None, log)
    text = tail(path + ".log", 60)
    if status == 0:
        write_case(path + ".xml", "ci", name, seconds)
        print(f"   passed, {seconds:.0f} s", flush=True)
        return True
    if status == SKIP:
        write_case(path + ".xml", "ci", name, seconds, "skipped", text)
        print(f"   skipped: {text.splitlines()[-1] if text else 'no reason given'}", flush=True)
        return True
    write_case(path + ".xml", "ci", name, seconds, "failure", text + "\n" + how(status, timeout))
    print(text)
    print(f"   FAILED: {how(status, timeout)}, {seconds:.0f} s", flush=True)
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", required=True)
    parser.add_argument("--timeout", type=float, default=900)  # ends what hangs; how long a test takes is the machine's load
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--step")
    parser.add_argument("command", nargs="+")
    opts = parser.parse_args()
    results = os.path.abspath(opts.results)
    os.makedirs(results, exist_ok=True)
    if opts.step:
        return 0 if step(opts.step, opts.command, results, opts.timeout) else 1
    place = {name: i for i, name in enumerate(LONGEST)}
    programs = sorted(opts.command, key=lambda program: place.get(os.path.basename(program), len(LONGEST)))
    # all of them run, whatever fails before; `run` keeps each in a session of its own
    with concurrent.futures.ThreadPoolExecutor(opts.jobs) as pool:
        passed = list(pool.map(lambda program: unit_test(program, results, opts.timeout), programs))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
