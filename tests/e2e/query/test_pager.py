# SPDX-License-Identifier: Apache-2.0
"""Text longer than the terminal goes through a pager, in the colours and the width of the terminal; it may be left early; and
what is piped, short, or told not to, does not."""
import re
import time

import pytest
from test_timeline import AT, put
from tmux import Terminal

RANGE = f"--from {AT - 60} --to {AT}"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("pager") / "s")
    put(path, [{"run": "cpu", "from": AT - 60, "to": AT, "bucket_s": 1, "period_ns": 10101010},
               *({"kind": "cpu", "at": AT - 30, "n": 300 - i, "pid": 1000 + i, "comm": f"p{i}", "stack": ["main", f"f{i}"]} for i in range(200))])
    return path


@pytest.fixture
def terminal(made):
    opened = []

    def make(command, **env):
        t = Terminal(90, 20, env={"PAGER": "", "LESS": "", **env})
        opened.append(t)
        t.type("unset PAGER LESS" if not env else "true")
        t.type(f"clear; {command.replace('STORE', made)}; echo ended $?")
        return t
    yield make
    for t in opened:
        t.close()


def ended(t):
    return re.search(r"^ended (\d+)", t.until(lambda s: re.search(r"^ended \d", s, re.M)), re.M).group(1)


def test_long_text_is_shown_by_screens_and_may_be_left(terminal):
    t = terminal(f"sonde ps {RANGE} -n 150 --store STORE")
    screen = t.until(lambda s: "p10 " in s and s.rstrip().split("\n")[-1].startswith(":"))
    assert "ended" not in screen and "\033[1m" in t.screen(escapes=True)
    assert all(len(line) <= 90 for line in screen.split("\n"))
    t.keys("Space")
    t.until(lambda s: "p30 " in s)
    t.keys("G")
    t.until(lambda s: "p149 " in s and "50 more: -n 200 shows them" in s)
    t.keys("q")
    assert ended(t) == "0"
    t.type("echo visible")
    t.until(lambda s: re.search("^visible", s, re.M))


def test_what_is_left_before_all_was_written_is_no_error(terminal):
    t = terminal("sonde sql 'with recursive n(i) as (select 1 union all select i + 1 from n limit 300000) select i from n' --store STORE")
    t.until(lambda s: s.rstrip().split("\n")[-1].startswith(":"))
    t.keys("q")
    assert ended(t) == "0"
    assert "annot write" not in t.screen()


def test_what_fits_is_just_printed(terminal):
    t = terminal(f"sonde ps {RANGE} -n 3 --store STORE")
    assert ended(t) == "0" and "p2 " in t.screen()


def test_errors_keep_their_exit_code_and_are_seen(terminal):
    t = terminal(f"sonde ps --from {AT - 9000} --to {AT - 8000} --store STORE")
    assert ended(t) == "4" and "fix:" in t.screen()


@pytest.mark.parametrize("env,more", [({"PAGER": "cat"}, ""), ({"SONDE_PAGER": ""}, ""), ({"PAGER": "less", "LESS": "R"}, "--no-pager"),
                                      ({"PAGER": "no-such-program"}, "")])
def test_where_none_is_wanted_or_there_all_is_printed(terminal, env, more):
    t = terminal(f"sonde ps {RANGE} -n 150 {more} --store STORE", **env)
    assert ended(t) == "0" and "p149 " in t.screen()


def test_ours_counts_more_than_everybodys_and_a_shell_may_be_in_it(terminal):
    t = terminal(f"sonde ps {RANGE} -n 150 --store STORE", PAGER="false", SONDE_PAGER="grep -c p | sed s/^/lines:/")
    assert ended(t) == "0"
    assert re.search("^lines:15[0-9]", t.screen(), re.M)


def test_ctrl_c_is_the_pagers(terminal):
    t = terminal(f"sonde ps {RANGE} -n 150 --store STORE")
    t.until(lambda s: s.rstrip().split("\n")[-1].startswith(":"))
    t.keys("C-c")
    end = time.monotonic() + 100
    while not re.search(r"\bp[3-9]\d ", screen := t.screen()):  # less may have thrown away what was typed before it came back to its prompt
        assert time.monotonic() < end, screen
        if "p2 " in screen and screen.rstrip().split("\n")[-1].startswith(":"):
            t.keys("Space")
        time.sleep(0.5)
    t.keys("q")
    assert ended(t) in ("0", "130")
