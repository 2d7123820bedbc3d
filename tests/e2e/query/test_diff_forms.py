# SPDX-License-Identifier: Apache-2.0
"""`sonde diff` as a still picture, and both sides over time on its page: every width, colour and number is that of the tree's
JSON and of SQL."""
import html
import json
import re
import xml.etree.ElementTree as ET

import pytest
from conftest import sql_all
from test_diff import maker
from test_report import cells
from test_timeline import put

SVG = "{http://www.w3.org/2000/svg}"
AT = 1795144200


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("forms") / "store")
    said = maker("plantstore", path, "--seed", 3)
    return path, ["--from", said["middle"], "--to", said["to"]], said


@pytest.fixture(scope="module")
def forms(sonde, planted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    for end in ("svg", "json", "html"):
        sonde("diff", *planted[1], "-o", folder / f"x.{end}", store=planted[0], check=True)
    return folder


def frames(path):
    """(name, x, y, width, fill, label, title) of each frame."""
    out = []
    for g in ET.parse(path).getroot().iter(SVG + "g"):
        title, rect, label = g.find(SVG + "title").text, g.find(SVG + "rect"), g.find(SVG + "text")
        x, y, width = (float(rect.get(k)) for k in ("x", "y", "width"))
        out.append((re.match(r"(.*?)(?:, [^:]*)?: ", title).group(1), x, y, width + (0.5 if width > 0.5 else 0), rect.get("fill"),
                    "" if label is None else label.text, title))
    return out


def test_frames_are_as_wide_as_the_tree_says(forms):
    told = json.load(open(forms / "x.json"))
    rows, drawn = told["rows"], frames(forms / "x.svg")
    scale = 1200 / max(rows[0]["before_total_ns"], rows[0]["after_total_ns"])  # both windows are equally long
    wanted = sorted((r["name"], r["after_total_ns"] * scale) for r in rows if r["after_total_ns"] * scale >= 0.2)
    wanted += sorted((r["name"], r["before_total_ns"] * scale) for r in rows if not r["after_total_ns"] and r["before_total_ns"] * scale >= 0.2)
    assert len(drawn) == len(wanted)
    for (name, width), got in zip(sorted(wanted), sorted((f[0], f[3]) for f in drawn)):
        assert name == got[0] and width == pytest.approx(got[1], abs=0.52), name


def test_changes_have_sign_percent_and_colour(forms):
    by = {f[0]: f for f in frames(forms / "x.svg")}
    assert by["planted_5"][5].startswith("\u25b2 +5.") and "more than noise" in by["planted_5"][6]
    assert by["planted_20"][4] == "#f8b884"
    assert by["planted_callee"][4] in ("#f2e5db", "#dee9f5", "#e8e8e8") and "within the noise" in by["planted_callee"][6]
    assert by["planted_gone"][4] == "#53a6f7" and by["planted_gone"][2] > max(f[2] for f in by.values() if f[0] != "planted_gone")
    assert by["main"][4] == "#e8e8e8" and re.search(r"0\.92 cores to 0\.93 cores, \+1\.0 %", by["main"][6])
    text = (forms / "x.svg").read_text()
    assert "7 of 458 functions changed by more than noise" in text and "<script" not in text and "style=" not in text


def test_over_time_is_what_sql_says(forms, planted):
    store, _, said = planted
    rows = cells((forms / "x.html").read_text(), "over-time")
    assert [r[0] for r in rows] == ["A"] * 60 + ["B"] * 60
    for i, (_, start, level) in enumerate(rows):
        at = said["from"] + i * 10
        assert start == f"{at // 3600 % 24:02d}:{at // 60 % 60:02d}:{at % 60:02d}"
        ns = sum(r["ns"] for r in sql_all(store, "SELECT sum(cpu_ns) AS ns FROM cpu_samples WHERE ts >= ? AND ts < ?", (at, at + 10)))
        assert level == f"{ns / 10e9:.2f} cores"


def test_what_was_not_recorded_is_crossed_out_and_names_are_text(sonde, tmp_path):
    bad = "</title><script>alert(1)</script>&\""
    run = {"run": "cpu", "bucket_s": 1, "period_ns": 10101010}
    samples = [{"kind": "cpu", "at": AT + s, "n": 50, "pid": 1, "comm": "x", "stack": ["main", bad]} for s in range(240) if not 150 <= s < 200]
    put(str(tmp_path / "s"), [{**run, "from": AT, "to": AT + 150}, *(x for x in samples if x["at"] < AT + 150),
                              {**run, "from": AT + 200, "to": AT + 240}, *(x for x in samples if x["at"] >= AT + 200)])
    for end in ("html", "svg"):
        sonde("diff", "--from", AT + 120, "--to", AT + 240, "-o", tmp_path / f"x.{end}", store=tmp_path / "s", check=True)
    rows = cells((tmp_path / "x.html").read_text(), "over-time")
    step = 120 / sum(r[0] == "B" for r in rows)
    assert sum(r[2] == "not recorded" for r in rows) == pytest.approx(50 / step, abs=1) and not any(
        r[2] == "not recorded" for r in rows if r[0] == "A")
    assert bad in {f[0] for f in frames(tmp_path / "x.svg")}
    assert "<script>alert" not in (tmp_path / "x.html").read_text() and bad in html.unescape((tmp_path / "x.svg").read_text())


def test_two_folded_files_have_a_picture_and_no_time(sonde, tmp_path):
    (tmp_path / "a.folded").write_text("main;f 30\nmain;g 10\n")
    (tmp_path / "b.folded").write_text("main;f 30\nmain;h 10\n")
    for end in ("html", "svg"):
        sonde("diff", tmp_path / "a.folded", tmp_path / "b.folded", "-o", tmp_path / f"x.{end}", check=True)
    got = {f[0]: f for f in frames(tmp_path / "x.svg")}
    assert got["f"][3] == pytest.approx(900, abs=0.6) and got["g"][3] == got["h"][3] == pytest.approx(300, abs=0.6)
    assert got["g"][2] > got["h"][2] and "Over time" not in (tmp_path / "x.html").read_text()
