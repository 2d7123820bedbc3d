# SPDX-License-Identifier: Apache-2.0
"""`sonde map` as a drawing: as SVG, as a page, in a report and in the served page. What is drawn is what the rows say; hostile names are text; the same store
gives the same bytes. In a browser nothing covers anything, nothing is asked for, and who is pressed becomes what is looked at."""
import json
import re
import time
import xml.etree.ElementTree as xml

import livedin
import pytest
from browser import page  # noqa: F401
from conftest import UNSEEN
from serving import Serve
from test_page_serve import address, quiet, ready, rows, show

AT = int(time.time()) // 10 * 10
SPAN = ["--from", AT - 600, "--to", AT]
QUERY = f"?from={AT - 600}&to={AT}"
EVIL = "</b>\"'\u202e\x9b31m\x1b["
WHO = {"caddy": ("caddy", "caddy", 10), "next": ("nextcloud", "php-fpm", 11), "immich": ("immich", "node", 12), "ml": ("immich-ml", "python3", 13),
       "pg": ("postgres", "postgres", 14), "evil": ("", EVIL, 666), "restic": ("", "restic", 17)}
TALK = (("caddy", "next", 8080, {}), ("caddy", "immich", 2283, {"rx_bytes": 900000000}), ("next", "pg", 5432, {}), ("immich", "pg", 5432, {"timed_out": 2}),
        ("immich", "ml", 3003, {}), ("ml", "immich", 2283, {}), ("next", "next", 9000, {}), ("restic", None, 443, {"refused": 3}), ("evil", "pg", 5432, {}),
        ("caddy", "next", 8443, {}))


def end_of(name):
    container, comm, pid = WHO[name]
    return {"pid": pid, "comm": comm, **({"container": container} if container else {})}


def lines(talk=TALK):
    yield livedin.run("cpu", AT - 600, AT, 1, 10101010)
    for at in range(AT - 600, AT, 10):
        yield livedin.cpu(at, ("php-fpm", "nextcloud", 11, 300, ["main", "zend_execute"]))
    yield livedin.run("net", AT - 600, AT, 1)
    for at in range(AT - 600, AT, 60):
        for client, server, port, more in talk:
            yield {"fact": "flow_row", "at": at, **end_of(client), "side": "client", "protocol": "tcp", "peer": "192.0.2.9", "port": str(port), "owner": "opener",
                   **({"mate": end_of(server)} if server else {}), "attempts": 9, "opened": 9, "closed": 9, "tx_bytes": 4000, "rx_bytes": 90000, **more}
        yield {"fact": "flow_row", "at": at, **end_of("caddy"), "side": "server", "protocol": "tcp", "peer": "192.168.1.20", "port": "443", "owner": "holder", "opened": 20, "tx_bytes": 7}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    store = str(tmp_path_factory.mktemp("map") / "store")
    livedin.put(store, lines())
    return store


def the_map(sonde, store, *args):
    return json.loads(sonde("map", "--json", "--drawing", *SPAN, *args, store=store, check=True).stdout)


def test_the_drawing_holds_what_the_rows_say(sonde, made):
    said = the_map(sonde, made)
    d, edges = said["drawing"], said["rows"]
    assert d["left_out"] == 0 and sum(x["rows"] for x in d["links"]) == len(edges) == 11
    for link in d["links"]:
        for row in edges[link["first_row"]:link["first_row"] + link["rows"]]:
            assert (row["from"]["name"], row["to"]["name"]) == (d["nodes"][link["from"]]["name"], d["nodes"][link["to"]]["name"])
        words = " ".join(line["text"] for line in link["lines"])
        assert all(f"tcp {row['port']}" in words for row in edges[link["first_row"]:link["first_row"] + link["rows"]])
    assert {n["name"].replace("\\x1b", "\x1b"): n["kind"] for n in d["nodes"]} == {"caddy": "container", "nextcloud": "container", "immich": "container", "immich-ml": "container", "lan": "class",
                                                        "postgres": "container", EVIL: "command", "restic": "command", "192.0.2.9": "address"}
    bad = {d["nodes"][x["from"]]["name"]: [line["text"] for line in x["lines"] if line["trouble"]] for x in d["links"] if x["trouble"]}
    assert bad == {"immich": ["▲ 20 timed out"], "restic": ["▲ 30 refused"]}
    at = {n["name"]: n["x"] for n in d["nodes"]}
    assert at["lan"] < at["caddy"] < at["nextcloud"] < at["postgres"]
    plain = json.loads(sonde("map", "--json", *SPAN, store=made, check=True).stdout)
    assert plain == {k: v for k, v in said.items() if k != "drawing"}


def test_the_same_store_gives_the_same_bytes(sonde, made, tmp_path):
    for kind in ("svg", "html", "dot"):
        for n in (1, 2):
            sonde("map", *SPAN, "-q", "-o", tmp_path / f"{n}.{kind}", store=made, check=True)
        assert (tmp_path / f"1.{kind}").read_bytes() == (tmp_path / f"2.{kind}").read_bytes()
    assert (tmp_path / "1.dot").read_text() == sonde("map", *SPAN, "--dot", store=made, check=True).stdout


def test_the_picture_is_sound_xml_with_names_as_text(sonde, made, tmp_path):
    said = json.loads(sonde("map", *SPAN, "--json", "-o", tmp_path / "x.svg", store=made, check=True).stdout)
    assert said["schema"] == "sonde.map.written/1" and said["rows"][0]["path"] == str(tmp_path / "x.svg")
    svg = xml.parse(tmp_path / "x.svg").getroot()
    texts = ["".join(t.itertext()) for t in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert {"caddy", "nextcloud", "postgres", "restic", "tcp 8080", "▲ 30 refused"} <= {t.split(" · ")[0] for t in texts}
    whole = (tmp_path / "x.svg").read_text()
    assert not UNSEEN.search(whole) and "<script" not in whole and "<style" not in whole and not any(e.tag.endswith("}b") for e in svg.iter())


def test_a_report_has_the_map_where_there_is_one(sonde, made, tmp_path):
    sonde("report", *SPAN, "-q", "-o", tmp_path / "x.html", store=made, check=True)
    text = (tmp_path / "x.html").read_text()
    assert "<section id=\"map\"" in text and len(re.findall(r"<g class=\"link", text)) == 10 and "30 refused" in text
    sonde("report", *SPAN, "--comm", "nosuchthing", "-q", "-o", tmp_path / "y.html", store=made)
    livedin.put(str(tmp_path / "plain"), (x for x in lines() if x.get("run") != "net" and "fact" not in x))
    sonde("report", *SPAN, "-q", "-o", tmp_path / "z.html", store=tmp_path / "plain", check=True)
    assert "id=\"map\"" not in (tmp_path / "z.html").read_text()


def test_of_very_many_lines_the_largest_are_drawn_and_the_rest_is_said(sonde, tmp_path):
    def many():
        yield livedin.run("net", AT - 600, AT, 1)
        for i in range(90):
            yield {"fact": "flow_row", "at": AT - 300, **end_of("restic"), "side": "client", "protocol": "tcp", "peer": f"10.0.0.{i}", "port": "443", "owner": "opener",
                   "attempts": 1, "opened": 1, "tx_bytes": 1000000 * (i + 1)}
    livedin.put(str(tmp_path / "store"), many())
    said = the_map(sonde, tmp_path / "store")
    d = said["drawing"]
    assert (len(said["rows"]), len(d["links"]), d["left_out"]) == (90, 60, 30) and {n["name"] for n in d["nodes"]} == {"restic", *(f"10.0.0.{i}" for i in range(30, 90))}
    sonde("map", *SPAN, "-q", "-o", tmp_path / "x.svg", store=tmp_path / "store", check=True)
    assert "60 of 90 lines are drawn" in (tmp_path / "x.svg").read_text()


def asked(who, side, service, n, ms, errors=0):
    for result, k in ((0, n - errors), (1, errors)):
        if k:
            yield {"request": "GET x", "protocol": "http", "service": service, "status": "200" if not result else "500", "result": result, "at": AT - 300, **end_of(who),
                   "side": side, "n": k, "total_ns": k * ms * 1000000, "max_ns": ms * 1000000, "request_bytes": 9, "response_bytes": 9}


def requests():
    """What each client saw, and each server; nobody saw who asked postgres beside nextcloud. Two services have one port, and differ by address."""
    yield from lines()
    for client, at in (("immich", "192.0.2.20"), ("immich", "192.0.2.21")):
        yield {"fact": "flow_row", "at": AT - 300, **end_of(client), "side": "client", "protocol": "tcp", "peer": at, "port": "6379", "owner": "opener", "opened": 1}
    yield {"fact": "flow_row", "at": AT - 300, **end_of("immich"), "side": "client", "protocol": "unix", "peer": "/run/x:1", "port": "", "owner": "opener", "mate": end_of("ml")}
    yield livedin.run("l7", AT - 600, AT, 1)
    yield from asked("caddy", 1, "172.18.0.2:8080", 70, 40, errors=3)
    yield from asked("next", 2, "172.18.0.2:8080", 70, 30, errors=3)
    yield from asked("next", 1, "172.18.0.9:5432", 10, 2)
    yield from asked("pg", 2, "172.18.0.9:5432", 25, 1)
    yield from asked("caddy", 2, "192.168.1.20:443", 6, 100)
    yield from asked("caddy", 2, "[fd00::20]:443", 5, 300)
    yield from asked("immich", 1, "192.0.2.21:6379", 8, 1)
    yield from asked("immich", 1, "192.0.2.77:6379", 4, 1)
    yield from asked("immich", 1, "/run/x:1", 2, 5)
    yield from asked("restic", 1, "192.0.2.9:8443", 1, 5)


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    store = str(tmp_path_factory.mktemp("busy") / "store")
    livedin.put(store, requests())
    return store


def test_a_line_says_what_was_asked_over_it_as_the_client_saw_it(sonde, busy):
    said = the_map(sonde, busy)
    got = {(r["from"]["name"], r["to"]["name"], r["port"]): (r["requests"], r["errors"], r["p95_ns"]) for r in said["rows"]}
    assert {k: v[:2] for k, v in got.items() if v[0]} == {
        ("caddy", "nextcloud", 8080): (70, 3), ("nextcloud", "postgres", 5432): (10, 0), ("lan", "caddy", 443): (11, 0), ("immich", "192.0.2.21", 6379): (8, 0),
        ("immich", "immich-ml", None): (2, 0)}
    assert abs(got["caddy", "nextcloud", 8080][2] - 40e6) <= 0.06 * 40e6 and abs(got["lan", "caddy", 443][2] - 300e6) <= 0.06 * 300e6
    assert got["immich", "192.0.2.20", 6379] == (None, None, None)
    words = {(r["from"]["name"], r["to"]["name"]): [line["text"] for line in d["lines"]] for d in said["drawing"]["links"] for r in said["rows"][d["first_row"]:][:d["rows"]]}
    assert "▲ 3 errors" in words["caddy", "nextcloud"] and any("tcp 8080 · 70 requests · p95 39.8 ms" in w for w in words["caddy", "nextcloud"])


def test_requests_that_nobody_can_place_are_told_beside_the_map(sonde, busy, made, tmp_path):
    """15 of postgres, for it has several clients; 4 to an address that no connection has; 1 to a port that none has."""
    assert the_map(sonde, busy)["requests_unplaced"] == 15 + 4 + 1
    text = sonde("map", *SPAN, store=busy, check=True).stdout
    assert "20 requests are not shown" in text and re.search(r"REQUESTS +P95", text) and re.search(r"nextcloud .*tcp 8080 .* 70 +4\d(\.\d)? ms +3 errors|nextcloud .*tcp 8080 .* 70 +3\d(\.\d)? ms +3 errors", text)
    sonde("map", *SPAN, "-q", "-o", tmp_path / "x.html", store=busy, check=True)
    assert "20 requests are not shown" in (tmp_path / "x.html").read_text()
    plain = the_map(sonde, made)
    assert "requests_unplaced" not in plain and not any("requests" in r for r in plain["rows"]), "family l7 was not recorded"


@pytest.mark.parametrize("args,word", [(["-o", "x.png"], ".svg"), (["--open"], "file"), (["--drawing"], "--json")])
def test_what_cannot_be_drawn_is_refused(sonde, made, args, word):
    done = sonde("map", *SPAN, *args, store=made)
    assert done.returncode == 2 and word in done.stderr and "fix:" in done.stderr


# --- in a browser ---

def covered(page, css):
    """Pairs of boxes and labels that cover each other on the screen."""
    return page.js("const of = (s) => [...document.querySelectorAll(arguments[0] + ' ' + s)].map((e) => e.getBoundingClientRect()), all = [...of('.box rect'), ...of('.link text')];"
                   "let n = 0; all.forEach((a, i) => all.slice(0, i).forEach((b) => { n += Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2; })); return [all.length, n]", css)


@pytest.mark.page
def test_the_page_of_a_map_stands_alone(page, sonde, made, tmp_path):
    sonde("map", *SPAN, "-q", "-o", tmp_path / "x.html", store=made, check=True)
    for scheme, width in (("light", 1280), ("dark", 360)):
        page.start(width, 900, media={"scheme": scheme})
        page.do("open", url=f"file://{tmp_path}/x.html", wait=False)
        page.settle()
        assert covered(page, ".map") == [9 + 22, 0]
        assert [r["From"] for r in rows(page, "main")].count("caddy") == 3
        assert page.js("return document.documentElement.scrollWidth <= innerWidth") and page.do("console") == []
        assert [u for u in page.do("requests") if not u.startswith("data:")] == [f"file://{tmp_path}/x.html"]
        assert not [v for v in page.do("axe") if v["impact"] in ("serious", "critical")]
    page.start()


@pytest.mark.page
def test_in_the_served_page_who_is_pressed_is_looked_at(page, made):
    s = Serve(made)
    try:
        for scheme, width in (("light", 1280), ("dark", 360)):
            page.start(width, 900, media={"scheme": scheme})
            show(page, s, QUERY)
            page.press("#pic-map")
            ready(page)
            assert address(page)["pic"] == "map" and covered(page, "#map-draw") == [9 + 22, 0]
            assert page.text("#map-command").startswith("sonde map --from ") and not UNSEEN.search(page.text("body"))
            assert page.js("return document.documentElement.scrollWidth <= innerWidth")
            assert not [v for v in page.do("axe") if v["impact"] in ("serious", "critical")]
        page.js("document.getElementById('map-table').open = true")
        assert len(rows(page, "#map-rows")) == 11 and "30 refused" in page.text("#map-rows")
        page.start()
        show(page, s, QUERY + "&pic=map")
        page.press("#map-draw [aria-label='nextcloud container']")
        ready(page)
        assert address(page)["container"] == "nextcloud"
        assert page.js("return document.querySelector('#map-draw [aria-pressed=true]').getAttribute('aria-label')") == "nextcloud container"
        assert {r["From"] for r in rows(page, "#map-rows")} == {"nextcloud"}
        page.keys("Escape")
        page.until("return !location.search.includes('nextcloud')")
        ready(page)
        page.keys("g", "Tab", "Enter")  # by keys: the second who talks
        page.until("return /container=|comm=/.test(location.search)")
        ready(page)
        page.keys("m")
        page.until("return !location.search.includes('pic=')")
        ready(page)
        assert not page.js("return document.getElementById('graph').hidden")
        show(page, s, "?from=2020-01-01&to=2020-01-02&pic=map")
        quiet(page, s, "404 (Not Found)")
    finally:
        s.close()
