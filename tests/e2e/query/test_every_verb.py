# SPDX-License-Identifier: Apache-2.0
"""Every verb, in one table: what it prints as text and as JSON (tests/e2e/golden; `test_every_verb.py --write` makes them
anew), its exit codes, streams, colours, widths, hostile names, and the examples of its help, run as they stand there.
On made-up stores (livedin.py); nothing here records."""
import atexit
import json
import math
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unicodedata

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from conftest import E2E, BIN, UNSEEN, need, on_terminal  # noqa: E402, first: it says where helpers are
import livedin  # noqa: E402

AT = 1795144200  # 2026-11-20T03:10:00Z
GOLDEN = os.path.join(E2E, "golden")
RANGE = ["--from", str(AT - 1200), "--to", str(AT)]
SPIKE = ["--from", str(AT - 660), "--to", str(AT - 610)]
WRITING = tempfile.mkdtemp(prefix="sonde-test-")
atexit.register(shutil.rmtree, WRITING, True)
# what each reading verb is asked
ASKED = {
    "overview": RANGE, "timeline": RANGE, "explain": SPIKE, "events": RANGE, "oom": RANGE, "check": ["disk-space", "throttled", "--all", "--at", str(AT)], "ps": RANGE, "top": RANGE, "containers": RANGE, "stacks": RANGE, "lines": ["deflate", *RANGE],
    "heap": ["--growth", *RANGE], "diff": [*SPIKE, "--baseline", "5m"], "waits": RANGE, "neighbours": RANGE,
    "wakers": RANGE, "net": RANGE, "disk": RANGE, "map": RANGE, "requests": RANGE, "trace": RANGE, "flame": ["--text", *RANGE], "sql": ["@hottest", "n=3"], "status": [], "help": ["range"],
    "report": ["-o", f"{WRITING}/x.html", *RANGE], "export": ["folded", *RANGE], "config": ["show"], "prune": ["--dry-run"], "completion": ["bash"], "version": [],
}
# what stands only on a live host, changes the store, starts something, or reads none; tests of their own tell what they print
LIVE = {"doctor", "record", "probes", "pstack", "up", "down", "rotate", "keep", "logs", "symbolize", "import", "replay", "seal", "serve", "mcp"}
# what these print is another one on each host, or not for people; tests of their own look at it
UNLIKE = {"version", "completion", "prune", "status", "report", "help", "config"}
ESC = "\x1b"


def verbs():
    done = subprocess.run([f"{BIN}/sonde", "help", "--json"], capture_output=True, text=True, check=True)
    return {v["verb"]: v for v in json.loads(done.stdout)["rows"]}


def masked(text, store):
    """What is another one on each host or day: the store's path, its size and its file, the kernel, how it is to be spelt."""
    text = text.replace(str(store), "STORE")
    text = re.sub(r"\d{8}T\d{6}Z-\d{4}", "SEGMENT", text)
    text = re.sub(r'("kernel": ?)"[^"]*"', r'\1"KERNEL"', text)
    text = re.sub(r'"(?:own_bytes|bytes|free_bytes|budget_bytes|reserve_bytes|disk_bytes)": \d+', '"bytes": N', text)
    return re.sub(r"\b\d+(?:\.\d+)? [KMG]iB (in|of|free|at)\b", r"SIZE \1", text)


def say(verb, *more, store, env=None, words=None):
    full = {"PATH": os.environ["PATH"], "TZ": "UTC", "SONDE_STORE": str(store), "SONDE_CONFIG": "/nonexistent", **(env or {})}
    return subprocess.run([f"{BIN}/sonde", verb, *(ASKED[verb] if words is None else words), *more], capture_output=True,
                          env=full, stdin=subprocess.DEVNULL, timeout=60, cwd=WRITING)


def forms(verb, table):
    """The golden files of a verb: (name, what is asked)."""
    if verb in UNLIKE:
        return []
    out = [(f"{verb}.txt", ASKED[verb])]
    if table[verb]["json"]:
        words = [w for w in ASKED[verb] if w != "--text"]
        out.append((f"{verb}.json", [*(["stacks"] if verb == "help" else words), "--json"]))
    return out


PICTURES = {"flame.svg": ["flame", *RANGE], "diff.svg": ["diff", *ASKED["diff"]]}


def picture(name, store):
    """A still picture, an element a line, without this host's name."""
    verb, *words = PICTURES[name]
    path = os.path.join(WRITING, name)
    done = say(verb, store=store, words=["-q", "-o", path, *words])
    assert done.returncode == 0, done.stderr
    with open(path, encoding="utf-8") as f:
        text = masked(f.read(), store)
    return text.replace(f" of {os.uname().nodename}<", " of HOST<").replace(f" on {os.uname().nodename}<", " on HOST<").replace(os.uname().release, "RELEASE")


def holds(golden, now):
    """Is all of the one in the other? Keys are only ever added; the last digits are the compiler's."""
    if isinstance(golden, dict):
        return isinstance(now, dict) and all(k in now and holds(v, now[k]) for k, v in golden.items())
    if isinstance(golden, list):
        return isinstance(now, list) and len(golden) == len(now) and all(map(holds, golden, now))
    if isinstance(golden, float) and isinstance(now, float):
        return math.isclose(golden, now, rel_tol=1e-9)
    return golden == now


def shown(verb, words, store):
    done = say(verb, store=store, words=words)
    assert done.returncode == 0, (verb, words, done.stderr)
    return masked(done.stdout.decode("utf-8"), store)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return livedin.make(str(tmp_path_factory.mktemp("verbs") / "store"), AT)


@pytest.fixture(scope="module")
def table():
    return verbs()


def test_the_table_has_every_verb(table):
    assert set(ASKED) | LIVE == set(table)


@pytest.mark.parametrize("verb", sorted(set(ASKED) - UNLIKE))
def test_what_it_prints_is_what_it_printed(verb, table, store):
    for name, words in forms(verb, table):
        with open(os.path.join(GOLDEN, name), encoding="utf-8") as f:
            text = f.read()
        now, hint = shown(verb, words, store), f"{name}: if it is meant, tests/e2e/query/test_every_verb.py --write"
        assert holds(json.loads(text), json.loads(now)) if name.endswith(".json") else text == now, hint


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_a_picture_is_what_it_was(name, store):
    with open(os.path.join(GOLDEN, name), encoding="utf-8") as f:
        assert f.read() == picture(name, store), f"{name}: if it is meant, tests/e2e/query/test_every_verb.py --write"


@pytest.mark.parametrize("verb", sorted(ASKED))
def test_a_reader_who_has_left_is_no_error(verb, table, store):
    """`sonde ps | head`: whoever read the output has what he wanted."""
    for words in (ASKED[verb], [*(w for w in ASKED[verb] if w != "--text"), "--json"])[:1 + bool(table[verb]["json"])]:
        gone, end = os.pipe()
        os.close(gone)
        done = subprocess.run([f"{BIN}/sonde", verb, *words, "-q"], stdout=end, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                              env={**os.environ, "SONDE_STORE": str(store), "SONDE_CONFIG": "/nonexistent"})
        os.close(end)
        assert done.returncode == 0 and "pipe" not in done.stderr and "sonde:" not in done.stderr, (words, done.stderr)


@pytest.mark.parametrize("verb", sorted(ASKED))
def test_json_is_one_envelope_and_stdout_has_nothing_else(verb, table, store):
    if not table[verb]["json"] or verb == "prune":
        assert verb in ("export", "config", "completion", "prune"), f"{verb} reads and has no --json"
        return
    words = ["stacks"] if verb == "help" else [w for w in ASKED[verb] if w != "--text"]
    done = say(verb, "--json", store=store, words=words)
    told = json.loads(done.stdout.decode("utf-8"))
    assert told["schema"] == {"report": "sonde.report.written/1"}.get(verb, f"sonde.{verb}/1")
    assert isinstance(told["rows"], list) and told["rows"] and isinstance(told["warnings"], list)
    assert {"from", "to", "from_ns", "to_ns"} <= told.keys()
    assert ESC.encode() not in done.stdout


@pytest.mark.parametrize("verb", sorted(set(ASKED) - {"completion"}))
def test_no_colour_and_no_control_bytes_unless_asked(verb, store):
    wanting = {"TERM": "xterm-256color"}
    for more, env in (([], wanting), (["--color", "never"], {**wanting, "CLICOLOR_FORCE": "1"}),
                      ([], {**wanting, "NO_COLOR": "1", "CLICOLOR_FORCE": ""}), ([], {"TERM": "dumb"})):
        done = say(verb, *more, store=store, env=env)
        out = done.stdout + done.stderr
        text = out.decode("utf-8")  # names are not: what is printed is
        assert not [c for c in text if unicodedata.category(c) == "Cc" and c != "\n" or UNSEEN.match(c)], verb


@pytest.mark.parametrize("verb", ["stacks", "diff", "flame", "timeline", "status", "ps"])
def test_colours_are_there_when_asked_for(verb, store):
    assert ESC.encode() in say(verb, "--color", "always", store=store).stdout


def columns(line):
    line = re.sub(r"\x1b\[[0-9;]*[mK]", "", line)
    return sum(0 if unicodedata.category(c) in ("Mn", "Cf") else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


@pytest.mark.parametrize("verb", sorted(set(ASKED) - {"completion", "export", "sql", "config", "help", "top"}))
def test_eighty_columns_are_enough(verb, store):
    """On a terminal of 80 columns no line is broken; commands to paste are whole. (top draws: test_tool_top.py.)"""
    env = {"PATH": os.environ["PATH"], "TZ": "UTC", "TERM": "xterm", "SONDE_STORE": store, "COLUMNS": "80",
           "SONDE_CONFIG": "/nonexistent"}
    text = on_terminal([f"{BIN}/sonde", verb, *ASKED[verb]], env)
    wide = [x for x in text.splitlines() if columns(x) > 80 and not re.match(r"\s*(sonde|fix:|next:|try:|store) ", x)]
    assert not wide, wide


@pytest.mark.parametrize("verb", sorted(ASKED))
def test_wrong_words_are_two_and_no_store_is_six(verb, table, store, tmp_path):
    done = say(verb, "--nonesuch", store=store)
    assert done.returncode == 2 and not done.stdout, done
    assert re.search(rf"^  fix: sonde {verb} --help$", done.stderr.decode(), re.M), done.stderr
    if table[verb]["store"] and verb not in ("status", "prune"):
        done = say(verb, store=tmp_path / "none")
        assert done.returncode == 6 and b"fix: " in done.stderr and not done.stdout, done


@pytest.mark.parametrize("verb", sorted(v for v in ASKED if v not in ("help", "version", "completion", "config", "sql", "status", "prune", "check")))
def test_nothing_in_a_range_is_four_with_a_reason_and_a_command(verb, store):
    words = [w for w in ASKED[verb] if w not in RANGE + SPIKE and w not in ("--from", "--to")]
    done = say(verb, "--from", "2001-01-01", "--to", "2001-01-02", store=store, words=words)
    said = done.stderr.decode()
    assert done.returncode == 4 and not done.stdout, (verb, done)
    assert "2001" in said and re.search(r"^  (fix|try): ", said, re.M), said


# --- the examples ---

STANDS_IN = {"sudo": 'exec "$@"', "xdg-open": ":", "flamegraph.pl": "cat", "apt-get": ":",
             "perf": "printf 'app 7 [000] 1.000000: 10101010 cpu-clock: \\n\\t    55d0c0ffee work+0x1 (/bin/app)\\n\\n'", "go": ":"}
# examples that touch the live host: tests/score runs them
NOT_HERE = re.compile(r"sonde (record|pstack|doctor|up|down|rotate|keep|logs|serve)\b|sonde status --log|--debuginfod|--check|--live|--keep|~/\.config|\bsource <")


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """A store of a host that was looked at today, at its last 03:10, and yesterday."""
    now = int(time.time()) // 10 * 10
    path = str(tmp_path_factory.mktemp("host") / "store")
    last_0310 = (now - 3 * 3600 - 600) // 86400 * 86400 + 3 * 3600 + 600
    ends = {last_0310 + 600, last_0310 - 600, last_0310 - 86400 + 900, now - 3600}
    return livedin.make(path, now, sorted(e for e in ends if e < now - livedin.SPAN))


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stand-ins")
    for name, does in STANDS_IN.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{does}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return str(folder)


def examples():
    return [(v["verb"], x) for v in verbs().values() for x in v["examples"]] if os.path.exists(f"{BIN}/sonde") else []


@pytest.mark.parametrize("verb, line", examples())
def test_an_example_of_the_help_works_as_it_stands(verb, line, host, stand_ins, tmp_path):
    if NOT_HERE.search(line):
        return
    need("jq")
    copy = str(tmp_path / "store")
    shutil.copytree(host, copy)
    (tmp_path / "cpu.pb.gz").write_bytes(say("export", store=host, words=["pprof", "--rec", "last"]).stdout)
    (tmp_path / "old.pb.gz").write_bytes((tmp_path / "cpu.pb.gz").read_bytes())
    shutil.copy(os.path.join(E2E, "captures", "http.pcap"), tmp_path / "x.pcap")
    line = line.replace("/tmp/other", str(tmp_path / "other"))
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env={"PATH": f"{stand_ins}:{BIN}:{os.environ['PATH']}", "TZ": "UTC",
                                                         "SONDE_STORE": copy, "HOME": str(tmp_path), "SONDE_CONFIG": "/nonexistent"})
    # no debug symbols came: there is nothing to gain; no request was served while samples were taken; and this host had a kill for want of memory
    assert done.returncode == (4 if verb == "symbolize" or "--request " in line and verb != "explain" else 1 if line == "sonde check" else 0), f"{line}\n{done.stdout[-500:]}\n{done.stderr}"


def write():
    with tempfile.TemporaryDirectory() as base:
        made = livedin.make(os.path.join(base, "store"), AT)
        os.makedirs(GOLDEN, exist_ok=True)
        table_ = verbs()
        for verb in ASKED:
            for name, words in forms(verb, table_):
                with open(os.path.join(GOLDEN, name), "w", encoding="utf-8") as f:
                    f.write(shown(verb, words, made))
        for name in PICTURES:
            with open(os.path.join(GOLDEN, name), "w", encoding="utf-8") as f:
                f.write(picture(name, made))


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    write()
