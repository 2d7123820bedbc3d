# SPDX-License-Identifier: Apache-2.0
"""`sonde explain` says why requests were slow: twelve kinds of incidents, alone and two at a time, each in a store that says what is planted. The cause is in
the chain, and no other cause is said to be certain. The same kinds as loaders record them: test_explain_incidents.py."""
import json
import random

import livedin
import pytest
from conftest import scale

AT = 1795144200
MIDDLE = AT - 60
RANGE = ["--from", str(MIDDLE), "--to", str(AT)]
MS = 1_000_000
WEB = {"pid": 11, "comm": "python3", "container": "web", "tid": 11, "thread": "python3"}
DB = {"pid": 21, "comm": "postgres", "container": "db", "tid": 21, "thread": "postgres"}
DNS = {"pid": 31, "comm": "dnsmasq", "container": "names"}
HOG = {"pid": 41, "comm": "ffmpeg", "container": "transcode", "thread": "ffmpeg", "tid": 41}
FAMILIES = ("cpu", "offcpu", "host", "net", "l7", "disk")
N = 200  # requests in ten seconds


def asked(at, who, side, service, operation, ms, protocol="http", n=N, failed=0, status="500"):
    base = {"request": operation, "protocol": protocol, "service": service, "at": at, **who, "side": side, "request_bytes": 1, "response_bytes": 1}
    yield {**base, "status": "200", "result": 0, "n": n - failed, "total_ns": round((n - failed) * ms * MS), "max_ns": round(ms * MS)}
    if failed:
        yield {**base, "status": status, "result": 1, "n": failed, "total_ns": failed * MS, "max_ns": MS}


def wait(at, who, label, s, stack, n=N):
    """`s` seconds of waiting, in ten."""
    ns = round(s * 1e9)
    yield {**who, "wait": label, "at": at, "n": n, "total_ns": ns, "max_ns": ns // n + 1}
    yield {"kind": "runqueue" if label >= 16 else "offcpu", "at": at, "n": n, **who, "label": label, "value": ns, "stack": stack}


LOCK, DISK, SLEEP, READY = 1, 2, 6, 16


def incident(what, at, x, middle=MIDDLE):
    """What of `x` (ms, seconds in ten, and so on) is another one in a bucket of the incident; and rows of its own."""
    if what == "lock":
        x["web ms"] += 120
        x["web lock"] += 24
    elif what == "row lock":
        x["db ms"] += 200
        x["db lock"] += 40
    elif what == "hog":
        x["web ms"] += 60
        x["web ready"] += 12
        x["hog cores"] = 1.6
    elif what == "function":
        x["web ms"] += 70
        x["encode"] = 9.0
    elif what == "errors":
        x["db failed"] = 60
        x["web failed"] = 60
    elif what == "restart":
        x["web failed"] += 80
        x["refused"] = 80
        if at == middle + 10:
            x["db restarted"] = True
    elif what == "loss":
        x["lost ms"] += 90
        x["retrans"] = 60
    elif what == "quota":
        x["web ms"] += 80
        x["throttled"] = 16.0
        x["web ready"] += 3
    elif what == "names":
        x["dns ms"] += 100
    elif what == "disk":
        x["db ms"] += 90
        x["db disk"] += 18
        x["hog io"] = 900 << 20
    elif what == "memory":
        x["web ms"] += 75
        x["reclaim"] = 15.0
        x["web disk"] += 4
    elif what == "gc":
        x["web ms"] += 65
        x["collect"] = 8.0


#: kind -> (what its cause is called, whose it is), and what else may be certain: what it implies
KINDS = {"lock": ("lock", "web"), "row lock": ("lock", "db"), "hog": ("cpu wait", "web"), "function": ("cpu", "web"), "errors": ("asked", "db"),
         "restart": ("restarted", "db"), "loss": ("network", "db"), "quota": ("quota", "web"), "names": ("resolving", "names"), "disk": ("disk", "db"),
         "memory": ("memory", "web"), "gc": ("gc", "web")}
IMPLIED = {"row lock": {"asked"}, "loss": {"asked"}, "disk": {"asked"}, "restart": {"refused"}}
PAIRS = ["lock+errors", "row lock+function", "hog+names", "function+disk", "quota+row lock", "names+errors", "memory+loss", "gc+disk"]


def host(seed, whats=(), families=FAMILIES, begin=AT - 660, middle=MIDDLE, other=None):
    r = random.Random(seed)
    rows = []
    for at in range(begin, AT, 10):
        x = {"web ms": 0, "db ms": r.gauss(4, 0.6), "dns ms": r.gauss(1, 0.2), "lost ms": 0, "web lock": 0.02, "db lock": 0.05, "web ready": r.gauss(0.4, 0.1),
             "web disk": 0.01, "db disk": 0.2, "hog cores": 0.05, "encode": r.gauss(1, 0.1), "collect": 0.1, "db failed": 0, "web failed": 0, "refused": 0,
             "retrans": 0, "throttled": 0.0, "reclaim": 0.0, "hog io": 1 << 20}
        if at >= middle:
            for what in whats:
                incident(what, at, x, middle)
        rows += other(at, at >= middle, list(bucket(at, x, r))) if other else bucket(at, x, r)
    for family in families:
        yield {"run": family, "from": begin, "to": AT, "bucket_s": 10, "recording": 1, "period_ns": 10101010 if family == "cpu" else 0}
        yield from (row for row in rows if family_of(row) == family)


def family_of(row):
    return "l7" if "request" in row else "net" if row.get("fact") == "flow_row" else "disk" if row.get("fact") in ("sync_row", "file_row") else \
        "host" if "fact" in row else \
        "offcpu" if {"wait", "culprit", "wake", "throttle"} & set(row) or row.get("kind") in ("offcpu", "runqueue") else "cpu"


def bucket(at, x, r):
    edge = x["db ms"] + x["lost ms"]
    whole = 8 + x["web ms"] + edge + x["dns ms"] + r.gauss(0, 1)
    yield from asked(at, WEB, 2, "10.0.0.2:80", "GET /cart", whole, failed=x["web failed"], status="502")
    reached = N - x["refused"]
    yield from asked(at, WEB, 1, "10.0.0.5:5432", "SELECT stock", edge, "postgres", reached, x["db failed"], "57014")
    yield from asked(at, DB, 2, "10.0.0.5:5432", "SELECT stock", x["db ms"], "postgres", reached, x["db failed"], "57014")
    yield from asked(at, WEB, 1, "10.0.0.9:53", "A db.home", x["dns ms"], "dns")
    yield from asked(at, DNS, 2, "10.0.0.9:53", "A db.home", x["dns ms"], "dns")
    for who, function, s in ((WEB, "encode", x["encode"]), (WEB, "gc_collect_main", x["collect"]), (DB, "scan", 2.0), (HOG, "x264", 10 * x["hog cores"])):
        yield {"kind": "cpu", "at": at, "n": max(round(s * 99), 1), **{k: who[k] for k in ("pid", "comm", "container")}, "stack": ["main", function]}
    yield from wait(at, WEB, LOCK, x["web lock"], ["main", "take_cart", "pthread_mutex_lock"])
    yield from wait(at, DB, LOCK, x["db lock"], ["main", "exec_update", "ProcSleep", "pthread_mutex_lock"])
    yield from wait(at, WEB, READY, x["web ready"], ["main", "serve"])
    yield from wait(at, WEB, DISK, x["web disk"], ["main", "load_page"])
    yield from wait(at, DB, DISK, x["db disk"], ["main", "wal_flush", "fsync"])
    yield {**WEB, "culprit": 0, "at": at, "n": 9, "total_ns": round(x["web ready"] * 0.9e9), "by": {k: v for k, v in HOG.items() if k != "container"}}
    yield {**WEB, "wake": LOCK, "context": 0, "at": at, "n": 9, "total_ns": round(x["web lock"] * 1e9), "by": {**WEB, "tid": 12}}
    yield {"fact": "host_row", "at": at, "cpus": 2, "user_us": 4_000_000, "system_us": 500_000, "mem_total": 8 << 30, "mem_available": 4 << 30, "psi_cpu_us": 50_000}
    for name, cpu, io in (("web", x["encode"] + x["collect"], 0), ("db", 2, 1 << 20), ("transcode", 10 * x["hog cores"], x["hog io"]), ("names", 0.1, 0)):
        more = {"throttled_us": round(x["throttled"] * 1e6), "periods": 100, "throttled": 90 if x["throttled"] else 0, "psi_mem_us": round(x["reclaim"] * 1e6),
                "mem_limit": 256 << 20} if name == "web" else {}
        yield {"fact": "cgroup_row", "at": at, "cgroup": f"/docker/{name}", "container": name, "user_us": round(cpu * 1e6), "system_us": 0, "working": 250 << 20,
               "read_bytes": 0, "write_bytes": io, **more}
    yield {"fact": "flow_row", "at": at, **{k: WEB[k] for k in ("pid", "comm", "container")}, "side": "client", "protocol": "tcp", "peer": "10.0.0.5", "port": "5432",
           "owner": "opener", "mate": {"pid": 21, "comm": "postgres", "container": "db"}, "attempts": x["refused"] + 1, "opened": 1, "refused": x["refused"],
           "segs_out": 800, "segs_in": 800, "retrans": x["retrans"], "tx_bytes": 9, "rx_bytes": 9, "rtt_sum_us": 100, "rtt_n": 1, "connect_us": 100}
    if x.get("db restarted"):
        for kind, detail, later in (("stopped", "exit 1", 0), ("restarted", "", 1)):
            yield {"fact": "event_row", "at": at + later, "columns": {"kind": kind, "subject": "container", "name": "db", "detail": detail, "which": "db", "n": 1,
                                                                     "at_us": (at + later) * 1000000}}


def explained(sonde, store, *args):
    return json.loads(sonde("explain", *RANGE, *args, "--json", store=store, check=True).stdout)["chain"]


def planted(tmp_path, whats, seed=1, families=FAMILIES, **more):
    store = str(tmp_path / "store")
    livedin.put(store, list(host(seed, whats, families, **more)))
    return store


def judged(links, whats):
    """(kinds whose cause is in the chain, false ones that are certain)"""
    found = {k for k in whats for link in links if (link["what"], link["who"]) == KINDS[k]}
    right = {w for k in whats for w in (KINDS[k][0], *IMPLIED.get(k, ()))} | {"slower", "failing"}
    return found, [link["text"] for link in links if link["sure"] == "certain" and link["what"] not in right]


@pytest.mark.parametrize("what", sorted(KINDS))
def test_the_cause_of_an_incident_is_named(what, sonde, tmp_path):
    chain = explained(sonde, planted(tmp_path, [what]), "web")
    links = chain["links"]
    found, false = judged(links, [what])
    assert found and not false, json.dumps(links, indent=1)
    assert links[0]["what"] in ("slower", "failing") and links[0]["who"] == "web" and len(links) <= 5
    assert all(link["command"].startswith("sonde ") and link["text"] for link in links)
    first = next(link for link in links[1:] if link["what"] not in IMPLIED.get(what, {"asked"} - {KINDS[what][0]}))
    assert (first["what"], first["who"]) == KINDS[what], json.dumps(links, indent=1)


#: its second cause has less than a part that counts
ONE_OF_TWO = {"row lock+function"}


@pytest.mark.parametrize("what", PAIRS)
def test_of_two_incidents_at_a_time_both_are_named_and_nothing_else_is_certain(what, sonde, tmp_path):
    whats = what.split("+")
    links = explained(sonde, planted(tmp_path, whats), "web")["links"]
    found, false = judged(links, whats)
    assert len(found) >= 2 - (what in ONE_OF_TWO) and not false, json.dumps(links, indent=1)


@pytest.mark.parametrize("seed", range(scale(6, 40)))
def test_of_ordinary_load_nothing_is_felt(seed, sonde, tmp_path):
    chain = explained(sonde, planted(tmp_path, [], 100 + seed))
    assert not chain["felt"] and chain["requests"] == 3 * 6 * N, chain
    if not seed:
        said = sonde("explain", *RANGE, store=str(tmp_path / "store"), check=True).stdout
        assert said.startswith("nothing was felt: none of 3 600 requests took longer"), said


def test_the_chain_is_found_without_naming_the_service(sonde, tmp_path):
    """The database is slower too: the one that asked it comes first."""
    links = explained(sonde, planted(tmp_path, ["row lock"]))["links"]
    assert [(link["what"], link["who"]) for link in links] == [("slower", "web"), ("asked", "db"), ("lock", "db")], links
    assert "SELECT stock" in links[1]["text"] and links[2]["text"].startswith("db waited for locks: 4.00 s each second, before ")
    assert links[1]["share"] > 0.9 and links[2]["sure"] == "certain"


@pytest.mark.parametrize("before_s", [50, 120, 240])
def test_of_a_window_that_began_before_the_incident_the_slow_part_is_explained(before_s, sonde, tmp_path):
    """Who asks about 13:17 names more than the incident."""
    store = planted(tmp_path, ["row lock"])
    asked = ["--from", MIDDLE - before_s, "--to", AT]
    said = json.loads(sonde("explain", "web", *asked, "--json", store=store, check=True).stdout)
    links = said["chain"]["links"]
    assert [(link["what"], link["who"]) for link in links] == [("slower", "web"), ("asked", "db"), ("lock", "db")], links
    assert (said["from_ns"], said["to_ns"]) == (MIDDLE * 10**9, AT * 10**9) and said["before_to_ns"] == MIDDLE * 10**9
    assert (said["asked_from_ns"], said["asked_to_ns"]) == ((MIDDLE - before_s) * 10**9, AT * 10**9)
    assert said["slower"] == "GET /cart of web" and "time on CPU" in said["compared"]
    assert "of web was slower, against" in " ".join(sonde("explain", "web", *asked, store=store, check=True).stderr.split())
    whole = json.loads(sonde("explain", "web", *RANGE, "--json", store=store, check=True).stdout)
    assert whole["asked_from_ns"] is None and whole["slower"] is None


def test_without_a_range_a_short_recording_is_compared_with_its_own_beginning(sonde, tmp_path):
    store = planted(tmp_path, ["row lock"], begin=AT - 80, middle=AT - 30)
    said = json.loads(sonde("explain", "web", "--json", store=store, check=True).stdout)
    assert [link["what"] for link in said["chain"]["links"]] == ["slower", "asked", "lock"], said["chain"]
    assert AT - 40 <= said["from_ns"] / 10**9 <= AT - 30 and said["compared"], said


def test_what_was_not_recorded_is_named_and_nothing_is_certain_then(sonde, tmp_path):
    chain = explained(sonde, planted(tmp_path, ["row lock"], families=("cpu", "l7")), "web")
    assert [link["what"] for link in chain["links"]] == ["slower", "asked", "unknown"], chain
    assert "offcpu" in chain["not_recorded"] and "net" in chain["not_recorded"] and chain["links"][2]["sure"] == "possible"
    text = sonde("explain", "web", *RANGE, store=str(tmp_path / "store"), check=True).stdout
    assert "not recorded, and could tell more: offcpu (" in text and "[certain: " in text, text
    assert "\nnothing else changed: " in text and "\nnothing changed: " not in text, text


def test_a_time_before_that_was_not_recorded_is_not_one_without_requests(sonde, tmp_path):
    """The recording begins with the failures: whether they are new is not known, and nothing is certain."""
    store = planted(tmp_path, ["errors"], begin=MIDDLE)
    chain = explained(sonde, store, "web")
    first, second = chain["links"][:2]
    assert (first["what"], first["who"]) == ("failing", "web") and (second["what"], second["who"]) == ("asked", "db") and not chain["requests_known"], chain
    for link in chain["links"]:
        assert link["sure"] != "certain" and link["before"] is None and link["share"] is None, link
        assert "before 0" not in link["text"] and "not asked before" not in link["text"], link
    assert "the time before was not recorded" in first["text"] and "the time before was not recorded" in second["text"]
    assert "in the time before: cpu, offcpu, host, net, l7" in chain["not_recorded"], chain


def test_what_was_not_asked_before_is_not_compared_with_nothing(sonde, tmp_path):
    """A new service, whose requests all fail, and a database that was asked before without an answer."""
    def new(at, on, rows):
        yield from rows
        if on:
            yield from asked(at, WEB, 2, "10.0.0.2:80", "POST /order", 30, failed=N, status="500")
            yield from asked(at, WEB, 1, "10.0.0.7:6379", "GET order", 20, "redis")
    (first, *rest) = explained(sonde, planted(tmp_path, [], other=new), "web")["links"]
    assert first["text"].startswith("web answered POST /order: 1200 of 1200 failed with 500 (100.0 %); it was not asked before"), first
    assert first["before"] is None and first["after"] == 1 and first["unit"] == "share", first
    for link in (first, *rest):
        assert "before 0" not in link["text"], link
    assert all(link["what"] != "asked" for link in rest), "what was asked failed no more, and took no longer: it is no cause"


@pytest.mark.parametrize("known", [True, False])
def test_what_was_asked_first_in_the_window_is_said_to_be_new(known, sonde, tmp_path):
    """Half of the added time is a new database's; of the other one the requests before had no answer, so that nothing says how long they took."""
    def new(at, on, rows):
        for row in slower(rows, "GET /cart", 60) if on else rows:
            if not known and not on and row.get("request") == "SELECT stock":
                yield {**row, "status": "", "result": 4, "total_ns": 0, "max_ns": 0}
                continue
            yield row
        if on and known:
            yield from asked(at, WEB, 1, "10.0.0.7:6379", "GET order", 50, "redis")
    links = explained(sonde, planted(tmp_path, [] if known else ["row lock"], other=new), "web")["links"]
    (link,) = [x for x in links if x["what"] == "asked"]
    assert link["before"] is None and "before 0" not in link["text"], link
    assert link["text"].endswith("20.0 times a second; it was not asked before" if known else ", before 20.0; before, it was asked and not answered"), link


def test_waits_that_are_idle_by_nature_and_far_longer_than_what_was_added_are_only_possible(sonde, tmp_path):
    """A logger of the same container waits for its pipe all the time, and began in the window; requests sleep longer, as much as was added."""
    def later(at, on, rows):
        yield from slower(rows, "GET /cart", 120) if on else rows
        if on:
            yield from wait(at, {**WEB, "pid": 15, "tid": 15, "comm": "tee", "thread": "tee"}, 4, 95.0, ["main", "copy", "read"])
        yield from wait(at, WEB, SLEEP, 24.0 if on else 0.1, ["main", "retry", "nanosleep"])
    links = explained(sonde, planted(tmp_path, [], other=later), "web")["links"]
    assert [link["what"] for link in links] == ["slower", "sleep", "pipe"], links
    assert links[2]["sure"] == "possible" and links[2]["share"] is None and links[1]["sure"] != "possible" and links[1]["share"] > 0.9, links


def test_a_service_that_asks_itself_does_not_wait_for_itself(sonde, tmp_path):
    """Client and server are in one container: what is slow is its own."""
    def loop(at, on, rows):
        for row in slower(rows, "GET /cart", 120) if on else rows:
            if on and row.get("wait") == LOCK and row["container"] == "web":
                row["total_ns"] += 24 * 10**9
            if on and row.get("kind") == "offcpu" and row["container"] == "web" and row["label"] == LOCK:
                row["value"] += 24 * 10**9
            yield row
            if row.get("request") == "GET /cart" and row["side"] == 2:
                yield {**row, "side": 1, "pid": 99}
    links = explained(sonde, planted(tmp_path, [], other=loop), "web")["links"]
    assert [(link["what"], link["who"]) for link in links][:2] == [("slower", "web"), ("lock", "web")] and links[1]["sure"] == "certain", links
    assert not [link for link in links if link["text"].startswith("it waited for web")], links


def slower(rows, name, ms):
    """Each request called so takes that much longer."""
    for row in rows:
        if row.get("request") == name and not row.get("result"):
            row["total_ns"] += round(ms * MS * row["n"])
            row["max_ns"] += round(ms * MS)
        yield row


def three_times_the_visitors(at, on, rows):
    for row in slower(rows, "GET /cart", 16) if on else rows:
        for key in ("n", "total_ns") if on and "request" in row else ("n",) if on and row.get("kind") == "cpu" and row["container"] != "transcode" else ():
            row[key] *= 3
        if on and READY in (row.get("wait"), row.get("label")):
            row["total_ns" if "wait" in row else "value"] *= 12
        yield row


def an_api_elsewhere_and_a_hog(at, on, rows):
    yield from slower(rows, "GET /cart", 220) if on else rows
    yield from asked(at, WEB, 1, "203.0.113.9:443", "POST /charge", 250 if on else 30)
    if on:
        yield {"kind": "cpu", "at": at, "n": 1600, **{k: HOG[k] for k in ("pid", "comm", "container")}, "stack": ["main", "x264"]}


def nothing_recorded_and_a_hog(at, on, rows):
    yield from slower(rows, "GET /cart", 100) if on else rows
    if on:
        yield {"kind": "cpu", "at": at, "n": 1600, **{k: HOG[k] for k in ("pid", "comm", "container")}, "stack": ["main", "x264"]}


def background_threads_that_wait_for_locks(at, on, rows):
    yield from slower(rows, "GET /cart", 30) if on else rows
    if on:
        yield from wait(at, WEB, LOCK, 60, ["main", "pool_worker", "pthread_mutex_lock"])


def names_from_elsewhere(at, on, rows):
    rows = [row for row in rows if row.get("container") != "names"]
    yield from slower(slower(rows, "GET /cart", 100), "A db.home", 100) if on else rows


def pauses_of_a_virtual_machine(at, on, rows):
    yield from slower(rows, "GET /cart", 50) if on else rows
    yield {"fact": "jvm_row", "at": at, **{k: WEB[k] for k in ("pid", "comm", "container")}, "young_gc_us": 9_000_000 if on else 200_000}


def one_in_fifty_is_stuck(at, on, rows):
    yield from rows
    if on:
        yield from asked(at, WEB, 2, "10.0.0.2:80", "GET /cart", 3000, n=4)
        yield from wait(at, WEB, LOCK, 12, ["main", "take_cart", "pthread_mutex_lock"], 4)


def a_full_disk(at, on, rows):
    for row in rows:
        if on and row.get("request") in ("GET /cart", "SELECT stock") and row["service"] != "10.0.0.9:53":
            yield {**row, "n": 60, "total_ns": 60 * MS, "result": 1, "status": "53100" if row["protocol"] == "postgres" else "500"}
        yield row
    left = 0 if on else 5 << 30
    yield {"fact": "fs_row", "at": at, "mount": "/srv", "source": "/dev/sda2", "fstype": "ext4", "size": 900 << 30, "free": left, "available": left, "inodes": 6_000_000,
           "inodes_free": 5_000_000, "read_only": 0, "hangs": 0}


def ended(at, name, detail, later=2):
    return {"fact": "event_row", "at": at + later, "columns": {"kind": "stopped", "subject": "container", "name": name, "detail": detail, "which": name, "n": 1,
                                                               "at_us": (at + later) * 1000000}}


def it_ended(at, on, rows):
    yield from (row for row in rows if not (on and row.get("container") == "web" and "request" in row))
    if at == MIDDLE:
        yield ended(at, "web", "exit 1")


def its_database_ended(at, on, rows):
    for row in rows:
        if on and row.get("service") == "10.0.0.5:5432":
            continue
        if on and row.get("request") == "GET /cart":
            row.update(result=1, status="502")
        yield {**row, "attempts": N + 1, "refused": N} if on and row.get("fact") == "flow_row" else row
    if at == MIDDLE:
        yield ended(at, "db", "signal 11 (SEGV)")


def it_hangs(at, on, rows):
    """Four requests, asked in the incident's first second, wait for ever."""
    yield from (row for row in rows if not (on and row.get("container") == "web" and {"request", "wait"} & set(row)))
    yield {"fact": "request_running_row", "at": at, "columns": {"side": "", "id": 0, "protocol": "", "service": "", "operation": "", "client": "", "at_us": (AT - 9000) * 1000000,
                                                                "seen_us": at * 1000000, "result": "", "trace": "", "others": 0}}
    for i in range(4 if on else 0):
        yield {"fact": "request_running_row", "at": at + 5, **{k: WEB[k] for k in ("pid", "comm", "container")}, "columns": {
            "side": "server", "id": 10 + i, "protocol": "http", "service": "10.0.0.2:80", "operation": "GET /cart", "client": "10.0.0.1", "port": 4000 + i,
            "at_us": MIDDLE * 1000000, "seen_us": (at + 5) * 1000000, "result": "", "tid": 11, "request_bytes": 1, "response_bytes": 0, "trace": ""}}


def nobody_asks(at, on, rows):
    yield from (row for row in rows if not (on and row.get("container") == "web" and "request" in row))


def killed_for_memory(at, on, rows):
    for row in rows:
        if at == MIDDLE and row.get("request") == "GET /cart":
            row = {**row, "n": 120}
            yield {**row, "n": 80, "total_ns": 80 * MS, "result": 1, "status": "502"}
        yield row
    if at == MIDDLE:
        yield {"end": 3, "status": 9, "at": at + 3, **{k: WEB[k] for k in ("pid", "comm", "container")}}
        yield ended(at, "web", "out of memory", 3)
        yield {"fact": "event_row", "at": at + 5, "columns": {"kind": "restarted", "subject": "container", "name": "web", "detail": "", "which": "web", "n": 1, "at_us": (at + 5) * 1000000}}


def the_network_is_far(at, on, rows):
    for row in slower(rows, "GET /cart", 40) if on else rows:
        if on and row.get("request") == "SELECT stock" and row["side"] == 1:
            row["total_ns"] += 40 * MS * row["n"]
        yield {**row, "rtt_sum_us": 2_000_000, "rtt_n": 50} if on and row.get("fact") == "flow_row" else {**row, "rtt_sum_us": 5_000, "rtt_n": 50} if row.get("fact") == "flow_row" else row


def its_database_has_a_queue(at, on, rows):
    for row in slower(rows, "GET /cart", 60) if on else rows:
        if on and row.get("request") == "SELECT stock" and row["side"] == 1:
            row["total_ns"] += 60 * MS * row["n"]
        yield row
    for row in asked(at, DB, 2, "10.0.0.5:5432", "SELECT stock", 60 if on else 0.1, "postgres"):
        yield {**row, "part": 2}


def the_hypervisor_takes_half(at, on, rows):
    for row in slower(rows, "GET /cart", 50) if on else rows:
        if on and READY in (row.get("wait"), row.get("label")):
            row["total_ns" if "wait" in row else "value"] *= 20
        yield {**row, "steal_us": 10_000_000 if on else 20_000} if row.get("fact") == "host_row" else row


def another_ones_transaction_holds_rows(at, on, rows):
    """The process that serves it lets go; a third one does so seldom."""
    report = {"pid": 61, "comm": "python3", "container": "report", "tid": 61, "thread": "python3"}
    of = {**DB, "pid": 22, "tid": 22}
    for row in slower(slower(rows, "GET /cart", 200), "SELECT stock", 200) if on else rows:
        if on and row.get("wait") == LOCK and row["container"] == "db":
            row["total_ns"] += 40 * 10**9
        if on and row.get("kind") == "offcpu" and row["container"] == "db" and row["label"] == LOCK:
            row["value"] += 40 * 10**9
        yield row
    for operation, ms in (("BEGIN", 1), ("UPDATE stock SET n = ?", 3 if on else 2), ("COMMIT", 9)):
        yield from asked(at, report, 1, "10.0.0.5:5432", operation, ms, "postgres", 4)
        yield from asked(at, of, 2, "10.0.0.5:5432", operation, ms, "postgres", 4)
    for by, s in ((of, 35 if on else 0.01), ({**DB, "pid": 23, "tid": 23}, 5 if on else 0.01)):
        yield {**DB, "wake": LOCK, "context": 0, "at": at, "n": 9, "total_ns": round(s * 1e9), "by": by}


def it_had_no_cpu_to_read_answers(at, on, rows):
    """Its database answers as before."""
    for row in slower(rows, "GET /cart", 60) if on else rows:
        if on and row.get("request") == "SELECT stock" and row["side"] == 1:
            row["total_ns"] += 50 * MS * row["n"]
        if on and row.get("container") == "web" and READY in (row.get("wait"), row.get("label")):
            row["total_ns" if "wait" in row else "value"] += 11 * 10**9
        yield row


#: what happens -> (the links, the most that any after the first is sure, what its text has)
OTHERS = [(three_times_the_visitors, ["slower", "load", "cpu wait", "cpu"], "likely", "web was asked 3.0 times as often: 60.0 requests a second, before 20.0"),
          (an_api_elsewhere_and_a_hog, ["slower", "asked", "unknown"], "certain", "what 203.0.113.9:443 did meanwhile is not known: it is not on this host, or was not recorded"),
          (nothing_recorded_and_a_hog, ["slower", "unknown"], "possible", "why web took longer is not known"),
          (background_threads_that_wait_for_locks, ["slower", "lock"], "likely", "web waited for locks: 6.00 s each second"),
          (names_from_elsewhere, ["slower", "resolving", "unknown"], "certain", "it waited for names to be resolved by 10.0.0.9:53: A db.home took 10"),
          (pauses_of_a_virtual_machine, ["slower", "gc"], "certain", "web collected garbage: 0.90 s each second, before 0.02 s"),
          (one_in_fifty_is_stuck, ["slower", "lock"], "certain", "(p99 3.09 s), before 13.1 ms (p99 1"),
          (a_full_disk, ["failing", "asked", "disk full"], "certain", "the file system /srv is full: 0 B left, before 5 GiB"),
          (it_ended, ["silent", "stopped"], "likely", "(exit 1) and has not started again"),
          (its_database_ended, ["failing", "refused", "stopped"], "certain", "db stopped at "),
          (it_hangs, ["silent", "hanging"], "certain", "4 requests to web got no answer for up to 55 s: GET /cart"),
          (nobody_asks, ["silent", "unknown"], "possible", "nothing that was recorded stopped web: it may not have been asked"),
          (killed_for_memory, ["failing", "out of memory"], "likely", "web: out of memory (python3)"),
          (the_network_is_far, ["slower", "asked", "network"], "certain", "packets took longer between them: a round trip 40 ms, before 100 us"),
          (its_database_has_a_queue, ["slower", "asked", "queue"], "certain", "the requests lay in the queue of db until it read them: 60 ms each"),
          (another_ones_transaction_holds_rows, ["slower", "asked", "lock"], "certain", "; mostly held by a process of it that served UPDATE stock SET n = ?, asked by report"),
          (it_had_no_cpu_to_read_answers, ["slower", "cpu wait"], "likely", "web was ready and had no CPU: 1.1"),
          (the_hypervisor_takes_half, ["slower", "steal", "cpu wait"], "likely", "gave 50.0 % of its CPU time to others, before 0.1 %")]


@pytest.mark.parametrize("other, whats, sure, text", OTHERS, ids=[x[0].__name__ for x in OTHERS])
def test_what_else_makes_requests_slow_is_named_and_no_more_sure_than_it_is(other, whats, sure, text, sonde, tmp_path):
    links = explained(sonde, planted(tmp_path, [], other=other), "web")["links"]
    levels = ["possible", "likely", "certain"]
    assert [link["what"] for link in links] == whats, json.dumps(links, indent=1)
    assert any(text in link["text"] for link in links), [link["text"] for link in links]
    assert all(levels.index(link["sure"]) <= levels.index(sure) for link in links[1:]) and (sure == "certain") == (links[1]["sure"] == "certain"), links
    assert all(link["sure"] != "certain" for link in links if link["what"] in ("unknown", "disk full", "load"))


def test_of_a_full_disk_the_command_shows_what_fills_it(sonde, tmp_path):
    links = explained(sonde, planted(tmp_path, [], other=a_full_disk), "web")["links"]
    (link,) = [x for x in links if x["what"] == "disk full"]
    assert link["command"].startswith("sonde disk --full --from ") and "/srv" in sonde(*link["command"].split()[1:], store=str(tmp_path / "store"), check=True).stdout, link


def a_backup(disks, size):
    """A backup, which `sync` brings to the disk; `cc` writes more, to another disk. `disks`: whether requests have theirs."""
    def rows_of(at, on, rows):
        def file(who, file, disk, **more):
            return {"fact": "file_row", "at": at, **{k: who[k] for k in ("pid", "comm", "container")}, "file": file, "disk": disk, **more}
        yield from rows
        yield {"fact": "sync_row", "at": at, **{k: DB[k] for k in ("pid", "comm", "container")}, "file": "/data/wal", "call": "fdatasync", "calls": 10, "errors": 0,
               "us": 2_400_000 if on else 30_000}
        yield file(HOG, "/backup/home.tar", "", dirty_bytes=size if on else 0)
        if disks:
            yield file(DB, "/data/wal", "", dirty_bytes=50 << 20)  # one page, again and again
            yield file(DB, "/data/wal", "sda", write_bytes=1 << 20)
            yield file({**HOG, "pid": 77, "comm": "sync", "container": ""}, "/backup/home.tar", "sda", write_bytes=size if on else 0)
            yield file({**HOG, "pid": 78, "comm": "cc", "container": ""}, "/src/large.o", "", dirty_bytes=(1800 << 20) if on else 0)
            yield file({**HOG, "pid": 79, "comm": "cc", "container": ""}, "/src/large.o", "sdb", write_bytes=(1800 << 20) if on else 0)
    return rows_of


@pytest.mark.parametrize("disks, size, behind", [(False, 900 << 20, "; most more was read and written by transcode, of its file /backup/home.tar ("),
                                                 (True, 900 << 20, ", behind writeback of /backup/home.tar, written by ffmpeg of transcode ("),
                                                 (True, 2 << 20, ", behind writeback of /backup/home.tar, written by ffmpeg of transcode (")])
def test_a_wait_for_a_disk_names_the_file_and_whose_writing_it_was_behind(disks, size, behind, sonde, tmp_path):
    links = explained(sonde, planted(tmp_path, ["disk"], other=a_backup(disks, size)), "web")["links"]
    (link,) = [x for x in links if x["what"] == "disk"]
    text = link["text"]
    assert "; fsync of /data/wal took 240 ms each, before 3 ms" + behind in text, text
    assert link["command"].startswith("sonde disk --files --from ") and "/backup/home.tar" in sonde(*link["command"].split()[1:], store=str(tmp_path / "store")).stdout


def two_datas(placed):
    """db sees /data/wal, which is the host's /vol/db/wal on sda; the host's own /data/wal, which others write most of, lies on sdb. `placed`: whether rows of places say so."""
    def rows_of(at, on, rows):
        def file(who, file, disk, **more):
            return {"fact": "file_row", "at": at, **{k: who[k] for k in ("pid", "comm", "container")}, "file": file, "disk": disk, **more}
        yield from rows
        db = {k: DB[k] for k in ("pid", "comm", "container")}
        yield {"fact": "sync_row", "at": at, **db, "file": "/data/wal", "call": "fdatasync", "calls": 10, "errors": 0, "us": 2_400_000 if on else 30_000}
        yield file(DB, "/vol/db/wal", "sda", write_bytes=1 << 20)
        yield file(DB, "/vol/db/tmp", "sdc", write_bytes=1 << 20)
        if placed:
            yield {"fact": "place_row", "at": at, **db, "columns": {"file": "/vol/db/wal", "seen": "/data/wal"}}
        yield file({**HOG, "container": ""}, "/data/wal", "sdb", write_bytes=(1800 << 20) if on else 0)
        yield file({**HOG, "pid": 78, "comm": "cc", "container": ""}, "/src/large.o", "sdc", write_bytes=(1200 << 20) if on else 0)
        yield file({**HOG, "pid": 79, "comm": "tar", "container": ""}, "/backup.tar", "sda", write_bytes=(900 << 20) if on else 0)
    return rows_of


@pytest.mark.parametrize("placed, behind", [(True, ", behind writeback of /backup.tar, written by tar ("), (False, ", behind writeback of /src/large.o, written by cc (")])
def test_the_same_path_in_a_container_is_not_the_hosts_file(placed, behind, sonde, tmp_path):
    """Without rows of places a disk of the container's files is as near as it comes."""
    links = explained(sonde, planted(tmp_path, ["disk"], other=two_datas(placed)), "web")["links"]
    (text,) = [link["text"] for link in links if link["what"] == "disk"]
    assert "; fsync of /data/wal took 240 ms each, before 3 ms" + behind in text, text


@pytest.mark.parametrize("share, named", [(3, False), (5, True)])
def test_a_file_that_both_use_has_its_part_of_what_others_moved(share, named, sonde, tmp_path):
    """A quarter of what others moved on that disk is much: of 3 and 10 MiB the 3 are less."""
    def shared(at, on, rows):
        def file(who, file, **more):
            return {"fact": "file_row", "at": at, **{k: who[k] for k in ("pid", "comm", "container")}, "file": file, "disk": "sda", **more}
        yield from rows
        yield {"fact": "sync_row", "at": at, **{k: DB[k] for k in ("pid", "comm", "container")}, "file": "/data/wal", "call": "fdatasync", "calls": 10, "errors": 0,
               "us": 2_400_000 if on else 30_000}
        yield from (file(DB, "/data/wal", write_bytes=1 << 20), file(DB, "/shared", read_bytes=4096))
        yield file({**HOG, "container": ""}, "/shared", write_bytes=(share << 20) if on else 0)
        yield file({**HOG, "pid": 79, "comm": "tar", "container": ""}, "/backup.tar", write_bytes=10 << 20)
    links = explained(sonde, planted(tmp_path, ["disk"], other=shared), "web")["links"]
    (text,) = [link["text"] for link in links if link["what"] == "disk"]
    assert ("behind writeback of /shared, written by ffmpeg of transcode (" in text) == named, text


@pytest.mark.parametrize("before, now, news", [(0, 2, True), (10, 1, False), (10, 2, False), (10, 7, True), (3, 2, True), (50, 5, False), (50, 12, True)])
def test_a_container_that_restarts_is_news_where_it_does_so_more_often_a_second(before, now, news, sonde, tmp_path):
    """Ten minutes before the window, which is one minute."""
    def loops(at, on, rows):
        yield from rows
        if at in (AT - 660, MIDDLE):
            n, span = (now, AT - MIDDLE) if on else (before, MIDDLE - AT + 660)
            for i in range(n):
                when = at + span * i // n + 1
                yield {"fact": "event_row", "at": when, "columns": {"kind": "restarted", "subject": "container", "name": "db", "detail": "", "which": "db", "n": 1,
                                                                    "at_us": when * 1000000}}
    links = explained(sonde, planted(tmp_path, [], other=loops))["links"]
    assert [(link["what"], link["who"]) for link in links] == ([("restarted", "db")] if news else []), links


def test_an_incident_that_is_over_is_not_felt(sonde, tmp_path):
    def over(at, on, rows):
        return slower(rows, "GET /cart", 200) if MIDDLE - 240 <= at < MIDDLE else rows
    assert not explained(sonde, planted(tmp_path, [], other=over), "web")["felt"]


def test_without_requests_it_says_so(sonde, tmp_path):
    store = planted(tmp_path, ["function"], families=("cpu", "offcpu", "host"))
    chain = explained(sonde, store, "web")
    assert not chain["felt"] and not chain["requests_known"]
    text = sonde("explain", "web", *RANGE, store=store, check=True).stdout
    assert "requests were not recorded in at least one of the two windows" in text and "encode" in text, text
