# SPDX-License-Identifier: Apache-2.0
"""How the flame graph page looks and how fast it is: themes, widths, forced colours, axe-core, a hundred thousand nodes.
The screenshots stay in build/page-shots, to be looked at."""
import os
import re
import time

import pytest
from browser import page, pages, png_read  # noqa: F401
from conftest import BUILD

SHOTS = os.path.join(BUILD, "page-shots")
pytestmark = pytest.mark.page


@pytest.fixture(scope="module")
def shots():
    os.makedirs(SHOTS, exist_ok=True)
    return lambda name: os.path.join(SHOTS, name + ".png")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_both_themes_narrow_and_wide(page, pages, shots, theme, width):
    page.start(width, 900, media={"scheme": theme})
    page.open(pages(3000))
    page.settle()
    assert page.js("return document.documentElement.scrollWidth <= innerWidth")
    background = page.js("return getComputedStyle(document.body).backgroundColor")
    assert (int(re.findall(r"\d+", background)[0]) < 60) == (theme == "dark")
    page.shot(shots(f"{theme}-{width}"), whole=True)
    page.keys("ArrowDown", "ArrowDown", "s", "T")
    page.settle()
    page.shot(shots(f"{theme}-{width}-sandwich"), whole=True)
    assert page.js("return document.documentElement.scrollWidth <= innerWidth")
    page.keys("0", "l")
    page.press("#tab-lines")
    page.do("fill", css="#search", value="EVP")
    page.settle()
    page.shot(shots(f"{theme}-{width}-search"), whole=True)
    assert page.do("console") == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(page, pages, theme):
    page.start(1280, 900, media={"scheme": theme})
    for path, keys in ((pages(), ()), (pages(3000), ("T",)), (pages(3000), ("ArrowDown", "ArrowDown", "l")),
                       (pages(3000), ("ArrowDown", "ArrowDown", "s", "f")), (pages(), ("?",))):
        page.open(path)
        page.keys(*keys)
        page.settle()
        found = [v for v in page.do("axe") if v["impact"] in ("serious", "critical", "moderate")]
        assert not found, found


def test_forced_colours_and_reduced_motion(page, pages, shots):
    page.start(1280, 900, forced=True, media={"motion": "reduce"})
    page.open(pages(3000))
    page.settle()
    width, height, rows = png_read(page.shot(shots("forced"), "#lower canvas"))
    assert len({c for row in rows[:60:4] for c in row}) < 200  # text and edges, no fills
    at = page.canvas()
    page.do("click", x=at["x"] + 30, y=at["y"] + 50)
    # without a glide the zoom is there in the next frame
    page.js("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    name = page.point(20, 50)[0]
    assert page.point(at["width"] - 20, 50)[0] == name


def test_print_shows_all_rows(page, pages, tmp_path):
    page.start()
    page.open(pages(3000))
    page.do("media", media="print")
    page.js("dispatchEvent(new Event('beforeprint'))")
    tall = page.js("return document.querySelector('#lower .tall').offsetHeight")
    assert page.box("#lower canvas")["height"] == tall
    page.js("dispatchEvent(new Event('afterprint'))")
    page.do("media", media="screen")
    assert page.box("#lower canvas")["height"] < tall


def test_a_hundred_thousand_nodes(page, pages):
    """The machine may be busy: what the page's own work takes is counted as time on the CPU, the best of three."""
    path = pages(100000)
    assert os.path.getsize(path) <= 3 << 20
    paints, tasks = [], []
    for _ in range(3):
        page.start()
        page.open(path)
        page.until("return document.querySelector('#lower canvas').dataset.drawn !== undefined")
        paints.append(page.js("return performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        tasks.append(page.do("metrics")["TaskDuration"])
    print("first paint", paints, "ms; all work until the graph stood", tasks, "s")
    assert min(paints) <= 1000 and min(tasks) <= 1.0, (paints, tasks)


def test_searching_and_zooming_a_hundred_thousand_nodes(page, pages):
    page.start()
    page.open(pages(100000))
    spent = lambda: page.do("metrics")["TaskDuration"]
    searches = []
    for text in ("EVP_step_1", "tcp", "handle|serve"):
        page.settle()
        before = spent()
        page.do("fill", css="#search", value=text)
        page.until("return document.getElementById('hits').textContent.includes('function') && location.hash.includes(arguments[0])",
                   text[:3])
        searches.append(spent() - before)
    page.keys("Escape")
    page.settle()
    frames = page.js("""const c = document.querySelector('#lower canvas'), b = c.getBoundingClientRect(), times = [];
        c.dispatchEvent(new MouseEvent('click', {clientX: b.left + 40, clientY: b.top + 90, bubbles: true}));
        return new Promise((done) => { let last = performance.now(); (function tick() { requestAnimationFrame(() => {
            const now = performance.now(); times.push(now - last); last = now;
            times.length < 12 ? tick() : done(times); }); })(); });""")
    print("search", searches, "s of work; frames of a zoom", frames, "ms")
    assert min(searches) <= 0.2, searches
    assert sorted(frames[1:])[5] <= 17.5, frames
