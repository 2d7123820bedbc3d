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

    def __init__(self, sonde, folder, *args, store=None, said=None):
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
        self.whole = [self.told[s]["cpu_ns"] / self.told["all"][s] if self.told["unit"] != "share" else self.told[s]["cpu_ns"]
                      for s in ("before", "after")]

    def drawn(self, show):
        """Fill in what each node is drawn by: the total of its own and its callees', callees last."""
        for n in reversed(self.nodes):
            a, b = (n[f"{s}_self_ns"] / w for s, w in zip(("before", "after"), self.whole))
            n["drawn"] = {"after": b, "before": a, "delta": abs(b - a), "elided": 0 if n["after_total_ns"] else a}[show]
            n["drawn"] += sum(c["drawn"] for c in n["children"])
        return self.nodes[0]


@pytest.fixture(scope="module")
def planted(sonde, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pagediff")
    said = maker("plantstore", str(folder / "store"), "--seed", 3)
    return Made(sonde, folder, "--source-url", "https://src.example/{file}#L{line}", store=str(folder / "store"), said=said)


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
    for key, cells in shown.items():  # what the JSON leaves out has not changed
        assert key in made.rows or cells[1].strip("+-0.") == "", cells
    return shown


# --- numbers ---

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
    assert "gone" in page.text("#legend") and "no more than noise" in page.text("#legend")
