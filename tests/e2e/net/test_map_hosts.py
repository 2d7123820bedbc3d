# SPDX-License-Identifier: Apache-2.0
"""`sonde map` over the stores of several hosts: the same connection seen from both is one edge, by its mark; addresses that both hosts have join nothing."""
import glob
import json
import sqlite3
import time

import livedin
import pytest

AT = int(time.time()) // 10 * 10 - 60
SPAN = ["--from", AT - 60, "--to", AT]


def end_of(name, pid):
    container, _, comm = name.rpartition("/")
    return {"pid": pid, "comm": comm, **({"container": container} if container else {})}


def flow(name, pid, side, peer, port, mate=None, marks=(), **more):
    who = end_of(name, pid)
    yield {"fact": "flow_row", "at": AT - 30, **who, "side": side, "protocol": "tcp", "peer": peer, "port": str(port), "owner": "opener",
           **({"mate": end_of(*mate)} if mate else {}), "opened": 3, "tx_bytes": 100, "rx_bytes": 200, **({"attempts": 3} if side == "client" else {}), **more}
    for mark in marks:
        yield {"fact": "flow_mark_row", "at": AT - 30, **who, "side": side, "peer": peer, "port": str(port), "mark": mark, "n": 1}


def make(folder, host, *flows):
    """A store of one host."""
    store = f"{folder}/{host}"
    livedin.put(store, [livedin.run("net", AT - 60, AT, 1), *(x for rows in flows for x in rows)])
    [segment] = glob.glob(f"{store}/*.db")
    with sqlite3.connect(segment) as db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'host'", (host,))
    return store


RED = ("red",
       flow("web/nginx", 11, "client", "172.17.0.2", 9000, mate=("app/php-fpm", 12)),          # on red itself
       flow("app/php-fpm", 12, "server", "172.17.0.3", 9000, mate=("web/nginx", 11)),
       flow("app/php-fpm", 12, "client", "192.168.1.20", 5432, marks=(501, 502)),              # to blue's published port
       flow("app/php-fpm", 13, "client", "192.168.1.20", 5432),                                # another process of it, without a mark
       flow("restic", 14, "client", "192.168.1.20", 8000, marks=(503,)),
       flow("restic", 14, "client", "192.168.1.99", 22),                                       # nobody's that was recorded
       flow("cron", 15, "client", "172.17.0.2", 6379, marks=(504,)))                           # an address that both hosts have
BLUE = ("blue",
        flow("db/postgres", 21, "server", "192.168.1.10", 5432, marks=(502, 509)),
        flow("web/nginx", 11, "client", "172.17.0.2", 9000, mate=("app/php-fpm", 12)),          # the same addresses, pids and names as on red
        flow("rest-server", 24, "server", "192.168.1.10", 8001, marks=(503,)),                  # the router translates the port
        flow("redis/redis-server", 25, "server", "172.17.0.1", 6379, marks=(777,)),
        flow("redis/redis-server", 25, "client", "10.1.1.1", 443, opened=1))


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hosts")
    return [make(folder, *host) for host in (RED, BLUE)]


def several(stores):
    return [x for s in stores for x in ("--store", s)]


def edges(sonde, stores, *args):
    rows = json.loads(sonde("map", "--json", *SPAN, *several(stores), *args, check=True).stdout)["rows"]
    return {(r["from"]["name"], r["to"]["name"], r["port"]): r for r in rows}


def test_a_connection_that_both_hosts_saw_is_one_edge(sonde, stores):
    got = edges(sonde, stores)
    assert set(got) == {
        ("red/web", "red/app", 9000), ("blue/web", "blue/app", 9000), ("red/app", "blue/db", 5432), ("red/restic", "blue/rest-server", 8000),
        ("red/restic", "red/192.168.1.99", 22), ("red/cron", "red/172.17.0.2", 6379), ("lan", "blue/redis", 6379), ("blue/redis", "blue/10.1.1.1", 443)}
    assert got["red/app", "blue/db", 5432]["opened"] == 6, "both processes of red's app, and not blue's row of the same ones"
    assert got["red/app", "blue/db", 5432]["tx_bytes"] == 200
    kinds = {r["from"]["name"]: r["from"]["kind"] for r in got.values()}
    assert (kinds["red/app"], kinds["red/restic"], kinds["blue/web"]) == ("container", "command", "container")


def test_either_order_gives_the_same_map(sonde, stores):
    assert edges(sonde, stores) == edges(sonde, stores[::-1])


def test_without_a_common_mark_nothing_is_joined(sonde, tmp_path):
    """Addresses mirror each other here, as they would between two hosts whose containers have the same private ones."""
    red = make(tmp_path, "red", flow("app/php-fpm", 12, "client", "172.17.0.2", 5432, marks=(1, 2)))
    blue = make(tmp_path, "blue", flow("db/postgres", 21, "server", "172.17.0.3", 5432, marks=(3,)))
    assert set(edges(sonde, [red, blue])) == {("red/app", "red/172.17.0.2", 5432), ("lan", "blue/db", 5432)}


def test_a_host_that_shares_out_one_address_has_an_edge_to_each_that_is_behind_it(sonde, tmp_path):
    red = make(tmp_path, "red", flow("app/php-fpm", 12, "client", "192.168.1.5", 80, marks=(1, 2), opened=9))
    blue = make(tmp_path, "blue", flow("web/nginx", 21, "server", "192.168.1.10", 80, marks=(1,), opened=4))
    green = make(tmp_path, "green", flow("web/nginx", 21, "server", "192.168.1.10", 80, marks=(2,), opened=5))
    assert {k: r["opened"] for k, r in edges(sonde, [red, blue, green]).items()} == {("red/app", "blue/web", 80): 4, ("red/app", "green/web", 80): 5}


def test_one_host_of_several_has_its_own_edges(sonde, stores):
    got = edges(sonde, stores, "--host", "blue")
    assert set(got) == {("blue/web", "blue/app", 9000), ("lan", "blue/db", 5432), ("lan", "blue/rest-server", 8001), ("lan", "blue/redis", 6379),
                        ("blue/redis", "blue/10.1.1.1", 443)}


def test_one_store_has_names_without_a_host(sonde, stores):
    rows = json.loads(sonde("map", "--json", *SPAN, "--store", stores[0], check=True).stdout)["rows"]
    assert {r["from"]["name"] for r in rows} == {"web", "app", "restic", "cron"}


def test_following_several_stores_is_refused(sonde, stores):
    done = sonde("map", "--live", *several(stores))
    assert done.returncode == 2 and "one store" in done.stderr and "fix:" in done.stderr
