# SPDX-License-Identifier: Apache-2.0
"""The errors that people meet first, each made to happen: the message says what failed, why with the evidence, and what
mends it; the exit code is right; a command that it names is one that sonde has; and `sonde doctor` says the same where it
is a matter of the host. One table."""
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess

import livedin
import pytest
from conftest import BIN, BUILD, WORKLOADS, need, need_root, segments

AT = 1795144200
WHEN = ["--from", str(AT - 1200), "--to", str(AT)]
NO_CAPS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"]
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
OLD_KERNEL = ["setarch", "x86_64", "--uname-2.6"]
NO_BTF = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh"]
LOCKED = ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /sys/kernel/security && "
          "echo 'none integrity [confidentiality]' > /sys/kernel/security/lockdown && exec \"$@\"", "sh"]
HIDDEN = ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /proc/sys/kernel && echo 2 > /proc/sys/kernel/kptr_restrict && "
          "exec \"$@\"", "sh"]
ROOTLESS = ["unshare", "-Ur"]
LXC = ["unshare", "-m", "sh", "-c", "mkdir -p /run/systemd && mount -t tmpfs none /run/systemd && echo lxc > /run/systemd/container && exec \"$@\"", "sh", *NO_CAPS]
RECORD = ["record", "-d", "1s"]
NO_TRACEFS = ["unshare", "-m", "sh", "-c", "umount /sys/kernel/tracing 2>/dev/null; exec setpriv --bounding-set=-sys_admin \"$@\"", "sh"]
FEW_FILES = ["prlimit", "--nofile=64"]
NO_STORE = f"/tmp/sonde-no-store-{os.getpid()}"  # nobody may come to it; pytest's own folders are root's alone

# name: (prefix, words, exit, what and why, fix, how doctor calls it)
HOST = {
    "no right to load a program": (NOBODY, RECORD, 5, ["needs privileges", "CAP_BPF + CAP_PERFMON", "unprivileged_bpf_disabled="],
                                   "sonde record ...", "privileges"),
    "a container without capabilities": (NO_CAPS, RECORD, 5, ["needs privileges", "have: neither"], "cap_add: [BPF, PERFMON",
                                         "privileges"),
    "a rootless container": (ROOTLESS, RECORD, 5, ["needs privileges", "first user namespace"], "start it on the host", "privileges"),
    "an LXC guest": (LXC, RECORD, 5, ["needs privileges", "have: neither"], "on the LXC host", "privileges"),
    "no type information": (NO_BTF, RECORD, 3, ["no type information (BTF)", "/sys/kernel/btf/vmlinux is missing", "(kernel "],
                            "CONFIG_DEBUG_INFO_BTF", "BTF"),
    "a kernel that is locked down": (LOCKED, RECORD, 3, ["locked down", "lockdown = [confidentiality]"], "lockdown=integrity",
                                     "lockdown"),
    "no tracefs and no right to open it": (NO_TRACEFS, [*RECORD, "--families", "l7"], 3, ["tracefs", "is not mounted", "CAP_SYS_ADMIN"],
                                           "mount -t tracefs tracefs /sys/kernel/tracing", "programs"),
    "few open files": (FEW_FILES, RECORD, 3, ["may open 64 files (RLIMIT_NOFILE)"], "ulimit -n", "open files"),
    "a kernel that is too old": (OLD_KERNEL, RECORD, 3, ["kernel 2.6.", "too old", "needs 5.10"], "newer kernel", "kernel"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return livedin.make(str(tmp_path_factory.mktemp("catalogue") / "store"), AT)


def run(*args, store=None, prefix=()):
    env = dict(os.environ, TZ="UTC", **({"SONDE_STORE": str(store)} if store else {}))
    return subprocess.run([*prefix, os.path.join(BIN, "sonde"), *map(str, args)], capture_output=True, text=True, env=env,
                          stdin=subprocess.DEVNULL, timeout=300)


def verbs():
    return {v["verb"] for v in json.loads(run("help", "--json").stdout)["rows"]}


def assert_said(done, code, words, fix):
    """The form of every error: one cause, its evidence, what mends it; no library's log, no error number alone."""
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    what = [x for x in done.stderr.splitlines() if x.startswith("sonde: ")]
    assert len(what) == 1, done.stderr
    assert all(w in what[0] for w in words), done.stderr
    fixes = [x for x in done.stderr.splitlines() if re.match(r"  (fix|try): ", x)]
    assert len(fixes) == 1 and fix in fixes[0], done.stderr
    assert not re.search(r"libbpf:|errno|Traceback", done.stderr)
    assert_parses(fixes[0])


def assert_parses(fix):
    """Every sonde command in a fix is one that the tool takes: its verb, and each of its options."""
    for command in re.findall(r"(?:sudo )?sonde (?:[a-z]+\b)(?: +(?:--?[a-z-]+|'[^']*'|[\w@./:+-]+))*", fix):
        words = [w for w in shlex.split(re.sub(r"^sudo ", "", command)) if w != "..."][1:]
        assert words[0] in verbs(), f"{command}: no such verb"
        help_ = run(words[0], "--help").stdout
        for option in [w for w in words if w.startswith("--") and w != "--help"]:
            assert option.split("=")[0] in help_, f"{command}: no {option}"


@pytest.mark.parametrize("name", sorted(HOST))
def test_what_the_host_lacks(name, tmp_path):
    need_root()
    need("setpriv")
    prefix, words, code, said, fix, item = HOST[name]
    probe = subprocess.run([*prefix, "true"], capture_output=True, text=True)
    if probe.returncode:
        pytest.skip(f"missing: {probe.stderr.strip()}")
    tmp_path.chmod(0o777)
    assert_said(run(*words, "--store", NO_STORE, prefix=prefix), code, said, fix)
    done = run("doctor", "--json", "--store", NO_STORE, prefix=prefix)
    rows = [r for r in json.loads(done.stdout)["rows"] if r["name"] == item and r["state"] == "fail"]
    assert done.returncode == 1 and rows, done.stdout
    assert all(any(w in r["text"] for w in said) and r["fix"] for r in rows), rows
    assert not os.path.exists(NO_STORE), "a capture that could not begin left a store behind"


def test_a_full_disk(scratch):
    need_root()
    disk = os.path.join(scratch, "disk")
    os.mkdir(disk)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], capture_output=True).returncode:
        pytest.skip("missing: the right to mount a tmpfs")
    try:
        with open(os.path.join(disk, "full"), "wb", buffering=0) as f:
            try:
                while f.write(b"x" * 4096):
                    pass
            except OSError:
                pass
        store = os.path.join(disk, "store")
        done = run(*RECORD, store=store)
        assert_said(done, 6, [disk], "")
        assert re.search(r"full|No space left", done.stderr), done.stderr
        rows = [r for r in json.loads(run("doctor", "--json", store=store).stdout)["rows"] if r["name"] == "store"]
        assert rows and all(r["state"] in ("warn", "fail") and r["fix"] for r in rows), rows
    finally:
        subprocess.run(["umount", "-l", disk], check=False)


def test_a_read_only_file_system_is_not_a_matter_of_rights(tmp_path):
    """sudo does not mend it."""
    need_root()
    sealed = ["unshare", "-m", "sh", "-c", f"mount -t tmpfs none {tmp_path} && mkdir {tmp_path}/s && mount -o remount,ro {tmp_path} && exec \"$@\"", "sh"]
    for words in (RECORD, ["up"], ["seal"]):
        done = run(*words, "--store", tmp_path / "s", prefix=sealed)
        assert done.returncode == 6 and "Read-only file system" in done.stderr, done.stderr
        assert "sudo sonde" not in done.stderr and "with sudo" not in done.stderr and "another file system: --store DIR" in done.stderr, done.stderr


def test_who_lacks_rights_is_told_the_verb_that_was_typed():
    need_root()
    need("setpriv")
    for verb in ("pstack", "probes"):
        done = run(verb, prefix=NOBODY)
        assert done.returncode == 5 and re.search("sudo", done.stderr.split("fix: ")[1]), done.stderr
        assert "sonde record" not in done.stderr and "libbpf" not in done.stderr, done.stderr


def test_nothing_in_a_range_says_what_there_is_and_where_the_waits_are(made):
    at = ["--from", str(AT - 300), "--to", str(AT - 240)]
    assert_said(run("flame", "restic", *at, "--text", store=made), 4,
                ["no CPU samples of restic", "did not run on a CPU then", "the store holds samples from"], "sonde waits --idle --comm restic")


@pytest.mark.parametrize("verb", ["", "ps", "top", "containers", "stacks", "flame --text", "timeline", "explain", "diff", "waits", "neighbours", "wakers",
                                  "requests", "trace", "net", "map", "disk", "heap", "events", "oom", "logs"])
def test_a_range_of_which_nothing_is_stored_is_no_answer_about_it(made, verb):
    """Neither "none was seen", nor a command that records now."""
    done = run(*verb.split(), "--from", "2001-01-01", "--to", "2001-01-02", store=made)
    assert_said(done, 4, ["nothing is stored of", "2001-01-01", "the store holds"], "sonde status")
    assert "record" not in done.stderr.split("fix: ")[1].replace("what was recorded when", "")
    done = run(*verb.split(), "--at", "2100-01-01", store=made)
    assert_said(done, 4, ["2100-01-01", "is in the future", "the store holds"], "sonde status")


def test_checks_that_have_nothing_to_look_at_are_not_a_pass(made):
    assert_said(run("check", "--at", "2001-01-01", store=made), 4, ["nothing was recorded in the 10 minutes before", "2001-01-01"], "sonde up")
    assert run("check", "--at", AT, store=made).returncode in (0, 1)


def test_what_is_no_store_is_not_recommended_as_one(tmp_path):
    """Nor does a verb that writes make one where a name is mistyped."""
    (tmp_path / "letter").write_text("dear")
    for verb in ("ps", "status", "check"):
        assert_said(run(verb, store=tmp_path), 6, [f"{tmp_path} is no store", "holds other files"], "--store DIR")
    none = tmp_path / "mistyped"
    for verb in ("prune", "seal"):
        done = run(verb, "--store", none)
        assert done.returncode == 6 and f"there is no store in {none}" in done.stderr and not none.exists(), done.stderr


def test_where_sonde_alone_ran_its_own_samples_are_named(tmp_path):
    put = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", put)
    told = [{"run": "cpu", "from": AT, "to": AT + 60, "bucket_s": 10, "period_ns": 10000000},
            {"kind": "cpu", "at": AT + 10, "n": 3, "pid": 7, "comm": "sonde-cpu", "self": True, "stack": ["main", "read_ring"]}]
    subprocess.run([put, tmp_path / "store"], input="\n".join(map(json.dumps, told)), text=True, check=True)
    at = ["--from", AT, "--to", AT + 60]
    done = run("stacks", *at, store=tmp_path / "store")
    assert_said(done, 4, ["no CPU samples", "the host was idle, but for sonde itself"], "sonde stacks --self --from")
    fix = shlex.split(re.search(r"(sonde stacks [^()]*)", done.stderr.split("fix: ")[1])[1])
    assert "read_ring" in run(*fix[1:], store=tmp_path / "store").stdout


@pytest.mark.parametrize("words, near", [(["flame", "ngix"], "nginx"), (["stacks", "postgrse"], "postgres"), (["ps", "wbe"], "web")])
def test_a_name_that_is_not_there(made, words, near):
    assert_said(run(*words, *WHEN, store=made), 2, ["no container, unit, command or pid called", f"did you mean '{near}'"],
                "sonde sql")


@pytest.mark.parametrize("words, said", [
    (["record", "--args", "ful"], "full, masked or none"), (["record", "-F", "10000"], "1 to 4999"), (["config", "shw"], "show or check"),
    (["ps", "--sort", "naem"], "--sort"), (["timeline", "--by", "procss"], "--by must be"), (["import", "/nonexistent"], "cannot read"),
    (["report", "-o", "x.pdf"], "must end in .html"), (["completion", "tcsh"], "bash, zsh or fish")])
def test_a_value_that_is_wrong_says_what_is_right_and_where_help_is(made, words, said):
    assert_said(run(*words, store=made), 2, [said], "sonde ")


def test_the_queries_that_ship_are_listed_without_a_store(tmp_path):
    done = run("sql", "@", store=tmp_path / "none")
    assert done.returncode == 0 and "@hottest" in done.stdout, done


def test_what_was_not_recorded_is_told_with_the_command_that_records_it(made, tmp_path):
    cpu = str(tmp_path / "cpu")
    livedin.put(cpu, [livedin.run("cpu", AT - 60, AT, 1, 10101010), livedin.cpu(AT - 30, livedin.BUSY[0])])
    for words, family in ((["heap"], "mem"), (["stacks", "--type", "offcpu"], "offcpu")):
        assert_said(run(*words, store=cpu), 4, ["no "], f"sonde record --families cpu,{family}")


def test_a_container_that_does_not_run():
    need_root()
    done = run(*RECORD, "--container", "immch", "--store", NO_STORE)
    assert_said(done, 2, ["no container 'immch' is running"], "")


def test_a_store_of_a_newer_sonde(made, tmp_path):
    newer = str(tmp_path / "newer")
    shutil.copytree(made, newer)
    for path in segments(newer):
        with sqlite3.connect(path) as db:
            db.execute("UPDATE meta SET value = 999 WHERE key = 'schema_version'")
        db.close()
    assert_said(run("stacks", store=newer), 6, ["schema 999", "newer"], "")
    done = run("doctor", "--json", store=newer)
    rows = [r for r in json.loads(done.stdout)["rows"] if r["name"] == "recordings"]
    assert rows[0]["state"] in ("warn", "fail") and "999" in rows[0]["text"], rows


def test_a_store_that_may_not_be_read(made, scratch):
    need_root()
    copy = os.path.join(scratch, "store")
    shutil.copytree(made, copy)
    assert_said(run("stacks", *WHEN, store=copy, prefix=NOBODY), 5, [copy, "permission denied"], "sudo")


def test_names_that_are_missing_are_told_with_what_brings_them(store):
    """Most frames of a stripped program without a symbol table have no name: the recording says so, and what helps."""
    need_root()
    need("strip")
    program = os.path.join(os.path.dirname(store), "nameless")
    shutil.copy(os.path.join(WORKLOADS, "burn"), program)
    subprocess.run(["strip", "--strip-all", program], check=True)
    done = run("record", "-d", "60s", "--", program, "3000", store=store)
    assert done.returncode == 0, done.stderr
    assert re.search(r"[\d.]+ % of the time is in functions of nameless that have no name", done.stderr), done.stderr
    assert re.search(r"fix: .*NAME-dbgsym.*then: (sudo )?sonde symbolize", done.stderr), done.stderr
