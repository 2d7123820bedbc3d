# SPDX-License-Identifier: Apache-2.0
"""Page faults that read a file: as many as getrusage(2) counts, by the file that was read and by the line that touched it."""
import collections
import json
import os
import re
import subprocess
import time

import pytest

from conftest import ROOT, need, need_root, sql_all
from sonded import until
from test_mem import started

SOURCE = os.path.join(ROOT, "tests/workloads/leaks/reads.c")
PAGES = 512
TRIES = 8


@pytest.fixture
def read(store, capture, scratch):
    """A program that met such faults of one file: its pid, how many, the file; its recording is in the store."""
    need_root()
    need("gcc")
    path, big = os.path.join(scratch, "reads"), os.path.join(scratch, "big")
    subprocess.run(["gcc", "-O2", "-g", SOURCE, "-o", path], check=True)
    with open(big, "wb") as f:
        f.write(os.urandom(PAGES * 4096))
    c = capture("--apart", program="sonde-mem")
    named = ("SELECT 1 FROM amounts a JOIN stacks k ON k.id = a.stack_id WHERE a.type = 'majorfaults' AND a.pid = ?"
             " AND a.function LIKE '%/big' AND k.folded LIKE '%;touched;%'")
    for _ in range(TRIES):  # the file of a program that nobody has seen is read after its first samples
        with started([path, big]) as child:
            many = int(child.stdout.readline())
            if many < PAGES / 2:
                pytest.skip(f"missing: a file system below {scratch} whose pages the kernel forgets")
            if until(lambda pid=child.pid: sql_all(store, named, (pid,)), 5):
                break
    time.sleep(1)
    c.stop(60)
    return child.pid, many, big


def test_faults_that_read_have_their_file_and_line_and_are_named_so_everywhere(sonde, store, read):
    pid, many, big = read
    lines_are_right(sonde, store, pid, many, big)
    names_are_right(sonde, store, pid, big)


def lines_are_right(sonde, store, pid, many, big):
    told = json.loads(sonde("flame", "--type", "majorfaults", "-p", pid, "--json", store=store, check=True).stdout)
    assert (told["unit"], told["counted"]) == ("events", "major faults")
    nodes = {n["id"]: n for n in told["rows"]}
    leaves = [n for n in told["rows"] if n["name"] == big]
    assert sum(n["total_value"] for n in leaves) == pytest.approx(many, rel=0.1), (many, leaves)
    by_place = collections.Counter()
    for leaf in leaves:
        n = leaf
        while n["name"] != "touched" and n["parent"] is not None:
            n = nodes[n["parent"]]
        by_place[n["name"], os.path.basename(n["file"] or ""), n["line"]] += leaf["total_value"]
    with open(SOURCE, encoding="utf-8") as f:
        (line,) = [i + 1 for i, text in enumerate(f) if "sum += p[" in text]
    assert by_place["touched", "reads.c", line] >= 0.9 * many, (many, by_place)


def names_are_right(sonde, store, pid, big):
    """What is counted has its name, and stands once."""
    ask = ["--type", "majorfaults", "-p", pid]
    said = sonde("stacks", *ask, store=store, check=True).stdout.splitlines()
    assert re.split(r"\s{2,}", said[0].strip()) == ["SELF", "MAJOR FAULTS", "TOTAL", "MAJOR FAULTS", "FUNCTION", "MODULE"], said
    assert any(line.split()[-1] == big or big in line for line in said[1:]), said
    called = sonde("stacks", *ask, "--callers", "big", store=store, check=True).stdout.splitlines()
    assert re.split(r"\s{2,}", called[0].strip()) == ["SHARE", "MAJOR FAULTS", "PATH"], called
    drawn = sonde("flame", *ask, "--text", store=store, check=True).stdout
    assert "MAJOR FAULTS" in drawn and "events" not in drawn, drawn
    svg = big + ".svg"
    sonde("flame", *ask, "-o", svg, store=store, check=True)
    with open(svg, encoding="utf-8") as f:
        titles = re.findall(r"<title>([^<]*touched[^<]*)</title>", f.read())
    assert titles and all(re.search(r": [\d.]+ %, \d[\d\s]* major faults; self", t) for t in titles), titles
