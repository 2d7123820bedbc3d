#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""run: runs each fuzzer for the given seconds, two at a time, then the line coverage of the files that it is for.

    tests/fuzz/run.py --results DIR --seconds S [--part I/N] FUZZER...

Two cases a fuzzer: it ends without a finding; each file it names (`covers: FILE...` in its source) has at least 80 %
of its lines covered. --part 2/3: every third fuzzer, beginning with the second. An input that breaks a parser is kept under build/fuzz/findings.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LEAST = 80.0


def tool(name):
    """llvm's programs have their version in their name on Debian."""
    found = shutil.which(name) or next(iter(sorted(glob.glob(f"/usr/lib/llvm-*/bin/{name}"))), None)
    return found


def source_of(fuzzer):
    """NAME.c, NAME_fuzz.c, or of ROOM_NAME ROOM/NAME.c."""
    name = os.path.basename(fuzzer)
    for path in glob.glob(f"{ROOT}/tests/fuzz/**/*.c", recursive=True):
        stem, room = os.path.basename(path)[:-2], os.path.basename(os.path.dirname(path))
        if stem in (name, f"{name}_fuzz") or f"{room}_{stem}" == name:
            return path
    return None


def covers(fuzzer):
    source = source_of(fuzzer)
    if not source:
        return []
    with open(source, encoding="utf-8") as f:
        found = re.findall(r"covers:((?:,?\s+(?:\*\s+)?[\w/.-]+\.[ch])+)", f.read())
    return [path for part in found for path in re.findall(r"[\w/.-]+\.[ch]", part)]


def make_seeds(work):
    """Each room's seeds.sh OUTDIR makes OUTDIR/NAME/."""
    out = os.path.join(work, "seeds")
    os.makedirs(out, exist_ok=True)
    for script in sorted(glob.glob(f"{ROOT}/tests/fuzz/*/seeds.sh")):
        done = subprocess.run(["sh", script, out], cwd=ROOT, capture_output=True, text=True, timeout=300)
        if done.returncode:
            print(f"fuzz: {script}: {done.stderr.strip()[-300:]}", file=sys.stderr)
    return out


def seeds_for(out, name):
    short = name.removesuffix("_fuzz")
    return next((d for d in (f"{out}/{name}", f"{out}/{short}") if os.path.isdir(d)), None)


def fuzz(fuzzer, seconds, work, seeds):
    name = os.path.basename(fuzzer)
    corpus, findings, raw = (os.path.join(work, d, name) for d in ("corpus", "findings", "raw"))
    for folder in (corpus, findings):
        os.makedirs(folder, exist_ok=True)
    os.makedirs(os.path.dirname(raw), exist_ok=True)
    given = seeds_for(seeds, name)
    command = [fuzzer, f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=3000", "-print_final_stats=1",
               f"-artifact_prefix={findings}/", corpus, *([given] if given else [])]
    env = dict(os.environ, LLVM_PROFILE_FILE=raw + ".profraw", ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=1")
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", env=env,
                              timeout=seconds + 240)
        return done.returncode, done.stderr
    except subprocess.TimeoutExpired as e:
        return None, (e.stderr or b"").decode("utf-8", "replace")


def coverage(fuzzer, work):
    """{file: percent of lines}."""
    name = os.path.basename(fuzzer)
    raw = os.path.join(work, "raw", name)
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", "-o", raw + ".profdata", raw + ".profraw"], check=True,
                   capture_output=True)
    done = subprocess.run([tool("llvm-cov"), "export", "-summary-only", f"-instr-profile={raw}.profdata", fuzzer],
                          check=True, capture_output=True, text=True)
    files = json.loads(done.stdout)["data"][0]["files"]
    return {os.path.relpath(f["filename"], ROOT) if os.path.isabs(f["filename"]) else os.path.normpath(f["filename"]):
            f["summary"]["lines"]["percent"] for f in files}


def case(suite, name, bad="", kind="failure"):
    element = ET.SubElement(suite, "testcase", classname="fuzz", name=name)
    if bad:
        bad = re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd]", "?", bad)
        ET.SubElement(element, kind, message=bad.splitlines()[-1]).text = bad
    print(f"  {'ok   ' if not bad else kind.upper()}  {name}{': ' + bad.splitlines()[-1] if bad else ''}", flush=True)
    return not bad or kind == "skipped"


def judge(suite, fuzzer, outcome, work):
    name = os.path.basename(fuzzer)
    status, said = outcome
    runs = re.search(r"number_of_executed_units:\s*(\d+)", said)
    tail = "\n".join(said.splitlines()[-40:])
    summary = re.findall(r"^(?:SUMMARY: .*|==\d+==ERROR: .*)$", said, re.M)
    bad = "" if status == 0 else tail + "\n" + (summary[-1] if summary else f"exit {status}")
    fine = case(suite, f"{name} finds nothing in {runs.group(1) if runs else 'no'} runs", bad)
    wanted = covers(fuzzer)
    if status != 0 or not wanted:
        return fine
    if not tool("llvm-cov"):
        return case(suite, f"{name} covers its parsers", "missing: llvm-cov", "skipped") and fine
    got = coverage(fuzzer, work)
    for path in wanted:
        percent = got.get(path, 0.0)
        fine &= case(suite, f"{name} covers {LEAST:.0f} % of {path}",
                     "" if percent >= LEAST else f"{percent:.1f} % of the lines of {path}")
        print(f"         {path}: {percent:.1f} %")
    return fine


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("fuzzers", nargs="+")
    opts = parser.parse_args()
    part, parts = map(int, opts.part.split("/"))
    opts.fuzzers = sorted(opts.fuzzers)[part - 1::parts]
    work = os.path.join(ROOT, "build", "fuzz")
    shutil.rmtree(os.path.join(work, "raw"), ignore_errors=True)
    seeds = make_seeds(work)
    suite = ET.Element("testsuite", name="fuzz")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        outcomes = pool.map(lambda f: fuzz(f, opts.seconds, work, seeds), opts.fuzzers)
        fine = all([judge(suite, f, o, work) for f, o in zip(opts.fuzzers, outcomes)])
    os.makedirs(opts.results, exist_ok=True)
    ET.ElementTree(suite).write(os.path.join(opts.results, "fuzz.xml"), encoding="utf-8", xml_declaration=True)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
