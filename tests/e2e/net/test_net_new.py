# SPDX-License-Identifier: Apache-2.0
"""`explain` and `diff` say who talks to whom that did not before, since when; what talked before, and what only stands open, is not new."""
import json
import time

import livedin
import pytest
from test_map import EVIL, end_of

AT = 1795144200  # 2026-11-20T03:10:00Z
NEW = AT - 300   # 03:05


def flow(at, client, peer, port, mate=None, **sums):
    return {"fact": "flow_row", "at": at, **end_of(client), "side": "client", "protocol": "tcp", "peer": peer, "port": str(port), "owner": "opener",
            **({"mate": end_of(mate)} if mate else {}), "attempts": 3, "opened": 3, "tx_bytes": 900, **sums}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    store = str(tmp_path_factory.mktemp("new") / "store")

    def lines():
        for family, period in (("cpu", 10101010), ("net", 0)):
            yield livedin.run(family, AT - 1200, AT, 1, period)
        for at in range(AT - 1200, AT, 10):
            yield livedin.cpu(at, ("php-fpm", "nextcloud", 11, 300, ["main", "zend_execute"]))
        for at in range(AT - 1200, AT, 60):
            yield flow(at, "next", "172.18.0.4", 5432, "pg")
            yield flow(at, "restic", "5.6.7.8", 443, attempts=0, opened=0, tx_bytes=0, open_now=1)  # stands open, and nothing goes over it
        for at in range(NEW, AT, 60):
            yield flow(at, "next", "1.2.3.4", 443, refused=1)
            yield flow(at + 60, "evil", "172.18.0.4", 5432, "pg")
    livedin.put(store, lines())
    return store


def window(*more):
    return ["--from", AT - 540, "--to", AT, *more]


def test_explain_says_who_is_new_and_since_when(sonde, made):
    said = json.loads(sonde("explain", "--json", *window(), store=made, check=True).stdout)["new_connections"]
    assert [(x["from"]["name"], x["to"]["name"], x["port"], x["since_ns"] // 10**9) for x in said][0] == ("nextcloud", "1.2.3.4", 443, NEW)
    assert [(x["to"]["name"], x["since_ns"] // 10**9) for x in said] == [("1.2.3.4", NEW), ("postgres", NEW + 60)] and said[0]["refused"] == 5
    text = sonde("explain", *window(), store=made, check=True).stdout
    assert f"new since {time.strftime('%H:%M:%S', time.localtime(NEW))}: nextcloud to 1.2.3.4, tcp 443: 15 opened, 5 refused" in text.replace("2026-11-20 ", "")
    assert EVIL[-3:] not in text and "5.6.7.8" not in text
    assert json.loads(sonde("explain", "--json", "--from", AT - 150, "--to", AT, store=made, check=True).stdout)["new_connections"] == []


def test_diff_says_the_same_of_two_ranges(sonde, made):
    ranges = [*window(), "--vs-from", AT - 1140, "--vs-to", AT - 600]
    said = json.loads(sonde("diff", "--json", *ranges, store=made, check=True).stdout)["new_connections"]
    assert [x["to"]["name"] for x in said] == ["1.2.3.4", "postgres"]
    assert "nextcloud to 1.2.3.4, tcp 443" in sonde("diff", *ranges, store=made, check=True).stdout
    other = json.loads(sonde("diff", "--json", *window("--container", "nextcloud"), "--vs-from", AT - 1140, "--vs-to", AT - 600, store=made, check=True).stdout)
    assert other["new_connections"] in ([], [x for x in said if x["from"]["name"] == "nextcloud"])


def test_without_connections_in_both_nothing_is_new(sonde, made, tmp_path):
    livedin.put(str(tmp_path / "store"), [livedin.run("cpu", AT - 1200, AT, 1, 10101010), *(livedin.cpu(at, livedin.BUSY[0]) for at in range(AT - 1200, AT, 10)),
                                          livedin.run("net", AT - 540, AT, 1), flow(AT - 300, "next", "1.2.3.4", 443)])
    assert json.loads(sonde("explain", "--json", *window(), store=tmp_path / "store", check=True).stdout)["new_connections"] == []


def test_ps_has_what_went_over_each_process_s_connections(sonde, made):
    said = json.loads(sonde("ps", "--json", "--sort", "net", *window(), store=made, check=True).stdout)["rows"]
    next_ = next(r for r in said if r["pid"] == 11)
    assert next_["tx_bytes"] == 900 * (9 + 5) and next_["rx_bytes"] == 0 and next(r for r in said if r["pid"] == 17)["tx_bytes"] == 0
    assert [r["tx_bytes"] for r in said] == sorted((r["tx_bytes"] for r in said), reverse=True)
    assert "NET" in sonde("ps", *window(), "--wide", store=made, check=True).stdout.split("\n")[0]


def test_where_no_connections_were_recorded_they_are_no_order(sonde, tmp_path):
    livedin.put(str(tmp_path / "store"), [livedin.run("cpu", AT - 60, AT, 1, 10101010), livedin.cpu(AT - 60, livedin.BUSY[0])])
    done = sonde("ps", "--sort", "net", "--from", AT - 60, "--to", AT, store=tmp_path / "store")
    assert done.returncode == 4 and "cpu,net" in done.stderr
    assert "rx_bytes" not in sonde("ps", "--json", "--from", AT - 60, "--to", AT, store=tmp_path / "store", check=True).stdout


def test_the_timeline_of_net_is_made_of_connections_where_nothing_else_told_it(sonde, made):
    said = json.loads(sonde("timeline", "--of", "net", "--json", *window(), store=made, check=True).stdout)
    assert said["unit"] == "bytes/s" and {r["who"] for r in said["rows"]} >= {"nextcloud", "restic"}
    step = 540 / len(said["rows"][0]["by_column"])
    sums = {r["who"]: sum(v or 0 for v in r["by_column"]) * step for r in said["rows"]}
    assert sums["nextcloud"] == pytest.approx(900 * (9 + 5), rel=0.1) and sums["restic"] == 0
    assert "nextcloud" in sonde("timeline", "--of", "net", *window(), store=made, check=True).stdout
