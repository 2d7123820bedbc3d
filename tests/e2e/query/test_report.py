# SPDX-License-Identifier: Apache-2.0
"""`sonde report`: timeline, processes and flame graphs in one file. Its numbers are those of `ps`, `timeline` and SQL; a gap
is no idleness. (In a browser: test_page_report.py.)"""
import html
import json
import os
import re

import pytest
from conftest import sql_all
from test_timeline import AT, planted, put

RANGE = ["--from", str(AT - 900), "--to", str(AT)]
GAP = (AT - 300, AT - 240)
HOSTILE = "</td><script>alert(1)</script>\"&'\U0001f525"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A quarter of an hour with a planted spike, a minute that nothing recorded, waits besides, and a hostile name."""
    lines = [x for x in planted("container")[1:] if not GAP[0] <= x["at"] < GAP[1]]
    run = {"run": "cpu", "bucket_s": 1, "period_ns": 10101010}
    lines.insert(5, {"kind": "cpu", "at": lines[5]["at"], "n": 3, "pid": 666, "comm": HOSTILE[:15], "stack": ["main", HOSTILE]})
    path = str(tmp_path_factory.mktemp("report") / "store")
    put(path, [{**run, "from": AT - 900, "to": GAP[0]}, *(x for x in lines if x["at"] < GAP[0]),
               {**run, "from": GAP[1], "to": AT}, *(x for x in lines if x["at"] >= GAP[1]),
               {"run": "offcpu", "from": AT - 900, "to": AT, "bucket_s": 1},
               {"kind": "offcpu", "at": AT - 500, "n": 4, "value": 3 * 10**9, "pid": 10, "comm": "db", "stack": ["main", "read", "schedule"]}])
    return path


@pytest.fixture(scope="module")
def report(sonde, made):
    path = os.path.join(os.path.dirname(made), "x.html")
    said = json.loads(sonde("report", *RANGE, "-o", path, "--json", store=made, check=True).stdout)
    assert said["schema"] == "sonde.report.written/1" and said["rows"] == [{"path": path, "bytes": os.path.getsize(path)}]
    return path


def cells(text, table):
    """The cells of each row of a table, as text; of the file as it lies there."""
    body = re.search(rf'<table id="{table}">.*?<tbody>(.*?)</tbody>', text, re.S).group(1)
    return [[html.unescape(re.sub(r"<[^>]*>", "", c)) for c in re.findall(r"<td[^>]*>(.*?)</td>", row, re.S)]
            for row in re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.S)]


def test_processes_are_those_of_ps(sonde, made, report):
    said = json.loads(sonde("ps", *RANGE, "-n", "1000", "--json", store=made, check=True).stdout)
    rows = cells(open(report).read(), "procs")
    assert [(int(r[0]), r[1], r[2], r[6]) for r in rows] == [
        (p["pid"], f"{p['cpu_cores']:.2f}", f"{100 * p['share']:.1f} %", p["top_function"]) for p in said["rows"]]
    assert {r[3] for r in rows} == {p["comm"] for p in said["rows"]} and len(rows) == 5


def test_the_timeline_adds_up_to_what_sql_says_and_a_gap_is_a_gap(made, report):
    rows = cells(open(report).read(), "use")
    starts = [int(h) * 3600 + int(m) * 60 + int(s) for h, m, s in (r[0].split(":") for r in rows)]
    step, midnight = starts[1] - starts[0], AT - AT % 86400
    assert {b - a for a, b in zip(starts, starts[1:])} == {step} and len(rows) <= 120
    for start, (_, cores, seconds, _) in zip((midnight + s for s in starts), rows):
        told = sql_all(made, "SELECT sum(cpu_ns) AS ns FROM cpu_samples WHERE ts >= ? AND ts < ?", (start, start + step))
        ns = sum(r["ns"] or 0 for r in told)
        recorded = max(0, min(start + step, AT) - max(start, AT - 900) - max(0, min(start + step, GAP[1]) - max(start, GAP[0])))
        assert float(seconds) == pytest.approx(ns / 1e9, abs=0.0006)
        if not recorded:
            assert cores == "not recorded"
        else:
            assert float(cores) == pytest.approx(ns / 1e9 / recorded, abs=0.0051)
    assert sum(r[1] == "not recorded" for r in rows) == 60 // step


def test_ten_seconds_within_a_day_are_drawn(sonde, tmp_path):
    store = str(tmp_path / "store")
    put(store, [{"run": "cpu", "bucket_s": 1, "period_ns": 10101010, "from": AT - 600, "to": AT - 590},
                *({"kind": "cpu", "at": AT - 600 + s, "n": 99, "pid": 7, "comm": "hot", "stack": ["main", "spin"]} for s in range(10))])
    path = str(tmp_path / "day.html")
    sonde("report", "--from", str(AT - 86400), "--to", str(AT), "-o", path, store=store, check=True)
    rows = cells(open(path).read(), "use")
    drawn = [r for r in rows if r[1] != "not recorded"]
    assert len(drawn) == 1 and float(drawn[0][1]) == pytest.approx(1, abs=0.0051) and drawn[0][3] == "hot (7)"
    assert "the top is 1.00 of" in open(path).read()


def test_spikes_and_events_are_those_of_timeline(sonde, made, report):
    said = json.loads(sonde("timeline", *RANGE, "--json", store=made, check=True).stdout)
    text = open(report).read()
    (row,) = cells(text, "spikes")
    assert row[1] == "jelly'fin" == said["rows"][0]["who"] and row[2] == f"{said['rows'][0]['cpu_cores']:.2f}"
    assert row[5] == "ffmpeg (500)" and row[6].startswith("sonde flame --container ") and "--store" not in row[6]
    events = re.search(r'<ul id="events">(.*?)</ul>', text, re.S).group(1)
    assert [html.unescape(re.sub("<b>.*?</b> ", "", e)) for e in re.findall(r"<li>(.*?)</li>", events)] == [
        e["text"] for e in said["events"]]
    assert any(e["event"] == "gap" for e in said["events"])


def test_nothing_of_a_name_is_markup(report):
    text = open(report).read()
    assert "<script>alert" not in text and "alert(1)" in html.unescape(text)
    assert "http" not in re.sub(r"@@|http-equiv", "", text[:text.index('id="data"')])


def test_what_is_no_page_is_refused(sonde, made, tmp_path):
    done = sonde("report", *RANGE, "-o", tmp_path / "x.svg", store=made)
    assert done.returncode == 2 and "fix:" in done.stderr and not (tmp_path / "x.svg").exists()
    done = sonde("report", "--from", str(AT - 99999), "--to", str(AT - 90000), "-o", tmp_path / "x.html", store=made)
    assert done.returncode == 4 and not (tmp_path / "x.html").exists()


def test_a_store_without_cpu_time_has_its_flame_graphs(sonde, tmp_path):
    put(str(tmp_path / "s"), [{"run": "offcpu", "from": AT - 60, "to": AT, "bucket_s": 1},
                              {"kind": "offcpu", "at": AT - 30, "n": 4, "value": 10**9, "pid": 10, "comm": "db", "stack": ["a", "b"]}])
    sonde("report", "--from", AT - 60, "--to", AT, "-o", tmp_path / "x.html", store=tmp_path / "s", check=True)
    text = (tmp_path / "x.html").read_text()
    assert "No CPU time was recorded" in text and 'id="procs"' not in text
