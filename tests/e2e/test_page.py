# SPDX-License-Identifier: Apache-2.0
"""The flame graph page in a real browser: by mouse, by keys, with and without scripting, with hostile names."""
import os
import re
import subprocess
import time

import pytest
from browser import Page
from conftest import BUILD, ROOT, need

HOSTILE = "</script><img src=x onerror=alert(1)>;\"&'\U0001f525"


@pytest.fixture(scope="module")
def page():
    p = Page()
    yield p
    p.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """make(NODES=None) -> a page that tests/unit/tools/makepage wrote; without NODES that of fold_sample.h."""
    program = os.path.join(BUILD, "tests", "makepage")
    need("build/tests/makepage (make unit-tests)", program)
    folder = tmp_path_factory.mktemp("pages")

    def make(nodes=None):
        path = str(folder / f"{nodes or 'sample'}.html")
        if not os.path.exists(path):
            subprocess.run([program, path, *([str(nodes)] if nodes else [])], check=True)
        return path
    return make


def test_opens_from_disk_without_a_request_or_an_error(page, pages):
    path = pages()
    page.open(path)
    time.sleep(0.3)
    assert [u for u in page.requests() if not u.startswith("data:")] == ["file://" + path]
    assert page.console() == []


def test_the_policy_is_in_force(page, pages):
    page.open(pages())
    page.js("const s = document.createElement('script'); s.textContent = 'window.intruder = 1'; document.body.append(s);"
            "const i = document.createElement('img'); i.src = 'http://127.0.0.1:9/x.png'; document.body.append(i)")
    time.sleep(0.2)
    assert page.js("return window.intruder") is None
    assert sum("Content Security Policy" in e["message"] for e in page.console()) >= 2


def test_hostile_names_are_text(page, pages):
    page.open(pages())
    assert page.js("return document.querySelectorAll('img, #rows script, #facts *:not(li):not(b)').length") == 0
    assert page.find(HOSTILE)["total_samples"] == 7
    assert HOSTILE in page.text("#rows")
    assert "ho<st" in page.text("h1") and page.driver.title == "CPU time of ho<st"
    node = page.find(HOSTILE)
    page.mouse(node["x"] + node["width"] / 2, node["y"] + 9)
    assert page.text("#tip .name") == HOSTILE
    assert page.console() == []


def test_the_pointer_reads_what_the_profile_said(page, pages):
    page.open(pages())
    expect = {"main": (65, "86.7 %"), "small": (30, "40.0 %"), "do_syscall_64": (20, "26.7 %"), "[no stack]": (3, "4.00 %")}
    for name, (samples, share) in expect.items():
        node = page.find(name)
        for at in (1.5, node["width"] / 2, node["width"] - 2.5):
            page.mouse(node["x"] + at, node["y"] + 9)
            tip = page.text("#tip")
            assert page.text("#tip .name") == name
            assert f"{share} of all" in tip and f" {samples} samples" in tip
    width = page.view()["width"]
    assert abs(page.find("small")["width"] - width * 30 / 75) < 1
    assert abs(page.find("do_syscall_64")["width"] - width * 20 / 75) < 1


def test_a_click_zooms_and_back_returns(page, pages):
    page.open(pages())
    node = page.find("libc.so.6+0x1234")
    page.mouse(node["x"] + node["width"] / 2, node["y"] + 9, click=True)
    view = page.settled()
    assert view["zoom"]["name"] == "libc.so.6+0x1234"
    assert abs(view["zoom"]["width"] - view["width"]) < 1
    assert "z=" in page.driver.current_url
    assert "Within libc.so.6+0x1234" in page.text("#scope")
    page.driver.back()
    assert page.settled()["zoom"]["name"] == "all"
    page.driver.forward()
    assert page.settled()["zoom"]["name"] == "libc.so.6+0x1234"
    page.js("document.getElementById('reset').click()")
    assert page.settled()["zoom"]["name"] == "all"


def test_a_link_returns_to_the_same_view(page, pages):
    page.open(pages())
    zoom = page.find("work")["id"]
    page.driver.get("about:blank")
    page.driver.get(f"file://{pages()}#z={zoom}&q=sma%6cl")
    page.until("return window.__sonde && window.__sonde.ready")
    view = page.settled()
    assert (view["zoom"]["name"], view["search"]) == ("work", "small")
    page.driver.get("about:blank")
    page.driver.get(f"file://{pages()}#z=99999&q=(((")
    page.until("return window.__sonde && window.__sonde.ready")
    assert page.settled()["zoom"]["name"] == "all"
    assert "nothing matches" in page.text("#hits")


def test_search_counts_and_shares(page, pages):
    page.open(pages())
    page.keys("/", "^(work|do_sys[a-z_0-9]*)$")
    page.until("return window.__sonde.matches() !== null && window.__sonde.matches().functions === 2")
    found = page.js("return window.__sonde.matches()")
    assert found["nodes"] == 2 and abs(found["share"] - (35 + 20) / 75) < 1e-9
    assert page.text("#hits") == "2 functions, 73.3 %"
    page.keys("\ue007")  # Enter in the box: the next hit
    assert page.text("#hits").startswith("1/2")
    assert page.js("return window.__sonde.focused().name") == "work"
    page.keys("\ue00c")
    assert page.js("return window.__sonde.matches()") is None


def test_everything_by_keyboard_alone(page, pages):
    left, up, right, down, enter, escape, back = "\ue012", "\ue013", "\ue014", "\ue015", "\ue007", "\ue00c", "\ue003"
    focused = lambda: page.js("return window.__sonde.focused().name")
    page.open(pages())
    page.keys(down)
    page.keys(down)
    assert focused() == "main"
    page.keys(right)
    assert focused() == HOSTILE
    page.keys(left, down, right)
    assert focused() == "libc.so.6+0x1234"
    assert "40.0 %" in page.text("#focus")
    page.keys(enter)
    assert page.settled()["zoom"]["name"] == "libc.so.6+0x1234"
    page.keys(up, enter)
    assert page.settled()["zoom"]["name"] == "main"
    page.keys(back)
    assert page.settled()["zoom"]["name"] == "libc.so.6+0x1234"
    page.keys("0")
    assert page.settled()["zoom"]["name"] == "all"
    page.keys("?")
    assert page.js("return document.getElementById('keys').open")
    page.keys(escape)
    assert not page.js("return document.getElementById('keys').open")
    page.keys("/", "small|libc", enter, escape)
    page.keys("t")
    assert page.js("return document.activeElement.closest('#top') !== null")


def test_a_search_changes_what_is_drawn(page, pages):
    page.open(pages())
    node = page.find("small")
    pixel = lambda: page.js("const c = document.getElementById('canvas').getContext('2d');"
                            "return [...c.getImageData(arguments[0], arguments[1], 1, 1).data]",
                            int(node["x"] + node["width"] - 12), int(node["y"] + 9))
    time.sleep(0.2)
    before = pixel()
    page.keys("/", "small")
    page.until("return window.__sonde.matches() !== null")
    time.sleep(0.2)
    assert pixel() != before


def test_the_table_is_the_twin_of_the_graph(page, pages):
    page.open(pages())
    rows = lambda: page.js("return [...document.querySelectorAll('#rows tr')].map("
                           "(r) => [r.cells[0].textContent, r.cells[2].textContent, r.cells[4].textContent])")
    assert rows()[0] == ["40.0 %", "40.0 %", "small"]
    assert ["6.67 %", "46.7 %", "work"] in rows()
    page.js("document.querySelector('th:nth-child(3) button').click()")
    assert rows()[0] == ["0.00 %", "86.7 %", "main"]
    assert page.js("return document.querySelector('th:nth-child(3)').getAttribute('aria-sort')") == "descending"
    page.js("[...document.querySelectorAll('td.fn button')].find((b) => b.textContent === 'do_syscall_64').click()")
    assert page.js("return window.__sonde.focused().name") == "do_syscall_64"
    node = page.find("libc.so.6+0x1234")
    page.mouse(node["x"] + 5, node["y"] + 9, click=True)
    page.settled()
    assert {r[2] for r in rows()} == {"libc.so.6+0x1234", "do_syscall_64"}


def test_without_scripting_a_plain_table_is_left(page, pages):
    dom, _ = page.open_without_scripts(pages())
    body = dom[dom.index("<tbody"):dom.index("</tbody>")]
    assert body.count("<tr>") == 7 and "<button" not in body and "<img" not in body
    assert "40.0 %" in body and "do_syscall_64" in body
    assert "Scripting is off" in re.sub(r"\s+", " ", dom)
    assert '<html lang="en">' in dom  # no class: what needs scripting is not shown


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_narrow_and_wide_light_and_dark(page, pages, theme, tmp_path):
    page.media(prefers_color_scheme=theme)
    try:
        for width in (360, 1280):
            page.size(width, 900)
            page.open(pages(3000))
            assert page.js("return document.documentElement.scrollWidth <= innerWidth")
            background = page.js("return getComputedStyle(document.body).backgroundColor")
            assert (int(re.findall(r"\d+", background)[0]) < 60) == (theme == "dark")
            assert page.console() == []
    finally:
        page.media()
        page.size(1280, 900)


def test_text_on_every_colour_has_enough_contrast(page):
    script = open(os.path.join(ROOT, "tools", "page", "colour.js")).read()
    page.driver.get("about:blank")
    worst = page.js(script + """
        const light = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        const luminance = (rgb) => { const [r, g, b] = rgb.map((v) => light(v / 255)); return .2126 * r + .7152 * g + .0722 * b; };
        const parse = (c) => c[0] === '#' ? [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)) : c.match(/\\d+/g).map(Number);
        const contrast = (a, b) => { const [x, y] = [luminance(parse(a)), luminance(parse(b))].sort((p, q) => q - p);
            return (x + .05) / (y + .05); };
        let worst = 99;
        for (const dark of [false, true])
            for (let origin = 0; origin < 6; origin++)
                for (let i = 0; i < 2000; i++) {
                    const frames = {n: 1, name: ['pkg' + i + '::f'], module: ['m' + i], origin: [origin]};
                    const p = colourPalette(frames, dark, false);
                    worst = Math.min(worst, contrast(p.fill[0], p.text), contrast(p.quiet[0], p.text), contrast(p.hit, p.hitText));
                }
        return worst;""")
    assert worst >= 4.5


def test_one_package_has_one_colour_in_every_report(page):
    script = open(os.path.join(ROOT, "tools", "page", "colour.js")).read()
    page.driver.get("about:blank")
    packages = page.js(script + """return [
        colourPackage('net/http.(*conn).serve', 'server', 2), colourPackage('main.main', 'server', 2),
        colourPackage('slices.SortFunc[go.shape.[]a/b.C]', 'server', 2),
        colourPackage('void std::sort<a::b*>(int)', 'app', 0), colourPackage('<alloc::vec::Vec<T> as X>::f', 'app', 0),
        colourPackage('memcpy', 'libc.so.6', 0), colourPackage('tcp_v4_rcv', '[kernel]', 1)]""")
    assert packages == ["net/http", "main", "slices", "std", "alloc", "libc.so.6", "[kernel]"]


def test_a_hundred_thousand_nodes(page, pages):
    path = pages(100000)
    assert os.path.getsize(path) <= 3 << 20
    ready = []
    for _ in range(3):  # the machine may be busy: the best of three
        page.open(path)
        page.until("return performance.getEntriesByName('first-contentful-paint').length > 0 && window.__sonde.shown > 0")
        ready.append(page.js("return Math.max(performance.getEntriesByName('first-contentful-paint')[0].startTime, "
                             "window.__sonde.shown)"))
    assert page.js("return window.__sonde.nodes") > 90000
    assert min(ready) <= 1000, ready
    page.keys("/", "tcp")
    page.until("return window.__sonde.matches() !== null")
    took = page.js("""const box = document.getElementById('search'); const start = performance.now();
        return new Promise((done) => {
            box.value = 'EVP_step_1'; box.dispatchEvent(new Event('input'));
            (function look() { window.__sonde.view().search === 'EVP_step_1'
                ? requestAnimationFrame(() => done(performance.now() - start)) : setTimeout(look, 1); })(); });""")
    assert took <= 200 + 120  # it waits 120 ms for more letters before it searches
