# SPDX-License-Identifier: Apache-2.0
"""house: an hour of a home server with sixteen containers as a made store, with incidents at known moments, and the twelve questions of its owner: what is typed
first, where one looks on the page, and what must be in the answer. The store is made by putstore, the same each time; the questions are asked by
tests/e2e/page/test_page_house.py.

    PYTHONPATH=tests/homelab:tests/e2e/lib:tests/e2e python3 tests/homelab/house.py DIR      leaves the store there, ending now
"""
import os
import random
import re
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e", d) for d in ("", "lib", "lib/servers")]
import livedin

HOUR, BUCKET, MS, MIB, GIB = 3600, 10, 1_000_000, 1 << 20, 1 << 30
FAMILIES = ("cpu", "offcpu", "goheap", "host", "net", "l7")
SQL = ("SELECT o.id, o.customer, o.total, i.name, i.price FROM orders o JOIN items i ON i.order_id = o.id LEFT JOIN discounts d ON d.item_id = i.id "
       "WHERE o.customer = ? AND o.created > ? ORDER BY o.created DESC LIMIT ?")

#: name -> (command, pid, cores when nothing happens, MiB that it holds, its hottest stack)
CONTAINERS = {
    "proxy": ("nginx", 101, 0.04, 24, ["main", ["ngx_process", "ngx.c", 40], ["ngx_http_proxy", "proxy.c", 77]]),
    "shop": ("python3", 102, 0.12, 140, ["main", ["handle", "shop.py", 30], ["render_cart", "shop.py", 88]]),
    "db": ("postgres", 103, 0.10, 310, ["main", ["exec_query", "postgres.c", 1200], ["hash_search", "dynahash.c", 934]]),
    "wiki": ("php-fpm", 104, 0.06, 90, ["main", ["parse", "Parser.php", 512], ["preg_replace", "pcre.c", 90]]),
    "wikidb": ("mariadbd", 105, 0.05, 260, ["main", ["dispatch_command", "sql_parse.cc", 1400]]),
    "chat": ("node", 106, 0.05, 110, ["main", ["onMessage", "chat.js", 41]]),
    "search": ("java", 107, 0.08, 520, ["main", ["Search.query", "Search.java", 210]]),
    "mqtt": ("mosquitto", 108, 0.01, 12, ["main", ["loop_handle", "loop.c", 300]]),
    "cache": ("redis-server", 109, 0.03, 64, ["main", ["processCommand", "server.c", 3900]]),
    "backup": ("restic", 110, 0.00, 60, ["main", ["SaveBlob", "archiver.go", 88]]),
    "thumbs": ("convert", 111, 0.02, 80, ["main", ["ResizeImage", "resize.c", 2100]]),
    "crash": ("importer", 112, 0.00, 8, ["main", ["read_config", "importer.c", 22]]),
    "transcode": ("ffmpeg", 113, 0.02, 95, ["main", ["encode_frame", "encoder.c", 120], ["encode_mb", "encoder.c", 318]]),
    "feeds": ("python3", 114, 0.02, 100, ["main", ["fetch_feeds", "feeds.py", 19]]),
    "metrics": ("prometheus", 115, 0.03, 180, ["main", ["scrape", "scrape.go", 60]]),
    "mail": ("master", 116, 0.01, 18, ["main", ["event_loop", "events.c", 900]]),
}
#: what happens, in seconds from the beginning
SPIKE, LOCKS, CONVOY, KILLED, FAILS, REINDEX = (1200, 1290), (1500, 1590), 0.9, 2400, (2700, 2790), (1800, 3600)
LEAK_MIB_PER_MINUTE, BACKUP = 5, (600, 3600)
LAST_LINES = ["importer 2.4 starting", "reading /etc/importer.conf", "importer.conf:14: unknown key 'retries'", "giving up"]


def who(name):
    comm, pid = CONTAINERS[name][:2]
    return {"pid": pid, "comm": comm, "container": name, "container_id": f"{pid:x}".rjust(2, "0") * 32}


def within(t, span):
    return span[0] <= t < span[1]


def cpu(at, t, r):
    for name, (_, _, cores, _, stack) in CONTAINERS.items():
        use = cores * r.uniform(0.8, 1.2)
        if name == "transcode" and within(t, SPIKE):
            use = 1.6
        if name == "search" and within(t, REINDEX):
            yield {"kind": "cpu", "at": at, "n": round(0.3 * 990 * r.uniform(0.9, 1.1)), **who(name), "stack": ["main", ["Index.rebuild", "Index.java", 77]]}
        if round(use * 990):
            yield {"kind": "cpu", "at": at, "n": round(use * 990), **who(name), "stack": stack}


def wait(at, name, label, s, stack, n=40):
    ns = round(s * 1e9)
    yield {**who(name), "tid": who(name)["pid"], "thread": who(name)["comm"], "wait": label, "at": at, "n": n, "total_ns": ns, "max_ns": ns // n + 1}
    yield {"kind": "runqueue" if label >= 16 else "offcpu", "at": at, "n": n, **who(name), "label": label, "value": ns, "stack": stack}


LOCK, DISK, READY = 1, 2, 16


def waits(at, t, r):
    convoy = within(t, LOCKS)
    yield from wait(at, "shop", LOCK, 20 * CONVOY if convoy else 0.02, ["main", ["handle", "shop.py", 30], ["take_cart", "shop.py", 61], "pthread_mutex_lock"])
    yield {**who("shop"), "tid": 102, "thread": "python3", "wake": LOCK, "context": 0, "at": at, "n": 9, "total_ns": round((20 * CONVOY if convoy else 0.02) * 1e9), "by": {**who("shop"), "tid": 2102, "thread": "python3"}}
    for name in ("shop", "db", "wiki", "search"):
        yield from wait(at, name, READY, 1.2 if within(t, SPIKE) else r.uniform(0.02, 0.06), ["main"])
        yield {**who(name), "culprit": 0, "at": at, "n": 9, "total_ns": round((1.0 if within(t, SPIKE) else 0.02) * 1e9), "by": {k: v for k, v in who("transcode").items() if not k.startswith("container")}}
    yield from wait(at, "db", DISK, r.uniform(0.1, 0.3), ["main", ["wal_flush", "xlog.c", 88], "fsync"])
    yield from wait(at, "backup", DISK, r.uniform(3, 5) if within(t, BACKUP) else 0.01, ["main", ["SaveBlob", "archiver.go", 88], "write"])


def asked(at, client, server, service, protocol, operation, ms, n, failed=0, status="200", bad="502"):
    for side, name in ((1, client), (2, server)):
        if not name:
            continue
        base = {"request": operation, "protocol": protocol, "service": service, "at": at, **who(name), "side": side, "request_bytes": 300 * n, "response_bytes": 4000 * n}
        for part, share in ((0.7, 0.8), (0.25, 1.4), (0.05, 3)):
            k = round((n - failed) * part)
            if k:
                yield {**base, "status": status, "result": 0, "n": k, "total_ns": round(k * ms * share * MS), "max_ns": round(ms * share * MS)}
        if failed:
            yield {**base, "status": bad, "result": 1, "n": failed, "total_ns": failed * MS, "max_ns": MS}


def requests(at, t, r):
    convoy, fails = within(t, LOCKS), within(t, FAILS)
    cart = r.uniform(28, 34) + (20 * CONVOY * 1000 / 20 if convoy else 0)
    yield from asked(at, "proxy", "shop", "10.8.0.2:8000", "http", "GET /cart", cart, 20)
    yield from asked(at, None, "proxy", "10.8.0.1:80", "http", "GET /cart", cart + 2, 20)
    yield from asked(at, "shop", "db", "10.8.0.3:5432", "postgres", SQL, r.uniform(17, 21), 20, status="")
    yield from asked(at, "proxy", "wiki", "10.8.0.4:9000", "fastcgi", "GET /wiki/{id}", r.uniform(40, 60), 10, failed=6 if fails else 0)
    yield from asked(at, "wiki", "wikidb", "10.8.0.5:3306", "mysql", "SELECT page_id, page_title FROM page WHERE page_title = ?", r.uniform(3, 5), 30, status="")
    yield from asked(at, "chat", "mqtt", "10.8.0.8:1883", "mqtt", "PUBLISH home/{id}/state", r.uniform(0.4, 0.6), 50, status="")
    yield from asked(at, "shop", "cache", "10.8.0.9:6379", "redis", "GET session:{id}", r.uniform(0.1, 0.3), 60, status="")
    if t % 60 == 0:
        yield from single(at, t, cart)


def single(at, t, cart):
    """One cart with all that was asked for it; during the convoy slow ones."""
    log = {"fact": "request_log_row", "at": at, "status": "200", "result": "ok", "request_bytes": 300, "response_bytes": 4000, "trace": ""}
    spans = [("1", "server", "proxy", "http", "10.8.0.1:80", "GET /cart", 0, cart + 2, 0, ""), ("2", "client", "proxy", "http", "10.8.0.2:8000", "GET /cart", 1, cart + 1, 1, "thread"),
             ("3", "server", "shop", "http", "10.8.0.2:8000", "GET /cart", 1.2, cart, 2, "bytes"), ("4", "client", "shop", "redis", "10.8.0.9:6379", "GET session:{id}", 2, 0.3, 3, "thread"),
             ("5", "server", "cache", "redis", "10.8.0.9:6379", "GET session:{id}", 2.1, 0.1, 4, "bytes"), ("6", "client", "shop", "postgres", "10.8.0.3:5432", SQL, cart - 24, 20, 3, "thread"),
             ("7", "server", "db", "postgres", "10.8.0.3:5432", SQL, cart - 23.8, 19, 6, "bytes")]
    for nth, side, name, protocol, service, operation, begin, took, parent, how in spans:
        base = {**who(name), "side": side}
        yield {**log, **base, "protocol": protocol, "service": service, "operation": operation, "nth": nth, "at_us": at * 1000000 + round(begin * 1000), "why": "slow" if nth == "1" else "linked",
               "weight": int(nth == "1"), "tid": base["pid"], "first_us": round(took * 900), "total_us": round(took * 1000)}
        yield {"fact": "request_span_row", "at": at, **base, "span": 16 * (t // 60) + int(nth), "nth": nth, "how": how, **({"parent": 16 * (t // 60) + parent} if parent else {})}


def held(name, t):
    mib = CONTAINERS[name][3]
    if name == "feeds":
        mib += LEAK_MIB_PER_MINUTE * t / 60
    if name == "thumbs":
        mib += 170 * max(0, t - KILLED + 600) / 600 if t < KILLED else 0
    return round(mib * MIB)


def used(at, t, r):
    busy = within(t, SPIKE)
    yield {"fact": "host_row", "at": at, "cpus": 2, "user_us": round(10e6 * (1.8 if busy else 0.9)), "system_us": 1_000_000, "mem_total": 16 * GIB, "mem_available": round(9 * GIB - held("feeds", t)),
           "load1_m": 2900 if busy else 800, "psi_cpu_us": 3_000_000 if busy else 200_000, "psi_io_us": 600_000}
    written = 10 * 40 * MIB if within(t, BACKUP) else 0
    yield {"fact": "disk_row", "at": at, "disk": "sda", "busy_us": 4_000_000 if written else 200_000, "read_bytes": 10 * MIB, "write_bytes": written + 10 * MIB}
    left = 180 * GIB - max(0, min(t, BACKUP[1]) - BACKUP[0]) * 40 * MIB
    yield {"fact": "fs_row", "at": at, "mount": "/srv", "source": "/dev/sda2", "fstype": "ext4", "size": 900 * GIB, "free": left, "available": left, "inodes": 60_000_000, "inodes_free": 50_000_000, "read_only": 0, "hangs": 0}
    yield {"fact": "fs_row", "at": at, "mount": "/", "source": "/dev/sda1", "fstype": "ext4", "size": 60 * GIB, "free": 31 * GIB, "available": 30 * GIB, "inodes": 4_000_000, "inodes_free": 3_000_000, "read_only": 0, "hangs": 0}
    for name, (_, _, cores, _, _) in CONTAINERS.items():
        cached = round(min(t, 3000) * 2 * MIB) if name == "backup" and within(t, BACKUP) else 20 * MIB
        io = written if name == "backup" else 2 * MIB if name in ("db", "wikidb") else 0
        yield {"fact": "cgroup_row", "at": at, "cgroup": f"/docker/{who(name)['container_id']}", **{k: v for k, v in who(name).items() if k.startswith("container")}, "user_us": round(10e6 * (1.6 if busy and name == "transcode" else cores + 0.3 if name == "search" and within(t, REINDEX) else cores)),
               "system_us": 30_000, "mem": held(name, t) + cached, "working": held(name, t) + cached // 2, "anon": held(name, t), "file": cached, "kernel": 2 * MIB, "swap": 0,
               **({"mem_limit": 256 * MIB} if name == "thumbs" else {"mem_limit": 512 * MIB} if name == "feeds" else {}), "read_bytes": io // 4, "write_bytes": io,
               "rx_bytes": 200_000 if name in ("proxy", "shop", "db", "wiki") else 9_000, "tx_bytes": 400_000 if name in ("proxy", "shop", "db", "wiki") else 9_000}
        yield {"fact": "process_row", "at": at, **who(name), "rss": held(name, t) + 9 * MIB, "swap": 0, "read_bytes": io // 4, "write_bytes": io}


EDGES = (("proxy", "shop", "10.8.0.2", 8000), ("proxy", "wiki", "10.8.0.4", 9000), ("shop", "db", "10.8.0.3", 5432), ("shop", "cache", "10.8.0.9", 6379), ("wiki", "wikidb", "10.8.0.5", 3306),
         ("chat", "mqtt", "10.8.0.8", 1883), ("metrics", "proxy", "10.8.0.1", 80))


def talked(at, t):
    for client, server, peer, port in EDGES:
        fails = within(t, FAILS) and server == "wiki"
        yield {"fact": "flow_row", "at": at, **who(client), "side": "client", "protocol": "tcp", "peer": peer, "port": str(port), "owner": "opener", "mate": who(server),
               "attempts": 30 + 18 * fails, "opened": 30, "refused": 18 * fails, "closed": 30, "segs_out": 900, "segs_in": 900, "tx_bytes": 90_000, "rx_bytes": 900_000, "rtt_sum_us": 6_000, "rtt_n": 30, "connect_us": 6_000}
        yield {"fact": "flow_row", "at": at, **who(server), "side": "server", "protocol": "tcp", "peer": "10.8.0.1", "port": str(port), "owner": "holder", "mate": who(client), "opened": 30, "closed": 30,
               "tx_bytes": 900_000, "rx_bytes": 90_000, "rtt_sum_us": 6_000, "rtt_n": 30}


def event(at, kind, subject, name, detail="", which="", **process):
    return {"fact": "event_row", "at": at, **process, "columns": {"kind": kind, "subject": subject, "name": name, "detail": detail, "which": which, "n": 1, "at_us": at * 1000000}}


def happened(begin):
    """The crash loop with its last lines, the kill for memory, what fills /srv."""
    crash = who("crash")["container_id"]
    for at in range(begin + 300, begin + HOUR - 60, 120):
        yield event(at, "stopped", "container", "crash", "exit 1", crash)
        for nth, line in enumerate(LAST_LINES, 1):
            yield {"fact": "event_log_row", "at": at, "columns": {"which": crash, "at_us": at * 1000000, "nth": nth, "line": line, "cut": 0}}
        yield event(at + 2, "restarted", "container", "crash", "", crash)
    at, gone = begin + KILLED, {**who("thumbs"), "pid": 4711, "start": begin + 100}
    thumbs = gone["container_id"]
    yield {**gone, "end": 3, "status": 9, "at": at}
    yield event(at, "oom kill", "container", "thumbs", "met its limit, 256 MiB", thumbs, **gone)
    yield {"fact": "oom_row", "at": at, "cgroup": f"/docker/{thumbs}", "victim_cgroup": f"/docker/{thumbs}", "asked_by": "convert", "mem_limit": 256 * MIB, "mem": 256 * MIB, "anon": 231 * MIB, "file": 0,
           "shmem": 0, "at_us": at * 1000000, **gone}
    for pid, comm, mib in ((4711, "convert", 231), (111, "convert", 14)):
        yield {"fact": "oom_task_row", "at": at, **gone, "columns": {"holder": f"{comm} {pid}", "comm": comm, "pid": pid, "rss": mib * MIB, "swap": 0}}
    for at in range(begin + 1200, begin + HOUR, 600):
        yield {"fact": "fill_row", "at": at, "columns": {"mount": "/srv", "kind": "folder", "path": "/srv/backup/data", "bytes": (at - begin - 600) * 40 * MIB, "hour": (at - begin - 600) * 40 * MIB,
                                                         "hours": (at - begin - 600) * 40 * MIB, "day": (at - begin - 600) * 40 * MIB, "week": (at - begin - 600) * 40 * MIB}}
    yield event(begin + HOUR - 100, "fills", "file system", "/srv", "folder /srv/backup/data: 100 GiB, written to in the last hour", "/dev/sda2")


def heap(begin):
    for i, at in enumerate(range(begin, begin + HOUR, 60)):
        app = {**who("metrics"), "tid": 115, "thread": "prometheus"}
        for stack, label, n in ((["main", ["append", "head.go", 512]], 4096, 900 + 60 * i), (["main", ["compact", "db.go", 90]], 1024, 3000)):
            yield {**app, "kind": "inuse", "label": label, "at": at, "n": n, "value": label * n, "stack": stack}
            yield {**app, "kind": "alloc", "label": label, "at": at, "n": 40, "value": label * 40, "stack": stack}


def house(end):
    begin, r = end - HOUR, random.Random(47)
    rows = {f: [] for f in FAMILIES}
    for at in range(begin, end, BUCKET):
        t = at - begin
        rows["cpu"] += cpu(at, t, r)
        rows["offcpu"] += waits(at, t, r)
        rows["l7"] += requests(at, t, r)
        rows["host"] += used(at, t, r)
        if t % 30 == 0:
            rows["net"] += talked(at, t)
    rows["host"] += happened(begin)
    rows["goheap"] += heap(begin)
    for family in FAMILIES:
        yield {"run": family, "from": begin, "to": end, "bucket_s": BUCKET, "recording": 1, "period_ns": 10101010 if family == "cpu" else 0}
        yield from rows[family]


def make(store, end):
    livedin.put(store, house(end))
    return store


def stamp(at):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def questions(end):
    """(the question, what is typed first, the address of the page's view, what the answer must have: patterns, each on some line)"""
    begin = end - HOUR
    at = lambda span: stamp(begin + sum(span) / 2)
    part = lambda span: f"in={stamp(begin + span[0])}&until={stamp(begin + span[1])}"
    return [
        ("who used the CPU at that time, in which line", ["stacks", "--at", at(SPIKE), "--lines"], f"?last=2h&{part(SPIKE)}&tab=functions", [r"encode_mb", r"encoder\.c:?.?318|encoder\.c"]),
        ("why was the shop slow", ["explain", "shop", "--at", at(LOCKS)], f"?last=2h&{part(LOCKS)}&container=shop&why=1", [r"(?i)shop answered GET /cart in", r"waited for locks.*"]),
        ("whose memory grows", ["check", "--at", stamp(end)], "?last=2h&tab=memory", [r"memory-leak: feeds, \d+ MiB/h|feeds\s+\d+ MiB\s+\+2\d\d MiB"]),
        ("who was killed for memory, and why", ["oom", "--last", "2h"], "?last=2h&tab=oom", [r"convert \(4711\) was killed", r"limit of 256 MiB", r"231 MiB"]),
        ("what restarts, and why, with its last lines", ["events", "--last", "2h"], "?last=2h&tab=events", [r"crash.*", r"exit 1", r"unknown key 'retries'"]),
        ("who fills the disk", ["sql", "@fills", "--last", "2h"], "?last=2h&tab=disk", [r"/srv/backup/data", r"backup|restic"]),
        ("who talks to whom", ["map", "--last", "2h"], "?last=2h&pic=map", [r"shop", r"wikidb", r"mqtt"]),
        ("what is slow or fails, with its SQL", ["requests", "--last", "2h", "--wide"], "?last=2h&tab=requests", [re.escape(SQL[:60]), r"GET /wiki/\{id\}"]),
        ("what did the slow requests do", ["trace", "--last", "2h", "--wide"], "?last=2h&tab=trace", [r"GET /cart", re.escape(SQL[:60])]),
        ("what changed between two half hours", ["explain", "--from", stamp(begin + 1800), "--to", stamp(end), "--before", "30m"], f"?from={stamp(begin + 1800)}&to={stamp(end)}&tab=changes", [r"search|java", r"Index\.rebuild"]),
        ("is anything wrong", ["check", "--at", stamp(end)], f"?from={stamp(begin)}&to={stamp(end)}&tab=check", [r"oom: thumbs|thumbs.*kill", r"crash", r"/srv|disk"]),
        ("what does sonde cost", ["status"], "?last=2h", [r"OWN CPU|What sonde cost: [0-9.]+ % of one core"]),
    ]


if __name__ == "__main__":
    make(sys.argv[1], int(time.time()) // BUCKET * BUCKET)
