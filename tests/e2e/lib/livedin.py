# SPDX-License-Identifier: Apache-2.0
"""A store in which every verb finds something: a host that has been looked at for a while, with the names that the verbs'
help uses in its examples, a spike, waits, a Go heap that grows, losses, and one process whose names are hostile.

`end` is its last second. The host is looked at for 20 minutes before `end`, and around each of `also` for as long; the
spike is in the last minute before the middle of each of these."""
import json
import os
import subprocess

from conftest import BUILD, need

SPAN = 1200
HOSTILE = "</script><b>\"'\x1b[31mred\n🔥\u202e;rm -rf $(x)\u2066\x9b32m"
# comm, container, pid, samples in 10 s at 99 Hz (a core is 990), stack
BUSY = (
    ("nginx", "web", 812, 300, [["main", "nginx.c", 9], ["ngx_process", "ngx.c", 40], ["deflate", "deflate.c", 212], ["compress_block", "deflate.c", 318]]),
    ("nginx", "web", 812, 120, [["main", "nginx.c", 9], ["ngx_process", "ngx.c", 40], ["handle_read", "ngx.c", 77]]),
    ("postgres", "db", 900, 200, [["main", "postgres.c", 30], ["exec_query", "postgres.c", 1200], ["hash_search", "dynahash.c", 934]]),
    ("cron", "", 70, 20, ["main", ["run_job", "cron.c", 9]]),
    ("</b>\"'\u202e\x9b31m\x1b[", "", 666, 30, ["main", [HOSTILE, "x.c", 1], HOSTILE * 12]),
)
SPIKE = ("restic", "", 3100, 900, ["main", ["backup", "archiver.go", 88], ["zstd_encode", "zstd.go", 512]])
APP = {"pid": 40, "comm": "prometheus", "tid": 40, "thread": "prometheus"}


def cpu(at, who):
    comm, container, pid, n, stack = who
    return {"kind": "cpu", "at": at, "n": n, "pid": pid, "comm": comm, "container": container, "stack": stack}


def run(family, begin, end, recording, period=0):
    return {"run": family, "from": begin, "to": end, "bucket_s": 10, "period_ns": period, "recording": recording}


def looked_at(end, recording):
    begin, middle = end - SPAN, end - SPAN // 2
    yield run("cpu", begin, end, recording, 10101010)
    for at in range(begin, end, 10):
        for i, who in enumerate(BUSY):
            yield cpu(at, (*who[:3], who[3] + (at // 10 * 7 + i * 5) % 13, who[4]))
        if middle - 60 <= at < middle - 10:
            yield cpu(at, SPIKE)
    yield {"loss": "ring", "at": middle, "n": 12}
    yield run("goheap", begin, end, recording)
    for i, at in enumerate(range(begin, end, 60)):
        for stack, label, n in ((["main", ["leak", "app.go", 12]], 64, 1500 + 1200 * i), (["main", ["cache", "app.go", 30]], 512, 90)):
            yield {**APP, "kind": "inuse", "label": label, "at": at, "n": n, "value": label * n, "stack": stack}
            yield {**APP, "kind": "alloc", "label": label, "at": at, "n": 40, "value": label * 40, "stack": stack}
    yield from used(begin, end, recording)
    yield from talked(begin, end, recording)
    yield from asked(begin, end, recording)
    yield run("offcpu", begin, end, recording)
    db = {"pid": 900, "comm": "postgres", "tid": 900, "thread": "postgres"}
    for at in range(begin, end, 10):
        yield {**db, "wait": 2, "at": at, "n": 3, "total_ns": 9000000, "max_ns": 5000000}
        yield {**db, "wait": 17, "at": at, "n": 8, "total_ns": 2000000, "max_ns": 900000}
        yield {**db, "kind": "offcpu", "at": at, "n": 3, "value": 9000000, "stack": ["main", ["exec_query", "postgres.c", 1200], "read"]}
        yield {**db, "wake": 2, "at": at, "n": 3, "total_ns": 9000000, "by": {"pid": 812, "comm": "nginx", "thread": "nginx"}}
        yield {**db, "culprit": 0, "at": at, "n": 8, "total_ns": 2000000, "by": {"pid": 812, "comm": "nginx", "thread": "nginx"}}
    yield from wrote(begin, end, recording)


def wrote(begin, end, recording):
    """nginx writes its log and waits for the disk; it looks for a file that is not there."""
    yield run("disk", begin, end, recording)
    web = {"pid": 812, "comm": "nginx", "container": "web"}
    for at in range(begin, end, 60):
        yield {"fact": "block_row", "at": at, **web, "disk": "sda", "op": "write", "requests": 40, "bytes": 4 << 20, "errors": 0, "queue_us": 900, "device_us": 90000,
               "us_2048": 39, "us_65536": 1}
        yield {"fact": "device_row", "at": at, "disk": "sda", "under": "", "busy_us": 2000000, "in_flight": 0}
        yield {"fact": "slow_row", "at": at, **web, "disk": "sda", "op": "write", "sector": 4096, "at_us": at * 1000000, "thread": "nginx", "bytes": 4096, "queue_us": 100,
               "device_us": 69900, "failed": 0}
        yield {"fact": "slow_stack_row", "at": at, "columns": {"disk": "sda", "sector": 4096, "at_us": at * 1000000, "stack": "folio_wait_bit_common file_write_and_wait_range ext4_sync_file do_fsync"}}
        yield {"fact": "sync_row", "at": at, **web, "file": "/var/log/nginx/access.log", "call": "fsync", "calls": 1, "errors": 0, "us": 71000, "us_65536": 1}
        yield {"fact": "sync_lasting_row", "at": at, **web, "file": "/var/log/nginx/access.log", "call": "fsync", "calls": 1, "us": 1500000}
        yield {"fact": "open_row", "at": at, **web, "path": "/srv/favicon.ico", "error": "ENOENT", "opens": 6}
        yield {"fact": "file_row", "at": at, **web, "file": "/var/log/nginx/access.log", "disk": "sda", "writes": 40, "write_bytes": 4 << 20}
        yield {"fact": "file_row", "at": at, **web, "file": "/var/log/nginx/access.log", "disk": "", "dirty_bytes": 4 << 20, "grown_bytes": 1 << 20}
        yield {"fact": "call_row", "at": at, **web, "file": "/var/log/nginx/access.log", "call": "write", "calls": 40, "errors": 0, "bytes": 4 << 20, "us": 800, "us_16": 40}
        yield {"fact": "lock_row", "at": at, **web, "columns": {"file": "/var/log/nginx/access.log", "lock": "flock", "waits": 1, "errors": 0, "us": 4000, "longest_us": 4000}}
        yield {"fact": "held_row", "at": at, **web, "file": "/var/log/nginx/access.log.1", "ino": 77, "mount": "/var", "bytes": 3 << 20, "holders": 1}


def used(begin, end, recording):
    """What host and containers used, each minute: web takes more memory all the time."""
    yield run("host", begin, end, recording)
    for i, at in enumerate(range(begin, end, 60)):
        yield {"fact": "host_row", "at": at, "mem_total": 8 << 30, "mem_available": 4 << 30, "psi_io_us": 100000}
        yield {"fact": "disk_row", "at": at, "disk": "sda", "busy_us": 2000000, "read_bytes": 1 << 20, "write_bytes": 4 << 20}
        yield {"fact": "fs_row", "at": at, "mount": "/var", "source": "/dev/sda2", "fstype": "ext4", "size": 90 << 30, "free": (40 << 30) - (i << 20), "available": (40 << 30) - (i << 20),
               "inodes": 6000000, "inodes_free": 5000000, "read_only": 0, "hangs": 0}
        for n, (name, mem, limit) in enumerate((("web", 100 + 10 * i, 512), ("db", 700, 1024))):
            yield {"fact": "cgroup_row", "at": at, "cgroup": f"/docker/{name}", "container": name, "working": mem << 20,
                   "mem_limit": limit << 20, "read_bytes": n << 20, "write_bytes": 2 << 20, "rx_bytes": 50000, "tx_bytes": 90000}
        yield {"fact": "process_row", "at": at, "pid": 812, "comm": "nginx", "container": "web", "rss": (90 + 10 * i) << 20,
               "read_bytes": 0, "write_bytes": 2 << 20}
    yield from happened(end)


def happened(end):
    """A restart loop, an out-of-memory kill, a full disk, a limit that was raised."""
    def event(at, kind, subject, name, detail="", which="", **process):
        return {"fact": "event_row", "at": at, **process, "columns": {
            "kind": kind, "subject": subject, "name": name, "detail": detail, "which": which, "n": 1, "at_us": at * 1000000}}
    for at in range(end - 900, end - 700, 50):
        yield event(at, "stopped", "container", "cache", "exit 1", which="cache")
        yield event(at + 1, "restarted", "container", "cache", which="cache")
    yield event(end - 640, "limit changed", "container", "web", "memory 512 MiB, was 256 MiB", which="web")
    yield event(end - 300, "full", "file system", "/srv", which="/dev/sdb1")
    gone = {"pid": 4711, "comm": "tail", "container": "web", "start": end - 600}  # killed at --at 03:10
    yield {**gone, "end": 3, "status": 9, "at": end - 20}
    yield event(end - 20, "oom kill", "container", "web", "met its limit, 512 MiB", which="web", **gone)
    yield {"fact": "oom_row", "at": end - 20, "cgroup": "/docker/web", "victim_cgroup": "/docker/web", "asked_by": "nginx", "mem_limit": 512 << 20,
           "mem": 512 << 20, "anon": 400 << 20, "file": 0, "shmem": 0, "at_us": (end - 20) * 1000000, **gone}
    for pid, comm, mib in ((4711, "tail", 400), (812, "nginx", 100)):
        yield {"fact": "oom_task_row", "at": end - 20, **gone,
               "columns": {"holder": f"{comm} {pid}", "comm": comm, "pid": pid, "rss": mib << 20, "swap": 0}}


def talked(begin, end, recording):
    """nginx asks postgres every minute; one request has no answer."""
    yield run("net", begin, end, recording)
    web, db = {"pid": 812, "comm": "nginx", "container": "web"}, {"pid": 900, "comm": "postgres"}
    for i, at in enumerate(range(begin, end, 60)):
        yield {"fact": "flow_row", "at": at, **web, "side": "client", "protocol": "tcp", "peer": "172.17.0.3", "port": "5432", "owner": "opener",
               "mate": db, "attempts": 9 + (i % 4 == 3), "opened": 9, "timed_out": int(i % 4 == 3), "closed": 9, "tx_bytes": 4000, "rx_bytes": 90000,
               "rtt_sum_us": 900, "rtt_n": 9, "connect_us": 1800}
        yield {"fact": "flow_row", "at": at, **db, "side": "server", "protocol": "tcp", "peer": "172.17.0.2", "port": "5432", "owner": "holder",
               "mate": web, "opened": 9, "closed": 9, "tx_bytes": 90000, "rx_bytes": 4000, "rtt_sum_us": 900, "rtt_n": 9}
        yield {"fact": "listener_row", "at": at, **db, "protocol": "tcp", "address": "0.0.0.0", "port": "5432", "open_to": "network",
               "backlog": 0, "backlog_max": 244, "dropped": 0}


def asked(begin, end, recording):
    """nginx is asked for a page and asks postgres; each fourth minute one statement fails."""
    yield run("l7", begin, end, recording)
    web, db = {"pid": 812, "comm": "nginx", "container": "web"}, {"pid": 900, "comm": "postgres"}
    for i, at in enumerate(range(begin, end, 60)):
        yield {"request": "GET /checkout", "protocol": "http", "service": "172.17.0.2:80", "status": "200", "result": 0, "at": at, **web, "n": 30, "side": 2,
               "total_ns": 600000000, "max_ns": 20000000, "request_bytes": 3000, "response_bytes": 90000}
        for side, who in ((1, web), (2, db)):
            yield {"request": "SELECT cart", "protocol": "postgres", "service": "172.17.0.3:5432", "status": "", "result": 0, "at": at, **who, "n": 30,
                   "side": side, "total_ns": 90000000, "max_ns": 3000000, "request_bytes": 1500, "response_bytes": 6000}
            if i % 4 == 3:
                yield {"request": "SELECT cart", "protocol": "postgres", "service": "172.17.0.3:5432", "status": "57014", "result": 1, "at": at, **who, "n": 1,
                       "side": side, "total_ns": 2000000000, "max_ns": 2000000000, "request_bytes": 50, "response_bytes": 100}
        yield {"fact": "request_log_row", "at": at, **web, "side": "server", "protocol": "http", "service": "172.17.0.2:80", "operation": "GET /checkout",
               "nth": "1", "at_us": at * 1000000 + 5, "status": "200", "result": "ok", "why": "slow", "weight": 1, "tid": 812, "first_us": 19000, "total_us": 20000,
               "request_bytes": 100, "response_bytes": 3000, "trace": "4bf92f3577b34da6a3ce929d0e0e4736"}
        for nth, side, who, took in (("2", "client", web, 9000), ("3", "server", db, 8000)):
            yield {"fact": "request_log_row", "at": at, **who, "side": side, "protocol": "postgres", "service": "172.17.0.3:5432", "operation": "SELECT cart",
                   "nth": nth, "at_us": at * 1000000 + 700 + int(nth), "status": "", "result": "ok", "why": "linked", "weight": 0, "tid": who["pid"],
                   "first_us": took - 100, "total_us": took, "request_bytes": 50, "response_bytes": 200, "trace": ""}
        spans = (("1", "server", web, 16 * i + 1, 0, ""), ("2", "client", web, 16 * i + 2, 16 * i + 1, "thread"), ("3", "server", db, 16 * i + 3, 16 * i + 2, "bytes"))
        for nth, side, who, span, parent, how in spans:
            yield {"fact": "request_span_row", "at": at, **who, "side": side, "span": span, "nth": nth, "how": how, **({"parent": parent} if parent else {})}
        yield {"fact": "request_bytes_row", "at": at, **web, "side": "server", "protocol": "http", "service": "172.17.0.2:80", "seen": 93000, "parsed": 20000,
               "skipped": 73000, "blind": 0, "blind_requests": 0}


def logged(begin, end, recording):
    """web cannot reach db, each minute; in its last five minutes it has another trouble, too. db was rotated too fast to follow, once."""
    yield run("logs", begin, end, recording)
    for at in range(begin, end, 60):
        for source, container, level, lines in (("web", "web", "info", 60), ("web", "web", "error", 1 + (at >= end - 300)), ("db", "db", "warning", 2)):
            yield {"fact": "log_row", "at": at, "container": container, "columns": {"source": source, "level": level, "kind": "docker", "lines": lines, "messages": lines,
                   "bytes": 80 * lines, "cuts": int(source == "db" and at == begin), "burst": 0}}
        for source, level, pattern, n in (("web", "error", "cannot reach db *", 1), ("db", "warning", "slow statement *", 2), ("web", "error", "no space left on device", int(at >= end - 300))):
            if n:
                yield {"fact": "log_pattern_row", "at": at, "container": source, "columns": {"source": source, "level": level, "pattern": pattern, "sample": f"{level.upper()} {pattern.replace('*', '7')}",
                       "messages": n, "first_us": at * 1000000, "last_us": (at + 9) * 1000000}}


def put(store, lines):
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    subprocess.run([program, store], input="\n".join(map(json.dumps, lines)), text=True, check=True)


def make(store, end, also=(), logs=False):
    """The store, written in order of time; each time that was looked at is one recording. `logs`: with what was logged."""
    put(store, (line for i, at in enumerate(sorted([*also, end])) for of in (looked_at, *([lambda end, n: logged(end - SPAN, end, n)] if logs else ())) for line in of(at, i + 1)))
    return store
