# SPDX-License-Identifier: Apache-2.0
"""The page of `sonde report` in a browser: both themes, narrow and wide, axe-core, no request; the drawing is as high as the
numbers; a spike and a process lead to their stacks; without scripting there are tables. The screenshots stay in
build/page-shots, to be looked at."""
import os

import pytest
from browser import page, png_read  # noqa: F401
from conftest import BUILD
from test_report import cells, made, report  # noqa: F401

SHOTS = os.path.join(BUILD, "page-shots")
pytestmark = pytest.mark.page


@pytest.fixture(scope="module")
def shots():
    os.makedirs(SHOTS, exist_ok=True)
    return lambda name: os.path.join(SHOTS, name + ".png")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_narrow_and_wide_without_findings(page, report, shots, theme):
    for width in (360, 1280):
        page.start(width, 900, media={"scheme": theme})
        page.open(report)
        page.settle()
        page.shot(shots(f"report-{theme}-{width}"), whole=True)
        assert page.js("return document.documentElement.scrollWidth <= innerWidth")
        page.press("#report details summary")
        assert page.js("return document.documentElement.scrollWidth <= innerWidth")
        assert not [v for v in page.do("axe") if v["impact"] in ("serious", "critical", "moderate")]
        assert [u for u in page.do("requests") if not u.startswith("data:")] == ["file://" + report]
        assert page.do("console") == []


def colours(page, css):
    """What is drawn with: the fill of each path, by its class."""
    return page.js("return Object.fromEntries([...document.querySelectorAll(arguments[0])].map((p) => "
                   "[p.getAttribute('class'), getComputedStyle(p).fill.match(/\\d+/g).slice(0, 3).map(Number)]))", css)


def test_the_drawing_is_as_high_as_the_numbers(page, report, tmp_path):
    """By the colours of its pixels: in each column, what the processes have together is its share of the highest one."""
    page.start(1280, 900)
    page.open(report)
    page.settle()
    fills = {tuple(c) for k, c in colours(page, "#drawing path").items() if k.startswith("s") and k[1:].isdigit()}
    _, _, rows = png_read(page.shot(tmp_path / "d.png", "#drawing"))
    table = cells(open(report).read(), "use")
    width, high = len(rows[0]) - 2, len(rows) - 2
    top = max(float(r[1]) for r in table if r[1] != "not recorded")
    for i, (_, cores, _, _) in enumerate(table):
        x = 1 + int((i + 0.5) * width / len(table))
        filled = sum(row[x] in fills for row in rows)
        assert filled == 0 if cores == "not recorded" else filled == pytest.approx(float(cores) / top * high, abs=8)


def test_a_spike_and_a_process_lead_to_their_stacks(page, report):
    page.start(1280, 900)
    page.open(report)
    page.press("#all-spikes summary")
    page.press("#spikes .go button")
    page.settle()
    assert "chosen" in page.text("#range") and "hot_planted" in page.text("#rows").split("\n")[0]
    page.keys("Backspace")
    page.until("return document.getElementById('chips').textContent === ''")
    page.js("[...document.querySelectorAll('#procs .go button')].find((b) => b.textContent === 'nginx').click()")
    page.settle()
    assert "Within nginx (11)" in page.text("#scope") and page.text("#rows").startswith("37.4 %")
    page.press("#reset")
    page.js("document.querySelectorAll('#types button')[1].click()")
    page.until("return document.getElementById('rows').textContent.includes('schedule')")
    assert page.do("console") == []


def test_processes_sort_and_filter(page, report):
    page.start(1280, 900)
    page.open(report)
    first = lambda: page.js("return document.querySelector('#procs tbody tr').cells[0].textContent")  # noqa: E731
    assert first() == "10"
    page.press("#procs th:first-child button")
    assert first() == "10" and page.js("return document.querySelector('#procs th').ariaSort") == "ascending"
    page.press("#procs th:first-child button")
    assert first() == "666"
    page.do("fill", css="#procs-filter", value="jelly")
    page.until("return document.querySelectorAll('#procs tbody tr').length === 1")
    assert first() == "500"
    assert page.do("console") == []


def test_without_scripting_there_are_tables(page, report, shots):
    page.start(1280, 900, scripts=False)
    page.do("open", url="file://" + report, wait=False)
    page.shot(shots("report-no-script"), whole=True)
    # no script can ask this page: what a person sees is in its text
    assert "hot_planted" in page.text("#rows") and "ffmpeg" in page.text("#procs") and "not recorded" in page.text("#use")
