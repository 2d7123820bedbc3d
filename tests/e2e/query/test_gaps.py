# SPDX-License-Identifier: Apache-2.0
"""What was recorded in parts: cores are reckoned over the time that something recorded, and the strip of the page crosses out
the rest."""
import json

import pytest
from browser import page, png_read  # noqa: F401
from test_timeline import AT, put

RANGE = ["--from", str(AT - 200), "--to", str(AT)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One CPU kept busy for ten seconds, a hundred and eighty of which nothing is known, and the same again."""
    path = str(tmp_path_factory.mktemp("gaps") / "store")
    lines = []
    for begin in (AT - 200, AT - 10):
        lines.append({"run": "cpu", "bucket_s": 1, "period_ns": 10**7, "from": begin, "to": begin + 10})
        lines += ({"kind": "cpu", "at": begin + s, "n": 100, "pid": 7, "comm": "hot", "stack": ["main", "spin"]} for s in range(10))
    put(path, lines)
    return path


def test_cores_are_of_the_time_that_was_recorded(sonde, made, tmp_path):
    def rows(*words):
        return json.loads(sonde(*words, *RANGE, "--json", store=made, check=True).stdout)["rows"]
    assert [r["cpu_cores"] for r in rows("ps")] == [pytest.approx(1)]
    assert [r["total_cores"] for r in rows("stacks")] == [pytest.approx(1)] * 2
    assert " 1.00 " in sonde("ps", *RANGE, store=made, check=True).stdout
    path = tmp_path / "x.html"
    sonde("flame", *RANGE, "-o", str(path), store=made, check=True)
    assert "<b>1.00 cores</b>" in path.read_text()


def test_two_recordings_at_once_are_recorded_once(sonde, tmp_path):
    run = {"run": "cpu", "bucket_s": 1, "period_ns": 10**7}
    store = str(tmp_path / "store")
    put(store, [{**run, "from": AT - 20, "to": AT - 5},
                *({"kind": "cpu", "at": AT - 20 + s, "n": 100, "pid": 7, "comm": "hot", "stack": ["main"]} for s in range(15)),
                {**run, "from": AT - 10, "to": AT},
                *({"kind": "cpu", "at": AT - 10 + s, "n": 100, "pid": 7, "comm": "hot", "stack": ["main"]} for s in range(10))])
    said = json.loads(sonde("ps", *RANGE, "--json", store=store, check=True).stdout)
    assert said["rows"][0]["cpu_cores"] == pytest.approx(1)


@pytest.mark.page
def test_the_strip_crosses_out_what_nothing_recorded(page, sonde, made, tmp_path):  # noqa: F811
    path = tmp_path / "x.html"
    sonde("flame", *RANGE, "-o", str(path), store=made, check=True)
    page.open(str(path))
    width, height, rows = png_read(page.shot(tmp_path / "strip.png", "#strip"))
    blank = rows[height // 2][width // 4]
    # the two lines meet in the middle of the gap; a quarter on they are as far apart as half the height
    middle = [y for y in range(3, height - 3) if rows[y][width // 2] != blank]
    quarter = [y for y in range(3, height - 3) if rows[y][width // 4 + 1] != blank]
    assert middle and max(middle) - min(middle) <= 4
    assert quarter and max(quarter) - min(quarter) > height / 4
    assert "1.00 cores" in page.text("#scope") or "1.00" in page.text("#rows")
