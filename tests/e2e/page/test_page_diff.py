# SPDX-License-Identifier: Apache-2.0
"""The page of a difference: every figure against `sonde diff --json`, every width against the tree with both sides, what
was planted by its colour; by mouse, by keys, with and without scripting."""
import json
import os
import re

import pytest
from browser import ROW, page, png_read  # noqa: F401
from conftest import BUILD, ROOT
from test_diff import maker

SHOTS = os.path.join(BUILD, "page-shots")


class Made:
    """A planted store: its page, what `sonde diff --json` says, and its tree with both values on each node."""

    def __init__(self, sonde, folder, *args, store=None, said=None, command=None):
        self.store = store
        window = ["--from", said["middle"], "--to", said["to"]] if said else []
        self.html = str(folder / "x.html")
        sonde("diff", "-q", "-o", self.html, *window, *args, store=store, check=True)
        sonde("diff", "-q", "-o", folder / "x.json", *window, *args, store=store, check=True)
        self.told = json.loads(sonde("diff", "--json", "-n", 100000, *window, *args, store=store, check=True).stdout)
        self.rows = {(r["function"], r["module"] or ""): r for r in self.told["rows"]}
        tree = json.loads((folder / "x.json").read_text())["rows"]
        self.nodes = [dict(n, children=[]) for n in tree]
        for n in self.nodes[1:]:
            self.nodes[n["parent"]]["children"].append(n)
        if command:  # all of one process: the page has its row below the root
            self.row = dict(self.nodes[0], name=command)
            self.nodes[0]["children"] = [self.row]
        self.whole = [self.told[s]["cpu_ns"] / self.told["all"][s] if self.told["unit"] != "share" else self.told[s]["cpu_ns"]
                      for s in ("before", "after")]

    def drawn(self, show):
        """Fill in what each node is drawn by: the total of its own and its callees', callees last."""
        for n in [*reversed(self.nodes[1:]), *self.nodes[0]["children"][:1], self.nodes[0]]:
            a, b = (n[f"{s}_self_ns"] / w for s, w in zip(("before", "after"), self.whole))
            n["drawn"] = {"after": b, "before": a, "delta": abs(b - a), "elided": 0 if n["after_total_ns"] else a}[show]
            n["drawn"] += sum(c["drawn"] for c in n["children"])
        return self.nodes[0]


@pytest.fixture(scope="module")
def planted(sonde, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pagediff")
    said = maker("plantstore", str(folder / "store"), "--seed", 3)
    return Made(sonde, folder, "--source-url", "https://src.example/{file}#L{line}", store=str(folder / "store"), said=said,
                command="load")


def all_rows(page):
    for _ in range(40):
        if page.js("return document.getElementById('more').hidden"):
            break
        page.press("#more")
    return page.js("return [...document.querySelectorAll('#rows tr')].map((r) => [...r.cells].map((c, i) => i === 10 "
                   "? (c.querySelector('.cut') || c.firstChild).textContent.trim() : c.textContent))")


def percent(v):
    a, b = v["before"], v["after"]
    if a <= 0 or b <= 0:
        return "gone" if a > 0 else "new" if b > 0 else ""
    p = 100 * (b - a) / a
    return f"x {b / a:.0f}" if p >= 1000 else f"{p:+.{1 if abs(p) < 99.95 else 0}f} %"


def number(text):
    return float(re.sub(r"[^\d.e-]", "", text))


def same_value(cells, v, unit, slack):
    """Change, percent, A and B as the JSON says them."""
    if not v["before"] and not v["after"]:
        assert cells == ["", "", "", ""]
        return
    times = 100 if unit == "share" else 1
    assert abs(number(cells[0]) - times * v["change"]) <= slack, (cells, v)
    want = percent(v)
    assert cells[1] == want or (want[0] in "+-" and abs(number(cells[1]) - 100 * v["change"] / v["before"]) <= 0.051), (cells, v)
    for cell, side in zip(cells[2:], ("before", "after")):
        assert abs(number(cell) - times * v[side]) <= slack, (cells, v)


def same_rows(page, made, unit="cores", slack=0.000051, names_only=False):
    shown = {(r[10], "" if names_only else r[11]): r for r in all_rows(page)}
    for key, r in made.rows.items():
        cells = shown[(key[0], "" if names_only else key[1])]
        tested = r["self"]["tested"] or r["total"]["tested"]
        assert cells[0] == ("yes" if r["significant"] else "no" if tested else "few"), key
        same_value(cells[1:5], r["self"], unit, slack)
        same_value(cells[5:9], r["total"], unit, slack)
        q = (r["self"] if r["self"]["tested"] else r["total"])["q"]
        assert cells[9] == ("" if not tested else "<0.0001" if q < 1e-4 else f"{q:.4f}") or abs(number(cells[9]) - q) <= 6e-5
    known = {(k[0], "" if names_only else k[1]) for k in made.rows}
    for key, cells in shown.items():  # what the JSON leaves out has not changed
        assert key in known or cells[1].strip("+-0.") == "", cells
    return shown


# --- numbers ---

@pytest.mark.long
def test_every_function_is_as_the_json_tells_it(page, planted):
    page.open(planted.html)
    shown = same_rows(page, planted)
    assert len(shown) >= 400 and len(planted.rows) >= 400
    told = page.text("#facts")
    assert "compared per second: cores" in told and "Welch's test over 60 and 60 slices of 10 and 10 s" in told
    assert f"{planted.told['functions_significant']} of {planted.told['functions_tested']} functions changed" in told
    first = [r[10] for r in all_rows(page)][:len([r for r in planted.told["rows"] if r["significant"]])]
    assert first == [r["function"] for r in planted.told["rows"] if r["significant"]]
    assert [u for u in page.do("requests") if not u.startswith("data:")] == ["file://" + planted.html]
    assert page.do("console") == []


def look_over(page, root, show, least=14, most=30):
    """The pointer over the frames at least so many pixels wide: name, both numbers and change are those of the tree."""
    page.js("document.getElementById('lower').scrollIntoView({block: 'start'})")
    page.settle()
    width, seen, level = page.canvas()["width"], 0, [(root, 0, 0.0)]
    while level and seen < most:
        node, depth, left = level.pop(0)
        wide = node["drawn"] * width / root["drawn"]
        if wide < least:
            continue
        for x in (left + 1.5, left + wide / 2, left + wide - 2.5):
            tip = page.point(x, depth * ROW + ROW / 2)
            assert tip and tip[0] == node["name"], (show, tip, node["name"], x)
        for side in ("before", "after"):
            samples = f"{node[f'{side}_total_samples']:,}".replace(",", "\u202f")
            assert f"{side}" in tip[1] and f" \u00b7 {samples} samples" in tip[1], (show, tip, side)
        seen += 1
        x = left
        for child in sorted(node["children"], key=lambda c: (-c["drawn"], c["name"])):
            level.append((child, depth + 1, x))
            x += child["drawn"] * width / root["drawn"]
    return seen


@pytest.mark.page
@pytest.mark.parametrize("key, show, least", [(0, "after", 20), (1, "before", 20), (2, "delta", 20), (3, "elided", 5)])
def test_frames_are_as_wide_as_the_sides_say(page, planted, key, show, least):
    page.open(planted.html)
    page.keys(*["d"] * key)
    assert page.js("return [...document.querySelectorAll('#sides [role=tab]')].findIndex((t) => t.ariaSelected === 'true')") == key
    assert look_over(page, planted.drawn(show), show) >= least


@pytest.mark.long
def test_what_changed_has_its_colour(page, planted, tmp_path):
    """More is orange, less is blue, the same is grey, and what is noise is near it; red and green on request."""
    page.open(planted.html)

    def colour(name, show="after"):
        at, found = None, None
        todo = [(planted.drawn(show), 0, 0.0)]
        width = page.canvas()["width"]
        while todo:
            node, depth, left = todo.pop()
            if node["name"] == name and (not found or node["drawn"] > found[0]):
                found, at = (node["drawn"],), (left + node["drawn"] * width / planted.nodes[0]["drawn"] / 2, depth * ROW + 2)
            x = left
            for child in sorted(node["children"], key=lambda c: (-c["drawn"], c["name"])):
                todo.append((child, depth + 1, x))
                x += child["drawn"] * width / planted.nodes[0]["drawn"]
        page.do("move", x=2, y=2)
        page.settle()
        return png_read(page.shot(tmp_path / "c.png", "#lower canvas"))[2][int(at[1])][int(at[0])]
    spread = lambda c: max(c) - min(c)
    assert planted.told["all"]["significant"] == ("within the noise" not in page.text("#about summary"))
    assert "not tested" in page.text("#legend") and spread(colour("load")) <= 14  # its row says how much, and claims nothing
    r, g, b = colour("planted_5")
    assert r > g > b and spread((r, g, b)) > 40
    assert spread(colour("all")) <= 2 and spread(colour("service_1")) <= 14
    noise = max((k[0] for k, v in planted.rows.items() if not v["significant"]), key=lambda n: planted.rows[(n, "load")]["self"]["after"])
    assert spread(colour(noise)) <= 16
    page.keys("d", "d", "d")
    r, g, b = colour("planted_gone", "elided")
    assert b > g > r and spread((r, g, b)) > 80
    page.do("select", css="#colour", value="redgreen")
    r, g, b = colour("planted_gone", "elided")
    assert g > r and g > b
    assert "gone" in page.text("#legend") and "within the noise" in page.text("#legend")


# --- views ---

def functions_of(root, side):
    """(name) -> [self, total] of one side, in its samples; a recursion counts once."""
    sums = {}

    def walk(node, above):
        own = sums.setdefault(node["name"], [0, 0])
        own[0] += node[f"{side}_self_samples"]
        own[1] += 0 if node["name"] in above else node[f"{side}_total_samples"]
        for c in node["children"]:
            walk(c, above | {node["name"]})
    for c in root["children"]:
        walk(c, frozenset())
    return sums


def pick(page, name):
    """Through the table, as a person would."""
    page.do("fill", css="#filter", value=f"^{name}$")
    page.press("td.fn button")
    page.do("fill", css="#filter", value="")
    page.keys("Escape")


def scope_samples(page):
    return [int(re.sub(r"\D", "", n)) for n in re.findall(r"cores, ([\d\u202f]+) samples", page.text("#scope"))]


def test_a_narrowed_view_has_the_numbers_of_both_sides(page, planted):
    page.open(planted.html)
    pick(page, "service_2")
    page.keys("f")
    want = planted.rows[("service_2", "load")]["total"]
    assert scope_samples(page) == [want["before_samples"], want["after_samples"]]
    page.keys("0")
    pick(page, "service_2")
    page.keys("X")
    all_of = planted.told
    assert scope_samples(page) == [all_of[s]["samples"] - want[f"{s}_samples"] for s in ("before", "after")]
    page.keys("0")
    pick(page, "caller_3")
    page.keys("x")  # its callees are its callers' now: no sample is lost, and it is in no row
    assert scope_samples(page) == [all_of[s]["samples"] for s in ("before", "after")]
    assert "caller_3" not in {r[10] for r in all_rows(page)}


def counted(sql, planted, side, first, last, function=None):
    """(samples, seconds of CPU) of slices [first, last] of 10 s of a side."""
    begin = planted.told[side]["from_ns"] // 10**9
    row = sql(planted.store, "SELECT coalesce(sum(samples), 0) AS n, coalesce(sum(cpu_ns), 0) / 1e9 AS s FROM cpu_samples "
                             "WHERE ts >= ? AND ts < ? AND function = coalesce(?, function)",
              (begin + 10 * first, begin + 10 * (last + 1), function))[0]
    return row["n"], row["s"]


def same_range(page, sql, planted, ranges, function="planted_20"):
    """The whole and one function, by SQL, in what is chosen of both sides."""
    asked = list(zip(("before", "after"), ranges))
    assert scope_samples(page) == [counted(sql, planted, side, *r)[0] for side, r in asked]
    row = next(r for r in all_rows(page) if r[10] == function)
    for cell, (side, (first, last)) in zip(row[3:5], asked):
        cores = counted(sql, planted, side, first, last, function)[1] / (10 * (last - first + 1))
        assert number(cell) == pytest.approx(cores, abs=6e-5), (side, row)


@pytest.mark.page
def test_a_range_of_either_side_and_everything_follows(page, sql, planted):
    page.open(planted.html)
    whole = [(0, 59), (0, 59)]
    same_range(page, sql, planted, whole)
    page.js("scrollTo(0, 0)")
    box = page.box(".drawing[data-side='0']")
    step, y = (box["width"] - 2) / 60, box["y"] + 30
    page.do("drag", x=box["x"] + 1 + 10.5 * step, y=y, x2=box["x"] + 1 + 24.5 * step, y2=y)
    same_range(page, sql, planted, [(10, 24), (0, 59)])
    assert "chosen" in page.text("#rangeA") and "chosen" not in page.text("#rangeB")
    page.js("document.getElementById('lower').scrollIntoView({block: 'start'})")
    page.settle()
    tip = page.point(page.canvas()["width"] / 2, ROW / 2)
    samples = f"{counted(sql, planted, 'before', 10, 24)[0]:,}".replace(",", "\u202f")
    assert f" \u00b7 {samples} samples" in tip[1], tip
    # by keyboard: the other side's ends, each a step in the history; a link returns to it
    page.js("document.activeElement.blur()")
    page.keys("b", "ArrowRight", "ArrowRight", "Tab", "ArrowLeft")
    same_range(page, sql, planted, [(10, 24), (2, 58)])
    address = page.do("url")
    page.open(planted.html, address[address.index("#"):])
    same_range(page, sql, planted, [(10, 24), (2, 58)])
    assert page.js("return document.querySelectorAll('#chips button').length") == 2
    page.press("#allA")
    same_range(page, sql, planted, [(0, 59), (2, 58)])
    page.keys("0")
    same_range(page, sql, planted, whole)
    page.open(planted.html, "#fromA=70&toA=80&from=5&to=2")  # hostile: out of range
    same_range(page, sql, planted, whole)
    assert page.do("console") == []


@pytest.mark.page
def test_leaves_first_and_one_function(page, planted):
    page.open(planted.html)
    page.keys("r")
    planted.drawn("after")
    sums = {}
    for n in planted.nodes:
        own = sums.setdefault(n["name"], [0, 0, 0.0])
        own[0] += n["before_self_samples"]
        own[1] += n["after_self_samples"]
        own[2] += n["after_self_ns"]
    width, x = page.canvas()["width"], 0.0
    for name, (before, after, ns) in sorted(sums.items(), key=lambda s: -s[1][2])[:5]:
        wide = ns * width / planted.told["after"]["cpu_ns"]
        tip = page.point(x + wide / 2, 2 * ROW + ROW / 2)
        assert tip[0] == name
        for n in (before, after):
            assert f" \u00b7 {n:,} samples".replace(",", "\u202f") in tip[1]
        x += wide
    page.keys("0")
    pick(page, "planted_callee")
    page.keys("s")
    callers = {}
    for n in planted.nodes:
        if n["name"] == "planted_callee":
            up = callers.setdefault(planted.nodes[n["parent"]]["name"], [0, 0])
            up[0] += n["before_total_samples"]
            up[1] += n["after_total_samples"]
    page.keys("T", "ArrowDown")
    assert page.text("#upper-title") == "Callers"
    shown = page.js("return [...document.querySelectorAll('#tree [aria-level=\"2\"] .name')].map((n) => n.textContent)")
    assert set(shown) <= set(callers) or set(shown) == set()
    tip = page.point(page.canvas("upper")["width"] - 3, page.canvas("upper")["height"] - ROW / 2, which="upper")
    assert tip and tip[0] == "planted_callee"


def test_the_lines_have_both_sides(page, planted):
    page.open(planted.html)
    pick(page, "planted_20")
    page.keys("l")
    heads = page.js("return [...document.querySelectorAll('#lines th')].map((t) => t.textContent)")
    assert heads == ["Self A", "Self B", "Total A", "Total B", "Line"]
    rows = page.js("return [...document.querySelectorAll('#lines tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))")
    v = planted.rows[("planted_20", "load")]
    assert rows and sum(float(r[0]) for r in rows) == pytest.approx(v["self"]["before"], abs=6e-5 * len(rows))
    assert sum(float(r[3]) for r in rows) == pytest.approx(v["total"]["after"], abs=6e-5 * len(rows))
    assert page.js("return document.querySelector('#lines a').href").startswith("https://src.example/load.c#L")


def test_everything_by_keyboard(page, planted):
    page.open(planted.html)
    page.keys("ArrowDown", "ArrowDown", "ArrowDown")
    assert "A, before" in page.text("#focus") and "B, after" in page.text("#focus") and "change" in page.text("#focus")
    page.keys("d")
    assert "show=before" in page.do("url")
    page.keys("d", "d", "c")
    assert "show=elided" in page.do("url") and "colour=redgreen" in page.do("url")
    address = page.do("url")
    page.open(planted.html, address[address.index("#"):])
    assert page.js("return document.querySelector('#sides [aria-selected=true]').textContent") == "Gone"
    page.keys("Backspace", "0")
    assert page.js("return document.querySelector('#sides [aria-selected=true]').textContent") == "B: after"
    page.keys("T", "Home", "ArrowRight", "ArrowRight")
    items = page.js("return [...document.querySelectorAll('#tree [role=treeitem]')].map((li) => li.textContent)")
    all_of = planted.told["all"]
    assert re.search(rf"\+1\.0 %all{all_of['before']:.4f} to {all_of['after']:.4f} cores", items[0]), items[0]
    page.keys("t")
    for best in (max, min):
        page.js("document.querySelector('[data-sort=self] button').focus()")
        page.keys("Enter")
        assert page.text("#rows .cut") == best(planted.rows.values(), key=lambda r: r["self"]["change"])["function"]
    page.open(planted.html)
    pick(page, "planted_gone")
    page.keys("y")
    page.until("return document.getElementById('said').textContent !== ''")
    assert page.do("clipboard") == f"main;service_3;caller_3;planted_gone {planted.rows[('planted_gone', 'load')]['self']['before_samples']} 0"
    page.open(planted.html, "#show=evil&colour=none&fn=9&type=7&zoom=1.2.3")
    assert page.js("return document.querySelector('#sides [aria-selected=true]').textContent") == "B: after"
    assert page.do("console") == []


# --- what is compared ---

def folded(path, stacks):
    path.write_text("".join(f"{s} {n}\n" for s, n in stacks.items()))
    return path


HOSTILE = "</script><img src=x onerror=alert(1)>\\x3b\"&'"


def test_two_files_by_sample_and_hostile_names(page, sonde, tmp_path):
    """Shares of all: twice the samples of everything is no change."""
    base = {"main;a": 500, "main;b": 300, f"main;{HOSTILE}": 200, "main;gone": 40}
    a = folded(tmp_path / "a.folded", base)
    b = folded(tmp_path / "b.folded", {**{k: 2 * v for k, v in base.items() if k != "main;gone"}, "main;a": 2000})
    made = Made(sonde, tmp_path, a, b)
    page.open(made.html)
    assert "compared per sample" in page.text("#facts") and "assuming that samples are independent" in page.text("#facts")
    shown = same_rows(page, made, "share", 0.0051)
    assert "</script><img src=x onerror=alert(1)>;\"&'" in {k[0] for k in shown}
    assert page.js("return document.querySelectorAll('img, #rows script, #facts *:not(li):not(b)').length") == 0
    assert [r[2] for r in all_rows(page) if r[10] == "gone"] == ["gone"]
    look_over(page, made.drawn("after"), "after")
    assert page.do("console") == []


def test_a_profile_beside_names_alone(page, sonde, planted, tmp_path):
    """Folded stacks know no modules: names are compared, and a function is one frame on both sides."""
    a = folded(tmp_path / "a.folded", {"main;service_1;caller_0;function_0": 100, "main;other": 50})
    store = os.path.dirname(planted.html) + "/store"
    made = Made(sonde, tmp_path, "--before", a, "--from", "1795143600", "--to", "1795144200", store=store)
    page.open(made.html)
    assert "functions are compared by name only" in page.text("#facts")
    same_rows(page, made, "share", 0.0051, names_only=True)
    page.js("document.getElementById('lower').scrollIntoView({block: 'start'})")
    page.settle()
    tip = page.point(40, ROW + 8)
    assert tip[0] == "main" and "150 samples" in tip[1]


@pytest.mark.page
@pytest.mark.parametrize("kind, unit", [("inuse", "bytes"), ("alloc", "bytes per second")])
def test_memory(page, sonde, tmp_path, kind, unit):
    """A gauge is the mean of how it stood; what adds up is per second."""
    from test_diff import AT, put
    path, start = str(tmp_path / "heap"), AT - 400
    lines = [{"run": "goheap", "from": start, "to": AT, "bucket_s": 10, "period_ns": 0}]
    for i in range(40):
        who = {"at": start + 10 * i + 1, "pid": 100, "comm": "app", "thread": "app", "tid": 100}
        n = 50 + i * 7 % 5 + (0 if i < 20 else 100)
        lines.append({"kind": kind, "n": n, "value": 4096 * n, "stack": ["main", "grown"], **who})
        lines.append({"kind": kind, "n": 70 + i * 3 % 4, "value": 4096 * (70 + i * 3 % 4), "stack": ["main", "same"], **who})
    put(path, lines)
    made = Made(sonde, tmp_path, "--type", kind, "--from", AT - 200, "--to", AT, store=path)
    assert made.told["unit"] == unit
    page.open(made.html)
    cells = {r[10]: r for r in all_rows(page)}
    for name in ("grown", "main"):
        v = next(r for k, r in made.rows.items() if k[0] == name)["total"]
        for cell, side in zip(cells[name][7:9], ("before", "after")):
            value, scale = cell.split()[0], {"B": 1, "KiB": 1024, "MiB": 1 << 20}[cell.split()[1]]
            assert float(value) * scale == pytest.approx(v[side], rel=0.006)
        assert cells[name][6] == percent(v)
    assert cells["grown"][0] == "yes"


def test_without_scripting_the_movers_are_left(page, planted):
    page.start(scripts=False)
    try:
        page.do("open", url="file://" + planted.html, wait=False)
        dom = page.do("content")
        body = re.sub(r"\s+", " ", re.search('<tbody id="rows".*?</tbody>', dom, re.S).group())
        names = re.findall(r'class="fn">([^<]*?) <small', body)
        assert names == [r["function"] for r in planted.told["rows"][:20]]
        assert "+19.8 %" in body and "gone" in body and "caller gone: caller_3" in body and "<button" not in body
        assert page.box("#rows")["height"] > 100 and page.box("#lower") is None
    finally:
        page.start()


# --- looks ---

@pytest.mark.page
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_looks_and_axe(page, planted, theme):
    os.makedirs(SHOTS, exist_ok=True)
    for width in (360, 1280):
        page.start(width, 900, media={"scheme": theme})
        page.open(planted.html)
        page.settle()
        assert page.js("return document.documentElement.scrollWidth <= innerWidth")
        assert page.js("const f = document.querySelector('td.fn').getBoundingClientRect(); return f.right <= innerWidth && f.width > 60")
        page.shot(os.path.join(SHOTS, f"diff-{theme}-{width}.png"), whole=True)
        page.keys("d", "d", "T")
        page.settle()
        page.shot(os.path.join(SHOTS, f"diff-{theme}-{width}-change.png"), whole=True)
    for keys in ((), ("T",), ("ArrowDown", "ArrowDown", "l"), ("d", "d", "d")):
        page.open(planted.html)
        page.keys(*keys)
        page.settle()
        found = [v for v in page.do("axe") if v["impact"] in ("serious", "critical", "moderate")]
        assert not found, found
    page.start()


def scripts(*names):
    return "".join(open(os.path.join(ROOT, "tools", "page", "script", n + ".js")).read() for n in names)


def test_changes_stay_apart_for_every_kind_of_colour_sight(page):
    """Text on every colour has enough contrast; less, the same and more are told apart without any one kind of cone
    (matrices of Machado, Oliveira and Fernandes, 2009)."""
    page.do("open", url="about:blank", wait=False)
    contrast, nearest, faint = page.js(scripts("colour", "diff") + """
        const sights = [[1, 0, 0, 0, 1, 0, 0, 0, 1],
            [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
            [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881],
            [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.303900]];
        const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        const rgb = (c) => c[0] === '#' ? [1, 3, 5].map((i) => linear(parseInt(c.slice(i, i + 2), 16) / 255)) : c.match(/\\d+/g).map((x) => linear(x / 255));
        const light = (c) => { const [r, g, b] = rgb(c); return .2126 * r + .7152 * g + .0722 * b; };
        const against = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
        const lab = (c, m) => {
            const v = rgb(c), [r, g, b] = [0, 3, 6].map((i) => Math.max(0, m[i] * v[0] + m[i + 1] * v[1] + m[i + 2] * v[2]));
            const [l, n, s] = [0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b, 0.2119034982 * r + 0.6806995451 * g
                + 0.1073969566 * b, 0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b].map(Math.cbrt);
            return [0.2104542553 * l + 0.793617785 * n - 0.0040720468 * s, 1.9779984951 * l - 2.428592205 * n + 0.4505937099 * s,
                0.0259040371 * l + 0.7827717662 * n - 0.808675766 * s];
        };
        let worst = 99, nearest = 9, faint = 99;
        for (const dark of [false, true]) {
            for (const scheme of ['change', 'redgreen'])
                for (let step = -4; step <= 4; step++)
                    for (const sure of [false, true])
                        faint = Math.min(faint, dark ? against(diffColour(step, sure, true, scheme), '#1e2125') : 99);
            for (const scheme of ['change', 'redgreen'])
                for (let step = -4; step <= 4; step++)
                    for (const sure of [false, true])
                        worst = Math.min(worst, against(diffColour(step, sure, dark, scheme), dark ? '#ffffff' : '#161616'));
            for (const m of sights)
                for (const [a, b] of [[-4, 4], [-3, 3], [-2, 2], [-3, 0], [0, 3], [-2, 0], [0, 2]]) {
                    const [x, y] = [a, b].map((s) => lab(diffColour(s, true, dark, 'change'), m));
                    nearest = Math.min(nearest, Math.hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]));
                }
        }
        return [worst, nearest, faint];""")
    assert faint >= 1.6, faint  # in the dark, frames stand out from what is behind them
    assert contrast >= 4.5 and nearest >= 0.05, (contrast, nearest)  # OKLab; 0.02 is a just noticeable difference
