# SPDX-License-Identifier: Apache-2.0
"""`sonde VERB --schema`: what each verb prints with --json validates against its schema, by a validator that others wrote (python3-jsonschema), and has no
key that the schema does not name. Keys are only ever added: tests/e2e/golden/schemas.tsv has those of the last release."""
import json
import os
import shutil
import sqlite3
import subprocess

import jsonforms
import livedin
import pytest
from conftest import BIN, E2E, need_root

validators = pytest.importorskip("jsonschema", reason="python3-jsonschema is missing: apt-get install python3-jsonschema")
AT = 1795144200
RANGE = ["--from", str(AT - 1200), "--to", str(AT)]
SPIKE = ["--from", str(AT - 660), "--to", str(AT - 610)]
RELEASED = os.path.join(E2E, "golden", "schemas.tsv")
ENV = {"PATH": os.environ["PATH"], "TZ": "UTC", "SONDE_CONFIG": "/nonexistent"}


def say(*words, rc=(0,), **more):
    done = subprocess.run([f"{BIN}/sonde", *words], capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL, env=ENV, **more)
    assert done.returncode in rc, (words, done.returncode, done.stderr)
    return done.stdout


def verbs():
    """Those that have --schema."""
    return [v["verb"] for v in json.loads(say("help", "--json"))["rows"] if any(o["name"] == "schema" for o in v["json"])]


def schema_of(verb):
    return json.loads(say(verb, "--schema"))


def check(verb, answer):
    schema = schema_of(verb)
    for kind in (schema, jsonforms.strict(schema)):
        errors = [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in validators.Draft202012Validator(kind).iter_errors(answer)]
        assert not errors, (verb, errors[:5])


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return livedin.make(str(tmp_path_factory.mktemp("schemas") / "store"), AT, [AT - 3600])


def test_each_verb_with_json_has_a_schema_that_is_one():
    for verb in verbs():
        schema = schema_of(verb)
        validators.Draft202012Validator.check_schema(schema)
        assert verb == "seal" or schema["properties"]["rows"]["type"] == "array", verb
        assert verb in schema["title"]
    assert set(jsonforms.FORMS) <= set(verbs())


@pytest.mark.parametrize("verb,form", [(v, f) for v, forms in jsonforms.FORMS.items() for f in forms])
def test_what_a_verb_prints_validates(verb, form, store):
    words = [verb, *form, "--json", *([] if verb in ("help", "version") else ["--store", store]), *([] if verb in jsonforms.NO_RANGE else SPIKE if verb in jsonforms.COMPARES else RANGE)]
    if verb == "check" and "--list" not in form:
        words += ["--at", str(AT)]
    answer = json.loads(say(*words, rc=(0, 1)))
    check(verb, answer)
    assert answer["rows"] or verb in ("requests", "diff"), (verb, form)


def test_side_lists_are_in_the_schema_with_the_way_to_ask_for_them():
    for verb, name in (("ps", "ended"), ("top", "running"), ("containers", "ended"), ("requests", "unread_tls")):
        assert schema_of(verb)["properties"][name]["description"] == f"only with --with {name}"
        assert schema_of(verb)["properties"][f"{name}_total"]["type"] == ["integer", "null"]


@pytest.fixture(scope="module")
def odd_stores(tmp_path_factory):
    """Stores from which there is nothing to tell, each for another reason."""
    base = tmp_path_factory.mktemp("odd")
    made = {"no such folder": base / "none", "an empty folder": base / "empty", "recorded, but nothing in it": base / "quiet", "of another version": base / "newer", "no database": base / "rubbish"}
    made["an empty folder"].mkdir()
    livedin.put(str(made["recorded, but nothing in it"]), [livedin.run(f, AT - 1200, AT, 1, 10101010 if f == "cpu" else 0) for f in ("cpu", "offcpu", "host", "net", "l7", "goheap")])
    livedin.make(str(made["of another version"]), AT, [])
    for path in made["of another version"].glob("*.db"):
        with sqlite3.connect(path) as db:
            db.execute("UPDATE meta SET value = 9999 WHERE key = 'schema_version'")
    made["no database"].mkdir()
    (made["no database"] / "20261120T020000Z-0001.db").write_bytes(b"not a database " * 400)
    return made


@pytest.mark.parametrize("kind", ["no such folder", "an empty folder", "recorded, but nothing in it", "of another version", "no database"])
def test_where_there_is_nothing_to_tell_it_is_json_or_an_error(kind, odd_stores):
    """Never half of each: an answer that validates, or no answer, an exit code and a reason on standard error."""
    for verb in jsonforms.FORMS:
        if verb in ("help", "version"):
            continue
        words = [verb, "--json", "--store", str(odd_stores[kind]), *(["SELECT 1 AS a"] if verb == "sql" else ["main"] if verb == "lines" else []),
                 *([] if verb in jsonforms.NO_RANGE else SPIKE if verb in jsonforms.COMPARES else RANGE), *(["--at", str(AT)] if verb == "check" else [])]
        done = subprocess.run([f"{BIN}/sonde", *words], capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL, env=ENV)
        assert done.returncode in (0, 1, 4, 6), (verb, done.returncode, done.stderr)
        if done.stdout:
            check(verb, json.loads(done.stdout))
        else:
            assert done.returncode in (4, 6) and "sonde: " in done.stderr and "  fix: " in done.stderr, (verb, done.stderr)
        if kind in ("no such folder", "of another version", "no database") and verb != "status":
            assert done.returncode in (4, 6), (verb, done.stdout)


def test_what_verbs_print_that_change_something_validates(store, tmp_path):
    mine = str(tmp_path / "store")
    shutil.copytree(store, mine)
    check("report", json.loads(say("report", "-o", str(tmp_path / "x.html"), "--json", "--store", mine, *RANGE)))
    for verb, more in (("prune", ["--dry-run", "--budget", "1M"]), ("seal", []), ("symbolize", [])):
        check(verb, json.loads(say(verb, "--json", *more, "--store", mine, rc=(0, 4))))


def test_what_live_verbs_print_validates(tmp_path):
    need_root()
    check("doctor", json.loads(say("doctor", "--json", rc=(0, 1, 3))))
    check("doctor", json.loads(say("doctor", "--json", "--pid", str(os.getpid()), rc=(0, 1, 3))))
    check("pstack", json.loads(say("pstack", "--json", "--pid", str(os.getpid()), cwd=tmp_path)))
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
        try:
            check("record", json.loads(say("record", "--json", "--families", "cpu", "--pid", str(busy.pid), "-d", "2s", "--store", str(tmp_path / "s"))))
        finally:
            busy.kill()


def test_ndjson_is_the_rows_alone(store):
    for verb, words in (("ps", RANGE), ("requests", RANGE), ("flame", RANGE), ("sql", ["@hottest"]), ("help", [])):
        more = [] if verb == "help" else ["--store", store]
        lines = [json.loads(line) for line in say(verb, "--ndjson", *words, *more).splitlines()]
        assert lines and lines == json.loads(say(verb, "--json", *words, *more))["rows"], verb
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    with subprocess.Popen([f"{BIN}/sonde", "sql", endless, "--ndjson", "--store", store], stdout=subprocess.PIPE, env=ENV) as child:  # rows come while it still looks
        assert [json.loads(child.stdout.readline()) for _ in range(1000)] == [{"i": i + 1} for i in range(1000)]
        child.kill()
    assert "cannot be combined" in subprocess.run([f"{BIN}/sonde", "ps", "--json", "--ndjson"], capture_output=True, text=True, check=False).stderr
    assert "--json" in subprocess.run([f"{BIN}/sonde", "pstack", "--ndjson"], capture_output=True, text=True, check=False).stderr


def now():
    """verb, path and types of all values, a line each."""
    return {(verb, path): " ".join(sorted(types)) for verb in verbs() for path, types in jsonforms.paths(schema_of(verb))}


def test_no_key_of_the_last_release_is_gone_or_another_type():
    """Write the file anew at a release only: PYTHONPATH=tests/e2e/lib:tests/e2e B=build /usr/bin/python3 tests/e2e/query/test_json_schema.py --write."""
    current = now()
    with open(RELEASED, encoding="utf-8") as f:
        for verb, path, types in (line.rstrip("\n").split("\t") for line in f):
            assert (verb, path) in current, f"sonde {verb} --json lost {path}"
            assert set(current[verb, path].split()) <= set(types.split()), f"sonde {verb} --json: {path} was {types}, is {current[verb, path]}"


if __name__ == "__main__":
    with open(RELEASED, "w", encoding="utf-8") as out:
        out.writelines(f"{verb}\t{path}\t{types}\n" for (verb, path), types in sorted(now().items()))
