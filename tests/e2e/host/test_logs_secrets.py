# SPDX-License-Identifier: Apache-2.0
"""Secrets in lines of logs: of each form in which programs show one (the unit test's table), none is in any file of sonde: text, samples, patterns, the flight ring, a
kept window, an archive, its own log."""
import ast
import collections
import contextlib
import glob
import json
import os
import re
import secrets
import sqlite3
import subprocess
import time

import pytest

from conftest import BIN, BUILD, ROOT, need_root, segments, sql_all
from journal import journal
from sonded import Sonded, until
from test_logs import WAIT, lines, reads

TABLE = f"{ROOT}/tests/unit/loaders/lib/host/secrets/log_lines.h"
MARK = "Tr0ub4dor"
CARD = "4111 1111 1111 1111"
# what is known by its shape alone
SHAPED = ["ERROR refused ghp_{S}0123456789abcdefABCD", "ERROR refused AKIA0123456789ABCDEF {S}=", "ERROR refused eyJhbGciOiJIUzI1NiJ9.{S}.abcdef0123456789",
          "ERROR refused token sk-proj-{S}0123456789abcdefAB", "ERROR blob aB3{S}0123456789+abcdefghijABCDEFGHIJabcdefg== here", f"ERROR card {CARD} declined"]
KEY = "ERROR cannot use key: -----BEGIN RSA PRIVATE KEY-----\n{S}AAoGBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8Qu\n{S}KUpRKfFLfRYC9AIKjbJTWit\n-----END RSA PRIVATE KEY-----"
LEVELS = ("ERROR", "WARN", "INFO", "DEBUG")


def table():
    """Both tables of lines with {S}."""
    with open(TABLE, encoding="utf-8") as f:
        rows = re.findall(r'^\t("(?:[^"\\]|\\.)*")', f.read().split("#define LOG_LINES_KEPT")[0], re.M)
    return [ast.literal_eval(r) for r in rows]


class Planted:
    """Lines, each with a secret of its own."""

    def __init__(self):
        self.of = {}

    def lines(self, rows):
        out = []
        for row in rows:
            secret = f"{MARK}{len(self.of):04d}x"
            self.of[secret] = row
            out.append(row.replace("{S}", secret))
        return out

    def found(self, data):
        """The rows whose secret is in these bytes."""
        return sorted({self.of.get(m.decode(), m.decode()) for m in re.findall(rb"Tr0ub4dor\d{4}x", data)} | ({CARD} if CARD.encode() in data else set()))


def forms(planted):
    """{file: lines}, as a program may write them: as they are, as another level, inside of JSON, in colours, behind a time."""
    rows = table()
    assert len(rows) > 100
    coloured = [f"\x1b[31mERROR\x1b[0m \x1b[36m{name}=\x1b[0m{secret} of {name}" for name, secret in zip(("password", "token", "apiKey"), planted.lines(["{S}"] * 3))]
    return {"plain": planted.lines(rows), "shaped": planted.lines([*SHAPED, KEY]), "warning": [f"WARN {line}" for line in planted.lines(rows)],
            "json": [json.dumps({"level": "error", "msg": line}) for line in planted.lines(rows)],
            "error": [json.dumps({"level": "error", "msg": "see", "error": line}) for line in planted.lines(rows)],
            "coloured": coloured + [f"\x1b[1;31mERROR\x1b[0m {line}" for line in planted.lines(rows)],
            "timed": [f"2026-11-29 18:00:00,123 ERROR {line}" for line in planted.lines(rows)]}


PACE = 40  # new messages a second: sonde-logs takes 100 (counts.h), more are ~other


def paced(files):
    """Write so few at a time that each gets a pattern. {path: lines}."""
    n = collections.Counter()
    for path, (rows, form) in files.items():
        with open(path, "a", encoding="utf-8") as f:
            for i, row in enumerate(rows):
                for line in row.split("\n"):
                    f.write(form(line) + "\n")
                    n[path] += 1
                if i % PACE == PACE - 1 or row == rows[-1]:
                    f.flush()
                    time.sleep(1.05)
    return n


def texts(path):
    """All texts of a file of the store; an archive's, too, which packs them."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20)) as db:
        db.enable_load_extension(True)
        db.load_extension(os.path.join(BUILD, "lib", "sonde"))
        return "\n".join(str(r[0]) for r in db.execute("SELECT value FROM text")).encode()


def stored(planted, store):
    """{file: rows} of secrets that are somewhere in the store."""
    out = {}
    for path in glob.glob(f"{store}/**/*", recursive=True):
        if os.path.isfile(path):
            with open(path, "rb") as f:
                data = f.read()
            if path.endswith(".db"):
                data += texts(path)
            if planted.found(data):
                out[os.path.relpath(path, store)] = planted.found(data)
    return out


def test_no_form_of_a_secret_is_stored_whoever_wrote_the_line(capture, store, scratch):
    need_root()
    planted = Planted()
    container = secrets.token_hex(32)
    with journal(scratch, empty=["/var/log/journal", "/var/log/pods", "/var/lib/docker"]) as j:
        docker = f"{j.root}/var/lib/docker/containers/{container}"
        pod = f"{j.root}/var/log/pods/shop_web-1_{secrets.token_hex(4)}/app"
        os.makedirs(docker)
        os.makedirs(pod)
        cap = capture("--files", f"{scratch}/*.log", program="sonde-logs", prefix=j.prefix)
        reads(store, f"{scratch}/probe.log")
        boxed = planted.lines(table())
        files = {f"{scratch}/{name}.log": (rows, str) for name, rows in forms(planted).items()}
        files[f"{docker}/{container}-json.log"] = (boxed, lambda line: json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-11-29T18:00:00Z"}))
        files[f"{pod}/0.log"] = (boxed, lambda line: f"2026-11-29T18:00:00Z stderr F {line}")
        wrote = paced(files)
        sent = planted.lines([row for row in table() if "\n" not in row])
        for i in range(0, len(sent), PACE):
            j.send(*({"MESSAGE": line, "SYSLOG_IDENTIFIER": "job", "PRIORITY": "3"} for line in sent[i:i + PACE]))
            time.sleep(1.05)
        names = {f"{docker}/{container}-json.log": container[:12], f"{pod}/0.log": "shop/web-1/app"}
        want = {names.get(path, path): n for path, n in wrote.items()}
        assert until(lambda: all(lines(store).get(s, 0) >= n for s, n in want.items()), WAIT), (lines(store), want)
        assert until(lambda: len(sent) in lines(store).values(), WAIT), (lines(store), len(sent))
        time.sleep(2.5)  # the last message of each is over after a second without lines
        cap.stop()
    got = lines(store)
    assert {s: got[s] for s in want} == want
    # they are there, without their secrets
    assert sum(r["n"] for r in sql_all(store, "SELECT count(*) AS n FROM log_patterns WHERE sample LIKE '%***%'")) > len(table())
    assert not sql_all(store, "SELECT source, sum(messages) AS n FROM log_patterns WHERE pattern = '~other' GROUP BY 1")
    assert not stored(planted, store)


@pytest.mark.long
def test_no_secret_is_in_the_ring_a_kept_window_an_archive_or_in_what_is_shown(store, scratch):
    need_root()
    planted = Planted()
    probe = f"{scratch}/probe.log"
    with Sonded(store, "--families", "cpu,logs", "--log-files", f"{scratch}/*.log", "--flight", "on", "--cpu", "0") as d:
        assert until(lambda: d.running("cpu") and d.running("logs"), 60), d.said()
        reads(store, probe)
        wrote = paced({f"{scratch}/{name}.log": (rows, str) for name, rows in forms(planted).items()})
        assert until(lambda: all(lines(store).get(path) == n for path, n in wrote.items()), WAIT), (lines(store), wrote)
        time.sleep(12)
        ring = glob.glob(f"{store}/flight/*.db")
        assert ring and any(b"cannot connect" in texts(r) for r in ring)
        assert not stored(planted, store)  # of the ring, too, which lies in it
        done = subprocess.run([f"{BIN}/sonde", "keep", "--last", "90s", "--why", "secrets", "--store", store], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done
        assert until(lambda: "secrets" in d.ask(do="status")["store"]["flight"]["last_why"], 150), d.said()
        said = d.said()
    assert subprocess.run([f"{BIN}/sonde-cpu", "--store", store, "-d", "2s", "--segment-bytes", "1", "--comm", "no such command"], check=False,
                          stderr=subprocess.DEVNULL).returncode in (0, 4)  # which ends the file before
    assert subprocess.run([f"{BIN}/sonde-seal", "--store", store, "--quiet"], check=False).returncode == 0
    packed = [p for p in segments(store) if sqlite3.connect(p).execute("SELECT EXISTS (SELECT 1 FROM packed_table)").fetchone()[0]]
    assert len(packed) >= 2 and any(b"cannot connect" in texts(p) for p in packed)
    for verb in (["logs", "-n", "0", "--sample"], ["logs", "-n", "0", "--json"], ["logs", "--new", "--json"], ["events", "--json"], ["status", "--json"], ["timeline", "--json"],
                 ["explain", "--json"], ["check", "--all", "--json"], ["sql", "--json", "SELECT * FROM log_patterns"], ["sql", "--json", "SELECT * FROM log_seconds"]):
        said += subprocess.run([f"{BIN}/sonde", *verb, "--store", store], capture_output=True, text=True, check=False).stdout
    assert "cannot connect" in said
    assert not stored(planted, store) and not planted.found(said.encode())
