# SPDX-License-Identifier: Apache-2.0
"""The page of sonde serve in a real browser: from a spike to its function, compared, in SQL, live, by keys, on a phone, with hostile names, and with
nothing to show. What is known of the made store is what livedin.py wrote into it."""
import gzip
import json
import re
import time
import urllib.parse

import livedin
import pytest
from browser import Page, page  # noqa: F401
from conftest import UNSEEN
from serving import Serve

at_length = pytest.mark.page
HOUR = 3600


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A host that was looked at until now, and an hour ago, when restic ran for 50 s, ten minutes before the end of that."""
    end = int(time.time()) // 10 * 10
    return livedin.make(str(tmp_path_factory.mktemp("page") / "store"), end, [end - HOUR]), end


@pytest.fixture(scope="module")
def serve(made):
    s = Serve(made[0])
    yield s
    s.close()


def ready(page):
    page.until("return document.documentElement.dataset.state === 'ready'", timeout=120)
    page.settle()


def show(page, serve, query="?last=2h"):
    page.do("open", url="about:blank", wait=False)
    page.do("open", url=serve.url + query, wait=False)
    ready(page)
    return page


def quiet(page, serve, *allowed):
    """No error was said, and nothing was asked but of this server."""
    assert [line for line in page.do("console") if not any(a in line for a in allowed)] == []
    assert [u for u in page.do("requests") if not u.startswith((serve.url, "data:", "blob:"))] == []


def rows(page, css="#table"):
    """The cells of a table by its heads, as text."""
    return page.js("const t = document.querySelector(arguments[0] + ' table'), h = [...t.tHead.rows[0].cells].map((c) => c.textContent);"
                   "return [...t.tBodies[0].rows].map((r) => Object.fromEntries([...r.cells].map((c, i) => [h[i], c.textContent])))", css)


def address(page):
    return {k: v[0] for k, v in urllib.parse.parse_qs(urllib.parse.urlparse(page.do("url")).query).items()}


def frames(page):
    """What the tree of text says of the picture: names with their share, all levels."""
    page.js("const t = document.getElementById('panel-tree'); if (t.hidden) document.getElementById('tree-open').click()")
    page.js("for (let n = 0; n < 40; n++) { const li = document.querySelector('#tree [aria-expanded=false]'); if (li) li.click(); }")
    return page.js("return [...document.querySelectorAll('#tree li')].map((li) => [li.querySelector('.name').textContent, li.querySelector('.share').textContent])")


def test_the_first_view_says_who_uses_what(page, serve):
    show(page, serve, "?last=20m")
    said = page.text("#sentence")
    assert re.match(r"This host used 0\.7\d of 2 cores from .*: nginx in web \d+ %, postgres in db \d+ %, ", said), said
    table = rows(page)
    assert [r["Container"] for r in table] == ["web", "db", "not in a container", "cache"] and table[0]["Hottest function"] == "compress_block"
    assert re.match(r"0\.4\d cores", table[0]["CPU ▾"] if "CPU ▾" in table[0] else table[0]["CPU"])
    names = [n for n, _ in frames(page)]
    assert names[:6] == ["all", "web", "nginx (812)", "main", "ngx_process", "deflate"]
    quiet(page, serve)


@at_length
def test_what_the_page_says_is_what_the_command_says(page, serve, sonde, made):
    end = made[1]
    show(page, serve, f"?from={end - 900}&to={end}&tab=processes")
    want = {f"{r['comm']} ({r['pid']})": f"{r['cpu_cores']:.2f} cores"
            for r in json.loads(sonde("ps", "--json", "--from", end - 900, "--to", end, store=made[0], check=True).stdout)["rows"] if r["pid"] != 666}
    got = {r["Process"]: r["CPU"] for r in rows(page)}
    assert {k: got[k] for k in want} == want
    for css in ("#band-command", "#table-command", "#graph-command"):
        words = page.text(css)
        assert words.startswith("sonde ") and sonde(*words.split()[1:], *(["--json"] if "flame" in words else []), store=made[0]).returncode == 0, words
    page.js("document.querySelectorAll('#about')[0].open = true")
    assert "12 samples shown here were lost (ring 12)" in page.text("#facts") and "lost 12 of cpu: ring" in page.text("#facts") and "Every function has a name" in page.text("#facts")


def test_two_clicks_from_an_hour_ago_to_the_culprit_and_its_function(page, serve, made):
    end = made[1]
    show(page, serve, "?last=2h")
    spikes = page.js("return [...document.querySelectorAll('.spike')].map((b) => b.textContent)")
    old = next(i for i, text in enumerate(spikes) if "restic 0.91 cores" in text and
               page.js("return document.querySelectorAll('.spike')[arguments[0]].textContent", i).endswith(time.strftime("%H:%M", time.localtime(end - HOUR - 660))))
    page.js("document.querySelectorAll('.spike')[arguments[0]].click()", old)  # the one click
    ready(page)
    at = address(page)
    assert (at["comm"], at["in"], at["until"]) == ("restic", *[time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end - HOUR - 660 + s)) for s in (0, 50)])
    assert page.text("#sentence").startswith("restic used 0.91 of 2 cores") and "The busiest process is restic (3100): 100 % of its time in zstd_encode." in page.text("#sentence")
    assert page.js("return document.querySelector('tr[aria-current]').textContent").startswith("restic (3100)")
    assert [n for n, _ in frames(page)] == ["all", "restic (3100)", "main", "backup", "zstd_encode"]
    page.press("#tabs button:nth-child(3)")  # the other: as a table
    ready(page)
    assert rows(page)[0]["Function"] == "zstd_encode" and rows(page)[0]["Self"] == "0.91 cores"
    quiet(page, serve)


@at_length
def test_a_click_into_the_strip_chooses_who_is_there(page, serve):
    show(page, serve, "?last=20m")
    box = page.box("#band")
    page.do("click", x=box["x"] + box["width"] * 0.75, y=box["y"] + box["height"] - 6)
    ready(page)
    assert address(page)["container"] == "web" and "in" in address(page)
    assert page.text("#chips").startswith("only container web ×")
    assert page.text("#sentence").startswith("web used 0.4")
    page.press("#chips li:first-child button")
    ready(page)
    assert "container" not in address(page)


@at_length
def test_a_brush_narrows_table_and_picture_and_back_undoes_it(page, serve, made):
    show(page, serve, f"?from={made[1] - 1200}&to={made[1]}&tab=functions")
    whole = rows(page)
    box = page.box("#band")
    page.do("drag", x=box["x"] + box["width"] * 0.1, y=box["y"] + 60, x2=box["x"] + box["width"] * 0.3, y2=box["y"] + 60)
    ready(page)
    assert "in" in address(page) and "zstd_encode" in str(whole) and "zstd_encode" not in str(rows(page)) and "zstd_encode" not in str(frames(page))
    page.do("back")
    page.until("return !location.search.includes('until')")
    ready(page)
    assert rows(page) == whole
    page.do("forward")
    page.until("return location.search.includes('until')")
    ready(page)
    chosen = address(page)["in"]
    page.press("#band-into")
    ready(page)
    assert address(page)["from"] == chosen and "in" not in address(page)
    quiet(page, serve)


@at_length
def test_a_link_returns_to_the_same_view(page, serve, made):
    end = made[1]
    query = f"?from={end - 1100}&to={end - 100}&container=web&tab=functions&type=cpu&view=callers&group=process&colour=origin&fold=kernel&q=compress&sort=-total&find=e"
    show(page, serve, query)
    seen = [page.js("return document.getElementById(arguments[0]).value", k) for k in ("view", "group", "colour", "search", "find")]
    assert seen == ["callers", "process", "origin", "compress", "e"] and page.text("#hits").startswith("1 function")
    assert [r["Function"] for r in rows(page)] == ["ngx_process", "compress_block", "deflate", "handle_read"]  # total, most first; main has no e
    before = page.do("url"), rows(page), frames(page)
    show(page, serve, before[0][len(serve.url):])
    assert (page.do("url"), rows(page), frames(page)) == before
    show(page, serve, "?tab=evil&last=1h&view=%00&in=x&from=&page=../x&container=&type=cpu&q=(((&zoom=nosuch&constructor=1&__proto__=2")
    assert page.text("#hits") == "nothing matches"
    quiet(page, serve)


@at_length
def test_compared_with_the_range_before(page, serve, sonde, made):
    end = made[1]
    show(page, serve, f"?from={end - 660}&to={end - 610}&compare=previous")
    assert page.text("#graph-title") == "What changed" and page.text("#graph-sides").startswith("A: ")
    command = page.text("#graph-command")
    assert command.startswith("sonde diff ") and command.endswith("--baseline 50s")
    want = json.loads(sonde(*command.split()[1:], "--json", "-n", 100, store=made[0], check=True).stdout)
    got = dict(frames(page))
    assert got["zstd_encode"] == "new" and next(r for r in want["rows"] if r["function"] == "zstd_encode")["significant"]
    page.js("document.querySelector('#lower canvas').focus()")
    page.keys("ArrowDown")
    assert "A, before" in page.text("#focus") and "B, after" in page.text("#focus")
    quiet(page, serve)
    show(page, serve, f"?from={end - 660}&to={end - 610}&compare=7d")  # nothing was recorded then: said, and the picture stays
    assert "before" in page.text("#graph-note") and "zstd_encode" in dict(frames(page))


@at_length
def test_sql_answers_beside_its_views(page, serve, tmp_path):
    show(page, serve, "?page=sql")
    page.until("return document.querySelectorAll('#sql-views button').length > 20 && document.querySelectorAll('#sql-named button').length > 10")
    page.do("fill", css="#sql-query", value="select comm, sum(samples) n from cpu_samples where comm in ('nginx', 'restic') group by 1 order by 1")
    page.do("press", css="#sql-query")
    page.keys("Control+Enter")
    page.until("return document.getElementById('sql-said').textContent.startsWith('2 rows')")
    got = rows(page, "#sql-rows")
    assert [r["comm"] for r in got] == ["nginx", "restic"] and got[1]["n"] == "9000"
    assert "sonde sql 'select comm" in page.text("#sql-command") and address(page)["query"].startswith("select comm")
    page.press("#sql-csv")
    assert page.do("download", path=str(tmp_path / "x.csv")) == "sonde.csv"
    assert (tmp_path / "x.csv").read_bytes().startswith(b"comm,n\r\nnginx,") and b"restic,9000\r\n" in (tmp_path / "x.csv").read_bytes()
    for bad, word in (("delete from run", "read-only"), ("select nosuch", "no such column"), ("attach 'x' as y", "read-only")):
        page.do("fill", css="#sql-query", value=bad)
        page.press("#sql-form button")
        page.until("return !document.getElementById('sql-note').hidden && document.getElementById('sql-note').textContent.includes(arguments[0])", word)
    page.do("fill", css="#sql-query", value="select ts as time, sum(samples) n from cpu_samples group by 1 order by 1")
    page.press("#sql-form button")
    page.until("return document.querySelectorAll('#sql-chart path').length === 1")
    page.press("#sql-named li:nth-child(6) button")
    page.until("return document.getElementById('sql-said').textContent.includes('row')")
    assert page.js("return document.getElementById('sql-query').value")[0] == "@"
    quiet(page, serve, "400 (Bad Request)")


@at_length
def test_live_asks_anew_by_itself_and_shows_what_came(page, tmp_path):
    now, store = int(time.time()) // 10 * 10, str(tmp_path / "store")

    def put(at, comm, pid):
        livedin.put(store, [livedin.run("cpu", at - 60, at, 1, 10101010), *[livedin.cpu(t, (comm, "", pid, 300, ["main", f"{comm}_work"])) for t in range(at - 60, at, 10)]])
    put(now - 120, "early", 5)
    s = Serve(store)
    try:
        show(page, s, "?last=15m")
        assert "early" in page.text("#table") and "late" not in page.text("#table")
        page.press("#live")
        ready(page)
        assert page.js("return document.getElementById('live').getAttribute('aria-pressed')") == "true" and address(page)["live"] == "1"
        put(now, "late", 6)
        page.until("return document.getElementById('table').textContent.includes('late')", timeout=360)
        put(now + 10, "later", 7)
        page.until("return document.getElementById('table').textContent.includes('later')", timeout=360)
        assert sum(u.endswith("/api/v1/live") for u in page.do("requests")) == 1  # one stream, told of both
        assert "late_work" in dict(frames(page))
        page.press("#live")
        ready(page)
        asked = page.do("requests")
        assert "live" not in address(page)
        page.js("return new Promise((done) => setTimeout(done, 6000))")
        assert page.do("requests") == asked  # nobody asks any more
        quiet(page, s)
    finally:
        s.close()


@at_length
def test_the_keyboard_alone_is_enough(page, serve):
    show(page, serve, "?last=20m")
    page.keys("s", "Enter")
    page.until("return location.search.includes('comm=restic')")
    ready(page)
    page.keys("3")
    page.until("return location.search.includes('tab=functions')")
    ready(page)
    assert rows(page)[0]["Function"] == "zstd_encode"
    page.keys("Escape")
    page.until("return !location.search.includes('restic')")
    ready(page)
    page.keys("t")
    assert page.js("return document.activeElement.textContent") == "compress_block"
    page.keys("Enter")
    assert page.text("#hits").startswith("1 function")
    page.keys("g", "0", "ArrowDown", "ArrowDown", "ArrowDown")
    assert page.text("#focus").startswith("main")
    page.keys("Enter")
    page.until("return location.search.includes('zoom=main')")
    page.keys("w")
    page.until("return location.search.includes('view=sandwich')")
    ready(page)
    assert not page.js("return document.getElementById('upper').hidden")
    page.keys("Escape", "b", "ArrowRight", "ArrowRight")
    page.until("return location.search.includes('until=')")
    page.keys("Escape", "q")
    page.until("return !document.getElementById('view-sql').hidden")
    page.keys("q")
    ready(page)
    page.keys("Control+k")
    page.do("type", text="postg")
    page.keys("Enter")
    page.until("return location.search.includes('comm=postgres')")
    page.keys("?")
    assert page.js("return document.getElementById('keys').open")
    page.keys("Escape")
    ready(page)
    theme = page.text("#theme")
    page.keys("D")
    assert page.text("#theme") != theme
    quiet(page, serve)


@at_length
def test_hostile_names_are_text_everywhere(page, serve):
    seen = ""
    for tab in ("containers", "processes", "functions", "waits", "changes"):
        show(page, serve, f"?last=20m&tab={tab}")
        seen += page.text("body") + str(frames(page))
        assert page.js("return document.querySelectorAll('main img, main script, main b:not(#happened-list b, #state b)').length") == 0
    page.keys("Control+k")
    page.do("type", text="script")
    seen += page.text("#jump-list") + page.js("return [...document.querySelectorAll('[aria-label], [title]')].map((x) => (x.ariaLabel || '') + x.title).join()")
    assert "</script><b>" in seen and "\\u202e" in seen and not UNSEEN.search(seen)
    show(page, serve, "?last=20m&comm=" + urllib.parse.quote('</b><script>alert(1)</script>\u202e"') + "&find=<img src=x>&q=</style>&container=<svg onload=x>")
    assert not UNSEEN.search(page.text("body")) and page.js("return document.querySelectorAll('main img, main script, main svg:not(.spark)').length") == 0
    quiet(page, serve, "404 (Not Found)", "400 (Bad Request)")


@at_length
def test_nothing_there_says_what_to_do(page, serve, tmp_path):
    s = Serve(tmp_path / "none")
    try:
        show(page, s)
        assert "no store" in page.text("#nothing-said") and "sonde record" in page.text("#nothing-fix")
        assert page.js("return ['picture', 'users', 'nothing-there'].every((id) => document.getElementById(id).hidden)")
    finally:
        s.close()
    show(page, serve, "?from=2020-01-01&to=2020-01-02")
    assert page.text("#nothing-fix")
    page.until("return !document.getElementById('nothing-there').hidden")
    page.press("#nothing-there")
    ready(page)
    assert page.text("#sentence") and page.js("return document.getElementById('nothing').hidden")
    show(page, serve, "?last=20m&type=mutex")
    assert "fix" not in page.text("#graph-note") and "mutex" in page.text("#graph-note") and "sonde " in page.text("#graph-note code")
    show(page, serve, "?last=20m&tab=waits&comm=cron")
    assert page.text("#table-note")


@at_length
def test_a_store_without_cpu_samples_shows_what_it_has(page, made, tmp_path):
    lines, keep = [], False
    for line in livedin.looked_at(made[1], 1):
        keep = line.get("run", "offcpu" if keep else "") == "offcpu"
        lines += [line] if keep else []
    livedin.put(str(tmp_path / "store"), lines)
    s = Serve(tmp_path / "store")
    try:
        show(page, s, "?last=30m")
        assert "no CPU samples" in page.text("#nothing-said") and "sonde waits" in page.text("#nothing-fix")
        assert rows(page)[0]["Function"] == "read" and "exec_query" in dict(frames(page))
        show(page, s, "?last=30m&tab=waits")
        assert {r["Waited for"] for r in rows(page)} == {"disk", "a CPU"}
    finally:
        s.close()


@at_length
def test_a_server_that_ended_is_said(page, made):
    s = Serve(made[0])
    show(page, s, "?last=20m")
    s.end()
    page.press("#lasts button:first-child")
    ready(page)
    assert "does not answer" in page.text("#nothing-said")
    s.close()


@pytest.mark.parametrize("width,height,scheme", [(360, 740, "light"), (360, 740, "dark"), (1280, 900, "light"), (1280, 900, "dark"), (2560, 1440, "dark")])
@at_length
def test_it_fits_and_axe_finds_nothing_serious(page, serve, width, height, scheme):
    page.start(width, height, media={"scheme": scheme})
    for query in ("?last=20m", "?last=20m&tab=processes&compare=previous", "?page=sql"):
        show(page, serve, query)
        assert page.js("return document.documentElement.scrollWidth <= innerWidth")
        bad = [v for v in page.do("axe") if v["impact"] in ("serious", "critical")]
        assert not bad, bad
    page.start()


@at_length
def test_the_picture_is_drawn_in_both_themes(page, serve, tmp_path):
    from browser import png_read
    for scheme in ("light", "dark"):
        page.start(media={"scheme": scheme})
        show(page, serve, "?last=20m")
        for css in ("#band", "#lower canvas"):
            page.js("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", css)
            _, _, lines = png_read(page.shot(tmp_path / f"{scheme}.png", css=css))
            colours = {c for line in lines[::4] for c in line[::4]}
            assert len(colours) > 5, (scheme, css)
        back = page.js("return getComputedStyle(document.body).backgroundColor")
        assert (int(re.findall(r"\d+", back)[0]) > 128) == (scheme == "light")
    page.start()


@at_length
def test_the_policy_is_in_force(page, serve):
    show(page, serve)
    page.js("const s = document.createElement('script'); s.textContent = 'window.intruder = 1'; document.body.append(s);"
            "const i = document.createElement('img'); i.src = 'http://127.0.0.1:9/x.png'; document.body.append(i)")
    page.settle()
    assert page.js("return window.intruder") is None
    assert sum("Content Security Policy" in line for line in page.do("console")) >= 2


@at_length
def test_the_first_view_is_small(serve):
    sizes = {}
    for path, query in (("/", {}), ("/app.js", {}), ("/app.css", {}), ("/api/v1/help", {}), ("/api/v1/timeline", {"last": "1h"}), ("/api/v1/ps", {"last": "1h", "number": 2000}),
                        ("/api/v1/containers", {"last": "1h", "number": 1000}), ("/api/v1/flame", {"last": "1h", "group": "process"}), ("/api/v1/status", {})):
        status, heads, body = serve.ask(path, headers={"Accept-Encoding": "gzip"}, **query)
        assert status == 200
        sizes[path] = len(body)
        if heads.get("Content-Encoding") == "gzip":
            assert gzip.decompress(body)
    assert sum(sizes.values()) < 200_000, sizes


@at_length
def test_a_brush_is_asked_and_drawn_in_half_a_second(page, serve):
    """Of the page's own work: what the browser computed, on its thread; the questions are timed in docs/BENCHMARKS.md."""
    show(page, serve, "?last=2h&tab=functions")
    before = page.do("metrics")["TaskDuration"]
    box = page.box("#band")
    page.do("drag", x=box["x"] + box["width"] * 0.9, y=box["y"] + 60, x2=box["x"] + box["width"] * 0.95, y2=box["y"] + 60)
    ready(page)
    assert page.do("metrics")["TaskDuration"] - before < 0.5


@at_length
def test_bookmarks_keep_a_moment_and_the_view_of_it(page, serve, made):
    page.start()
    show(page, serve, "?last=20m&container=web&tab=functions")
    seen = rows(page)
    page.keys("v")
    page.until("return document.querySelectorAll('#marks option').length === 4")
    assert page.js("return document.querySelectorAll('#marks option')[2].textContent").startswith("web, functions, ")
    show(page, serve, "?last=2h")
    page.js("const s = document.getElementById('marks'); s.value = s.options[2].value; s.dispatchEvent(new Event('change'))")
    page.until("return location.search.includes('container=web')")
    ready(page)
    assert "from" in address(page) and "last" not in address(page)
    assert [(r["Function"], r["Module"]) for r in rows(page)] == [(r["Function"], r["Module"]) for r in seen]  # strip and table were asked one after the other
    page.keys("Control+k")
    page.do("type", text="bookmark web")
    assert page.text("#jump-list").startswith("bookmark")
    page.keys("Escape")
    page.js("localStorage.setItem('sonde-marks', '[{\"name\": 1}, null, {\"name\": \"<b>x\", \"at\": \"?last=1h\"}, {\"name\": \"y\", \"at\": \"javascript:alert(1)\"}]')")
    show(page, serve, "?last=20m")
    assert page.js("return [...document.querySelectorAll('#marks option')].map((o) => o.textContent)") == ["Bookmarks (1)", "Add this view", "<b>x", "Remove this view"]
    quiet(page, serve)
    page.start()


@at_length
def test_each_view_has_a_query_that_gives_the_same(page, serve, made):
    show(page, serve, f"?from={made[1] - 900}&to={made[1]}&tab=functions&container=web")
    hottest = rows(page)[0]["Function"]
    page.press("#table-sql")
    page.until("return document.getElementById('sql-said').textContent.includes('row')")
    assert address(page)["query"] == "@hottest" and "--container web" in page.text("#sql-command") and next(iter(rows(page, "#sql-rows")[0].values())) is not None
    assert hottest in page.text("#sql-rows") and "hash_search" not in page.text("#sql-rows")
    for button, pic in (("band", ""), ("graph", "&type=inuse"), ("map", "&pic=map")):
        show(page, serve, f"?from={made[1] - 900}&to={made[1]}{pic}")
        page.press(f"#{button}-sql")
        page.until("return /[1-9][0-9]* rows? in/.test(document.getElementById('sql-said').textContent)")
    quiet(page, serve)


@at_length
def test_waits_and_heap_are_pictures_beside_the_map(page, serve):
    show(page, serve, "?last=20m")
    for tab, frame in (("waits", "exec_query"), ("heap", "leak"), ("flame", "compress_block")):
        page.press(f"#pic-{tab}")
        ready(page)
        assert frame in dict(frames(page)) and page.js("return document.querySelector('#pictures [aria-selected=true]').id") == f"pic-{tab}"
    quiet(page, serve)


@at_length
def test_the_schema_of_a_view_stands_beside_it_and_times_make_a_line(page, serve):
    show(page, serve, "?page=sql")
    page.until("return document.querySelectorAll('#sql-views button').length > 20")
    page.js("[...document.querySelectorAll('#sql-views button')].find((b) => b.textContent === 'cpu_samples').click()")
    page.until("return document.getElementById('sql-schema').textContent.includes('CREATE VIEW cpu_samples')")
    page.until("return document.getElementById('sql-said').textContent.startsWith('20 rows')")
    assert "schema\":" not in page.text("#sql-schema")
    page.do("fill", css="#sql-query", value="select ts as time, comm, pid, sum(samples) n from cpu_samples group by 1, 2, 3 order by 1")
    page.press("#sql-form button")
    page.until("return document.querySelectorAll('#sql-chart path').length === 1 && document.querySelector('#sql-chart p').textContent.startsWith('n: ')")
    quiet(page, serve)


@at_length
def test_the_strip_is_of_whatever_timeline_knows(page, serve, sonde, made):
    show(page, serve, f"?from={made[1] - 1200}&to={made[1]}")
    page.until("return document.querySelectorAll('#of option').length > 4")
    takes = sonde("timeline", "--of", "nosuch", store=made[0]).stderr.partition("--of takes ")[2].partition(", not")[0]
    assert takes.startswith("cpu, mem") and page.js("return [...document.querySelectorAll('#of option')].map((o) => o.value)") == re.split(", | or ", takes)
    for of, unit in (("mem", "MiB"), ("net", "KiB/s")):
        page.js("const s = document.getElementById('of'); s.value = arguments[0]; s.dispatchEvent(new Event('change'))", of)
        page.until("return location.search.includes('of=' + arguments[0])", of)
        ready(page)
        want = json.loads(sonde("timeline", "--json", "--of", of, "--from", made[1] - 1200, "--to", made[1], store=made[0], check=True).stdout)["rows"]
        named = page.js("return [...document.querySelectorAll('#band-who button')].map((b) => b.textContent)")
        assert named == [r["who"] for r in want if r["who"][0] != "["] and f"--of {of}" in page.text("#band-command")
        box = page.box("#band")
        page.do("move", x=box["x"] + 4, y=box["y"] + box["height"] - 4)
        page.until("return !document.getElementById('tip').hidden")
        assert unit in page.text("#tip") and "cores" not in page.text("#tip")
        assert page.js("return document.querySelectorAll('#table .spark').length") == 2  # of CPU time all the same
    show(page, serve, "?last=20m&of=nosuch")
    assert "--of takes" in page.text("#over-note") and rows(page)
    quiet(page, serve, "400 (Bad Request)")


def test_requests_without_an_answer_are_a_table_and_else_nothing(page, made, tmp_path):
    store, end = str(tmp_path / "store"), made[1]
    begin = end - 600
    row = {"protocol": "postgres", "service": "10.0.0.1:5432", "operation": "SELECT <b>x", "client": "10.0.0.9", "port": 4000, "trace": "", "side": "server", "result": "", "id": 5}
    livedin.put(store, [{"run": "l7", "from": begin, "to": end, "bucket_s": 10},
                        *({"fact": "request_running_row", "at": at, "pid": 7, "comm": "postgres", "container": "db",
                           "columns": {**row, "at_us": (end - 140) * 1000000, "seen_us": at * 1000000}} for at in range(end - 138, end, 10)),
                        {"run": "cpu", "from": begin, "to": end, "bucket_s": 10, "period_ns": 10**7},
                        *({"kind": "cpu", "at": at, "n": 5, "pid": 7, "comm": "postgres", "stack": ["main"]} for at in range(begin, end, 10))])
    with_none = Serve(made[0])
    with_one = Serve(store)
    try:
        show(page, with_one, "?last=20m")
        page.until("return !document.getElementById('runs').hidden", timeout=360)
        page.js("document.querySelector('#runs details').open = true")
        assert re.match(r"1 request has no answer at the end of the recording, the longest for 2 min 1\d s", page.text("#runs-brief")), page.text("#runs-brief")
        (got,) = rows(page, "#runs-rows")
        assert got["Request"] == "SELECT <b>x" and got["Client"] == "10.0.0.9:4000" and got["Server"] == "db (postgres) 7"
        quiet(page, with_one)
        show(page, with_none, "?last=20m")
        page.until("return document.getElementById('runs-command').textContent !== ''", timeout=120)
        page.settle()
        assert page.js("return document.getElementById('runs').hidden")
        quiet(page, with_none)
    finally:
        with_none.close()
        with_one.close()
