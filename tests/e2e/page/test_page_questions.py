# SPDX-License-Identifier: Apache-2.0
"""The views of the served page, each made for its question, against what the commands say; "Why?"; what is asked first, and what becomes of a question that is refused."""
import json
import re
import socket
import sqlite3
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import livedin
import pytest
from browser import Page, page  # noqa: F401
from conftest import segments
from serving import Serve
from test_explain_chain import host as incident
from test_explain_chain import AT as INCIDENT_END
from test_explain import host as quiet_host
from test_page_serve import address, quiet, ready, rows, show

pytestmark = pytest.mark.page


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    end = int(time.time()) // 10 * 10
    return livedin.make(str(tmp_path_factory.mktemp("views") / "store"), end, logs=True), end


@pytest.fixture(scope="module")
def serve(made):
    s = Serve(made[0])
    yield s
    s.close()


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    """Requests of web wait for a lock of its own in the last minute."""
    store = str(tmp_path_factory.mktemp("locked") / "store")
    livedin.put(store, list(incident(1, ["lock"])))
    s = Serve(store)
    yield s, store
    s.close()


def of_locked(more=""):
    stamp = lambda at: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    return f"?from={stamp(INCIDENT_END - 660)}&to={stamp(INCIDENT_END)}{more}"


def said(sonde, store, *words):
    return json.loads(sonde(*words, "--json", store=store, check=words[0] != "check").stdout)  # `check` ends with 1 where something is bad


def test_each_verb_that_is_answered_has_a_view(page, serve):
    """No table of whatever keys the JSON has: a new verb needs a view (serve/page/tables.js)."""
    show(page, serve, "?last=20m")
    verbs = json.loads(serve.ask("/api/v1/")[2])["verbs"]
    with open(__file__.replace("tests/e2e/page/test_page_questions.py", "serve/page/tables.js"), encoding="utf-8") as f:
        text = f.read()
    elsewhere = re.search(r"TABLES_ELSEWHERE = \[(.*?)\]", text)[1]
    assert set(verbs) <= set(re.findall(r"verb: '(\w+)'", text)) | set(re.findall(r"'(\w+)'", elsewhere)), verbs
    tabs = page.js("return [...document.querySelectorAll('#tabs [role=tab]')].map((b) => b.textContent)")
    assert tabs == ["containers", "processes", "functions", "waits", "changes", "requests", "checks", "restarts", "memory", "disk"]
    for tab in page.js("return [...document.querySelectorAll('#more option')].map((o) => o.value).filter(Boolean)"):
        show(page, serve, f"?last=20m&tab={tab}")
        assert page.js("return document.getElementById('table-note').hidden"), (tab, page.text("#table-note"))
        assert page.js("return document.querySelectorAll('#table tbody tr, #view h3').length") >= 1, tab
    quiet(page, serve, "404 (Not Found)")  # the picture of requests without samples


def test_operations_have_rates_errors_and_a_histogram(page, serve, sonde, made):
    show(page, serve, f"?from={made[1] - 1200}&to={made[1]}&tab=requests")
    want = said(sonde, made[0], "requests", "--from", made[1] - 1200, "--to", made[1])["rows"]
    got = {r["Operation"]: r for r in rows(page)}
    assert set(got) == {r["operation"] for r in want} and len(rows(page)) == 2  # the server's row alone, where both ends were seen
    cart = next(r for r in want if r["operation"] == "SELECT cart" and r["side"] == "server")
    assert got["SELECT cart"]["Answered by"] == "db (postgres)" and got["SELECT cart"]["Failed"].startswith(f"{cart['errors']}, 0.8 %")
    assert got["GET /checkout"]["p95"] == "19.9 ms" and got["GET /checkout"]["Each second"] == "0.5/s"
    assert page.js("return document.querySelectorAll('#table .hist rect').length") >= 3
    assert page.js("return document.querySelector('#table .hist').getAttribute('aria-label')").startswith("p50 ")
    page.js("[...document.querySelectorAll('#ways .choice button')].find((b) => b.textContent === 'With both ends').click()")
    page.until("return location.search.includes('how=both')")
    ready(page)
    assert len(rows(page)) == 3
    quiet(page, serve)


def test_a_statement_is_shown_whole_in_its_detail(page, tmp_path):
    end = int(time.time()) // 10 * 10
    text = "SELECT " + ", ".join(f"column_{i}" for i in range(80)) + " FROM orders WHERE customer = ?"
    livedin.put(str(tmp_path / "store"), [{"run": "cpu", "from": end - 600, "to": end, "bucket_s": 10, "period_ns": 10101010},
                                          *({"kind": "cpu", "at": at, "n": 5, "pid": 7, "comm": "postgres", "stack": ["main"]} for at in range(end - 600, end, 10)),
                                          {"run": "l7", "from": end - 600, "to": end, "bucket_s": 10},
                                          *({"request": text, "protocol": "postgres", "service": "10.0.0.3:5432", "status": "", "result": 0, "at": at, "n": 9, "total_ns": 9 * 10**7 * (1 + 5 * (at >= end - 60)),
                                             "max_ns": 6 * 10**7, "pid": 7, "comm": "postgres", "side": 2, "request_bytes": 1, "response_bytes": 1} for at in range(end - 600, end, 10))])
    s = Serve(tmp_path / "store")
    try:
        show(page, s, "?last=15m&tab=requests")
        assert page.js("return document.querySelector('#table td.fn button').title") == text  # on hover
        page.js("document.querySelector('#table td.fn button').click()")
        page.until("return location.search.includes('op=')")
        ready(page)
        assert page.text("#view .whole") == text and "0.9 each second" in page.text("#view")
        page.until("return document.querySelectorAll('#view .charts svg').length === 3")
        page.js("document.querySelector('#view .why').click()")  # chooses the time in which it took most
        page.until("return location.search.includes('why=')")
        ready(page)
        assert address(page)["in"] == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end - 60)), address(page)
        quiet(page, s, "404 (Not Found)")
    finally:
        s.close()


def test_one_request_is_a_waterfall(page, serve, sonde, made):
    show(page, serve, f"?from={made[1] - 1200}&to={made[1]}&tab=trace")
    want = said(sonde, made[0], "trace", "--from", made[1] - 1200, "--to", made[1])["rows"]
    got = page.js("return [...document.querySelectorAll('.waterfall li')].map((li) => [li.querySelector('.call').textContent, li.querySelector('.took').textContent, parseFloat(li.querySelector('.track i').style.left), li.querySelector('.track i').style.width])")
    assert [g[0] for g in got] == [r["operation"] for r in want] == ["GET /checkout", "SELECT cart"]
    assert [g[1] for g in got] == ["20 ms", "9 ms"] and abs(got[1][2] - 100 * want[1]["start_us"] / want[0]["total_us"]) < 0.1 and "45%" in got[1][3]
    assert "4bf92f3577b34da6a3ce929d0e0e4736" in page.text("#view h3") and "Where the time of requests like this one went" in page.text("#view")


def test_a_kill_for_memory_is_a_story(page, serve):
    show(page, serve, "?last=20m&tab=oom")
    text = page.text("#view")
    for part in ("web", "tail (4711) was killed", "web reached its memory limit of 512 MiB when nginx asked for more; tail held 400 MiB itself.", "the dashed line is the limit, 512 MiB",
                 "tail (4711): 400 MiB, which was killed", "nginx (812): 100 MiB", "db: 700 MiB", "compress_block 71 %"):
        assert part in text, (part, text)
    assert page.js("return document.querySelectorAll('#view .growth .limit').length") == 1
    quiet(page, serve)


def test_checks_say_what_is_wrong_first_and_fold_the_fine_ones(page, serve, sonde, made):
    show(page, serve, f"?from={made[1] - 1200}&to={made[1]}&tab=check")
    want = said(sonde, made[0], "check", "--at", made[1])["rows"]
    bad = [r["text"] for r in want if r["state"] == "bad"]
    got = page.js("return [...document.querySelectorAll('#view .stories > li p:first-child span')].map((x) => x.textContent)")
    assert bad and set(bad) <= set(got) and got[0] in bad
    levels = page.js("return [...document.querySelectorAll('#view .stories > li')].map((x) => x.className)")
    assert levels == sorted(levels, key=["critical", "warning", "recovered"].index)
    assert page.js("return [...document.querySelectorAll('#view details')].filter((d) => /fine/.test(d.textContent)).every((d) => !d.open)")
    quiet(page, serve)


def test_restarts_have_their_last_lines(page, tmp_path):
    end, lines = int(time.time()) // 10 * 10, ["reading /etc/x", "no such table: users"]
    event = lambda at, kind, detail="": {"fact": "event_row", "at": at, "columns": {"kind": kind, "subject": "container", "name": "crash", "detail": detail, "which": "ab", "n": 1, "at_us": at * 1000000}}
    livedin.put(str(tmp_path / "store"), [{"run": "cpu", "from": end - 600, "to": end, "bucket_s": 10, "period_ns": 10101010}, {"kind": "cpu", "at": end - 30, "n": 5, "pid": 7, "comm": "x", "stack": ["main"]},
                                          {"run": "host", "from": end - 600, "to": end, "bucket_s": 10}, event(end - 300, "stopped", "exit 1"), event(end - 299, "restarted"),
                                          *({"fact": "event_log_row", "at": end - 300, "columns": {"which": "ab", "at_us": (end - 300) * 1000000, "nth": n, "line": line, "cut": 0}} for n, line in enumerate(lines, 1))])
    s = Serve(tmp_path / "store")
    try:
        show(page, s, "?last=15m&tab=events")
        assert page.text("#view .lines").splitlines() == lines and "exit 1" in page.text("#view")
        quiet(page, s)
    finally:
        s.close()


def test_memory_and_disks_are_by_container_and_line(page, serve, made):
    show(page, serve, f"?from={made[1] - 1200}&to={made[1]}&tab=memory")
    got = {r["Container"]: r for r in rows(page)}
    assert rows(page)[0]["Container"] == "web" and got["web"]["Grew in this range"] == "+190 MiB" and got["web"]["Of its limit"].endswith("of 512 MiB")
    assert "leak (app.go:12)" in page.text("#view") and "each hour" in page.text("#view")
    show(page, serve, f"?from={made[1] - 1200}&to={made[1]}&tab=disk")
    got = {r["Container"]: r for r in rows(page)}
    assert got["db"]["Written"] == "40 MiB" and got["db"]["Read"] == "20 MiB" and "/var: 56 % full" in page.text("#view")
    quiet(page, serve)


def test_disks_have_a_table_for_each_question(page, serve, made):
    show(page, serve, f"?from={made[1] - 1200}&to={made[1]}&tab=disks")
    assert [(r["Disk"], r["Written"]) for r in rows(page)] == [("sda", "80 MiB")]
    log = "/var/log/nginx/access.log"
    for how, text, want in (("who", "Who asked", {"Who": "web (nginx)"}), ("files", "Files", {"File": log}), ("fsync", "Waits for a disk", {"File": log, "Not back for": "1.5 s"}),
                            ("calls", "Reads and writes", {"File": log, "Call": "write"}), ("locks", "Locks of files", {"File": log, "Lock": "flock"}),
                            ("slow", "Slow requests", {"Disk": "sda", "Waited in": "folio_wait_bit_common < file_write_and_wait_range < ext4_sync_file < do_fsync"}),
                            ("opens", "Failed opens", {"Path": "/srv/favicon.ico", "Error": "ENOENT"}), ("full", "What fills", {"File system": "/var"}), ("deleted", "Deleted, still open", {"File": f"{log}.1"})):
        page.js(f"[...document.querySelectorAll('#ways .choice button')].find((b) => b.textContent === '{text}').click()")
        page.until(f"return location.search.includes('how={how}')")
        ready(page)
        assert any(all(r[k].startswith(v) for k, v in want.items()) for r in rows(page)), (how, rows(page)[:2])
    quiet(page, serve)


def test_logs_are_by_pattern_and_by_who_wrote(page, serve, sonde, made):
    at = f"?from={made[1] - 1200}&to={made[1]}&tab=logs"
    show(page, serve, at)
    want = said(sonde, made[0], "logs", "--from", made[1] - 1200, "--to", made[1])
    assert [(r["Level"], r["Times"], r["Who"], r["What"]) for r in rows(page)] == [(r["level"], str(r["messages"]), r["source"], r["pattern"]) for r in want["rows"]]
    assert [r["What"] for r in rows(page)] == ["cannot reach db *", "no space left on device", "slow statement *"]
    assert "of 2 logs, 25 errors." in page.text("#view") and "rotated too fast to follow once" in page.text("#view"), page.text("#view")

    def choose(text, how):
        page.js(f"[...document.querySelectorAll('#ways .choice button')].find((b) => b.textContent === '{text}').click()")
        page.until(f"return location.search.includes('how={how}')")
        ready(page)
    choose("By who wrote", "who")
    assert {r["Who"]: (r["Errors"], r["Warnings"]) for r in rows(page)} == {"web": ("25", ""), "db": ("", "40")}
    page.js("[...document.querySelectorAll('#table td button')].find((b) => b.title === 'web').click()")
    page.until("return location.search.includes('container=web')")
    ready(page)
    assert [r["Who"] for r in rows(page)] == ["web"]
    show(page, serve, f"?from={made[1] - 300}&to={made[1]}&tab=logs&how=fresh")
    assert [r["What"] for r in rows(page)] == ["no space left on device"]
    show(page, serve, f"{at}&how=fresh")
    assert len(rows(page)) == 3 and "No logs were recorded before this range" in page.text("#view")
    choose("In a burst", "burst")
    assert page.text("#table-note").startswith("Nothing wrote far more lines than usual.")
    quiet(page, serve)


def test_why_is_a_chain_of_sentences_each_a_link(page, locked, sonde):
    s, store = locked
    show(page, s, of_locked("&tab=containers"))
    page.js("[...document.querySelectorAll('#table .why')].find((b) => b.getAttribute('aria-label') === 'Why: web').click()")
    page.until("return location.search.includes('why=')")
    ready(page)
    at = address(page)
    assert at["container"] == "web" and abs(time.mktime(time.strptime(at["in"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone - (INCIDENT_END - 60)) <= 10, at  # when its requests took most
    want = said(sonde, store, *page.text("#why-command").split()[1:])["chain"]["links"]
    got = page.js("return [...document.querySelectorAll('.chain a')].map((a) => [a.textContent, a.getAttribute('href')])")
    assert [g[0].lower().rstrip(".") for g in got] == [x["text"].lower() for x in want] and [x["what"] for x in want][:2] == ["slower", "lock"]
    assert "tab=waits" in got[1][1] and "container=web" in got[1][1]
    assert page.text("#why-title").startswith("Why was web slow, ")
    page.js("document.querySelectorAll('.chain a')[1].click()")
    page.until("return location.search.includes('tab=waits')")
    ready(page)
    assert {"lock"} <= {r["Waited for"] for r in rows(page)} and not page.js("return document.getElementById('why').hidden")
    page.press("#why-close")
    page.until("return document.getElementById('why').hidden")
    quiet(page, s)


def test_a_host_at_its_limit_is_said_to_be_so_and_what_fails_since_two_minutes_is_pending(page, tmp_path, sonde):
    store, end = str(tmp_path / "full"), INCIDENT_END
    livedin.put(store, [*quiet_host(5), {"run": "host", "from": end - 660, "to": end, "bucket_s": 10},
                        *({"fact": "host_row", "at": at, "cpus": 2, "user_us": 19_900_000, "system_us": 0, "psi_cpu_us": 9_800_000, "running": 60 if at >= end - 120 else 1,
                           "mem_total": 8 << 30, "mem_available": 4 << 30} for at in range(end - 660, end, 10))])
    s = Serve(store)
    try:
        show(page, s, of_locked("&why=1"))
        want = said(sonde, store, *page.text("#why-command").split()[1:])["limits"]
        assert [x["what"] for x in want] == ["cpu"] and want[0]["text"] in page.text("#why-said") and "The host was at its limit" in page.text("#why-said"), page.text("#why-said")
        assert re.search(r"Pending\s*cpu-queue: host, 60 threads .*; for 2 of 3 min", page.text("#state")), page.text("#state")
        stamp = lambda at: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
        show(page, s, f"?from={stamp(end - 660)}&to={stamp(end)}&why=1")  # with nothing before it
        assert "What else differed is not known: there is nothing to compare" in page.text("#why-said") and "Nothing else changed" not in page.text("#why-said"), page.text("#why-said")
        quiet(page, s)
    finally:
        s.close()


def test_why_of_more_than_the_incident_says_which_part_it_is_about(page, locked):
    stamp = lambda at: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    show(page, locked[0], of_locked(f"&in={stamp(INCIDENT_END - 180)}&until={stamp(INCIDENT_END)}&container=web&why=1"))
    clock = lambda at: time.strftime("%H:%M:%S", time.gmtime(at))
    assert clock(INCIDENT_END - 60) in page.text("#why-title"), page.text("#why-title")
    assert f"Only in this part of {clock(INCIDENT_END - 180)} to {clock(INCIDENT_END)} GET /cart of web was slower." in page.text("#why-said"), page.text("#why-said")


def test_the_lines_below_the_headline_say_what_is_wrong_slow_and_not_recorded(page, serve, locked):
    show(page, serve, "?last=20m")
    text = page.text("#state")
    assert "Criticaloom: web, 1 kill" in text and re.search(r"Slow(?:er|est)(SELECT cart of db|GET /checkout of web): p95", text) and re.search(r"FailingSELECT cart of db: [45] failed, (0.[89]|1.0) %", text) and "Not recorded" not in text, text
    s, _ = locked
    show(page, s, of_locked())
    assert re.search(r"Slow(?:er|est)GET /cart of web: p95 \d+ ms", page.text("#state")), page.text("#state")
    quiet(page, s)


def test_what_was_not_recorded_says_how_to_record_it(page, tmp_path):
    end = int(time.time()) // 10 * 10
    livedin.put(str(tmp_path / "store"), [{"run": "cpu", "from": end - 600, "to": end, "bucket_s": 10, "period_ns": 10101010}, *({"kind": "cpu", "at": at, "n": 5, "pid": 7, "comm": "x", "stack": ["main"]} for at in range(end - 600, end, 10))])
    s = Serve(tmp_path / "store")
    try:
        show(page, s, "?last=15m")
        assert "Not recorded" in page.text("#state") and page.text("#state code") == "sudo sonde up offcpu host net l7"
        for tab, family in (("requests", "l7"), ("waits", "offcpu"), ("memory", "host"), ("disk", "host"), ("net", "net"), ("heap", "mem"), ("logs", "logs")):
            show(page, s, f"?last=15m&tab={tab}")
            assert re.search(rf"\b{family}\b", page.text("#table-note") + page.text("#view")), (tab, page.text("#table-note"))
    finally:
        s.close()


def test_memory_by_line_shows_what_is_held_and_what_grows(page, tmp_path):
    """One line keeps 10 MiB more each minute, another has 200 MiB all the time: both are shown, and growth is said of one alone."""
    end = int(time.time()) // 10 * 10
    app = {"pid": 7, "comm": "app", "container": "web", "container_id": "web", "start": end - 5000}

    def held(leak):
        for family in ("host", "mem"):
            yield {"run": family, "from": end - 900, "to": end, "bucket_s": 10}
            for i, at in enumerate(range(end - 900, end, 60)):
                if family == "mem":
                    for name, line, mib in (("leaky", 12, 10 * (i + 1) if leak else 10), ("steady", 40, 200)):
                        yield {**app, "kind": "mem", "at": at, "n": mib * 256, "value": mib << 20, "stack": ["main", [name, "app.c", line]]}
                else:
                    yield {"fact": "host_row", "at": at, "mem_total": 8 << 30, "mem_available": 4 << 30}
                    yield {"fact": "cgroup_row", "at": at, "cgroup": "/docker/web", "container": "web", "container_id": "web", "working": 300 << 20}

    for leak in (True, False):
        store = str(tmp_path / f"store{leak}")
        livedin.put(store, held(leak))
        s = Serve(store)
        try:
            show(page, s, "?last=15m&tab=heap")
            page.until("return document.querySelectorAll('#table tbody tr').length === 2")
            of = {r["Line"]: r for r in rows(page)}
            assert set(of) == {"leaky (app.c:12)", "steady (app.c:40)"} and of["steady (app.c:40)"]["In use"] == "200 MiB", of
            if leak:
                page.until("return document.querySelector('#table tbody').textContent.includes('+')")
                of = {r["Line"]: r for r in rows(page)}
                assert re.fullmatch(r"\+1[34]\d MiB", of["leaky (app.c:12)"]["Grew in this range"]) and not of["steady (app.c:40)"]["Grew in this range"], of
            else:
                page.until("return document.getElementById('view').textContent.includes('Nothing holds more and more memory')")
            show(page, s, "?last=15m&tab=memory")
            page.until("return document.getElementById('view').textContent.includes('By line') && !document.getElementById('view').textContent.includes('asked')")
            text = page.text("#view")
            assert ("leaky (app.c:12) of web: +1" in text and "steady" not in text) if leak else "nothing holds more and more memory" in text, text
            quiet(page, s, "404 (Not Found)")  # of CPU time there is none
        finally:
            s.close()


def test_marks_near_each_other_are_one_with_their_number(page, tmp_path):
    end = int(time.time()) // 10 * 10
    lines = [{"run": "cpu", "from": end - 3600, "to": end, "bucket_s": 10, "period_ns": 10101010}, *({"kind": "cpu", "at": at, "n": 5, "pid": 7, "comm": "x", "stack": ["main"]} for at in range(end - 3600, end, 10))]
    lines += [{"end": 1, "status": 1, "at": end - 1800 + i, "pid": 100 + i, "comm": f"w{i}", "container": "web"} for i in range(9)] + [{"end": 1, "status": 1, "at": end - 300, "pid": 200, "comm": "y", "container": "web"}]
    livedin.put(str(tmp_path / "store"), sorted(lines, key=lambda x: x.get("at", 0)))
    s = Serve(tmp_path / "store")
    try:
        show(page, s, "?last=2h")
        page.until("return document.getElementById('band').dataset.marks !== undefined")
        counts = list(map(int, page.js("return document.getElementById('band').dataset.marks").split()))
        told = page.js("return document.querySelectorAll('#happened-list li').length")
        assert sum(counts) == told >= 2 and len(counts) < told, (counts, told)
        quiet(page, s)
    finally:
        s.close()


def test_a_kept_window_of_the_flight_ring_is_a_bar_and_its_reason_chooses_it(page, tmp_path):
    end = int(time.time()) // 10 * 10
    livedin.put(str(tmp_path / "store"), [{"run": "cpu", "from": end - 3600, "to": end, "bucket_s": 10, "period_ns": 10101010},
                                          *({"kind": "cpu", "at": at, "n": 5, "pid": 7, "comm": "x", "stack": ["main"]} for at in range(end - 3600, end, 10))])
    (segment,) = segments(str(tmp_path / "store"))
    for i, (a, b) in enumerate(((end - 1800, end - 1500), (end - 1500, end - 1200))):  # two files, one window
        with sqlite3.connect(segment) as db:
            db.execute("INSERT INTO run(token, family, options, scope, bucket_s, cpus, from_ns, to_ns, state, pid, accounted, recording)"
                       " VALUES(?, 'logs', 'kept: the shop was slow', 0, 1, 2, ?, ?, 1, 1, 0, 5)", (1000 + i, a * 10**9, b * 10**9))
    s = Serve(tmp_path / "store")
    try:
        show(page, s, f"?from={end - 3600}&to={end}")
        page.until("return document.getElementById('band').dataset.kept")
        width = page.box("#band")["width"]
        (kept,) = page.js("return document.getElementById('band').dataset.kept").split()
        for x, share in zip(map(int, kept.split("-")), (0.5, 2 / 3)):
            assert abs(x - share * width) < 3, (kept, width)
        page.js("document.getElementById('happened').open = true")
        assert "kept by the second: the shop was slow" in page.text("#happened-list")
        page.js("[...document.querySelectorAll('#happened-list button')].find((b) => b.textContent.includes('the shop was slow')).click()")
        page.until("return location.search.includes('until')")
        quiet(page, s)
    finally:
        s.close()


def test_a_click_on_smaller_frames_shows_what_is_in_them(page, tmp_path):
    """6 000 stacks of one process, all as large, and one of another: of the first, 5 000 frames show next to nothing."""
    end = int(time.time()) // 10 * 10
    livedin.put(str(tmp_path / "store"), [{"run": "cpu", "from": end - 600, "to": end, "bucket_s": 10, "period_ns": 10101010},
                                          *({"kind": "cpu", "at": end - 300 + i % 30 * 10, "n": 1, "pid": 7, "comm": "many", "stack": ["main", f"f{i}"]} for i in range(6000)),
                                          *({"kind": "cpu", "at": at, "n": 50, "pid": 8, "comm": "one", "stack": ["main", "work"]} for at in range(end - 300, end, 10))])
    s = Serve(tmp_path / "store")
    try:
        show(page, s, "?last=15m&group=process")
        assert page.js("document.getElementById('tree-open').click(); for (let n = 0; n < 40; n++) { const li = document.querySelector('#tree [aria-expanded=false]'); if (li) li.click(); }"
                       "return [...document.querySelectorAll('#tree .name')].some((x) => x.textContent === '(smaller frames)')")
        for expected in ("pid=7", "deep=1"):
            page.js("document.querySelector('#lower canvas').focus()")
            page.keys("0", "ArrowDown", "ArrowDown", "ArrowDown")
            if expected == "deep=1" and "(smaller frames)" not in page.text("#focus"):
                page.keys("ArrowUp", "ArrowDown")
            assert "(smaller frames)" in page.text("#focus") and "shows what is in it" in page.text("#focus"), page.text("#focus")
            page.keys("Enter")
            page.until("return location.search.includes(arguments[0])", expected)
            ready(page)
        assert page.js("return [...document.querySelectorAll('#about')][0].open = true") and "smaller frames" not in page.text("#facts")
        quiet(page, s)
    finally:
        s.close()


class Between:
    """A proxy before `sonde serve` that refuses the first `refusals` questions of `verb` as the server does when it has no room, and notes what was asked when."""

    def __init__(self, serve, verb, refusals, slow=0):
        self.asked, self.left, lock = [], refusals, threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_GET(self):
                name = urllib.parse.urlparse(self.path).path.rsplit("/", 1)[-1]
                with lock:
                    outer.asked.append(name)
                    refuse = name == verb and outer.left > 0
                    outer.left -= refuse
                if refuse:
                    status, heads, body = 503, {"Content-Type": "application/json", "Retry-After": "1"}, b'{"error":"too many requests at a time","fix":null,"exit":1}'
                else:
                    if slow and self.path.startswith("/api/"):
                        time.sleep(slow)
                    status, heads, body = serve.ask(self.path, headers={k: v for k, v in self.headers.items() if k.lower() not in ("host", "accept-encoding", "connection")})
                self.send_response(status)
                for k in ("Content-Type", "Content-Security-Policy", "Retry-After"):
                    if heads.get(k):
                        self.send_header(k, heads[k])
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def test_a_question_that_is_refused_for_load_is_asked_again(page, serve):
    between = Between(serve, "ps", 2)
    try:
        page.do("open", url="about:blank", wait=False)
        page.do("open", url=between.url + "?last=20m", wait=False)
        page.until("return document.getElementById('asking').textContent.includes('the server is busy')", timeout=20)
        ready(page)
        assert between.asked.count("ps") == 3 and page.text("#sentence").startswith("This host used") and page.text("#asking") == ""
    finally:
        between.close()


def test_what_is_seen_first_is_asked_first_and_what_runs_is_said(page, serve):
    between = Between(serve, "", 0, slow=0.3)
    try:
        page.do("open", url="about:blank", wait=False)
        page.do("open", url=between.url + "?last=20m", wait=False)
        page.until("return document.getElementById('asking').textContent.includes('sonde timeline')")
        assert page.js("return document.getElementById('over').getAttribute('aria-busy')") == "true"
        ready(page)
        asked = [a for a in between.asked if a not in ("", "app.js", "app.css")]
        assert sorted(asked[:2]) == ["ps", "timeline"] and sorted(asked[2:4]) == ["containers", "overview"] and "flame" in asked[4:], asked
        marks = page.js("return performance.getEntriesByType('mark').map((m) => [m.name, m.startTime])")
        assert [m[0] for m in marks][:2] == ["seen", "shown"] and page.js("return document.getElementById('over').getAttribute('aria-busy')") == "false"
    finally:
        between.close()


def test_the_headline_is_true_as_read(page, tmp_path):
    """One process of many with the same name is all in one function: it is not said of all of them."""
    end = int(time.time()) // 10 * 10
    livedin.put(str(tmp_path / "store"), [{"run": "cpu", "from": end - 300, "to": end, "bucket_s": 10, "period_ns": 10101010},
                                          *({"kind": "cpu", "at": at, "n": 20, "pid": 100 + i, "comm": "python3", "stack": ["main", f"step_{i % 5}"]} for at in range(end - 300, end, 10) for i in range(20)),
                                          *({"kind": "cpu", "at": at, "n": 100, "pid": 7, "comm": "python3", "stack": ["main", "transcode_frame"]} for at in range(end - 300, end, 10))])
    s = Serve(tmp_path / "store")
    try:
        show(page, s, "?last=15m")
        assert "The busiest process is python3 (7) with 20 % of this: 100 % of its time in transcode_frame." in page.text("#sentence"), page.text("#sentence")
    finally:
        s.close()


@pytest.mark.parametrize("width,height,scheme", [(360, 740, "dark"), (1280, 900, "light")])
def test_the_views_fit_and_axe_finds_nothing_serious(page, serve, width, height, scheme):
    page.start(width, height, media={"scheme": scheme})
    for view in ("tab=requests", "tab=trace", "tab=check", "tab=events", "tab=oom", "tab=memory", "tab=disk", "tab=net", "tab=changes&why=1", "pic=map"):
        show(page, serve, f"?last=20m&{view}")
        assert page.js("return document.documentElement.scrollWidth <= innerWidth"), view
        bad = [v for v in page.do("axe") if v["impact"] in ("serious", "critical")]
        assert not bad, (view, bad)
    page.start()
