# SPDX-License-Identifier: Apache-2.0
"""sonde replay beside the servers' own counters and Wireshark's dissectors (tshark), on captures of real servers under load."""
import collections
import os
import random
import re
import shutil
import struct
import sys
import tempfile

import pytest
import servers
import talks
from conftest import ROOT

pytestmark = [pytest.mark.live, pytest.mark.filterwarnings("ignore::DeprecationWarning")]  # of the clients


@pytest.fixture(scope="module")
def made():
    """made(name): (file, what is known of it); each is made once."""
    done, folders = {}, []

    def make(name):
        if name not in done:
            folder = tempfile.mkdtemp(prefix="sonde-talks-")  # which another user can enter: postgres runs as one
            folders.append(folder)
            path = os.path.join(folder, "x.pcap")
            try:
                done[name] = path, talks.ALL[name](folder, path)
            except servers.Missing as e:
                pytest.skip(f"missing: {e}")
        return done[name]
    yield make
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def rows(path, *args):
    return talks.replay(path, *args)["rows"]


def count(rows_, *begin):
    return sum(r["count"] for r in rows_ if r["operation"].startswith(begin))


def test_redis_counts_the_same_commands_and_errors(made):
    path, known = made("redis")
    by = collections.Counter()
    for r in rows(path):
        words = r["operation"].split(" ")
        name = " ".join(words[:2]) if words[0] in ("CONFIG", "COMMAND") else words[0]
        by[name] += r["count"]
        assert not r["blind"] and not r["no_answer"]
    calls = {k: n + rejected for k, (n, rejected, _) in known["calls"].items()}
    by.pop("INFO")  # is counted after it has told
    by.pop("NOSUCH")
    assert dict(by) == calls
    assert sum(r["errors"] for r in rows(path)) == sum(rejected + failed for _, rejected, failed in known["calls"].values()) + 1


@pytest.mark.parametrize("name", ["http", "http2"])
def test_http_counts_what_nginx_logged(made, name):
    path, known = made(name)
    logged = collections.Counter(line.split(" ")[2] for line in known["lines"])
    told = collections.Counter()
    for r in rows(path):
        told.update(r["statuses"])
        assert r["protocol"] == name and not r["blind"] and not r["no_answer"]
    assert told == logged
    assert count(rows(path), "GET /u/{id}") == sum("/u/77" in line for line in known["lines"])


def test_http_says_what_tshark_says(made):
    path, known = made("http")
    theirs = collections.Counter(code for row in talks.tshark(path, known["port"], "http", "http.response.code", where="http.response") for code in row[0].split("|"))
    ours = collections.Counter()
    for r in rows(path):
        ours.update(r["statuses"])
    assert ours == theirs


def test_http2_says_what_tshark_says(made):
    path, known = made("http2")
    theirs = collections.Counter(code for row in talks.tshark(path, known["port"], "http2", "http2.headers.status", where="http2.headers.status") for code in row[0].split("|"))
    ours = collections.Counter()
    for r in rows(path):
        ours.update(r["statuses"])
    assert ours == theirs


def test_postgres_counts_each_statement_in_each_of_pgbenchs_modes(made):
    path, known = made("postgres")
    r = rows(path)
    for statement in ("BEGIN", "END", "UPDATE pgbench_accounts", "SELECT abalance", "UPDATE pgbench_tellers", "UPDATE pgbench_branches", "INSERT INTO pgbench_history"):
        assert count(r, statement) == known["transactions"], statement
    assert [(x["operation"], x["statuses"]) for x in r if x["errors"]] == [("select ?/?", {"22012": 1})]
    assert not sum(x["blind"] + x["no_answer"] for x in r)


def test_postgres_says_what_tshark_says(made):
    path, known = made("postgres")
    theirs = collections.Counter(t for row in talks.tshark(path, known["port"], "pgsql", "pgsql.type") for t in row[0].split("|"))
    r = rows(path)
    prepares = count(r, "PREPARE", "DESCRIBE", "BIND", "CLOSE", "SYNC")
    assert sum(x["count"] for x in r) - prepares - count(r, "CONNECT") == theirs["Simple query"] + theirs["Execute"]
    assert sum(x["count"] for x in r) == theirs["Ready for query"]


def test_mariadb_counts_the_same_statements(made):
    path, known = made("mysql")
    r, com = rows(path), known["com"]
    assert count(r, "BEGIN") == com["begin"] and count(r, "COMMIT") == com["commit"]
    assert count(r, "DELETE FROM") == com["delete"] and count(r, "UPDATE ") == com["update"]
    assert count(r, "PREPARE ") == com["stmt_prepare"] and count(r, "CLOSE") == com["stmt_close"]
    assert count(r, "SELECT ", "select ") == com["select"] and count(r, "load data") == com["load"] == 1
    assert not sum(x["blind"] + x["no_answer"] for x in r)


def test_mariadb_says_what_tshark_says(made):
    path, known = made("mysql")
    theirs = collections.Counter(c for row in talks.tshark(path, known["port"], "mysql", "mysql.command", where="mysql.command") for c in row[0].split("|"))
    r = rows(path)
    assert count(r, "PREPARE ") == theirs["22"] and count(r, "CLOSE") == theirs["25"]


def test_memcached_counts_hits_and_misses_as_the_server(made):
    path, known = made("memcached")
    r, stats = rows(path), known["stats"]
    assert count(r, "set ") == stats["cmd_set"] and count(r, "delete ") == stats["delete_hits"]
    assert sum(x["statuses"].get("HIT", 0) for x in r) == stats["get_hits"]
    assert not sum(x["blind"] + x["no_answer"] for x in r)


def test_nats_and_mqtt_and_dns_count_what_was_sent(made):
    path, known = made("nats")
    by = {r["operation"]: r["count"] for r in rows(path)}
    assert by == {"REQUEST svc": known["n"], "REQUEST nobody": 1, "MSG svc": known["n"], "PUB _INBOX.{id}": known["n"]}
    path, known = made("mqtt")
    by = {r["operation"]: (r["one_way"], r["ok"]) for r in rows(path)}
    assert by["PUBLISH home/{id}/temp"] == (2 * known["n"], 2 * known["n"]) and by["DELIVER home/{id}/temp"][0] == 3 * known["n"]
    path, known = made("dns")
    theirs = collections.Counter(row[0] for row in talks.tshark(path, known["port"], "dns", "dns.flags.rcode", where="dns.flags.response==1"))
    assert sum(r["count"] for r in rows(path)) == known["n"]
    assert sum(r["statuses"].get("REFUSED", 0) for r in rows(path)) == sum(r["errors"] for r in rows(path))
    assert sum(theirs.values()) <= known["n"]  # Wireshark looks at this port for UDP only


def test_clickhouse_counts_the_same_queries(made):
    path, known = made("clickhouse")
    r, events = rows(path), known["events"]
    assert count(r, "select ") == events["SelectQuery"] - 1  # the one that asks
    assert count(r, "insert ") == events["InsertQuery"] == known["n"]
    assert count(r, "select ", "insert ", "create ") == events["Query"] - 1
    assert [(x["operation"], x["statuses"]) for x in r if x["errors"]] == [("select * from nowhere where a = ?", {"60": 1})]
    assert not sum(x["blind"] + x["no_answer"] for x in r)


def test_rabbitmq_methods_are_as_many_as_tshark_says(made):
    path, known = made("amqp")
    theirs = collections.Counter()
    for classes, methods in talks.tshark(path, known["port"], "amqp", "amqp.method.class", "amqp.method.method", where="amqp.method.class"):
        theirs.update(zip(classes.split("|"), methods.split("|")))
    r = rows(path)
    assert count(r, "PUBLISH (default) jobs") == theirs["60", "40"] == 2 * known["n"]
    assert [(x["one_way"], x["ok"]) for x in r if x["operation"].startswith("PUBLISH")] == [(known["n"], known["n"])]  # without confirms, with
    assert count(r, "DELIVER") == theirs["60", "60"] >= known["delivered"]
    assert count(r, "GET jobs") == theirs["60", "70"] == 1 and count(r, "QUEUE DECLARE") == theirs["50", "10"] == 2
    assert [(x["operation"], x["statuses"]) for x in r if x["errors"]] == [("QUEUE DECLARE nowhere", {"404": 1})]
    assert not sum(x["blind"] + x["no_answer"] for x in r)


def test_kafka_requests_are_as_many_as_tshark_says(made):
    path, known = made("kafka")
    theirs = collections.Counter(k for row in talks.tshark(path, known["port"], "kafka", "kafka.api_key", where=f"kafka && tcp.dstport=={known['port']}")
                                 for k in row[0].split("|"))
    r = rows(path)
    assert known["got"] == known["n"]
    for key, operation in (("0", "PRODUCE"), ("1", "FETCH"), ("2", "LIST OFFSETS"), ("3", "METADATA"), ("18", "API VERSIONS")):
        assert count(r, operation) == theirs[key] > 0, operation
    assert count(r, "PRODUCE orders") >= known["n"] / 20 and count(r, "FETCH orders") == theirs["1"]
    assert sum(x["one_way"] for x in r) == count(r, "PRODUCE clicks")  # acks=0
    assert not sum(x["blind"] + x["no_answer"] for x in r if not x["operation"].startswith("FETCH"))  # one may wait when the consumer leaves


def test_grpc_counts_the_same_calls_as_the_server(made):
    path, known = made("grpc")
    r = rows(path)
    assert {x["operation"]: x["count"] for x in r} == {f"GRPC {m}": n for m, n in known["calls"].items()}
    assert [(x["operation"].split("/")[2], x["errors"], x["statuses"]) for x in r if x["errors"]] == [("Fail", 7, {"NOT_FOUND": 7})]
    assert not sum(x["blind"] + x["no_answer"] for x in r)


def test_zookeeper_answers_what_kazoo_asked(made):
    path, known = made("zookeeper")
    r, n = {x["operation"]: x for x in rows(path)}, known["n"]
    users = "/app/users/{id}"
    assert (r[f"create {users}"]["count"], r[f"getData {users}"]["count"], r[f"setData {users}"]["count"]) == (n, n, n + 1)
    assert [(op, x["statuses"]) for op, x in r.items() if x["errors"]] == [(f"setData {users}", {"badversion": 1})]
    assert not sum(x["blind"] + x["no_answer"] for x in r.values())


def test_mongodb_hears_what_pymongo_sent_compressed_or_not(made):
    path, known = made("mongodb")
    told = collections.Counter()
    for x in rows(path):
        told[x["operation"].split(" ")[0]] += x["count"]
        assert x["operation"] in ("ismaster", "hello", "drop shop.nowhere") or x["operation"].endswith(" shop.orders")
        assert not x["blind"] and not x["no_answer"]
    assert {k: n for k, n in told.items() if k not in ("ismaster", "hello")} == known["counts"]
    assert sum(x["errors"] for x in rows(path)) == known["counts"]["drop"]
    theirs = talks.tshark(path, known["port"], "mongo", "mongo.opcode", where=f"mongo && tcp.dstport=={known['port']}")
    assert sum(told.values()) == sum(len(row[0].split("|")) for row in theirs)


def test_cassandra_hears_what_its_driver_sent(made):
    path, known = made("cassandra")
    r, counts, n = rows(path), known["counts"], known["n"]
    assert sum(x["count"] for x in r) == sum(counts.values())
    assert count(r, "SELECT * FROM shop.users WHERE name = ? AND id IN (?)") == count(r, "INSERT INTO shop.t (a) VALUES (now())") == n
    assert count(r, "PREPARE ") == counts[9] and count(r, "BATCH of UPDATE shop.t SET a = ? and others") == counts[13] == 2
    assert [(x["operation"], x["statuses"]) for x in r if x["errors"]] == [("SELECT broken FROM shop.t", {"0x2200": 2})]
    theirs = talks.tshark(path, known["port"], "cql", "cql.opcode", where=f"cql && tcp.dstport=={known['port']}")
    assert sum(counts.values()) == sum(len(row[0].split("|")) for row in theirs)


def test_php_fpm_logs_the_same_requests(made):
    path, known = made("fastcgi")
    logged = collections.Counter(line.split(" ")[-1] for line in known["lines"])
    told = collections.Counter()
    for x in rows(path):
        told.update(x["statuses"])
        assert x["protocol"] == "fastcgi" and not x["blind"] and not x["no_answer"]
    assert told == logged and sum(logged.values()) == known["n"] + known["n"] // 10


@pytest.mark.parametrize("name", list(talks.ALL))
def test_with_a_hundredth_of_the_packets_lost_nothing_is_told_falsely(made, name, tmp_path):
    import test_replay as small
    path, _ = made(name)
    head, all_ = small.packets(path)
    chance = random.Random(1)
    whole, got = small.most(path), talks.replay(small.write(tmp_path / "x.pcap", head, [p for p in all_ if chance.random() > 0.01]))
    for r in got["rows"]:
        if not small.says_itself(r["operation"]):
            assert r["count"] <= whole.get(r["operation"], 0), r
    seen = sum(r["count"] for r in got["rows"])
    assert seen > 0.8 * sum(whole.values()) or got["capture"]["blind_bytes"] > 0


@pytest.mark.parametrize("name", list(talks.ALL))
def test_cut_to_128_bytes_a_packet_the_counts_hold_or_are_told_as_blind(made, name, tmp_path):
    import test_replay as small
    path, _ = made(name)
    head, all_ = small.packets(path)
    whole, got = small.most(path), talks.replay(small.write(tmp_path / "x.pcap", head, [[s, sub, size, d[:128 + 66]] for s, sub, size, d in all_]))
    seen = sum(r["count"] for r in got["rows"])
    assert seen <= sum(whole.values())
    assert seen == sum(whole.values()) or got["capture"]["missing_bytes"] > 0


def test_what_is_encrypted_is_told_as_such_and_no_more(made, tmp_path):
    for name, get in (("tls", talks.tls), ("ssh", talks.ssh)):
        folder = tempfile.mkdtemp(prefix="sonde-talks-")
        path = str(tmp_path / name)
        try:
            known = get(folder, path)
        except servers.Missing as e:
            pytest.skip(f"missing: {e}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if name == "tls":  # handshakes alone
            assert {x["protocol"] for x in rows(path)} == {"tls"} and sum(x["count"] for x in rows(path)) == known["n"]
            assert all("shop.example" in x["operation"] for x in rows(path))
        else:
            assert not rows(path)
        for cut in (3, 7, 15, 40):  # begun in the middle
            import test_replay as small
            head, all_ = small.packets(path)
            got = talks.replay(small.write(tmp_path / "x.pcap", head, all_[cut:]))["rows"]
            assert {x["protocol"] for x in got} <= {"tls"} - ({"tls"} if name == "ssh" else set()), got


def test_redis_says_what_tshark_says(made):
    path, known = made("redis")
    theirs = talks.tshark(path, known["port"], "resp", "resp.array.length", where=f"resp.array.length && tcp.dstport=={known['port']}")
    assert sum(x["count"] for x in rows(path)) == sum(len(row[0].split("|")) for row in theirs)


def test_no_protocol_takes_another_ones_traffic(made):
    for name in talks.ALL:
        path, known = made(name)
        wanted = {"grpc": "http2"}.get(name, name)
        others = {r["protocol"] for r in rows(path)} - {wanted}
        assert not others, (name, others)
        assert os.path.getsize(path) > 1000 and known["port"]


def conversation(name):
    """The first one of a unit test: [(0 or 1: who, bytes)]."""
    sys.path.insert(0, os.path.join(ROOT, "tests", "fuzz", "protocols"))
    import seeds
    with open(os.path.join(ROOT, "tests", "unit", "loaders", "lib", "protocols", f"{name}_test.c"), encoding="utf-8") as f:
        table = re.search(r"static const struct turn \w+\[\] = \{(.*?)END\s*\};", f.read(), re.S)[1]
    return [(int(m[1] == "S"), seeds.c_text(m[2])) for m in re.finditer(r'\b([CS])\(((?:\s*"(?:[^"\\]|\\.)*")+)\)', table)]


def as_capture(path, turns, port):
    """Over a connection of TCP that was never there."""
    out, at, now = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1), [100, 200], 0
    for side, flags, data in [(0, 2, b""), (1, 18, b""), (0, 16, b"")] + [(side, 24, data) for side, data in turns]:
        ends = (20000, port) if side == 0 else (port, 20000)
        tcp = struct.pack(">HHIIBBHHH", *ends, at[side], at[1 - side], 0x50, flags, 65535, 0, 0) + data
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, b"\x7f\0\0\1", b"\x7f\0\0\1")
        packet = b"\0" * 12 + b"\x08\0" + ip + tcp
        out += struct.pack("<IIII", 1, now, len(packet), len(packet)) + packet
        at[side] += len(data) + bool(flags & 2)
        now += 10
    with open(path, "wb") as f:
        f.write(out)


# name, its port, Wireshark's name, the field, which values from the client are a request, which from the server are told too
WIRESHARK = [("kafka", 9092, "kafka", "kafka.api_key", range(100), ()), ("mongo", 27017, "mongo", "mongo.opcode", (2004, 2012, 2013), ()),
             ("cassandra", 9042, "cql", "cql.opcode", (1, 5, 7, 9, 10, 11, 13), ()), ("fastcgi", 9000, "fcgi", "fcgi.type", (1,), ()),
             ("mqtt", 1883, "mqtt", "mqtt.msgtype", (1, 3, 8, 10, 12), (3,)), ("http2", 8080, "http2", "http2.type", (1,), ())]


@pytest.mark.parametrize("name, port, decode, field, asks, tells", WIRESHARK, ids=[w[0] for w in WIRESHARK])
def test_of_what_was_built_after_a_specification_wireshark_counts_the_same(tmp_path, name, port, decode, field, asks, tells):
    path = str(tmp_path / "x.pcap")
    as_capture(path, conversation(name), port)
    try:
        found = talks.tshark(path, port, decode, field, "tcp.srcport")
    except servers.Missing as e:
        pytest.skip(f"missing: {e}")
    theirs = sum(int(v) in (tells if int(row[1]) == port else asks) for row in found for v in row[0].split("|") if v)
    assert theirs and sum(r["count"] for r in rows(path)) == theirs
