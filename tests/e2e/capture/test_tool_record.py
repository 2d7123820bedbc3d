# SPDX-License-Identifier: Apache-2.0
"""`sonde record`, `doctor` and `status` on this host: what they say, and with which exit code they end."""
import json
import os
import re
import resource
import signal
import subprocess
import time

import pytest
from conftest import BIN, WORKLOADS, need, need_root, on_terminal, segments, sql_all
from containers import fake_container

BURN = os.path.join(WORKLOADS, "burn")


@pytest.fixture(autouse=True)
def root_only():
    need_root()


def record(store, *args, **kw):
    return subprocess.run([f"{BIN}/sonde", "record", "--store", store, *args], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, check=False, errors="replace", **kw)


def test_a_recording_names_the_hottest_and_the_next_commands(store, work, sonde):
    burn = work("burn", 20000)
    done = record(store, "-d", "2s", "-p", str(burn.pid))
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "\x1b" not in done.stderr and "\r" not in done.stderr
    assert re.search(r"^recording cpu at 99 Hz \((cycles|cpu-clock)\) → ", done.stderr, re.M)
    assert re.search(r"^rec 1 done: [\d ]+ samples of 1 process in 2(\.\d+)? s; 0 lost;", done.stderr, re.M)
    assert re.search(rf"^  hottest  burn +pid {burn.pid} +[01]\.\d+ cores +(burn_leaf|work_turns) \d+ %$", done.stderr, re.M)
    following = re.search(r"^next:  (sonde .*)$", done.stderr, re.M).group(1)
    for command in re.split(r" {3,}", following):
        out = subprocess.run(["bash", "-c", f"cd {os.path.dirname(store)} && {BIN}/{command}"], capture_output=True, text=True)
        assert out.returncode == 0, f"{command}: {out.stderr}"


def test_a_recording_of_an_idle_host_says_that_only_sonde_ran(store):
    with fake_container() as (container, inside):  # where nobody else is
        done = subprocess.run([*inside, f"{BIN}/sonde", "record", "--store", store, "-d", "2s", "--freq", "4999", "--container",
                               container], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
    assert "  hottest" not in done.stderr and "nothing ran but sonde itself\n" in done.stderr, done.stderr
    following = re.search(r"^next:  (sonde .*)$", done.stderr, re.M).group(1)
    for command in re.split(r" {3,}", following):
        out = subprocess.run(["bash", "-c", f"cd {os.path.dirname(store)} && {BIN}/{command}"], capture_output=True, text=True)
        assert out.returncode == 0, f"{command}: {out.stderr}"


def test_the_json_of_a_recording_is_what_the_store_holds(store, work):
    work("burn", 8000)
    done = record(store, "-d", "1s", "--json", "-q")
    assert done.returncode == 0 and done.stderr == ""
    row = json.loads(done.stdout)["rows"][0]
    stored = sql_all(store, "SELECT sum(n) AS n FROM sample")[0]["n"]
    assert row["rec"] == 1 and row["samples"] == stored == row["seen"] - sum(row["lost"].values())
    assert row["to_ns"] - row["from_ns"] == pytest.approx(1e9, rel=0.3)


def test_progress_is_drawn_on_a_terminal_only(store, work):
    work("burn", 8000)
    text = on_terminal([f"{BIN}/sonde", "record", "-d", "1s", "--store", store])
    assert re.search(r"\r █*░* \d\.\d/1 s   [\d ]+ samples   0 lost   own CPU .* store ", text)


def test_a_terminal_without_escape_sequences_gets_none(store, work):
    work("burn", 8000)
    text = on_terminal([f"{BIN}/sonde", "record", "-d", "1s", "--store", store], {**os.environ, "TERM": "dumb"})
    assert "samples" in text and "\x1b" not in text, text


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_early_and_keeps_the_data(store, work, sig):
    work("burn", 10000)
    child = subprocess.Popen([f"{BIN}/sonde", "record", "--store", store], stderr=subprocess.PIPE, text=True)
    while "recording cpu" not in child.stderr.readline():
        pass
    time.sleep(1.5)
    child.send_signal(sig)
    _, said = child.communicate(timeout=360)
    assert child.returncode == 0 and "rec 1 done" in said
    assert sql_all(store, "SELECT state FROM run") == [{"state": 1}]


@pytest.mark.parametrize("families", ["cpu", "cpu,offcpu,host"])
def test_who_signals_the_whole_group_signals_once(store, work, families):
    """As timeout(1) does: the loaders have the signal by themselves and from `sonde record`, at nearly the same time."""
    work("burn", 10000)
    child = subprocess.Popen([f"{BIN}/sonde", "record", "--families", families, "--store", store], stderr=subprocess.PIPE, text=True, start_new_session=True)
    while "recording " not in child.stderr.readline():
        pass
    time.sleep(1.5)
    os.killpg(child.pid, signal.SIGTERM)
    _, said = child.communicate(timeout=360)
    assert child.returncode == 0 and "rec 1 done" in said, said
    assert {r["state"] for r in sql_all(store, "SELECT state FROM run")} == {1}


@pytest.mark.long
def test_who_tells_the_mappings_may_die_and_what_begins_later_has_its_names(store):
    """Loaders of one recording share one sonde-maps, which none of them may start."""
    need("workload burn", BURN)
    child = subprocess.Popen([f"{BIN}/sonde", "record", "--families", "cpu,offcpu", "--store", store], stderr=subprocess.PIPE, text=True)
    while "recording offcpu" not in child.stderr.readline():
        pass
    maps = subprocess.run(["pgrep", "-P", str(child.pid), "sonde-maps"], capture_output=True, text=True, check=True).stdout.strip()
    os.kill(int(maps), signal.SIGKILL)
    while "sonde-maps ended; it is restarted" not in child.stderr.readline():
        pass
    subprocess.run([BURN, "8000"], stdout=subprocess.DEVNULL, check=True)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=360)
    assert child.returncode == 0 and "rec 1 done" in said, said
    named = sql_all(store, "SELECT sum(samples) AS n FROM cpu_samples WHERE comm = 'burn' AND function = 'burn_leaf'")[0]["n"]
    assert named and named > 100, said


@pytest.mark.long
def test_a_command_is_recorded_and_its_failure_told(store):
    need("workload burn", BURN)
    done = record(store, "--", "sh", "-c", f"{BURN} 1000 >/dev/null; exit 7")
    assert done.returncode == 1
    assert "the command failed: exit status 7" in done.stderr
    assert "burn" in {r["comm"] for r in sql_all(store, "SELECT DISTINCT comm FROM cpu_samples")}
    done = record(store, "--", BURN, "1000")
    assert done.returncode == 0 and '"' in done.stdout


def test_the_command_gets_the_signals_as_its_starter_had_them(store):
    """What sonde ignores or blocks for itself is its own affair: `yes | head` ends as ever."""
    show = "grep -E '^Sig(Blk|Ign)' /proc/self/status; exec sleep 0.5"
    alone = subprocess.run(["sh", "-c", show], capture_output=True, text=True, check=True)
    done = record(store, "--", "sh", "-c", show)
    # but for 32 and 33, glibc's own, ignored in whatever posix_spawn starts, and those that record itself passes on: whoever
    # had them ignored (a shell, for what it starts in the background) has them as usual in the command
    others = 0x7fffffff & ~(1 << signal.SIGINT - 1 | 1 << signal.SIGTERM - 1)
    masks, wanted = ([int(line.split()[1], 16) & others for line in d.stdout.splitlines()] for d in (done, alone))
    assert masks == wanted and len(masks) == 2, (done.stdout, alone.stdout)


@pytest.mark.parametrize("args, code, says", [
    (["-F", "5000"], 2, "1 to 4999"),
    (["-d", "never"], 2, "takes a duration"),
    (["web"], 2, "no words before `--`"),
    (["-p", "999999", "-d", "1s"], 2, "999999"),
    (["--container", "no-such", "-d", "1s"], 2, "no-such"),
    (["--", "/nonexistent/program"], 2, "/nonexistent/program"),
    (["-F", "1", "--", "sleep", "0.1"], 4, "no samples"),
])
def test_what_cannot_be_recorded_is_said(store, args, code, says):
    done = record(store, *args)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert done.stderr.count("sonde: ") == 1


@pytest.mark.long
def test_a_killed_loader_is_said_and_its_data_is_there(store, work):
    work("burn", 20000)
    child = subprocess.Popen([f"{BIN}/sonde", "record", "--store", store], stderr=subprocess.PIPE, text=True)
    while "recording cpu" not in child.stderr.readline():
        pass
    time.sleep(3)
    loader = int(subprocess.run(["pgrep", "-P", str(child.pid), "-x", "sonde-cpu"], capture_output=True, text=True,
                                check=True).stdout)
    os.kill(loader, signal.SIGKILL)
    _, said = child.communicate(timeout=120)
    assert child.returncode == 1
    assert "ended by signal 9" in said and "kept" in said
    assert sql_all(store, "SELECT sum(n) AS n FROM sample")[0]["n"] > 0


def test_without_its_loader_the_verb_says_so(store, scratch):
    alone = os.path.join(scratch, "sonde")
    subprocess.run(["cp", f"{BIN}/sonde", alone], check=True)
    done = subprocess.run([alone, "record", "--store", store], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "sonde-cpu is not installed" in done.stderr and "fix:" in done.stderr
    done = subprocess.run([alone, "doctor", "--store", store], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "fail" in done.stdout


def test_status_tells_a_recording_that_runs_and_one_that_ended(store, work, sonde, capture):
    work("burn", 20000)
    running = capture()
    running.wait_event("first")
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        row = json.loads(sonde("status", "--json", store=store, check=True).stdout)["rows"][0]
        if row["samples"]:
            break
        time.sleep(0.3)
    assert row["state"] == "going on" and row["pid"] == running.pid and row["samples"] > 0
    assert "nothing at the moment" not in sonde("status", store=store, check=True).stdout
    done = running.stop()
    row = json.loads(sonde("status", "--json", store=store, check=True).stdout)["rows"][0]
    assert row["state"] == "ended" and row["samples"] == done["samples"]
    assert "nothing at the moment" in sonde("status", store=store, check=True).stdout
    text = sonde("status", store=store, check=True).stdout
    assert "recording  nothing at the moment" in text and "1 segment" in text


def test_doctor_agrees_with_the_loader(store, sonde):
    loader = subprocess.run([f"{BIN}/sonde-cpu", "--check", "--json", "--store", store], capture_output=True, text=True,
                            check=False)
    items = json.loads(loader.stdout)["items"]
    done = sonde("doctor", "--json", store=store)
    told = json.loads(done.stdout)
    assert done.returncode == (0 if told["ok"] else 1)
    names = [r["name"] for r in told["rows"]]
    assert [i["name"] for i in items] == names[:len(items)] and "recordings" in names


def test_a_family_that_never_walks_scripts_does_not_blame_the_kernel(store):
    """Where family cpu walks them, the kernel can: no other family says that it is too old."""
    def script_frames(family):
        done = subprocess.run([f"{BIN}/sonde-{family}", "--check", "--json", "--store", store], capture_output=True, text=True, check=False)
        return [i for i in json.loads(done.stdout)["items"] if i["name"] == "script frames"]
    if script_frames("cpu")[0]["state"] != "ok":
        pytest.skip("missing: a kernel that takes the program that walks scripts")
    for family in ("mem", "offcpu", "probe"):
        assert all(i["state"] in ("ok", "off") and not i["fix"] for i in script_frames(family)), family


def test_doctor_and_reading_work_without_root(store, work):
    work("burn", 6000)
    assert record(store, "-d", "1s").returncode == 0
    os.chmod(store, 0o755)
    for path in segments(store):
        os.chmod(path, 0o644)
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    done = subprocess.run([*user, f"{BIN}/sonde", "stacks", "--store", store], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "SELF" in done.stdout, done.stderr
    done = subprocess.run([*user, f"{BIN}/sonde", "doctor", "--store", store], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and re.search(r"fail .*privileges", done.stdout)
    assert done.stdout.startswith(f"kernel {os.uname().release}") and "next: " in done.stdout.splitlines()[-1]
    done = subprocess.run([*user, f"{BIN}/sonde", "record", "-d", "1s", "--store", "/tmp/x"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 5 and "privileges" in done.stderr and "fix: sudo" in done.stderr


def seconds(n, unit):
    return float(n) / (1000 if unit == "ms" else 1)


def test_what_sonde_took_is_one_number_wherever_it_is_told(store, work, sonde, tmp_path):
    """By record, in words and as JSON, by status, in the table and as JSON, in the store, and on the page: while it recorded, and to
    start and to end, which is in no rate."""
    del work
    done = record(store, "-d", "3s")
    own, share, *edges = re.search(
        r"\((\d[\d ]*) of them sonde's own\).* own CPU ([\d.]+) % of one core, and ([\d.]+) (m?s) to start", done.stderr).groups()
    own, share, edges = float(own.replace(" ", "")), float(share), seconds(*edges)
    row = json.loads(sonde("status", "--json", store=store, check=True).stdout)["rows"][0]
    assert 100 * row["self_cores"] == pytest.approx(share, rel=0.03, abs=0.06)
    assert row["self_edges_cpu_ns"] / 1e9 == pytest.approx(edges, rel=0.02, abs=0.011)
    shown = re.search(r"^ *1 .* ([\d.]+) %  \S*sonde", sonde("status", "--wide", store=store, check=True).stdout, re.M).group(1)
    assert float(shown) == pytest.approx(100 * row["self_cores"], abs=0.006)
    booked = {r["edge"]: r["ns"] for r in sql_all(store, "SELECT program IN ('start', 'end') AS edge, sum(cpu_ns) AS ns FROM cost GROUP BY 1")}
    assert booked == {0: row["self_cpu_ns"], 1: row["self_edges_cpu_ns"]}
    sonde("flame", "-o", str(tmp_path / "page.html"), store=store, check=True)
    said = re.search(r"sonde itself used ([\d.]+) % of one core, and ([\d.]+) (m?s)", (tmp_path / "page.html").read_text()).groups()
    assert float(said[0]) == pytest.approx(share, rel=0.05, abs=0.1) and seconds(*said[1:]) == pytest.approx(edges, abs=0.011)
    mine = sql_all(store, "SELECT sum(samples) AS n FROM cpu_samples WHERE self")[0]["n"]
    assert own == mine > 0


def test_who_asks_the_store_is_none_of_the_hosts_load(store, sonde):
    """A question that somebody asks while it is recorded is sonde's own, as those who record are."""
    with subprocess.Popen([f"{BIN}/sonde", "record", "-d", "3s", "--store", store], stderr=subprocess.PIPE, text=True) as recording:
        while "recording" not in recording.stderr.readline():
            pass
        asked = 0
        while recording.poll() is None:
            asked += sonde("status", store=store).returncode == 0
        recording.stderr.read()
    rows = sql_all(store, "SELECT s.self, sum(s.samples) AS n FROM cpu_samples s JOIN processes p ON p.id = s.process_id "
                          f"WHERE s.comm = 'sonde' AND coalesce(p.exe, '{BIN}/sonde') = '{BIN}/sonde' GROUP BY 1")  # another build of it is not its own
    by = {r["self"]: r["n"] for r in rows}
    # one that is met in the instant of its exec is nobody's yet
    assert asked and by[1] > 0 and by.get(0, 0) <= 1 + 0.03 * by[1], rows


@pytest.mark.long
def test_the_cost_of_two_families_together_is_what_the_kernel_counted(store):
    """Both share one sonde-maps: what it took is booked once, its start-up too, and by no more than it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = record(store, "-d", "2s", "--families", "cpu,goheap")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    booked = sql_all(store, "SELECT program, run_id, sum(cpu_ns) AS ns FROM cost GROUP BY 1, 2")
    own = sum(r["ns"] for r in booked if not r["program"].startswith("bpf:")) / 1e9
    maps, starts = ([r["ns"] for r in booked if r["program"] == name] for name in ("sonde-maps", "start"))
    assert len(maps) == len(starts) == 2 and max(maps) > 0 and min(starts) > 0
    # what a loader needs to come to its end, and sonde itself, are in no recording
    assert 0.7 * took - 0.1 <= own <= took, (own, took, booked)
    length, share, edges = map(float, re.search(r" in ([\d.]+) s; .* own CPU ([\d.]+) % of one core, and ([\d.]+) s to start",
                                                done.stderr).groups())
    everything = sum(r["ns"] for r in booked) / 1e9
    assert abs(share / 100 * length + edges - everything) <= 0.1 * everything + 0.03, (done.stderr, everything)
