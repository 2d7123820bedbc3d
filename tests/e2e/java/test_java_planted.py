# SPDX-License-Identifier: Apache-2.0
"""A place that allocates, a convoy at a monitor and a slow statement of JDBC over TLS are found by name and line, with what the program and PostgreSQL count themselves:
in a container with namespaces of its own and another user, on each JDK, before and after a storm of collections. And a game's main loop: which line makes ticks late."""
import collections
import json
import os
import time

import pytest

from conftest import need_root, sql_all
from javaboxes import VERSIONS, box, inner_pid
from mavenjars import line_of, program
from scripting import TEMURIN, compiled, stacks
from sonded import until
from test_java_live import folder, jvm, recorded  # noqa: F401
from test_java_servers import check_planted, postgres, statements  # noqa: F401
from test_java_tls import Talker, begun, ended, folders  # noqa: F401

pytestmark = [pytest.mark.live, pytest.mark.long]


def place_lines(name, mark, **kw):
    """The planted line and the next one: the machine says of a compiled method the line that follows."""
    line = line_of(name, mark, **kw)
    return line, line + 1


def check_line_of_slow(store):
    """Family offcpu has the thread's stack where it waited for the answer. It has a store of its own: the verbs ask the newest recording of one."""
    waits = [(frames, n) for frames, n in stacks(store, "offcpu") if any(f[1] == "JavaPlanted.list" for f in frames)]
    lines = {f[3] for frames, _ in waits for f in frames if f[1] == "JavaPlanted.list"}
    assert lines & set(place_lines("JavaPlanted", "asks")), (lines, waits)
    return lines


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_planted_is_found_in_a_container(capture, store, sonde, folders, postgres, scratch, version):
    need_root()
    db, log = postgres
    url = f"jdbc:postgresql://127.0.0.1:{db}/postgres?user=postgres&sslmode=require&prepareThreshold=0"
    with box(version, f"{scratch}/tmp", program("JavaPlanted", "jdbc", 8)) as (java, prefix, classes, container):
        shop = Talker(url, java=java, prefix=prefix, classes=classes, main="JavaPlanted", cwd="/")
        try:
            pid = inner_pid(shop.pid)
            shop.ask("calm 1")
            for how in ("calm", "storm"):
                at, before = f"{store}{how}", statements(log)
                l7, java_ = begun(capture, folders, pid, only=False, store=at)
                waits = capture("--stack-rate", 100000, "--pid", pid, program="sonde-offcpu", store=f"{at}.waits")
                did = shop.ask(f"{how} 4")
                time.sleep(2)
                waits.stop()
                ended(java_)
                l7.stop()
                check_planted(at, sonde, before, statements(log), how == "storm", "JavaPlanted")
                got = sql_all(at, "SELECT sum(n) AS n, sum(ns) AS ns FROM java_waits WHERE kind = 'monitor' AND class = 'JavaPlanted$Till' AND place LIKE 'JavaPlanted.pay:%'")[0]
                print(version, how, did, got, check_line_of_slow(f"{at}.waits"))
                assert got["ns"] == pytest.approx(did["waited"], rel=0.05) and abs(got["n"] - did["waits"]) <= 2, (got, did)
                assert {r["container"] for r in sql_all(at, "SELECT DISTINCT container FROM java_recorded")} == {container[:12]}
        finally:
            said = shop.close()
    assert "Full thread dump" not in said, said
    assert not [f for f in os.listdir(f"{scratch}/tmp") if f.startswith((".attach_pid", ".sonde"))]


def ticked(game, line, enough, seconds=400):
    """Has it go on so, until it has done enough, half a minute at least, of which `explain` can tell; what it has done then, and the times between which it did."""
    first, begun_at = game.told(line), int(time.time()) + 1
    assert until(lambda: enough(first, game.told(line)), seconds), (first, game.told(line))
    time.sleep(max(0, begun_at + 30 - time.time()))
    return first, game.told(line), begun_at, int(time.time())


def on_server_thread(store, method):
    """Samples of the main loop in this method, but for its look at the clock."""
    found = [({f[1] for f in frames}, n) for frames, n in stacks(store, "cpu", "Server thread")]
    return sum(n for names, n in found if method in names and "JavaTicks.cpu" not in names)


@pytest.mark.parametrize("version", ["17", "25"])
def test_the_lines_that_make_ticks_of_a_main_loop_late_are_found(capture, store, sonde, jvm, folder, version):
    """One computes, one waits for a monitor that another thread holds: as the loop counts both; `explain` says what changed, with the holder."""
    game = jvm(java=[TEMURIN] if version == "25" else ("java",), classes=compiled("JavaTicks", 8), main="JavaTicks")
    assert until(lambda: game.told("calm")["ticks"] > 40, 120)
    cpu, java = capture("--pid", game.pid), recorded(capture, folder, "--interval", "2s", "--pid", game.pid)
    began, _, before, _ = ticked(game, "calm", lambda a, b: b["waits"] >= a["waits"] + 15)
    slow, after, at, to = ticked(game, "slow", lambda a, b: b["light"] >= a["light"] + 2_000_000_000 and b["waits"] >= a["waits"] + 15)
    game.told("calm")
    time.sleep(2)
    ended_ = game.told("calm")
    for c in (java, cpu):
        c.stop()
    did = {k: ended_[k] - began[k] for k in began}
    assert after["late"] - slow["late"] >= 15, (slow, after)

    seen = {m: on_server_thread(store, f"JavaTicks.{m}") for m in ("light", "entities")}
    assert seen["light"] / sum(seen.values()) == pytest.approx(did["light"] / (did["light"] + did["entities"]), abs=0.1), (seen, did)
    # the method that computes is compiled, and has no line (0192): the line that calls it has
    callers = collections.Counter()
    for frames, n in stacks(store, "cpu", "Server thread"):
        for caller, frame in zip(frames, frames[1:]):
            callers[caller[1:4:2]] += n * (frame[1] == "JavaTicks.light")
    assert callers[("JavaTicks.tick", line_of("JavaTicks", "light", "scripts"))] >= 0.9 * seen["light"], callers

    span = ("--from", str(at), "--to", str(to))
    waits = json.loads(sonde("waits", "--json", *span, store=store, check=True).stdout)["java"][0]
    assert waits["class"] == "JavaTicks$Region" and waits["owner"] == "Autosave", waits
    assert waits["place"] in {f"JavaTicks.save:{n}" for n in place_lines("JavaTicks", "save", folder="scripts")}, waits
    got = sql_all(store, "SELECT sum(ns) AS ns FROM java_waits WHERE class = 'JavaTicks$Region' AND place LIKE 'JavaTicks.save:%'")[0]["ns"]
    assert got == pytest.approx(did["waited"], rel=0.05), (got, did)

    said = json.loads(sonde("explain", "--json", *span, "--before", f"{at - before}s", store=store, check=True).stdout)["rows"]
    print(version, did, seen, [r["text"] for r in said])
    rows = {r["type"]: r for r in said}
    assert "JavaTicks.light" in (rows["cpu"]["name"], rows["cpu"]["mostly"].get("function")), rows["cpu"]
    assert rows["java-lock"]["mostly"]["function"] == "monitor JavaTicks$Region" and rows["java-lock"]["causes"][0]["name"] == "Autosave", rows["java-lock"]
