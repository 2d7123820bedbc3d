# SPDX-License-Identifier: Apache-2.0
"""The flame graph page in a real browser: by mouse, by keys, with and without scripting, with hostile names."""
import os
import re

import livedin
import pytest
from browser import ROW, Page, page, pages  # noqa: F401
from conftest import ROOT, UNSEEN

HOSTILE = "</script><img src=x onerror=alert(1)>;\"&'\U0001f525"
# of fold_sample.h: name -> (left, width) in samples of 75, row, samples
PLACES = {"main": (0, 65, 1, 65), "work": (0, 35, 2, 35), "small": (0, 30, 3, 30), "libc.so.6+0x1234": (35, 30, 2, 30),
          "do_syscall_64": (35, 20, 3, 20), HOSTILE: (65, 7, 1, 7), "[no stack]": (72, 3, 1, 3)}


def at(page, name, where=0.5):
    left, width, row, _ = PLACES[name]
    pixel = page.canvas()["width"] / 75
    return (left + width * where) * pixel, row * ROW + ROW / 2


def tip(page, name, where=0.5):
    return page.point(*at(page, name, where))


def focused(page):
    return page.text("#focus")


def chosen(page, option):
    return page.js("return document.getElementById(arguments[0]).value", option)


def test_opens_from_disk_without_a_request_or_an_error(page, pages):
    path = pages()
    page.open(path)
    page.settle()
    assert [u for u in page.do("requests") if not u.startswith("data:")] == ["file://" + path]
    assert page.do("console") == []


def test_the_policy_is_in_force(page, pages):
    page.open(pages())
    page.js("const s = document.createElement('script'); s.textContent = 'window.intruder = 1'; document.body.append(s);"
            "const i = document.createElement('img'); i.src = 'http://127.0.0.1:9/x.png'; document.body.append(i)")
    page.settle()
    assert page.js("return window.intruder") is None
    assert sum("Content Security Policy" in line for line in page.do("console")) >= 2


def test_hostile_names_are_text(page, pages):
    page.open(pages())
    assert page.js("return document.querySelectorAll('img, #rows script, #facts *:not(li):not(b)').length") == 0
    assert HOSTILE in page.text("#rows")
    assert "ho<st" in page.text("h1") and page.js("return document.title") == "CPU time of ho<st"
    assert tip(page, HOSTILE)[0] == HOSTILE
    page.keys("T", "ArrowDown", "ArrowDown", "ArrowDown")
    assert HOSTILE in page.text("#tree")
    assert page.do("console") == []


def test_nothing_turns_the_order_of_the_text_beside_it(page, sonde, tmp_path):
    store, path = livedin.make(str(tmp_path / "s"), 1795144200), str(tmp_path / "x.html")
    for verb, form in (("flame", "svg"), ("diff", "svg"), ("diff", "html"), ("report", "html"), ("flame", "html")):
        path = str(tmp_path / f"{verb}.{form}")
        sonde(verb, "-q", "-o", path, "--from", "2026-11-20T03:00:00Z", "--to", "2026-11-20T03:10:00Z", store=store, check=True)
        with open(path, encoding="utf-8") as f:
            assert not UNSEEN.search(f.read()), path
    page.open(path)
    seen = ""
    for keys in ("T", "t", "l"):
        page.keys("ArrowDown", keys)
        page.press("#tab-functions") if keys == "t" else page.settle()
        seen += page.text("body") + page.js("return [...document.querySelectorAll('[aria-label], [title]')]"
                                            ".map((x) => (x.ariaLabel || '') + x.title).join()")
    assert "\\u202e\\u009b31m" in seen and not UNSEEN.search(seen)
    assert page.do("console") == []


def test_the_pointer_reads_what_the_profile_said(page, pages):
    page.open(pages())
    share = {"main": "86.7 %", "small": "40.0 %", "do_syscall_64": "26.7 %", "[no stack]": "4.00 %"}
    for name, percent in share.items():
        for where in (0.01, 0.5, 0.99) if PLACES[name][1] > 10 else (0.1, 0.5, 0.9):
            got = tip(page, name, where)
            assert got[0] == name and f"{percent} of all" in got[1] and f" {PLACES[name][3]} samples" in got[1]
    assert page.point(*[v + d for v, d in zip(at(page, "work", 0.95), (0, ROW))]) is None  # below it: nothing


def test_a_click_zooms_and_back_returns(page, pages):
    page.open(pages())
    page.point(*at(page, "libc.so.6+0x1234"), click=True)
    page.settle()
    for x in (3, page.canvas()["width"] - 4):
        assert page.point(x, 2 * ROW + 9)[0] == "libc.so.6+0x1234"
    assert "zoom=" in page.do("url")
    assert "Within libc.so.6+0x1234" in page.text("#scope")
    page.do("back")
    page.until("return !document.getElementById('scope').textContent.includes('Within')")
    page.settle()
    assert page.point(3, 2 * ROW + 9)[0] == "work"
    page.do("forward")
    page.until("return document.getElementById('scope').textContent.includes('Within')")
    page.press("#reset")
    page.settle()
    assert page.point(3, 2 * ROW + 9)[0] == "work"


def test_a_link_returns_to_the_same_view(page, pages):
    page.open(pages())
    page.point(*at(page, "work"), click=True)
    page.do("fill", css="#search", value="small")
    page.keys("Escape", "/")
    page.do("type", text="sma?ll")
    page.until("return decodeURIComponent(location.hash).includes('q=sma?ll')")
    page.do("select", css="#group", value="process")
    page.do("select", css="#colour", value="module")
    page.press("#flame")
    page.press("#tab-tree")
    before = page.do("url")
    page.open(pages(), before[before.index("#"):])
    assert page.do("url") == before
    assert chosen(page, "search") == "sma?ll" and chosen(page, "group") == "process" and chosen(page, "colour") == "module"
    assert page.js("return document.getElementById('flame').checked && !document.getElementById('panel-tree').hidden")
    page.open(pages(), "#zoom=99999.x.-1&q=(((&view=evil&hide=9999999&from=7&to=3&type=88&fn=__proto__&constructor=1")
    assert "nothing matches" in page.text("#hits") and tip(page, "work")[0] == "work"
    assert page.do("console") == []


def test_search_counts_and_shares(page, pages):
    page.open(pages())
    page.keys("/")
    page.do("type", text="^(work|do_sys[a-z_0-9]*)$")
    page.until("return document.getElementById('hits').textContent.startsWith('2 functions')")
    assert page.text("#hits") == "2 functions, 73.3 %"
    page.keys("Enter")
    assert page.text("#hits").startswith("1/2") and focused(page).startswith("work")
    page.keys("Escape", "n")
    assert page.text("#hits") == ""
    page.do("fill", css="#search", value="(((")
    page.until("return document.getElementById('hits').textContent !== ''")
    assert page.text("#hits") == "nothing matches"


def test_everything_by_keyboard_alone(page, pages):
    page.open(pages())
    page.keys("ArrowDown")
    assert focused(page).startswith("main")
    page.keys("ArrowRight")
    assert focused(page).startswith(HOSTILE)
    page.keys("ArrowLeft", "ArrowDown", "ArrowRight")
    assert focused(page).startswith("libc.so.6+0x1234") and "40.0 %" in focused(page)
    page.keys("Enter")
    assert "Within libc.so.6+0x1234" in page.text("#scope")
    page.keys("ArrowUp", "Enter")
    assert "Within main" in page.text("#scope")
    page.keys("Backspace")
    page.until("return document.getElementById('scope').textContent.includes('Within libc')")
    page.keys("0")
    assert "Within" not in page.text("#scope")
    page.keys("?")
    assert page.js("return document.getElementById('keys').open")
    page.keys("Escape")
    assert not page.js("return document.getElementById('keys').open")
    page.keys("r")
    assert chosen(page, "view") == "callers"
    page.keys("r", "i", "m", "u", "k", "g", "g", "c", "v")
    assert page.js("return ['flame', 'merge', 'runtime', 'kernel'].every((k) => document.getElementById(k).checked)")
    assert chosen(page, "group") == "container" and chosen(page, "colour") == "origin"
    assert page.js("return document.querySelector('#types [aria-selected=true]').textContent") == "memory allocated"
    page.keys("0", "v", "v")
    page.keys("t")
    assert page.js("return document.activeElement.closest('#top') !== null")
    page.keys("D", "D")
    assert page.js("return document.documentElement.dataset.theme") == "dark"
    page.keys("D")


def test_functions_by_keyboard(page, pages):
    page.open(pages())
    page.keys("ArrowDown", "ArrowDown", "s")
    assert chosen(page, "view") == "sandwich" and "callers and callees of work" in page.text("#chips")
    page.keys("0", "f")
    assert "only through work" in page.text("#chips") and "35 samples" in page.text("#scope")
    page.keys("0", "x")
    assert "hidden: work" in page.text("#chips") and "75 samples" in page.text("#scope")
    page.keys("0", "ArrowDown", "ArrowDown", "X")
    assert "without work" in page.text("#chips") and "40 samples" in page.text("#scope")
    page.keys("Backspace")
    page.until("return !document.getElementById('chips').textContent")


def test_a_search_changes_what_is_drawn(page, pages, tmp_path):
    from browser import png_read
    page.open(pages())
    page.do("move", x=2, y=2)
    pixel = lambda name: (lambda x, y: png_read(page.shot(tmp_path / "s.png", "#lower canvas"))[2][int(y) - 7][int(x)])(*at(page, name))
    before = pixel("small"), pixel("work")
    page.do("fill", css="#search", value="small")
    page.settle()
    after = pixel("small"), pixel("work")
    assert after[0] != before[0] and after[1] != before[1] and after[0] != after[1]


def test_the_table_is_the_twin_of_the_graph(page, pages):
    page.open(pages())
    rows = lambda: page.js("return [...document.querySelectorAll('#rows tr')].map("
                           "(r) => [r.cells[0].textContent, r.cells[2].textContent, r.cells[4].textContent])")
    assert rows()[0] == ["40.0 %", "40.0 %", "small"]
    assert ["6.67 %", "46.7 %", "work"] in rows()
    page.press("th:nth-child(3) button")
    assert rows()[0] == ["0.00 %", "86.7 %", "main"]
    assert page.js("return document.querySelector('th:nth-child(3)').getAttribute('aria-sort')") == "descending"
    page.do("fill", css="#filter", value="kernel")
    assert [r[2] for r in rows()] == ["do_syscall_64"]
    page.press("td.fn button")
    assert focused(page).startswith("do_syscall_64")
    page.do("fill", css="#filter", value="")
    page.keys("Escape", "Escape")
    page.point(*at(page, "libc.so.6+0x1234"), click=True)
    assert {r[2] for r in rows()} == {"libc.so.6+0x1234", "do_syscall_64"}


def test_the_tree_is_the_twin_of_the_graph(page, pages):
    page.open(pages())
    items = lambda: page.js("return [...document.querySelectorAll('#tree [role=treeitem]')].map((li) => [li.ariaLevel,"
                            " li.ariaExpanded, li.ariaPosInSet, li.ariaSetSize, li.querySelector('.name').textContent])")
    page.press("#tab-tree")
    assert [i[4] for i in items()][:2] == ["all", "main"] and items()[1][:4] == ["2", "false", "1", "3"]
    page.point(*at(page, "do_syscall_64"), click=True)  # the graph leads, the tree follows
    assert page.js("return document.querySelector('#tree [aria-selected=true]').textContent").startswith("26.7 %do_syscall_64")
    page.keys("0", "T", "Home")
    page.keys("ArrowRight")  # the tree leads, the graph follows
    assert focused(page).startswith("main")
    page.keys("ArrowRight", "ArrowDown")
    page.keys("Enter")
    assert "Within" in page.text("#scope")


def test_tabs_have_their_own_units(page, pages):
    page.open(pages())
    page.keys("v")
    assert "MiB" in tip(page, "work")[1] and "objects" in tip(page, "work")[1] and "/" not in page.text("#scope").split(".")[0]
    page.press("#types button:nth-child(3)")
    assert "Of 75 objects, 715 MiB" in page.text("#scope")
    page.do("back")
    page.until("return document.querySelector('#types [aria-selected=true]').textContent === 'memory allocated'")


def test_copy_and_save(page, pages, tmp_path):
    import xml.etree.ElementTree as ET
    from browser import png_read
    page.open(pages())
    page.point(*at(page, "small"), click=True)
    page.keys("y")
    page.until("return document.getElementById('said').textContent !== ''")
    assert page.do("clipboard") == "main;work;small 30"
    page.keys("0", "e")
    assert page.do("download", path=str(tmp_path / "x.svg")) == "flame-cpu.svg"
    svg = ET.parse(tmp_path / "x.svg").getroot()
    titles = [t.text for t in svg.iter("{http://www.w3.org/2000/svg}title")]
    assert any(t.startswith(HOSTILE) for t in titles) and len(titles) == 8
    page.keys("E")
    assert page.do("download", path=str(tmp_path / "x.png")) == "flame-cpu.png"
    assert png_read(tmp_path / "x.png")[1] == 4 * ROW * 2
    page.do("pdf", path=str(tmp_path / "x.pdf"))
    assert os.path.getsize(tmp_path / "x.pdf") > 5000


def test_without_scripting_a_plain_table_is_left(page, pages):
    page.start(scripts=False)
    try:
        page.do("open", url="file://" + pages(), wait=False)
        dom = page.do("content")
        body = dom[dom.index("<tbody"):dom.index("</tbody>")]
        assert body.count("<tr>") == 7 and "<button" not in body and "<img" not in body
        assert "40.0 %" in body and "do_syscall_64" in body
        assert "Scripting is off" in re.sub(r"\s+", " ", dom)
        assert page.box("#lower") is None and page.box("#rows")["height"] > 100
    finally:
        page.start()


def test_text_on_every_colour_has_enough_contrast(page):
    script = open(os.path.join(ROOT, "tools", "page", "script", "colour.js")).read()
    page.do("open", url="about:blank", wait=False)
    worst = page.js(script + """
        const light = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        const luminance = (rgb) => { const [r, g, b] = rgb.map((v) => light(v / 255)); return .2126 * r + .7152 * g + .0722 * b; };
        const parse = (c) => c[0] === '#' ? [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)) : c.match(/\\d+/g).map(Number);
        const contrast = (a, b) => { const [x, y] = [luminance(parse(a)), luminance(parse(b))].sort((p, q) => q - p);
            return (x + .05) / (y + .05); };
        let worst = 99;
        for (const dark of [false, true])
            for (const scheme of COLOURS)
                for (let origin = 0; origin < ORIGINS.length; origin++)
                    for (let i = 0; i < 1500; i++) {
                        const p = colourPalette({name: ['pkg' + i + '::f'], module: ['m' + i], origin: [origin]}, dark, false, scheme);
                        worst = Math.min(worst, contrast(p.fill(0), p.text), contrast(p.quiet, p.text), contrast(p.hit, p.hitText));
                    }
        return worst;""")
    assert worst >= 4.5


def test_one_package_has_one_colour_in_every_report(page):
    script = open(os.path.join(ROOT, "tools", "page", "script", "colour.js")).read()
    page.do("open", url="about:blank", wait=False)
    packages = page.js(script + """return [
        colourPackage('net/http.(*conn).serve', 'server', 2), colourPackage('main.main', 'server', 2),
        colourPackage('slices.SortFunc[go.shape.[]a/b.C]', 'server', 2),
        colourPackage('void std::sort<a::b*>(int)', 'app', 0), colourPackage('<alloc::vec::Vec<T> as X>::f', 'app', 0),
        colourPackage('memcpy', 'libc.so.6', 0), colourPackage('tcp_v4_rcv', '[kernel]', 1)]""")
    assert packages == ["net/http", "main", "slices", "std", "alloc", "libc.so.6", "[kernel]"]


def test_origins_stay_apart_for_every_kind_of_colour_sight(page):
    """Simulated by the matrices of Machado, Oliveira and Fernandes (2009) for a whole lack of one kind of cone."""
    script = open(os.path.join(ROOT, "tools", "page", "script", "colour.js")).read()
    page.do("open", url="about:blank", wait=False)
    nearest = page.js(script + """
        const sights = [[1, 0, 0, 0, 1, 0, 0, 0, 1],
            [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
            [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881],
            [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.303900]];
        const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        const lab = (c, m) => {
            const v = c.match(/\\d+/g).map((x) => linear(x / 255));
            const [r, g, b] = [0, 3, 6].map((i) => Math.max(0, m[i] * v[0] + m[i + 1] * v[1] + m[i + 2] * v[2]));
            const [l, n, s] = [0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b, 0.2119034982 * r + 0.6806995451 * g
                + 0.1073969566 * b, 0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b].map(Math.cbrt);
            return [0.2104542553 * l + 0.793617785 * n - 0.0040720468 * s, 1.9779984951 * l - 2.428592205 * n + 0.4505937099 * s,
                0.0259040371 * l + 0.7827717662 * n - 0.808675766 * s];
        };
        let nearest = 9;
        for (const m of sights)
            for (const dark of [false, true])
                for (const a of [0, 1, 2, 3, 6, 8])
                    for (const b of [0, 1, 2, 3, 6].filter((o) => o < a)) {
                        const [x, y] = [a, b].map((o) => lab(colourOf('', '', o, dark, 'origin'), m));
                        nearest = Math.min(nearest, Math.hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]));
                    }
        return nearest;""")
    assert nearest >= 0.05  # OKLab; 0.02 is a just noticeable difference
