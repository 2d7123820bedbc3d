# SPDX-License-Identifier: Apache-2.0
"""The map of services that are known, in containers of a real engine: exactly the known edges, each with its containers' names, over a bridge with IPv4, IPv6 and
IPv4-mapped addresses, a Unix socket in a volume, the host's network, published ports and a network namespace of its own."""
import json
import re

import pytest

from conftest import Capture
from dockershop import ADDRESS, FAR, NET6, DockerShop
from sonded import until
from test_net import rows

pytestmark = pytest.mark.docker
#: who asks at the published port, where, how often
ASKED = (("host", "http://[::1]:8080/", 7), ("host", "http://127.0.0.1:8080/", 4), ("far", f"http://{FAR}.1:8080/", 5), ("probe", "http://127.0.0.1:8080/", 3),
         ("probe", f"http://[{NET6}{ADDRESS['web']}]:80/", 2))
KNOWN = {("hostasks", "web", "tcp", 8080): 11, ("farasks", "web", "tcp", 8080): 5, ("probe", "web", "tcp", 8080): 3, ("probe", "web", "tcp", 80): 2,
         ("web", "app", "unix", None): None, ("app", "db", "tcp", 5432): 1, ("app", "cache", "tcp", 6379): 1, ("app", "dockerd", "udp", 53): None,
         ("worker", "db", "tcp", 5432): 1, ("worker", "cache", "tcp", 6379): 1, ("worker", "stats", "tcp", 6380): 1}
#: who begins a container talks to what it is before it is that: the test's own doing
ENGINE = {"runc", "containerd-shim", "containerd", "exe"}
CONTAINERS = {"web", "app", "db", "cache", "worker", "stats", "probe"}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The store of a capture in which the shop was asked; what each asker was answered."""
    store, shop, net = str(tmp_path_factory.mktemp("shop") / "store"), DockerShop(), None
    try:
        shop.begin()
        net = Capture(store, program="sonde-net", prefix=shop.engine.prefix).start()
        assert until(lambda: rows(store, "SELECT 1 FROM netns_stats"), 20)
        for name in ("app", "worker"):  # so that all that they open is opened now
            assert shop.engine.docker("restart", "-t", "0", name).returncode == 0
        assert until(shop.sold, 60)
        asked = {}
        for who, url, n in ASKED:
            asked[who, url] = shop.askers[who].ask(url, n) == n
        net.stop()
    finally:
        if net:
            net.close()
        shop.end()
    assert all(asked.values()), asked
    return store, shop.primed


def edges(sonde, store):
    return json.loads(sonde("map", "--json", store=store, check=True).stdout)["rows"]


def test_the_map_has_the_known_edges_and_no_other(sonde, recorded):
    store, primed = recorded
    got = {(x["from"]["name"], x["to"]["name"], x["protocol"], x["port"]): x for x in edges(sonde, store)}
    ours = CONTAINERS | {"hostasks", "farasks"}
    assert {k for k in got if {k[0], k[1]} & ours and not {k[0], k[1]} & ENGINE} == set(KNOWN), sorted(got, key=str)
    assert not [k for k in got if "docker-proxy" in k]
    for edge, n in KNOWN.items():
        x = got[edge]
        assert n is None or x["opened"] == n + (primed if edge[0] == "hostasks" else 0), (edge, x["opened"], primed)
        assert x["tx_bytes"] > 0 and x["rx_bytes"] > 0, (edge, x)
        kinds = [x[end]["kind"] == "container" for end in ("from", "to")]
        assert kinds == [name in CONTAINERS for name in edge[:2]], (edge, x["from"], x["to"])
    kept = [e for e in KNOWN if e[0] in ("app", "worker") and e[2] == "tcp"]
    assert {e: got[e]["open_now"] for e in kept} == {e: 1 for e in kept}, "each was closed by a restart, and opened anew"
    assert got["web", "app", "unix", None]["path"] == "/shared/shop.sock"


def test_each_end_says_who_the_other_is(sonde, recorded):
    """sonde net: both ends of each edge, by container; of IPv4-mapped addresses the IPv4 one."""
    told = json.loads(sonde("net", "--by", "container", "--json", "-n", "0", store=recorded[0], check=True).stdout)["rows"]
    name = lambda x: x["container"] or x["comm"]
    ends = {(name(r["who"]), r["side"], name(r["other"]) if r["other"]["comm"] or r["other"]["container"] else r["peer"], r["protocol"], r["port"]) for r in told}
    for who, server, protocol, port in KNOWN:
        if server == "dockerd":
            continue
        if protocol == "tcp" and port == 8080:  # through docker-proxy, or translated to the container's own port
            assert any(e[0] == who and e[1] == "client" and e[3:] == ("tcp", 8080) and e[2] in (server, "docker-proxy") for e in ends), (who, ends)
            continue
        assert (who, "client", server, protocol, port) in ends and (server, "server", who, protocol, port) in ends, (who, server, sorted(map(str, ends)))
    mapped = [r for r in told if name(r["who"]) == "worker" and r["port"] == 5432]
    assert [r["peer"] for r in mapped] == [f"172.28.0.{ADDRESS['db']}"], mapped


def test_what_listens_is_told_with_its_container_and_what_others_reach_comes_first(sonde, recorded):
    told = json.loads(sonde("net", "--listen", "--json", "-n", "0", store=recorded[0], check=True).stdout)["rows"]
    open_to = [r["open_to"] for r in told]
    assert open_to == sorted(open_to, reverse=True), "network before host"
    known = {(r["who"]["container"], r["protocol"], r["port"]) for r in told}
    assert {("web", "tcp", 80), ("db", "tcp", 5432), ("cache", "tcp", 6379), ("stats", "tcp", 6380)} <= known


def test_people_read_the_same(sonde, recorded):
    text = sonde("map", store=recorded[0], check=True).stdout
    assert re.search(r"^web +-> +app +unix /sha\S*/shop.sock ", text, re.M), text
    text = sonde("containers", store=recorded[0], check=True).stdout
    assert {line.split()[0] for line in text.splitlines()[1:]} >= CONTAINERS, text
