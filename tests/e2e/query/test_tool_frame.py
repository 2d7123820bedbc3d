# SPDX-License-Identifier: Apache-2.0
"""The frame of `sonde`: help, exit codes, errors, ranges, filters, bare words, colours, JSON. On synthetic stores
(tests/workloads/makestore.c), whose contents are known; no root, no capture."""
import json
import os
import re
import subprocess
import tempfile
import time

import pytest
from conftest import BIN, BUILD, need, on_terminal
from livedin import put

VERBS = ["overview", "doctor", "record", "timeline", "explain", "events", "oom", "check", "wakers", "neighbours", "waits", "net", "disk", "map", "requests", "trace", "pstack", "ps", "containers", "flame", "stacks", "heap", "diff", "export", "import", "sql", "status", "completion", "version", "help"]
SELECTING = ["timeline", "explain", "events", "oom", "wakers", "neighbours", "waits", "net", "map", "requests", "trace", "ps", "containers", "stacks", "flame", "diff", "export"]
AT = 1795144200  # 2026-11-20T03:10:00Z, when the stores' samples end
ESC = "\x1b"
COLOUR = re.compile("\x1b\\[[0-9;]+m")


def make_store(path, *options):
    program = os.path.join(BUILD, "tests", "makestore")
    need("build/tests/makestore", program)
    return json.loads(subprocess.run([program, str(path), *map(str, options)], check=True, capture_output=True,
                                     text=True).stdout)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two recordings, the second one at 499 Hz over the middle 100 s of the first."""
    path = str(tmp_path_factory.mktemp("frame") / "store")
    said = make_store(path, "--rows", 5000, "--two-runs", "--at", AT)
    return path, said


@pytest.fixture(scope="module")
def segmented(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("segmented") / "store")
    return path, make_store(path, "--rows", 6000, "--segments", 3, "--at", AT)


def rows(done):
    return json.loads(done.stdout)["rows"]


def samples(done):
    return sum(r["samples"] for r in json.loads(done.stdout)["rows"])

#: words that were verbs, and what is typed now
REPLACED = {"neighbours": "waits --neighbours", "wakers": "waits --wakers"}
IMPERATIVE = set("see show list print draw say run explain compare query check record stop write import export add delete archive close convert answer keep".split())


# --- help ---

@pytest.mark.parametrize("word", sorted(REPLACED))
def test_a_word_that_was_replaced_is_understood_and_says_the_new_one(sonde, word):
    store = ["--store", "/nonexistent/store"]
    assert f"note: sonde {word} is now: sonde {REPLACED[word]}" in sonde(word, *store).stderr
    assert "note:" not in sonde(word, "--json", *store).stderr and "note:" not in sonde(word, "-q", *store).stderr
    assert f"this is now: sonde {REPLACED[word]}" in sonde(word, "--help", check=True).stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_short_help_with_examples(sonde, verb):
    done = sonde(verb, "--help", check=True)
    lines = done.stdout.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 110
    start = lines.index("examples:")
    examples = [x for x in lines[start + 1:] if x.startswith("  ") and "sonde" in x]
    assert len(examples) >= 2
    assert sonde("help", verb, check=True).stdout == done.stdout
    assert sonde(verb, "-h", check=True).stdout == done.stdout


def test_the_examples_of_the_help_parse(sonde, made, tmp_path):
    """Each example's own options are known to the verb: with a store that is not there they fail for that alone."""
    for verb in VERBS:
        text = sonde("help", verb, check=True).stdout
        for line in re.findall(r"^  (?:sudo )?sonde (.*)$", text, re.M):
            words = subprocess.run(["bash", "-c", f"printf '%s\\n' {re.split(r' [|&>]', line)[0]}"],
                                   capture_output=True, text=True, check=True).stdout.splitlines()
            if words[0] in ("record", "doctor", "pstack"):
                words.insert(1, "--help")
            done = sonde(*words, "--store", "/nonexistent/store") if words[0] in SELECTING else sonde(
                *words, store="/nonexistent/store", cwd=tmp_path)
            assert done.returncode != 2 or "cannot read" in done.stderr, f"{line}: {done.stderr}"


def test_the_overview_is_of_the_whole_range_where_two_segments_have_it(sonde, tmp_path):
    """Five minutes of a quiet host whose disk is busy, and five of a busy one whose disk is not, in a segment each; and only the part of a range counts that was recorded."""
    store, hour = str(tmp_path / "two"), 1795140000
    for begin, user_us, waited_us, busy_us in ((hour - 300, 2_000_000, 0, 5_000_000), (hour, 18_000_000, 8_000_000, 0)):
        rows = [{"run": "host", "from": begin, "to": begin + 300, "bucket_s": 10}]
        for at in range(begin, begin + 300, 10):
            rows += [{"fact": "host_row", "at": at, "cpus": 2, "user_us": user_us, "system_us": 0, "psi_cpu_us": waited_us, "mem_total": 8 << 30, "mem_available": 4 << 30},
                     {"fact": "disk_row", "disk": "sda", "at": at, "reads": 1, "busy_us": busy_us}]
        put(f"{store}{begin}", rows)
        os.makedirs(store, exist_ok=True)
        for name in (f for f in os.listdir(f"{store}{begin}") if f.endswith(".db")):
            os.rename(f"{store}{begin}/{name}", f"{store}/{name.replace('0001', '0002' if begin == hour else '0001')}")
    assert len(os.listdir(store)) == 2
    for begin, end in ((hour - 300, hour + 300), (hour - 3600, hour + 900)):
        found = json.loads(sonde("--from", begin, "--to", end, "--json", store=store, check=True).stdout)["host"]
        assert [round(found[k]["now"], 3) for k in ("cores", "waited_cpu", "disk_busy")] == [1.0, 0.4, 0.25], found


def test_sonde_alone_is_an_overview_and_without_a_store_a_welcome(sonde, made):
    done = sonde(store=made[0])
    assert done.returncode == 0, done.stderr
    labels = [x[:8].strip() for x in done.stdout.splitlines()]
    assert [x for x in labels if x in ("load", "wrong", "who", "slow", "more")] == ["load", "wrong", "who", "slow", "more"], done.stdout
    assert "requests: not recorded" in done.stdout and "sonde up l7" in done.stdout
    assert json.loads(sonde("--json", store=made[0], check=True).stdout)["schema"] == "sonde.overview/1"
    none = sonde(store="/nonexistent/store")
    assert none.returncode == 0 and "nothing recorded yet" in none.stdout


def test_topics_and_the_whole_help(sonde):
    text = sonde("help", check=True).stdout
    for verb in VERBS:
        assert bool(re.search(rf"^  {verb} ", text, re.M)) == (verb not in REPLACED)
    groups = re.findall(r"^(\w[\w ]+)\n(?=  \w+ +\w)", text, re.M)
    assert groups == ["Look", "Ask why", "Record", "Export", "Keep"], groups
    summaries = re.findall(r"^  (?!sudo |sonde )[a-z]+ +(\w+) ", text, re.M)
    assert not set(summaries) - IMPERATIVE, set(summaries) - IMPERATIVE
    for topic in ("range", "filters"):
        done = sonde("help", topic, check=True)
        assert len(done.stdout.splitlines()) <= 24
    for args in (["--version"], ["-V"], ["version"]):
        assert sonde(*args, check=True).stdout.startswith("sonde ")


# --- errors and exit codes ---

@pytest.mark.parametrize("args, code, says", [
    (["recrod"], 2, "did you mean 'record'?"),
    (["flme"], 2, "did you mean 'flame'?"),
    (["qwertyuiop"], 2, "no verb 'qwertyuiop'"),
    (["stacks", "--calers", "x"], 2, "did you mean '--callers'"),
    (["stacks", "--contaner", "x"], 2, "did you mean '--container'?"),
    (["stacks", "-Z"], 2, "no option -Z"),
    (["stacks", "-n"], 2, "needs a value"),
    (["stacks", "-n", "many"], 2, "takes a number"),
    (["stacks", "--pid", "nginx"], 2, "takes a number"),
    (["stacks", "--comm", "~("], 2, "is not a valid regular expression"),
    (["stacks", "--at", "noonish"], 2, "is not a time"),
    (["stacks", "--last", "soon"], 2, "takes a duration"),
    (["stacks", "--last", "1h", "--rec", "1"], 2, "only one of"),
    (["stacks", "--from", "-1h", "--to", "-2h"], 2, "the range is empty"),
    (["stacks", "--rec", "99"], 2, "no recording 99: the store has 2"),
    (["stacks", "--rec", "last~2"], 2, "the store has 2"),
    (["stacks", "--rec", "lasst"], 2, "--rec takes"),
    (["stacks", "serve-1"], 2, "did you mean 'server-1'"),
    (["stacks", "server"], 2, "fits several"),
    (["stacks", "web-1", "db-1"], 2, "one word"),
    (["stacks", "--color", "blue"], 2, "--color takes"),
    (["status", "extra"], 2, "takes no 'extra'"),
    (["export", "folded", "web-1", "db-1"], 2, "one word"),
    (["export", "folded", "--", "web-1"], 2, "takes no 'web-1'"),
    (["export", "web-1"], 2, "unknown format 'web-1'"),
    (["help", "flmae"], 2, "did you mean 'flame'?"),
    (["sql", "selct 1"], 2, "SQL:"),
    (["stacks", "--last", "1s"], 4, "nothing is stored of"),
    (["stacks", "--comm", "nobody"], 4, "no CPU samples"),
    (["flame", "--last", "1s"], 4, "nothing is stored of"),
    (["export", "folded", "--last", "1s"], 4, "nothing is stored of"),
])
def test_exit_codes_and_errors(sonde, made, args, code, says, tmp_path):
    done = sonde(*args, store=made[0], cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    error = [x for x in done.stderr.splitlines() if x.startswith("sonde: ")]
    assert len(error) == 1
    assert done.stdout == ""
    assert not list(tmp_path.iterdir())
    if code == 4:
        assert re.search(r"^  fix: .*sonde", done.stderr, re.M)
        assert "the store holds " in done.stderr


def test_a_range_may_end_at_a_time_of_day_that_is_still_to_come(sonde, made):
    """At half past three, from three to four: until now, not until yesterday."""
    def clock(seconds):
        return time.strftime("%H:%M", time.gmtime(time.time() + seconds))
    done = sonde("stacks", "--from", clock(-3600), "--to", clock(120), store=made[0], env={"TZ": "UTC"})
    assert done.returncode == 4 and re.search(r"\((60|61) min", done.stderr), done.stderr


@pytest.mark.parametrize("args", [["stacks"], ["flame"], ["export", "pprof"], ["sql", "select 1"], ["status"]])
def test_no_store_says_how_to_make_one(sonde, args, tmp_path):
    done = sonde(*args, store=str(tmp_path / "none"), cwd=tmp_path)
    assert done.returncode == (0 if args == ["status"] else 6) or done.returncode == 6
    assert "sonde record" in done.stderr + done.stdout
    assert not (tmp_path / "none").exists()


def test_a_reader_that_goes_away_is_no_error(made):
    done = subprocess.run(["bash", "-c", f"{BIN}/sonde sql --csv 'select * from cpu_samples' --store {made[0]} | head -1; "
                           "echo ${PIPESTATUS[0]}"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "0"
    assert done.stderr == ""


def test_a_full_output_is_said(made):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([f"{BIN}/sonde", "stacks", "--store", made[0]], stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False)
    assert done.returncode == 1 and "No space left" in done.stderr


# --- ranges ---

def test_one_instant_in_every_grammar(sonde, made):
    """The same minute, told in many ways, gives the same rows; the range is echoed on stderr, in UTC in JSON."""
    ago = int(time.time()) - (AT - 300)
    forms = ["2026-11-20T03:05:00Z", "2026-11-20T04:05:00+01:00", "2026-11-20 03:05", "2026-11-20 03:05:00",
             "2026-11-20T03:05", str(AT - 300), str((AT - 300) * 1000), f"{AT - 300}.0"]
    answers = set()
    for form in forms:
        done = sonde("stacks", "--json", "-n", "1000", "--at", form, store=made[0], env={"TZ": "UTC"}, check=True)
        told = json.loads(done.stdout)
        assert (told["from"], told["to"]) == ("2026-11-20T03:04:30Z", "2026-11-20T03:05:30Z")
        assert "03:04:30 to" in done.stderr
        answers.add(json.dumps(told["rows"], sort_keys=True))
    assert len(answers) == 1
    done = sonde("stacks", "--json", "--from", f"-{ago}s", "--to", "now", store=made[0])
    assert done.returncode in (0, 4)
    if time.time() > AT:
        assert done.returncode == 0


def test_the_local_zone_is_for_people_and_utc_for_machines(sonde, made):
    berlin = sonde("stacks", "--json", "--at", "2026-11-20 04:05", store=made[0], env={"TZ": "Europe/Berlin"}, check=True)
    assert json.loads(berlin.stdout)["from"] == "2026-11-20T03:04:30Z"
    assert "04:04:30 to" in berlin.stderr


def test_without_a_range_it_is_the_newest_recording(sonde, made):
    path, said = made
    default = sonde("stacks", "--json", "-n", "1000", store=path, check=True)
    assert "rec 2" in default.stderr
    assert rows(default) == rows(sonde("stacks", "--json", "-n", "1000", "--rec", "last", store=path, check=True))
    assert rows(default) == rows(sonde("stacks", "--json", "-n", "1000", "--rec", "2", store=path, check=True))
    first = sonde("export", "folded", "--rec", "last~1", "-o", "-", store=path, check=True)
    assert sum(int(x.rsplit(" ", 1)[1]) for x in first.stdout.splitlines()) == said["samples"]
    second = sonde("export", "folded", "--rec", "2", "-o", "-", store=path, check=True)
    assert sum(int(x.rsplit(" ", 1)[1]) for x in second.stdout.splitlines()) == said["fine_samples"]


def test_two_recordings_of_one_time_count_once(sonde, made):
    """Each of the 10 processes is busy all the time in both runs: 10 cores, not 20, in any window."""
    for start, end in ((0, 600), (200, 400), (260, 300), (245, 255)):
        base = AT - 600
        done = sonde("export", "json", "-o", "-", "--from", base + start, "--to", base + end, store=made[0], check=True)
        ns = max(int(x) for x in re.findall(r'"total_ns": ?(\d+)', done.stdout))
        cores = ns / 1e9 / (end - start)
        assert 9.4 <= cores <= 10.6, (start, end, cores)


def test_a_recording_over_several_segments_is_one(sonde, segmented):
    path, said = segmented
    status = json.loads(sonde("status", "--json", store=path, check=True).stdout)
    assert len(status["rows"]) == 1
    assert status["store"]["segments"] == 3
    assert status["rows"][0]["samples"] >= said["samples"]
    assert status["rows"][0]["user_samples"] == said["samples"]
    assert status["rows"][0]["complete_share"] == pytest.approx(1 - 20 / said["samples"])
    assert [(c["reason"], c["samples"]) for c in status["rows"][0]["cut_short"][0]["cuts"]] == \
        [("the chain of frame pointers ended", 15), ("a rule that cannot be expressed", 5)]
    text = sonde("status", store=path, check=True).stdout
    assert re.search(r"cut short: server, where [\d.]+ % end early, in \w\S*: the chain of frame pointers ended", text), text
    folded = sonde("export", "folded", "-o", "-", "--rec", "1", store=path, check=True).stdout
    assert sum(int(x.rsplit(" ", 1)[1]) for x in folded.splitlines()) == \
        said["samples"] - said["self_samples"]


# --- filters and words ---

def folded_total(path):
    with open(path, encoding="utf-8") as f:
        return sum(int(x.rsplit(" ", 1)[1]) for x in f)


def totals(sonde, store, *args):
    """Samples of the first recording that the filters (or a bare word) let through."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "x.folded")
        done = sonde("flame", "-o", out, "--rec", "1", *args, store=store)
        if done.returncode == 4:
            return 0
        assert done.returncode == 0, done.stderr
        return folded_total(out)


def test_filters_select_what_sql_selects(sonde, made, sql):
    path, said = made
    where = {
        ("--pid", "1000"): "pid = 1000",
        ("--pid", "1000", "--pid", "1001"): "pid IN (1000, 1001)",
        ("--pid", "1000", "--comm", "server-1"): "0",
        ("--comm", "!server-0"): "comm <> 'server-0'",
        ("--comm", "~[02468]$"): "pid % 2 = 0",
        ("--comm", "!~[02468]$"): "pid % 2 = 1",
        ("--container", "web-1"): "container = 'web-1'",
        ("--container", "!web-1", "--container", "!db-1"): "container NOT IN ('web-1', 'db-1')",
        ("--container", "00000000"): "container <> ''",
        ("--tid", "1000"): "tid = 1000",
        ("--exe", "server"): "1",
        ("--exe", "/usr/bin/server"): "1",
        ("--user", "1000"): "1",
        ("--user", "root"): "0",
        ("--cgroup", "/user.slice"): "container = ''",
        ("--cgroup", "/docker"): "container <> ''",
        ("--image", "debian:12"): "container <> ''",
        ("--unit", "ssh"): "0",
        ("--lang", "go"): "0",
        ("--lang", "!jvm"): "1",
    }
    for args, condition in where.items():
        wanted = sum(r["n"] or 0 for r in sql(
            path, f"SELECT sum(x.n) AS n FROM sample x JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task "
                  f"JOIN (SELECT id, pid, comm, container FROM processes) p ON p.id = t.process "
                  f"WHERE t.run = 1 AND NOT (SELECT self FROM process WHERE id = p.id) AND ({condition})"))
        assert totals(sonde, path, *args) == wanted, args
    assert totals(sonde, path) == said["samples"]


def test_sonde_itself_is_left_out_unless_asked_for(sonde, segmented):
    path, said = segmented
    assert said["self_samples"] > 0
    assert totals(sonde, path) == said["samples"] - said["self_samples"]
    assert totals(sonde, path, "--self") == said["samples"]
    assert totals(sonde, path, "--comm", "sonde-cpu") == said["self_samples"]
    assert totals(sonde, path, "sonde-cpu") == said["self_samples"]


def test_a_bare_word_finds_containers_commands_and_pids(sonde, made):
    path = made[0]
    for word, option in (("web-1", ["--container", "web-1"]), ("web", ["--container", "web-1"]),
                         ("SERVER-3", ["--comm", "server-3"]), ("1004", ["--pid", "1004"])):
        assert totals(sonde, path, word) == totals(sonde, path, *option) > 0
        by_word, by_option = (sonde("export", "folded", *args, store=path, check=True).stdout for args in ([word], option))
        assert by_word == by_option
    done = sonde("stacks", "server", store=path)
    assert "command server-0, command server-1" in done.stderr
    assert "--comm '~server'" in done.stderr


def test_a_filter_that_this_store_cannot_answer_says_so(sonde, made):
    done = sonde("stacks", "--unit", "ssh", store=made[0])
    assert done.returncode == 4
    assert "--unit matches nothing: no process in this range has this recorded" in done.stderr


# --- streams ---

@pytest.mark.parametrize("args, schema", [
    (["stacks"], "stacks"), (["status"], "status"), (["version"], "version"), (["sql", "select 1 as x"], "sql"),
])
def test_json_is_one_envelope_and_nothing_else(sonde, made, args, schema):
    done = sonde(*args, "--json", store=made[0], check=True)
    told = json.loads(done.stdout)
    assert told["schema"] == f"sonde.{schema}/1"
    assert isinstance(told["rows"], list) and told["rows"] and isinstance(told["warnings"], list)
    assert {"from", "to", "from_ns", "to_ns"} <= told.keys()


def test_quiet_leaves_stderr_empty(sonde, made):
    assert sonde("stacks", "-q", store=made[0], check=True).stderr == ""


def test_colours_only_on_a_terminal_that_wants_them(sonde, made):
    args = [f"{BIN}/sonde", "stacks", "--store", made[0]]
    env = {"PATH": os.environ["PATH"], "TERM": "xterm"}
    assert COLOUR.search(on_terminal(args, env))
    assert not COLOUR.search(on_terminal(args, dict(env, NO_COLOR="1")))  # how far the reading is may stand in it, on a slow host
    assert ESC not in on_terminal(args, dict(env, TERM="dumb"))
    assert not COLOUR.search(on_terminal(args + ["--color", "never"], env))
    assert ESC not in sonde("stacks", store=made[0]).stdout
    assert ESC in sonde("stacks", "--color", "always", store=made[0]).stdout
    assert ESC in sonde("stacks", store=made[0], env={"CLICOLOR_FORCE": "1"}).stdout


def test_the_tool_has_no_library_of_the_capture_side():
    text = subprocess.run(["ldd", f"{BIN}/sonde"], capture_output=True, text=True, check=True).stdout
    assert "libsqlite3" in text
    assert not re.search(r"libbpf|libelf|libdw|libseccomp", text)
