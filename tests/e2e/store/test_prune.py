# SPDX-License-Identifier: Apache-2.0
"""`sonde prune`: what goes, and that what stays answers as before. Oracles: du, Python's sqlite3, the maker's own sums."""
import json
import os
import subprocess

import pytest
from conftest import segments
from test_tool_sql import make_segments

SLACK = 256 << 10  # blocks of a file just written change when the file system places them


def du(path):
    return int(subprocess.run(["du", "-s", "--block-size=1", path], capture_output=True, text=True, check=True).stdout.split()[0])


def prune(sonde, store, *args):
    return json.loads(sonde("prune", "--json", *args, store=store, check=True).stdout)


def samples(sonde, store):
    return json.loads(sonde("sql", "--json", "select sum(samples) n from cpu_samples", store=store, check=True).stdout)["rows"][0]["n"]


@pytest.fixture
def many(tmp_path):
    return make_segments(tmp_path, 24)


def test_a_budget_holds_as_du_counts_and_every_sample_is_kept_or_on_record(sonde, many):
    store, made = many
    before = du(store)
    dry = prune(sonde, store, "--dry-run", "--budget", before // 2, "--age", "9999d", "--reserve", "1")
    assert len(segments(store)) == 24 and abs(dry["before"]["bytes"] - before) < SLACK and dry["history_begins"] is None
    done = prune(sonde, store, "--budget", before // 2, "--age", "9999d", "--reserve", "1")
    assert abs(du(store) - done["after"]["bytes"]) < SLACK and done["after"]["bytes"] <= before // 2 + SLACK
    assert [r["segment"] for r in done["rows"]][:len(dry["rows"])] == [r["segment"] for r in dry["rows"]]
    gone = sum(r["events"] for r in done["rows"])
    assert gone > 0 and gone + samples(sonde, store) == made["samples"]
    assert {r["why"] for r in done["rows"]} == {"budget"} and all(r["counted"] for r in done["rows"])
    assert done["history_begins"] == done["rows"][-1]["to"]
    again = prune(sonde, store, "--budget", before // 2 + 2 * SLACK, "--age", "9999d", "--reserve", "1")
    assert again["rows"] == [] and again["history_begins"] == done["history_begins"]


def test_age_is_that_of_the_newest_row(sonde, many):
    store, made = many
    kept = json.loads(sonde("sql", "--json", "select max(ts) t from cpu_samples", store=store, check=True).stdout)["rows"]
    assert kept
    done = prune(sonde, store, "--age", "1s", "--keep-days", "0", "--budget", "100G", "--reserve", "1")
    assert len(segments(store)) == 1, done
    assert {r["why"] for r in done["rows"]} == {"age"}


def test_a_wrong_size_is_refused_with_what_is_right(sonde, many):
    done = sonde("prune", "--budget", "much", store=many[0])
    assert done.returncode == 2 and "'much'" in done.stderr and "2G" in done.stderr


def test_one_file_is_no_store_to_prune(sonde, many):
    done = sonde("prune", store=segments(many[0])[0])
    assert done.returncode == 2 and "fix:" in done.stderr
    assert os.path.exists(segments(many[0])[0])


def test_no_store_is_said(sonde, tmp_path):
    done = sonde("prune", store=tmp_path / "none")
    assert done.returncode == 6 and "there is no store in" in done.stderr
