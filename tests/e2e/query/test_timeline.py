# SPDX-License-Identifier: Apache-2.0
"""`sonde timeline`: a planted spike is found, is first, its command pasted into a shell shows the planted function on top;
figures are what SQL says; a gap is no idleness. On stores whose contents are known (putstore), and on one real capture."""
import json
import os
import pwd
import random
import re
import shutil
import subprocess
import time

import pytest
from conftest import BIN, BUILD, WORKLOADS, need, need_root, on_terminal, sql_all

AT = 1795144200
BUSY = (("db", "", 60), ("nginx", "web", 50), ("cron", "", 20))
RANGE = ["--from", str(AT - 900), "--to", str(AT)]
PLANTED = {
    "process": lambda s: {"pid": 500, "comm": "my backup"},
    "container": lambda s: {"pid": 500, "comm": "ffmpeg", "container": "jelly'fin"},
    "children": lambda s: {"pid": 1000 + s, "comm": "cc1"},
}


def put(store, lines):
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    subprocess.run([program, store], input="\n".join(map(json.dumps, lines)), text=True, check=True)


def busy(seed, seconds, slower=()):
    """A host with three services whose use varies."""
    r = random.Random(seed)
    for s in seconds:
        for i, (comm, container, n) in enumerate(BUSY):
            n = round(r.gauss(n * (0.6 if s in slower else 1), 12))
            if n > 0:
                yield {"kind": "cpu", "at": s, "n": n, "pid": 10 + i, "comm": comm, "container": container,
                       "stack": ["main", f"{comm}_work"]}


def planted(kind, seed=1):
    """Fifteen minutes at 99 Hz; for 40 s, ten minutes before the end, somebody takes most of a CPU."""
    spike = range(AT - 600, AT - 560)
    lines = [*busy(seed, range(AT - 900, AT), slower=spike),
             *({"kind": "cpu", "at": s, "n": 85 + s % 3, "stack": ["main", "plan", "hot_planted"], **PLANTED[kind](s - spike[0])}
               for s in spike)]
    return [{"run": "cpu", "from": AT - 900, "to": AT, "bucket_s": 1, "period_ns": 10101010},
            *sorted(lines, key=lambda x: x["at"])]


@pytest.fixture(scope="module", params=sorted(PLANTED))
def spike(request, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("timeline") / "a store")
    put(path, planted(request.param))
    return request.param, path


def answer(sonde, store, *args):
    return json.loads(sonde("timeline", *args, "--json", "--store", store, check=True).stdout)


def paste(command, cwd, env=None, **kw):
    """As a person does, with `sonde` on the path."""
    env = dict(env or os.environ, PATH=f"{BIN}:{os.environ['PATH']}")
    done = subprocess.run(["bash", "-c", command], cwd=cwd, env=env, capture_output=True, text=True, timeout=60, **kw)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout


def top_function(command, cwd, **kw):
    """Of the flame graph that the command makes: the function in which most time was spent."""
    folded = paste(command + " -o x.folded >&2 && cat x.folded", cwd, **kw)
    best = {}
    for line in folded.splitlines():
        stack, n = line.rsplit(" ", 1)
        best[stack.split(";")[-1]] = best.get(stack.split(";")[-1], 0) + int(n)
    return max(best, key=best.get)


def test_a_planted_spike_is_first_and_its_command_shows_its_function(sonde, spike, tmp_path):
    kind, store = spike
    said = answer(sonde, store, *RANGE)
    first, who = said["rows"][0], PLANTED[kind](0)
    assert first["who"] == who.get("container", who["comm"])
    assert first["who_is"] == ("container" if kind == "container" else "command")
    assert (first["from_ns"], first["to_ns"]) == ((AT - 600) * 10**9, (AT - 560) * 10**9)
    assert first["processes"] == (40 if kind == "children" else 1) and first["top_comm"] == who["comm"]
    assert top_function(first["command"], tmp_path) == "hot_planted"
    text = sonde("timeline", *RANGE, "--store", store, check=True).stdout
    (printed, *_) = re.findall(r"^    (sonde flame .*)$", text, re.M)
    assert printed == first["command"]
    assert len(re.findall("^    sonde flame", text, re.M)) == len(said["rows"])


def test_the_figures_of_a_spike_are_what_sql_says(sonde, spike):
    store = spike[1]
    for row in answer(sonde, store, *RANGE)["rows"]:
        column = "container" if row["who_is"] == "container" else "comm"
        rows = sql_all(store, "SELECT sum(cpu_ns) AS ns FROM cpu_samples WHERE ts >= ? AND ts < ?",
                       (row["from_ns"] // 10**9, row["to_ns"] // 10**9))
        mine = sql_all(store, f"SELECT sum(cpu_ns) AS ns FROM cpu_samples WHERE ts >= ? AND ts < ? AND {column} = ?",
                       (row["from_ns"] // 10**9, row["to_ns"] // 10**9, row["who"]))
        assert row["cpu_ns"] == sum(r["ns"] for r in mine)
        assert row["share"] == pytest.approx(row["cpu_ns"] / sum(r["ns"] for r in rows))
        assert row["cpu_cores"] == pytest.approx(row["cpu_ns"] / (row["to_ns"] - row["from_ns"]), rel=1e-6)


def test_columns_and_groups_add_up_to_what_sql_says(sonde, spike):
    store = spike[1]
    said = answer(sonde, store, *RANGE)
    total = sum(r["ns"] for r in sql_all(store, "SELECT sum(cpu_ns) AS ns FROM cpu_samples"))
    assert sum(said["cpu_by_column_ns"]) == total == sum(g["cpu_ns"] for g in said["groups"])
    for group in said["groups"]:
        assert sum(group["by_column_ns"]) == group["cpu_ns"]
    by = {w: answer(sonde, store, *RANGE, "--by", w) for w in ("container", "command", "process")}
    assert {g["who"] for g in by["container"]["groups"]} >= {"[host]", "web"}
    assert {g["who"] for g in by["command"]["groups"]} >= {"nginx", "db"}
    assert all(re.search(r" \(\d+\)$", g["who"]) for g in by["process"]["groups"])


def test_steady_hosts_have_no_spike(sonde, tmp_path):
    store = str(tmp_path / "store")
    for seed in range(5):
        shutil.rmtree(store, ignore_errors=True)
        put(store, [{"run": "cpu", "from": AT - 900, "to": AT, "bucket_s": 1, "period_ns": 10101010},
                    *busy(seed, range(AT - 900, AT))])
        assert answer(sonde, store, *RANGE)["rows"] == []
    done = sonde("timeline", *RANGE, "--store", store, check=True)
    assert "no spikes" in done.stdout


def test_a_gap_is_shown_as_a_gap_and_not_as_idle(sonde, tmp_path):
    store = str(tmp_path / "store")
    put(store, [{"run": "cpu", "from": AT - 900, "to": AT - 600, "bucket_s": 1, "period_ns": 10101010},
                *busy(1, range(AT - 900, AT - 600)),
                {"run": "cpu", "from": AT - 300, "to": AT, "bucket_s": 1, "period_ns": 10101010},
                *busy(2, range(AT - 200, AT))])
    said = answer(sonde, store, *RANGE)
    (gap,) = [x for x in said["events"] if x["event"] == "gap"]
    assert (gap["from_ns"] // 10**9, gap["to_ns"] // 10**9) == (AT - 600, AT - 300)
    for column, ns in zip(said["columns"], said["cpu_by_column_ns"]):
        lies = column["from_ns"] >= gap["from_ns"] and column["to_ns"] <= gap["to_ns"]
        assert (ns is None) == lies == (column["recorded_ns"] == 0)
    strip = re.search(r"^all +\|(.*)\|", sonde("timeline", *RANGE, "--store", store, check=True).stdout, re.M).group(1)
    part = len(strip) // 9
    assert strip[3 * part + 2:6 * part - 2].strip() == ""           # nothing recorded
    assert set(strip[6 * part + 3:7 * part - 2]) == {"_"}           # recorded, and idle
    assert said["rows"] == []


def test_memory_of_go_programs_and_their_ends_are_told(sonde, tmp_path):
    store = str(tmp_path / "store")
    app = {"pid": 40, "comm": "app", "label": 0, "stack": ["main", "keep"]}
    put(store, [{"run": "goheap", "from": AT - 120, "to": AT, "bucket_s": 10},
                *({**app, "kind": k, "at": AT - 120 + 10 * i, "n": 1, "value": 1000 * (i + 1)} for i in range(6)
                  for k in ("alloc", "inuse")),
                {"note": "last", "text": "out of memory", "pid": 40, "comm": "app"}])
    said = answer(sonde, store, "--from", AT - 120, "--to", AT)
    assert sum(said["allocated_by_column_bytes"]) == 21000
    assert max(said["inuse_by_column_bytes"]) == 6000 and said["inuse_by_column_bytes"][-1] == 0
    (end,) = [x for x in said["events"] if x["event"] == "process ended"]
    assert end["text"] == "app (40) ended: out of memory" and end["from_ns"] == (AT - 70) * 10**9
    text = sonde("timeline", "--from", AT - 120, "--to", AT, "--store", store, check=True).stdout
    assert "Go: allocated" in text and "out of memory" in text and "cores" not in text.split("what happened")[0]


def test_crashes_and_what_was_killed_for_want_of_memory_are_marks(sonde, tmp_path):
    store = str(tmp_path / "store")
    ends = {30: (3, 9, "out of memory"), 31: (2, 11, "signal 11 (SEGV)"), 32: (1, 1, "exit 1"), 33: (1, 0, None), 34: (5, 0, None)}
    put(store, [{"run": "cpu", "from": AT - 60, "to": AT, "bucket_s": 1, "period_ns": 10101010}, *busy(1, range(AT - 60, AT)),
                *({"end": how, "status": status, "at": AT - 30, "pid": pid, "comm": "worker", "container": "web"}
                  for pid, (how, status, _) in ends.items())])
    said = answer(sonde, store, "--from", AT - 60, "--to", AT)
    marks = [(x["text"], x["from_ns"]) for x in said["events"] if x["event"] in ("process ended", "oom")]
    assert sorted(marks) == sorted([("web: out of memory (worker)", (AT - 30) * 10**9),
                                    *((f"web: worker ({pid}) ended: {ends[pid][2]}", (AT - 30) * 10**9) for pid in (31, 32))])
    assert "web: out of memory (worker)" in sonde("timeline", "--from", AT - 60, "--to", AT, "--store", store, check=True).stdout


def test_losses_and_the_ends_of_recordings_are_marks(sonde, tmp_path):
    store = str(tmp_path / "store")
    put(store, [{"run": "cpu", "from": AT - 60, "to": AT - 10, "bucket_s": 1, "period_ns": 10101010}, *busy(1, range(AT - 60, AT - 10)),
                {"loss": "ring", "at": AT - 30, "n": 7}])
    events = {x["event"]: x for x in answer(sonde, store, "--from", AT - 120, "--to", AT)["events"]}
    assert events["lost"]["n"] == 7 and events["lost"]["from_ns"] == (AT - 30) * 10**9
    assert events["began"]["from_ns"] == (AT - 60) * 10**9


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_lines_of_strips_fit_and_a_pipe_gets_ascii(sonde, spike, columns):
    store = spike[1]
    piped = sonde("timeline", *RANGE, "--store", store, check=True).stdout
    assert piped.isascii() and max(len(x) for x in piped.splitlines() if "|" in x) <= 100
    drawn = on_terminal(
        ["bash", "-c", f"stty cols {columns} <&1; exec '{BIN}/sonde' timeline {' '.join(RANGE)} --store '{store}'"],
        env=dict(os.environ, LC_ALL="C.UTF-8", TERM="xterm"))
    strips = [x for x in drawn.splitlines() if "|" in x and "cores" in x]
    assert strips and "█" in drawn
    assert max(map(len, strips)) <= max(columns, 60)


def test_words_and_nothing_there(sonde, spike):
    store = spike[1]
    assert sonde("timeline", "--by", "colour", store=store).returncode == 2
    done = sonde("timeline", "--from", "1990-01-01", "--to", "1990-01-02", store=store)
    assert done.returncode == 4 and done.stdout == "" and "sonde" in done.stderr
    narrow = answer(sonde, store, "db", *RANGE)
    assert [g["who"] for g in narrow["groups"]] == ["db"]


def test_a_copied_store_answers_without_root(sonde, spike, tmp_path):
    """On another machine there is neither the process nor root."""
    need_root()
    kind, store = spike
    nobody = pwd.getpwnam("nobody")
    base = f"/tmp/sonde-copy-{os.getpid()}-{kind}"
    shutil.copytree(store, base)
    try:
        for path in [base, *(os.path.join(base, f) for f in os.listdir(base))]:
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
        if subprocess.run(["setpriv", "--reuid=nobody", "--clear-groups", "test", "-x", f"{BIN}/sonde"]).returncode:
            pytest.skip("missing: a build that another user can reach")
        os.makedirs(f"{base}/out")
        os.chown(f"{base}/out", nobody.pw_uid, nobody.pw_gid)
        said = json.loads(paste(f"exec setpriv --reuid=nobody --clear-groups sonde timeline {' '.join(RANGE)} --store {base} --json -q", "/"))
        command = said["rows"][0]["command"]
        assert top_function(f"setpriv --reuid=nobody --clear-groups {command}", f"{base}/out") == "hot_planted"
    finally:
        shutil.rmtree(base, ignore_errors=True)


@pytest.mark.long
def test_a_spike_of_a_real_capture_is_found_and_shown(sonde, store, tmp_path):
    """A second on a CPU within twenty that are recorded: of a name of its own, and before all others, so that it is a spike on a
    busy machine as well."""
    need_root()
    program = os.path.join(WORKLOADS, "burn")
    need("build/tests/workloads/burn", program)
    spike = shutil.copy(program, tmp_path / "spike-planted")
    recorder = subprocess.Popen([f"{BIN}/sonde", "record", "-d", "20s", "--store", store], stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    time.sleep(8)   # what is usual: the time before
    subprocess.run([spike, "1000"], stdout=subprocess.DEVNULL, check=True,
                   preexec_fn=lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
    assert recorder.wait(timeout=540) == 0, recorder.stderr.read()
    said = answer(sonde, store, "--comm", "spike-planted", "--rec", "last")
    first = said["rows"][0]
    assert first["who"] == "spike-planted" and first["cpu_ns"] == pytest.approx(1e9, rel=0.3)
    assert top_function(first["command"], tmp_path) == "burn_leaf"


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """Two minutes of two containers and a disk, the second one measured from its half on."""
    store = str(tmp_path_factory.mktemp("used") / "store")
    web, db = {"container": "web", "container_id": "a" * 64}, {"container": "db", "container_id": "b" * 64}
    lines = [{"run": "host", "from": AT, "to": AT + 120, "bucket_s": 10}]
    for i in range(12):
        at = {"at": AT + 10 * i}
        lines += [{"fact": "host_row", **at, "mem_total": 1 << 30, "mem_available": 1 << 29, "psi_io_us": 1000000 * (i == 3)},
                  {"fact": "cgroup_row", "cgroup": "/docker/web", **web, **at, "working": (10 + 5 * (i == 4)) << 20, "read_bytes": 1000,
                   "write_bytes": 9000 * (i == 6), "rx_bytes": 500, "tx_bytes": 500, "psi_cpu_us": 2500000},
                  {"fact": "disk_row", "disk": "sda", **at, "busy_us": 5000000, "read_bytes": 0, "write_bytes": 0}]
        if i in (6, 11):  # what did not move between has no row
            lines.append({"fact": "cgroup_row", "cgroup": "/docker/db", **db, **at, "working": 700 << 20})
    # of one nobody saw the end, one stopped after its last reading, and one in the bucket of that
    for name, when in (("gone", range(4)), ("stopped", (0, 6)), ("within", range(5))):
        lines += [{"fact": "cgroup_row", "cgroup": f"/docker/{name}", "container": name, "container_id": name[0] * 64, "at": AT + 10 * i, "working": 1 << 20,
                   "read_bytes": 500, "write_bytes": 0} for i in when]
    for name, at in (("stopped", AT + 85), ("within", AT + 44)):
        lines.append({"fact": "event_row", "at": at, "columns": {"kind": "stopped", "subject": "container", "name": name, "detail": "", "which": name[0],
                                                                 "n": 1, "at_us": at * 1000000}})
    put(store, lines)
    return store


def test_memory_of_each_container_is_drawn_with_its_peak_and_holds_until_the_next_reading(sonde, used):
    args = ["timeline", "--of", "mem", "--from", str(AT), "--to", str(AT + 120)]
    answer = json.loads(sonde(*args, "--json", store=used, check=True).stdout)
    rows = {r["who"]: r for r in answer["rows"]}
    assert [r["who"] for r in answer["rows"]] == ["db", "[host]", "web", "gone", "stopped", "within"] and answer["unit"] == "bytes"
    assert len(rows["web"]["by_column"]) == 120 and rows["web"]["by_column"][45] == 15 << 20 == rows["web"]["most"]
    assert rows["web"]["by_column"][39] == rows["web"]["last"] == 10 << 20 and rows["web"]["most_at_ns"] == (AT + 40) * 10**9
    assert rows["db"]["by_column"][59] is None and set(rows["db"]["by_column"][60:]) == {700 << 20}
    text = sonde(*args, store=used, check=True).stdout
    assert re.search(r"^db +\|.*\| 700 MiB, max 700 MiB at ", text, re.M)


@pytest.mark.parametrize("of", ["mem", "io"])
def test_a_container_that_stopped_is_drawn_up_to_its_end(sonde, used, of):
    args = ["timeline", "--of", of, "--from", str(AT), "--to", str(AT + 120)]
    rows = {r["who"]: r for r in json.loads(sonde(*args, "--json", store=used, check=True).stdout)["rows"]}
    for name, end in (("gone", 40), ("stopped", 85), ("within", 50)):
        measured = [v is not None for v in rows[name]["by_column"]]
        assert measured == [True] * end + [False] * (120 - end) and rows[name]["ended_ns"] == (AT + (44 if name == "within" else end)) * 10**9
    assert rows["web"]["ended"] is None and rows["web"]["by_column"][119] is not None
    assert re.search(r"^gone +\|.*, ended ", sonde(*args, store=used, check=True).stdout, re.M)


def test_what_was_read_sent_and_waited_for_adds_up_over_the_columns(sonde, used):
    def rows(of, *more):
        done = sonde("timeline", "--of", of, "--from", str(AT), "--to", str(AT + 120), *more, "--json", store=used, check=True)
        return {r["who"]: r["by_column"] for r in json.loads(done.stdout)["rows"]}
    io = rows("io")
    assert sum(io["web"]) == pytest.approx(12 * 1000 + 9000) and io["web"][65] == pytest.approx(1000) and set(io["[sda]"]) == {0}
    assert sum(rows("net")["web"]) == pytest.approx(12000)
    pressure = rows("pressure")
    assert pressure["web cpu"][0] == pytest.approx(0.25) and pressure["[host] io"][35] == pytest.approx(0.1)
    assert rows("disk")["[sda]"][7] == pytest.approx(0.5)
    assert set(rows("io", "--container", "web")) == {"web"}


def request(at, who, side, n, ms, result=0):
    return {"request": "GET x", "at": at, **who, "side": side, "result": result, "status": "500" if result else "200", "n": n, "total_ns": n * ms * 1000000, "max_ns": ms * 1000000}


def test_requests_their_errors_and_how_long_they_took_are_drawn_by_who_was_asked(sonde, store):
    """Of 95 of 100 that took 8 ms and 5 that took 1 s the p95 is the former, of 94 and 6 the latter; a second operation is counted with the first."""
    web, cron = {"pid": 10, "comm": "nginx", "container": "web"}, {"pid": 11, "comm": "cron"}
    put(store, [{"run": "l7", "from": AT, "to": AT + 60, "bucket_s": 10}, request(AT + 10, web, 2, 95, 8), request(AT + 10, web, 2, 5, 1000, result=1),
                request(AT + 30, web, 2, 94, 8), {**request(AT + 30, web, 2, 6, 1000), "request": "GET y"}, request(AT + 30, cron, 1, 20, 3)])

    def rows(of):
        done = json.loads(sonde("timeline", "--of", of, "--from", str(AT), "--to", str(AT + 60), "--json", store=store, check=True).stdout)
        assert done["unit"] == ("seconds" if of == "latency" else "per second")
        return {r["who"]: r["by_column"] for r in done["rows"]}
    n = rows("requests")
    assert set(n) == {"web", "cron asks"} and n["web"][15] == pytest.approx(10) and sum(n["web"]) == pytest.approx(200) and sum(n["cron asks"]) == pytest.approx(20)
    assert rows("errors") == {"web": [0.5 if 10 <= i < 20 else 0 for i in range(60)]}
    p95 = rows("latency")
    assert p95["web"][15] == pytest.approx(0.008, rel=0.06) and p95["web"][35] == pytest.approx(1, rel=0.07) and p95["web"][25] is None
    assert p95["cron asks"][35] == pytest.approx(0.003, rel=0.06)
    assert re.search(r"^web +\|.*/s at ", sonde("timeline", "--of", "requests", "--from", str(AT), "--to", str(AT + 60), store=store, check=True).stdout, re.M)
    for args, word in ((["--container", "nosuch"], "none was recorded"), (["--from", str(AT + 20), "--to", str(AT + 25)], "none was recorded")):
        done = sonde("timeline", "--of", "errors", *(args if "--from" in args else ["--from", str(AT), "--to", str(AT + 60), *args]), store=store)
        assert done.returncode == 4 and word in done.stderr


def test_what_can_be_drawn_and_what_to_record_is_said(sonde, used):
    done = sonde("timeline", "--of", "memory", store=used)
    assert done.returncode == 2 and "cpu, mem, io, net, pressure, disk, gpu, jvm, gc, requests, errors or latency" in done.stderr
    done = sonde("timeline", "--of", "net", "--container", "db", store=used)
    assert done.returncode == 4 and "--families cpu,host" in done.stderr
