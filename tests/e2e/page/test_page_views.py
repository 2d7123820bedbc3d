# SPDX-License-Identifier: Apache-2.0
"""Each view of the flame graph page against a recomputation from the rows that it was made of: what the pointer reads on
the canvas, what stands in the table, what is drawn."""
import glob
import re
import sqlite3
import xml.etree.ElementTree as ET

import page_oracle as oracle
import pytest
from browser import ROW, page, pages, png_read  # noqa: F401
from conftest import need_root

NODES = 3000


@pytest.fixture(scope="module")
def made(pages):
    path = pages(NODES)
    return path, oracle.Rows(path + ".json")


def table(page, column):
    """name -> percent in a column of the table, all rows."""
    for _ in range(20):
        if page.js("return document.getElementById('more').hidden"):
            break
        page.press("#more")
    rows = page.js("return [...document.querySelectorAll('#rows tr')].map((r) => [...r.cells].map((c) => c.textContent))")
    return {(r[4], r[5]): float(r[column].split()[0]) for r in rows}


def same_table(page, root):
    sums = oracle.functions(root)
    selves, totals = table(page, 0), table(page, 2)
    assert set(totals) == set(sums)
    for key, (own, total) in sums.items():
        assert abs(selves[key] - 100 * own / root.total) <= 0.051, key
        assert abs(totals[key] - 100 * total / root.total) <= 0.051, key


def find_in_graph(page, name):
    """Through the table, as a person would."""
    page.do("fill", css="#filter", value=re.escape(name))
    page.js("const b = [...document.querySelectorAll('td.fn button')].find((x) => x.textContent === arguments[0]); b.click()", name)
    page.do("fill", css="#filter", value="")
    page.keys("Escape")
    page.settle()


@pytest.mark.long
def test_callers_first(page, made):
    page.open(made[0])
    root = oracle.forward(made[1])
    assert f"Of {root.total:,}".replace(",", "\u202f") + " samples" in page.text("#scope")
    assert oracle.look_over(page, root) >= 20
    same_table(page, root)


@pytest.mark.page
def test_leaves_first(page, made):
    page.open(made[0])
    page.keys("r")
    oracle.look_over(page, oracle.inverted(made[1]))
    page.do("select", css="#view", value="callees")
    oracle.look_over(page, oracle.forward(made[1]), most=10)


@pytest.mark.page
def test_root_below(page, made):
    page.open(made[0])
    page.keys("i")
    page.js("document.getElementById('lower').scrollIntoView({block: 'start'})")
    root = oracle.forward(made[1])
    page.settle()  # scrolled to its bottom: the root is the last row
    box, tall = page.box("#lower"), page.js("return document.querySelector('#lower .tall').offsetHeight")
    assert tall == (oracle.depth_of(root) + 1) * ROW
    assert page.point(200, min(box["height"], tall) - 12)[0] == "all"
    assert page.point(2, min(box["height"], tall) - 12 - ROW)[0] == root.ordered()[0].look[0]


@pytest.mark.page
@pytest.mark.parametrize("by", ["container", "process", "thread"])
def test_groups(page, made, by):
    page.open(made[0])
    page.do("select", css="#group", value=by)
    oracle.look_over(page, oracle.forward(made[1], group=by))
    page.keys("r")
    oracle.look_over(page, oracle.inverted(made[1], group=by), most=20)


@pytest.mark.page
def test_a_sandwich_shows_callers_and_callees(page, made):
    page.open(made[0])
    root = oracle.forward(made[1])
    sums = oracle.functions(root)
    key = max((k for k in sums if k[1] == "server"), key=lambda k: sums[k][1])
    name = (*key, 2, False)
    find_in_graph(page, name[0])
    page.keys("Escape", "s")
    callers, callees = oracle.sandwich(made[1], name[:2])
    callers.look = callees.look = name
    oracle.look_over(page, callees, most=25, deep=12, whole=root.total)
    page.js("const u = document.getElementById('upper'); u.scrollIntoView({block: 'start'}); u.scrollTop = 1e6")
    page.settle()
    height = page.box("#upper canvas")["height"]
    box = page.canvas("upper")
    seen = 0
    for node, row, left, right in oracle.boxes(callers, box["width"], 12):
        if right - left < 14 or row * ROW > height - ROW or seen > 25:
            continue
        tip = page.point((left + right) / 2, height - row * ROW - 10, which="upper")
        assert tip[0] == node.look[0] and f" {node.total:,}".replace(",", "\u202f") + " samples" in tip[1]
        seen += 1
    assert seen >= 2
    page.keys("Backspace")
    page.until("return document.getElementById('upper').hidden")
    oracle.look_over(page, root, most=5)


@pytest.mark.page
def test_focus_hide_and_leave_out(page, made):
    page.open(made[0])
    sums = oracle.functions(oracle.forward(made[1]))
    name = max((k for k in sums if k[1] == "server"), key=lambda k: sums[k][1])
    for key, option in (("f", "focus"), ("x", "hide"), ("X", "drop")):
        page.keys("0")
        find_in_graph(page, name[0])
        page.keys("Escape", key)
        root = oracle.forward(made[1], **{option: [name]})
        oracle.look_over(page, root)
        same_table(page, root)
        assert name[0] in page.text("#chips")
        page.press("#chips button")
        oracle.look_over(page, oracle.forward(made[1]), most=3)


@pytest.mark.page
def test_recursion_kernel_and_runtime(page, made):
    for keys, options in ((["m"], {"merge": True}), (["k"], {"kernel": True}), (["u"], {"runtime": True}),
                          (["m", "k", "u"], {"merge": True, "kernel": True, "runtime": True})):
        page.open(made[0])
        page.keys(*keys)
        root = oracle.forward(made[1], **options)
        oracle.look_over(page, root)
        same_table(page, root)


@pytest.mark.long
def test_a_brushed_range_and_everything_follows(page, made):
    page.open(made[0])
    box = page.box("#strip")
    step, y = box["width"] / 60, box["y"] + 40
    page.do("drag", x=box["x"] + 10.5 * step, y=y, x2=box["x"] + 24.5 * step, y2=y)
    root = oracle.forward(made[1], slots=(10, 24))
    assert "03:10:10 to 03:10:25 UTC chosen" in page.text("#range")
    oracle.look_over(page, root)
    same_table(page, root)
    cores = root.total * 0.01 / 15
    assert f"{cores:.2f} cores" in page.text("#scope")
    page.keys("r")
    oracle.look_over(page, oracle.inverted(made[1], slots=(10, 24)), most=10)
    # by keyboard: one step further at its end, then all of it
    page.js("document.activeElement.blur()")
    page.keys("r", "b", "Tab", "ArrowRight")
    oracle.look_over(page, oracle.forward(made[1], slots=(10, 25)), most=10)
    page.press("#all-time")
    oracle.look_over(page, oracle.forward(made[1]), most=10)


@pytest.mark.page
def test_the_strip_is_as_tall_as_the_samples(page, made, tmp_path):
    page.open(made[0])
    sums = [0] * 60
    for row in made[1].rows:
        sums[row[6]] += row[7]
    width, height, rows = png_read(page.shot(tmp_path / "strip.png", "#strip"))
    empty = rows[3][width // 2]
    for slot in (0, 7, 30, sums.index(max(sums)), sums.index(min(sums))):
        x = 1 + int((slot + 0.4) * (width - 2) / 60)
        filled = sum(rows[y][x] != empty for y in range(14, height - 1))
        assert abs(filled - sums[slot] / max(sums) * (64 - 2 - 16)) <= 2, slot


@pytest.mark.page
def test_search_counts_share_and_steps(page, made):
    page.open(made[0])
    root = oracle.forward(made[1])
    page.keys("/")
    page.do("type", text="^tcp_.*_[12]$")
    hit = lambda look: re.search(r"^tcp_.*_[12]$", look[0]) or re.search(r"^tcp_.*_[12]$", look[1])
    share, count, names = 0, 0, set()

    def walk(node, inside):
        nonlocal share, count
        if hit(node.look):
            names.add(node.look[:2])
            if not inside:
                share, count = share + node.total, count + 1
        for c in node.children.values():
            walk(c, inside or hit(node.look))
    walk(root, False)
    page.until("return document.getElementById('hits').textContent.includes('function')")
    shown = f"{100 * share / root.total:.1f} %" if share / root.total >= 0.1 else f"{100 * share / root.total:.2f} %"
    assert page.text("#hits") == f"{len(names)} functions, {shown}"
    page.keys("Enter", "Enter")
    assert page.text("#hits").startswith(f"2/{count} ")
    page.keys("Escape", "/")
    assert page.text("#hits") == ""


def test_widths_are_shares_to_a_pixel(page, made, tmp_path):
    page.open(made[0])
    page.do("move", x=2, y=2)
    root = oracle.forward(made[1])
    width, height, rows = png_read(page.shot(tmp_path / "graph.png", "#lower canvas"))
    for depth in (1, 2, 3, 5, 8):
        line = rows[depth * ROW + 2]  # above the text
        expect = [(left, right, node) for node, row, left, right in oracle.boxes(root, width, depth)
                  if row == depth and right - left >= 4]
        assert expect
        for left, right, node in expect:
            inside = line[int(left) + 2]
            start, end = int(left) + 2, int(left) + 2
            while start > 0 and line[start - 1] == inside:
                start -= 1
            while end < width and line[end] == inside:
                end += 1
            assert abs(start - left) <= 1 and abs(end - (right - 1)) <= 1, (depth, node.look, left, right, start, end)


def test_the_lines_of_a_function(page, made):
    page.open(made[0])
    root = oracle.forward(made[1])
    sums = oracle.functions(root)
    name = max((k for k in sums if k[1] == "server"), key=lambda k: sums[k][1])
    find_in_graph(page, name[0])
    page.keys("Escape", "l")
    own = {}
    for row in made[1].rows:
        looks = [made[1].frames[f] for f in row[0]]
        seen = set()
        for i, frame in enumerate(looks):
            if (frame[0], frame[1]) == name:
                place = f"{frame[4]}:{frame[5]}"
                line = own.setdefault(place, [0, 0])
                line[0] += row[7] if i == len(looks) - 1 else 0
                line[1] += row[7] if place not in seen else 0
                seen.add(place)
    rows = page.js("return [...document.querySelectorAll('#lines tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))")
    assert {r[2] for r in rows} == set(own) and len(own) >= 2
    for a, b, place in rows:
        assert abs(float(a.split()[0]) - 100 * own[place][0] / root.total) <= 0.051
        assert abs(float(b.split()[0]) - 100 * own[place][1] / root.total) <= 0.051
    href = page.js("return document.querySelector('#lines a').href")
    assert re.fullmatch(r"https://src\.example/server\.go#L\d+", href)


@pytest.mark.page
def test_figures_are_those_of_the_store(page, sonde, store, tmp_path):
    """A recording of this host: what stands on the page, in the picture and in the terminal, against plain SQL."""
    need_root()
    sonde("record", "-d", "2s", "-q", store=store, check=True)
    total, own, cpu_ns = 0, {}, 0
    for path in glob.glob(str(store) + "/*.db"):
        with sqlite3.connect(path) as db:
            for name, module, n, ns in db.execute("SELECT function, module, sum(samples), sum(cpu_ns) FROM cpu_samples"
                                                  " GROUP BY 1, 2"):
                own[(name, module)] = own.get((name, module), 0) + n
                total, cpu_ns = total + n, cpu_ns + ns
    html, svg = str(tmp_path / "x.html"), str(tmp_path / "x.svg")
    sonde("flame", "-q", "--self", "-o", html, store=store, check=True)
    page.open(html)
    assert page.text("#scope").startswith("Of " + f"{total:,}".replace(",", "\u202f") + " samples"), (page.text("#scope"), total)
    assert f"{cpu_ns / 1e9:.2f} s of CPU time" in page.text("#facts")
    selves, seen = table(page, 0), 0
    for key, n in own.items():
        if key in selves:
            assert abs(selves[key] - 100 * n / total) <= 0.051, key
            seen += n
    assert seen >= 0.8 * total  # the others have no name, and stand by their place in the file
    sonde("flame", "-q", "--self", "-o", svg, store=store, check=True)
    titles = [t.text for t in ET.parse(svg).getroot().iter("{http://www.w3.org/2000/svg}title")]
    assert int(re.sub(r"\D", "", re.search(r"([\d\s]+) samples", titles[0])[1])) == total
    drawn = sonde("flame", "-q", "--self", "--text", store=store, check=True).stdout.splitlines()
    assert drawn[1].startswith("100.0%") and "\x1b" not in "".join(drawn) and "\u2588" not in "".join(drawn)
