# SPDX-License-Identifier: Apache-2.0
"""`sonde top` on a terminal (tmux): its rows are those of `ps` in the same window, wherever it was moved to; it sorts, filters,
shows stacks; and it leaves the terminal as it was, however it ends. One table where it is piped."""
import json
import os
import re
import signal
import subprocess
import time

import pytest
from conftest import WORKLOADS, need, need_root
from test_timeline import AT, planted, put
from tmux import Terminal

GAP = (AT - 300, AT - 240)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A quarter of an hour with a planted spike, and a minute that nothing recorded."""
    lines = [x for x in planted("container")[1:] if not GAP[0] <= x["at"] < GAP[1]]
    run = {"run": "cpu", "bucket_s": 1, "period_ns": 10101010}
    path = str(tmp_path_factory.mktemp("top") / "store")
    put(path, [{**run, "from": AT - 900, "to": GAP[0]}, *(x for x in lines if x["at"] < GAP[0]),
               {**run, "from": GAP[1], "to": AT}, *(x for x in lines if x["at"] >= GAP[1])])
    return path


@pytest.fixture
def terminal():
    made = []

    def make(*args, **kw):
        made.append(Terminal(*args, **kw))
        return made[-1]
    yield make
    for t in made:
        t.close()


def top(terminal, made, *args, **kw):
    t = terminal(**kw)
    t.type(f"sonde top {' '.join(map(str, args))} --store '{made}'")
    t.until(lambda s: s.startswith("sonde top"))
    return t


def rows(screen):
    """(chosen, pid, cores, share, command) of the rows."""
    found = re.findall(r"^(>| )  *(\d+) +(\d+\.\d+) +(\d+\.\d) % +(\S+)", screen, re.M)
    return [(mark == ">", int(pid), cores, share, comm) for mark, pid, cores, share, comm in found]


def ps(sonde, made, to, *more):
    said = json.loads(sonde("ps", "--from", to - 30, "--to", to, "--json", *more, store=made, check=True).stdout)
    return [(r["pid"], f"{r['cpu_cores']:.2f}", f"{100 * r['share']:.1f}", r["comm"]) for r in said["rows"]]


def window(screen):
    return re.search(r"(\d\d:\d\d:\d\d) to (?:\S+ )?(\d\d:\d\d:\d\d) \(", screen).groups()


def clock(t):
    return time.strftime("%H:%M:%S", time.localtime(t))


def test_rows_are_those_of_ps_at_each_step_through_stored_time(sonde, made, terminal):
    t = top(terminal, made)
    for key, to in ((None, AT), ("Left", AT - 30), ("Left", AT - 60), ("]", AT), ("[", AT - 300), ("[", AT - 600), ("Right", AT - 570)):
        if key:
            t.keys(key)
        screen = t.until(lambda s: window(s) == (clock(to - 30), clock(to)) and rows(s))
        assert [r[1:] for r in rows(screen)] == ps(sonde, made, to)
    t.keys("l")
    t.until(lambda s: "sonde top  live" in s and not rows(s) and "fix:" in s)


def test_a_step_back_leads_over_what_nobody_recorded(sonde, made, terminal):
    t = top(terminal, made, "--from", GAP[1], "--to", GAP[1] + 30)
    t.keys("Left")
    screen = t.until(lambda s: window(s) == (clock(GAP[0] - 30), clock(GAP[0])))
    assert [r[1:] for r in rows(screen)] == ps(sonde, made, GAP[0])
    t.keys("Right")
    screen = t.until(lambda s: window(s)[0] == clock(GAP[1]))
    assert [r[1:] for r in rows(screen)] == ps(sonde, made, GAP[1] + 30)
    t.keys("Home")
    t.until(lambda s: window(s) == (clock(AT - 900), clock(AT - 870)))
    t.keys("Left")
    t.until(lambda s: "nothing is recorded before" in s)


def test_sorts_filters_and_shows_the_stacks_of_a_row(sonde, made, terminal):
    t = top(terminal, made, "--from", AT - 590, "--to", AT - 560)
    first = t.until(lambda s: rows(s))
    assert rows(first)[0][0] and rows(first)[0][4] == "ffmpeg"
    t.keys("2")
    t.until(lambda s: [r[1] for r in rows(s)] == [10, 11, 12, 500] and "sorted by pid" in s)
    t.keys("3")
    t.until(lambda s: [r[4] for r in rows(s)] == ["cron", "db", "ffmpeg", "nginx"])
    t.keys("g", "Down", "Down")
    t.until(lambda s: [r[4] for r in rows(s) if r[0]] == ["ffmpeg"])
    t.keys("1")  # the chosen row stays with its process
    t.until(lambda s: [(r[0], r[4]) for r in rows(s)][0] == (True, "ffmpeg"))
    t.keys("Enter")
    text = sonde("flame", "--text", "--pid", 500, "--from", AT - 590, "--to", AT - 560, store=made, check=True).stdout
    screen = t.until(lambda s: "stacks of pid 500" in s and "hot_planted" in s)
    for line in text.splitlines():
        assert re.split(r"  +|#", line.strip())[-1].strip() in screen
    t.keys("Escape")
    t.until(rows)
    t.keys("/")
    t.type("WEB", enter=False)
    t.until(lambda s: [r[4] for r in rows(s)] == ["nginx"] and "filter: WEB_" in s)
    t.keys("BSpace", "BSpace", "BSpace")
    t.type("jelly'", enter=True)
    t.until(lambda s: [r[4] for r in rows(s)] == ["ffmpeg"])
    t.keys("Escape")
    t.until(lambda s: len(rows(s)) == 4)
    t.keys("?")
    t.until(lambda s: "follow the clock" in s)


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """Two minutes of CPU time; in the second one waits and memory were recorded, too: of a process without CPU time as well."""
    def who(pid, comm):
        return {"pid": pid, "comm": comm, "stack": ["main", "f" + comm]}
    lines = [{"run": "cpu", "from": AT - 120, "to": AT, "bucket_s": 1, "period_ns": 10101010},
             *({"kind": "cpu", "at": at, "n": n, **who(pid, comm)} for at in range(AT - 120, AT) for pid, comm, n in ((10, "web", 60), (11, "db", 30)))]
    for family in ("offcpu", "goheap"):
        lines.append({"run": family, "from": AT - 60, "to": AT, "bucket_s": 1})
    for at in range(AT - 60, AT, 5):
        lines += [{"kind": "offcpu", "at": at, "n": 2, "value": v, **who(pid, comm)} for pid, comm, v in ((11, "db", 4 * 10**9), (12, "cache", 10**9))]
        lines += [{"kind": "inuse", "label": 64, "at": at, "n": n, "value": 64 * n, **who(pid, comm)}
                  for pid, comm, n in ((10, "web", 1000), (12, "cache", 99000 + at - AT))]
    path = str(tmp_path_factory.mktemp("more") / "store")
    put(path, lines)
    return path


def test_waits_and_memory_have_columns_where_they_were_recorded(sonde, several, sql, terminal):
    window = ["--from", AT - 30, "--to", AT]
    waited = {r["pid"]: r["ns"] for r in sql(several, "SELECT pid, sum(value) AS ns FROM amounts WHERE type = 'offcpu' AND ts >= ? GROUP BY 1", (AT - 30,))}
    stands = {r["pid"]: r["b"] for r in sql(several, "SELECT pid, value AS b FROM amounts WHERE type = 'inuse' AND ts = ?", (AT - 5,))}
    for verb in ("top", "ps"):
        for sort, pids in (("cpu", [10, 11]), ("offcpu", [11, 12, 10]), ("inuse", [12, 10, 11])):
            told = json.loads(sonde(verb, "--json", "--sort", sort, *window, store=several, check=True).stdout)["rows"]
            assert [r["pid"] for r in told] == pids
            for r in told:
                assert (r["offcpu_ns"], r["inuse_bytes"]) == (waited.get(r["pid"], 0), stands.get(r["pid"], 0)), (verb, sort)
        plain = json.loads(sonde(verb, "--json", "--from", AT - 120, "--to", AT - 90, store=several, check=True).stdout)["rows"]
        assert [r["pid"] for r in plain] == [10, 11] and "offcpu_ns" not in plain[0]
    done = sonde("ps", "--sort", "inuse", "--from", AT - 120, "--to", AT - 90, store=several)
    assert done.returncode == 4 and "memory in use" in done.stderr and "fix: sonde status" in done.stderr
    t = top(terminal, several, columns=130)
    first = t.until(lambda s: "OFFCPU" in s and "INUSE" in s)
    assert re.search(r"^> +10 +0\.61 +66\.7 % +- +62\.5 KiB +web", first, re.M) and re.search(r"^ +11 +0\.30 +33\.3 % +0\.80 +- +db", first, re.M), first
    t.keys("6")
    t.until(lambda s: "sorted by inuse" in s and [r[1] for r in rows(s)] == [12, 10, 11])
    t.keys("5")
    t.until(lambda s: "sorted by offcpu" in s and [r[1] for r in rows(s)] == [11, 12, 10])
    t.keys("[")  # before they were recorded
    t.until(lambda s: "OFFCPU" not in s and [r[1] for r in rows(s)] == [10, 11])


def test_a_smaller_screen_is_filled_and_not_overrun(made, terminal):
    t = top(terminal, made)
    for columns, lines in ((50, 12), (30, 7), (120, 30)):
        t.resize(columns, lines)
        screen = t.until(lambda s: s.rstrip("\n").split("\n")[-1].startswith("Enter") and s.startswith("sonde top") and len(s.rstrip("\n").split("\n")) == lines)
        assert all(len(line) <= columns for line in screen.split("\n")) and screen.startswith("sonde top")
        assert rows(screen) or columns < 50


def test_no_colour_where_none_is_wanted(made, terminal):
    t = top(terminal, made, env={"NO_COLOR": "1"})
    t.until(rows)
    assert "\033[7m" not in t.screen(escapes=True) and "\033[1m" not in t.screen(escapes=True) and "> " in t.screen()
    t = top(terminal, made)
    t.until(rows)
    assert re.search(r"\033\[(0;)?7m", t.screen(escapes=True)), repr(t.screen(escapes=True))


ENDS = {"q": ("keys", "q"), "C-c": ("keys", "C-c"), "SIGTERM": ("kill", signal.SIGTERM), "SIGHUP": ("kill", signal.SIGHUP),
        "SIGABRT": ("kill", signal.SIGABRT), "SIGSEGV": ("kill", signal.SIGSEGV), "C-z": ("stop", None)}


def top_pid(made):
    found = [p for p in os.listdir("/proc") if p.isdigit() and f"top\0--store\0{made}\0" in cmdline(p)]
    return int(found[0])


def cmdline(pid):
    try:
        return open(f"/proc/{pid}/cmdline").read()
    except OSError:
        return ""


@pytest.mark.parametrize("end", sorted(ENDS))
def test_the_terminal_is_as_it_was_however_it_ends(made, terminal, tmp_path, end):
    t = terminal()
    t.type(f"set -m; echo before; stty -g > {tmp_path}/a")
    t.type(f"sonde top --store '{made}'; echo ended $?; stty -g > {tmp_path}/b; echo and after")
    t.until(lambda s: s.startswith("sonde top") and rows(s))
    kind, how = ENDS[end]
    if kind == "keys":
        t.keys(how)
    elif kind == "kill":
        os.kill(top_pid(made), how)
    else:
        t.keys("C-z")
    if end == "C-z":
        t.until(lambda s: re.search(r"^[$#] *$|and after", s, re.M))
        t.type("fg")
        t.until(lambda s: s.startswith("sonde top") and rows(s))
        t.keys("q")
        t.type(f"stty -g > {tmp_path}/b; echo and after")
    screen = t.until(lambda s: re.search("^and after", s, re.M))
    assert "before" in screen and "sonde top  " not in screen
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text() != ""
    if kind == "keys":
        assert "ended 0" in screen
    t.type("echo visible")  # the cursor and the echo are back
    t.until(lambda s: "echo visible" in s and re.search("^visible", s, re.M))
    assert t.tmux("display-message", "-p", "#{cursor_flag} #{alternate_on}").split() == ["1", "0"]


def test_a_terminal_that_goes_away_ends_it(made, terminal):
    t = top(terminal, made)
    pid = top_pid(made)
    t.tmux("kill-session")
    end = time.monotonic() + 100
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < end:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{pid}")


def test_piped_it_is_one_table_that_of_ps(sonde, made):
    done = sonde("top", "-n", "3", store=made, check=True)
    assert done.stdout == sonde("ps", "--from", AT - 30, "--to", AT, "-n", "3", store=made, check=True).stdout
    assert "\033" not in done.stdout
    said = json.loads(sonde("top", "--at", AT - 580, "--json", store=made, check=True).stdout)
    same = json.loads(sonde("ps", "--at", AT - 580, "--json", store=made, check=True).stdout)
    assert said["rows"] == same["rows"] and said["schema"] == "sonde.top/1"


@pytest.mark.parametrize("args,status,words", [(["--sort", "x"], 2, "--sort x"), (["--every", "10ms"], 2, "half a second"),
                                               (["nobodyatall"], 2, "nobodyatall"), (["--comm", "none"], 4, "fix:")])
def test_errors_are_told_before_the_screen_is_taken(sonde, made, args, status, words):
    done = sonde("top", *args, store=made)
    assert done.returncode == status and words in done.stderr and not done.stdout


def test_a_store_that_is_not_there_leaves_the_screen_alone(made, terminal, tmp_path):
    t = terminal()
    t.type(f"sonde top --store {tmp_path}/nothing; echo ended $?")
    screen = t.until(lambda s: re.search(r"^ended \d", s, re.M))
    assert "ended 6" in screen or "ended 4" in screen


def test_it_follows_a_capture_that_goes_on(terminal, store):
    need_root()
    burn = os.path.join(WORKLOADS, "burn")
    need("build/workloads/burn", burn)
    t = terminal(columns=120)
    from conftest import BIN
    record = subprocess.Popen([os.path.join(BIN, "sonde"), "record", "--store", store, "-d", "120s", "--", burn, "110"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while not os.path.isdir(store) and time.monotonic() < end:
            time.sleep(0.05)
        t.type(f"until sonde top --every 500ms --last 5s --store {store}; do :; done")
        first = t.until(lambda s: "sonde top  live" in s and any(r[4].startswith("burn") for r in rows(s)), timeout=90)
        t.until(lambda s: "sonde top  live" in s and window(s) != window(first) and any(r[4].startswith("burn") for r in rows(s)), timeout=90)
        t.keys("q")
    finally:
        record.send_signal(signal.SIGINT)
        record.wait(30)
