# SPDX-License-Identifier: Apache-2.0
"""What the capture could not name gains names and lines later: from a debug file put beside the program, and from a real
debuginfod server on loopback."""
import json
import math
import os
import shutil
import socket
import subprocess
import time
import urllib.request

import pytest

from conftest import BIN, WORKLOADS, Capture, need, need_root, scale, segments, sql_all


def split(program, debug, where, link=True):
    """A stripped copy of a workload at `where`, its debug information in `debug`."""
    need("objcopy")
    shutil.copy(os.path.join(WORKLOADS, program), where)
    subprocess.run(["objcopy", "--only-keep-debug", where, debug], check=True)
    subprocess.run(["strip", where], check=True)
    if link:
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", where], check=True)


@pytest.fixture
def stripped(scratch, store):
    need_root()
    if not os.path.exists(os.path.join(WORKLOADS, "hotlines")):
        pytest.skip("missing: workload hotlines")
    os.makedirs(os.path.join(scratch, "away"))
    os.makedirs(os.path.join(scratch, ".debug"))
    program, debug = os.path.join(scratch, "prog"), os.path.join(scratch, "away", "prog.debug")
    split("hotlines", debug, program)
    return program, debug, store


def run_recorded(program, store):
    for seconds in (0.3, scale(3, 10)):
        c = Capture(store, "--freq", "1997").start()
        child = subprocess.run([program, str(seconds)], capture_output=True, text=True, check=True)
        c.stop()
        c.close()
    return json.loads(child.stdout)


def leaves(store, pid):
    rows = sql_all(store, "SELECT function, line, sum(samples) AS n FROM cpu_samples WHERE pid = ? GROUP BY 1, 2", (pid,))
    return {(r["function"], r["line"]): r["n"] for r in rows}


def assert_shares(seen, told):
    total = sum(seen.values())
    whole = told["turns"]["hot"] / sum(told["turns"].values())
    near = max(0.03, 1.8 / math.sqrt(total))  # a busy machine leaves few samples
    for line, share in told["hot"].items():
        assert seen.get(("hot", int(line)), 0) / total == pytest.approx(share * whole, abs=near), seen
    (nano,) = told["nano"]
    assert seen.get(("nano", int(nano)), 0) / total == pytest.approx((1 - whole) / 2, abs=near), seen


def symbolize(sonde, store, *args, **kw):
    done = sonde("symbolize", "--json", *args, store=store, **kw)
    assert done.returncode == 0, done.stderr
    return {r["path"]: r for r in json.loads(done.stdout)["rows"]}


@pytest.mark.long
def test_a_debug_file_installed_later_names_what_was_recorded(sonde, stripped, scratch):
    program, debug, store = stripped
    told = run_recorded(program, store)
    before = leaves(store, told["pid"])
    assert sum(n for (f, _), n in before.items() if f.startswith("prog+0x")) > 0.95 * sum(before.values())
    row = symbolize(sonde, store)[program]
    assert not row["names"] and "no debug information" in row["reason"]
    stacks = sql_all(store, "SELECT id, base, keep, leaf, tail FROM stack")

    shutil.move(debug, os.path.join(scratch, ".debug", "prog.debug"))
    row = symbolize(sonde, store)[program]
    assert row["names"] and row["lines"] and row["inlined"] and not row["reason"], row
    after = leaves(store, told["pid"])
    assert sum(after.values()) == sum(before.values())
    assert_shares(after, told)
    chains = sql_all(store, "SELECT DISTINCT k.folded FROM cpu_samples c JOIN stacks k ON k.id = c.stack_id "
                            "WHERE c.pid = ? AND c.function = 'nano'", (told["pid"],))
    assert chains and all(c["folded"].endswith("outer;step;nano") for c in chains)
    assert sql_all(store, "SELECT id, base, keep, leaf, tail FROM stack") == stacks, "no stack changes"
    for path in segments(store):
        assert sql_all(path, "PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    again = symbolize(sonde, store).get(program, {"names": 0, "lines": 0})
    assert (again["names"], again["lines"]) == (0, 0), "a second time there is nothing to gain"

    child = run_recorded(program, store)  # what is recorded from now on has lines at once
    assert_shares(leaves(store, child["pid"]), child)


@pytest.mark.long
def test_a_store_that_is_being_written_gains_too(sonde, stripped, scratch):
    program, debug, store = stripped
    told = run_recorded(program, store)
    shutil.move(debug, os.path.join(scratch, ".debug", "prog.debug"))
    c = Capture(store, "--freq", "997").start()
    try:
        assert symbolize(sonde, store)[program]["names"]
        second = json.loads(subprocess.run([program, "1"], capture_output=True, text=True, check=True).stdout)
        done = c.stop()
    finally:
        c.close()
    assert_shares(leaves(store, told["pid"]), told)
    assert sum(leaves(store, second["pid"]).values()) > 50
    assert not any(done["lost"].values()), done


@pytest.mark.long
def test_what_stands_at_the_path_now_must_be_the_same_file(sonde, stripped, scratch):
    program, debug, store = stripped
    told = run_recorded(program, store)
    shutil.move(debug, os.path.join(scratch, ".debug", "prog.debug"))
    os.unlink(program)
    shutil.copy(os.path.join(WORKLOADS, "shares"), program)
    row = symbolize(sonde, store)[program]
    assert not row["names"] and "another file" in row["reason"]
    os.unlink(program)
    row = symbolize(sonde, store)[program]
    assert not row["names"] and "no longer exists" in row["reason"]
    assert not any(f in ("hot", "outer", "main") for f, _ in leaves(store, told["pid"]))


def test_a_file_without_a_build_id_whose_index_never_came_is_known_by_what_it_is_on_the_disk(sonde, scratch, store):
    need_root()
    need("objcopy")
    slow = os.path.join(scratch, "bin")  # programs beside a sonde-index that takes for ever
    os.mkdir(slow)
    for name in ("sonde-cpu", "sonde-maps"):
        shutil.copy(os.path.join(BIN, name), slow)
    with open(f"{slow}/sonde-index", "w", encoding="ascii") as f:
        f.write("#!/bin/sh\nexec sleep 600\n")
    os.chmod(f"{slow}/sonde-index", 0o755)
    kept, changed = (os.path.join(scratch, name) for name in ("kept", "changed"))
    for program in (kept, changed):
        subprocess.run(["objcopy", "--remove-section=.note.gnu.build-id", os.path.join(WORKLOADS, "hotlines"), program], check=True)
    c = Capture(store, "--freq", "1997", program=f"{slow}/sonde-cpu").start()
    told = [json.loads(subprocess.run([program, "0.5"], capture_output=True, text=True, check=True).stdout) for program in (kept, changed)]
    c.stop()
    c.close()
    for one in told:
        assert not any(f in ("hot", "outer", "main") for f, _ in leaves(store, one["pid"])), "it was named at once"
    os.utime(changed)
    rows = symbolize(sonde, store)
    assert rows[kept]["names"] and rows[kept]["lines"] and not rows[kept]["reason"], rows[kept]
    assert_shares({k: n for k, n in leaves(store, told[0]["pid"]).items() if not k[0].startswith("[")}, told[0])
    assert not rows[changed]["names"] and "another file is at its path now" in rows[changed]["reason"]
    assert not any(f in ("hot", "outer", "main") for f, _ in leaves(store, told[1]["pid"]))


def test_errors_in_plain_words(sonde, scratch):
    need_root()
    done = sonde("symbolize", store=os.path.join(scratch, "none"))
    assert done.returncode == 6 and "fix:" in done.stderr
    done = sonde("symbolize", "--debuginfod", store=scratch, env={"DEBUGINFOD_URLS": ""})
    assert done.returncode == 2 and "DEBUGINFOD_URLS" in done.stderr


def test_a_debuginfod_helper_that_does_not_run_here_is_said_before_anything_is_asked(scratch):
    """As on a host without glibc, or with an older one than a static build's helper was made for."""
    os.makedirs(os.path.join(scratch, "bin"))
    for name in ("sonde-symbolize", "sonde-index"):
        shutil.copy(os.path.join(BIN, name), os.path.join(scratch, "bin"))
    helper, command = os.path.join(scratch, "bin", "sonde-debuginfod"), [os.path.join(scratch, "bin/sonde-symbolize"), "--store", scratch,
                                                                         "--debuginfod"]
    env = dict(os.environ, DEBUGINFOD_URLS="http://127.0.0.1:1")
    for text, said in ((None, "is not installed"), ("#!/nonexistent\n", "does not run here"), ("#!/bin/sh\nexit 1\n", "does not run here"),
                       ("#!/bin/sh\nexit 3\n", "libdebuginfod.so.1 cannot be used")):
        if text:
            with open(helper, "w", encoding="ascii") as f:
                f.write(text)
            os.chmod(helper, 0o755)
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
        assert done.returncode == 3 and said in done.stderr and "fix:" in done.stderr, (text, done.stderr)


def test_the_debuginfod_helper_takes_only_build_ids(scratch):
    for words in ([], ["debuginfo"], ["debuginfo", "xyz"], ["debuginfo", "abc"], ["source", "abcd"], ["executable", "ab" * 65],
                  ["debuginfo", "/etc/passwd"]):
        done = subprocess.run([os.path.join(BIN, "sonde-debuginfod"), *words], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and not done.stdout, (words, done)


@pytest.fixture
def server(scratch):
    """A debuginfod of our own, on loopback, for one folder: (its URL, that folder, an environment with a cache of its own)."""
    need("debuginfod")
    files = os.path.join(scratch, "served")
    os.makedirs(files)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = dict(os.environ, HOME=scratch, DEBUGINFOD_CACHE_PATH=os.path.join(scratch, "cache"),
               DEBUGINFOD_URLS=f"http://127.0.0.1:{port}", DEBUGINFOD_TIMEOUT="20")
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        env.pop(name, None)
    with open(os.path.join(scratch, "debuginfod.log"), "w", encoding="utf-8") as log:
        child = subprocess.Popen(["debuginfod", "-d", os.path.join(scratch, "db"), "-p", str(port), "-t", "1", "-F", files],
                                 env={k: v for k, v in env.items() if k != "DEBUGINFOD_URLS"}, stdout=log, stderr=log)
    yield f"http://127.0.0.1:{port}", files, env
    child.terminate()
    child.wait()


def build_id(path):
    out = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return out.split("Build ID: ")[1].split()[0]


def wait_served(url, what):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + 30
    while True:
        try:
            with opener.open(f"{url}/buildid/{what}", timeout=5) as r:
                return r.read(4)
        except OSError:
            assert time.monotonic() < end, f"debuginfod never had {what}"
            time.sleep(0.1)


@pytest.mark.long
def test_debuginfod_has_what_is_not_here(sonde, stripped, scratch, server):
    program, debug, store = stripped
    url, files, env = server
    told = run_recorded(program, store)
    shutil.move(debug, os.path.join(files, "prog.debug"))
    assert wait_served(url, f"{build_id(os.path.join(files, 'prog.debug'))}/debuginfo") == b"\x7fELF"
    row = symbolize(sonde, store, env=env)[program]
    assert not row["names"], "without --debuginfod nobody is asked"
    done = sonde("symbolize", "--debuginfod", "--json", store=store, env=env)
    answer = json.loads(done.stdout)
    row = next(r for r in answer["rows"] if r["path"] == program)
    assert answer["fetched"] >= 1 and row["names"] and row["lines"] and row["inlined"], row
    assert_shares(leaves(store, told["pid"]), told)


@pytest.mark.long
def test_debuginfod_has_a_program_that_is_gone(sonde, stripped, server):
    program, debug, store = stripped
    url, files, env = server
    told = run_recorded(program, store)
    shutil.move(debug, os.path.join(files, "prog.debug"))
    shutil.move(program, os.path.join(files, "prog"))
    for what in ("debuginfo", "executable"):
        wait_served(url, f"{build_id(os.path.join(files, 'prog'))}/{what}")
    done = sonde("symbolize", "--debuginfod", store=store, env=env)
    assert done.returncode == 0, done.stderr
    assert_shares(leaves(store, told["pid"]), told)


@pytest.mark.long
def test_record_asks_after_it_has_recorded(sonde, stripped, server):
    program, debug, store = stripped
    url, files, env = server
    shutil.move(debug, os.path.join(files, "prog.debug"))
    wait_served(url, f"{build_id(os.path.join(files, 'prog.debug'))}/debuginfo")
    done = sonde("record", "-F", "1997", "--debuginfod", "--", program, scale(3, 10), store=store, env=env)
    assert done.returncode == 0, done.stderr
    (row,) = sql_all(store, "SELECT pid FROM processes WHERE exe = ?", (program,))
    seen = leaves(store, row["pid"])
    assert sum(n for (f, line), n in seen.items() if f in ("hot", "outer", "nano") and line) > 0.9 * sum(seen.values())
    refused = sonde("record", "-d", "1s", "--debuginfod", store=store, env={"DEBUGINFOD_URLS": ""})
    assert refused.returncode == 2 and "DEBUGINFOD_URLS" in refused.stderr


@pytest.mark.long
def test_a_server_that_is_not_there_costs_little_and_is_said(sonde, stripped):
    program, _, store = stripped
    run_recorded(program, store)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    began = time.monotonic()
    env = {"DEBUGINFOD_URLS": f"http://127.0.0.1:{port}", "HOME": os.path.dirname(program),
           "DEBUGINFOD_CACHE_PATH": os.path.join(os.path.dirname(program), "cache")}
    if not any(os.path.exists(os.path.join(d, "libdebuginfod.so.1"))
               for d in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")):
        pytest.skip("missing: libdebuginfod1")
    done = sonde("symbolize", "--debuginfod", "--json", store=store, env=env)
    assert done.returncode == 0 and "no answer from the debuginfod servers" in done.stderr
    assert time.monotonic() - began < 60
