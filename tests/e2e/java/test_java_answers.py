# SPDX-License-Identifier: Apache-2.0
"""What family java recorded, as heap, waits and explain say it: the store has what the test put there."""
import json
import os
import subprocess

import pytest

from conftest import BUILD, need
from test_traces import AT, request, store_of

FROM, TO, HOT = 1800000000, 1800001200, 1800000900


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """From HOT on the monitor is waited for four times as long, and forty times as much is allocated."""
    tool, folder = os.path.join(BUILD, "tests", "putstore"), str(tmp_path_factory.mktemp("shop") / "store")
    need("putstore (make workloads)", tool)
    lines = [{"run": "java", "from": FROM, "to": TO, "bucket_s": 10}]
    for at in range(FROM, TO, 10):
        wait, bytes_ = (400_000_000, 4_000_000_000) if at >= HOT else (100_000_000, 100_000_000)
        common = {"at": at, "pid": 7, "comm": "shop"}
        lines += [{**common, "kind": "java-lock", "n": 3, "value": wait + (at - FROM) * 1000, "max": 10**7, "stack": ["run", ["Shop.pay", "", 42], "monitor Till"]},
                  {**common, "fact": "java_wait_row", "columns": {"kind": "monitor", "class": "Till", "owner": "holds", "place": "Shop.pay:42", "n": 3, "ns": wait}},
                  {**common, "fact": "java_wait_row", "columns": {"kind": "park", "class": "java.util.concurrent.SynchronousQueue$TransferStack", "owner": "",
                                                                  "place": "Shop.work:7", "n": 1, "ns": 9 * 10**9}},
                  {**common, "kind": "java-alloc", "n": 3, "value": bytes_, "stack": ["run", ["Shop.crate", "", 12], "new byte[]"]}]
    subprocess.run([tool, folder], input="\n".join(map(json.dumps, lines)), text=True, check=True)
    return folder


def ask(sonde, store, *words):
    return json.loads(sonde(*words, "--from", str(FROM), "--to", str(TO), "--json", store=store, check=True).stdout)


def test_waits_name_the_monitor_and_who_had_it(shop, sonde):
    waits = ask(sonde, shop, "waits")
    assert waits["rows"] == [] and waits["java_total"] == 1
    assert waits["java"] == [{"pid": 7, "comm": "shop", "container": None, "kind": "monitor", "class": "Till", "owner": "holds", "waits": 360, "total_ns": 21_000_000_000,
                              "place": "Shop.pay:42", "idle": False}]
    assert ask(sonde, shop, "waits", "--idle")["java_total"] == 2
    text = sonde("waits", "--from", str(FROM), "--to", str(TO), store=shop, check=True).stdout
    assert "threads of shop waited 21 s for monitor Till, which thread holds had, in Shop.pay:42" in text and "TransferStack" not in text


def test_heap_ranks_the_lines_that_allocate(shop, sonde):
    rows = ask(sonde, shop, "heap")["rows"]
    assert [(r["function"], r["line"], r["alloc_bytes"], r["inuse_bytes"]) for r in rows] == [("Shop.crate", 12, 129_000_000_000, 0)]


def wait(nth, pid, tid, start_us, took_us, **more):
    return {"fact": "java_wait_log_row", "at": AT, "pid": pid, "comm": "shop", "columns": {"id": nth, "tid": tid, "at_us": AT * 1000000 + start_us, "ns": took_us * 1000,
            "kind": "monitor", "class": "Till", "owner": "holds", "place": "Shop.pay:42", **more}}


def test_a_request_s_waits_for_a_monitor_are_those_of_its_thread_and_its_time(tmp_path, sonde):
    """Not those of another thread, before it, of a thread with two requests open, or of a connection that has several."""
    mine, other = request(1, 7, "shop", "server", 70, took_us=9000), request(2, 7, "shop", "server", 71, start_us=20_000, took_us=5000)
    both = request(3, 8, "twice", "server", 72, took_us=9000) + request(4, 8, "twice", "server", 73, start_us=1000, took_us=9000)
    many = [{**r, **({"protocol": "http2"} if "protocol" in r else {})} for r in request(5, 9, "many", "server", 74, took_us=9000)]
    store = store_of(tmp_path, mine, other, both, many,
                     [wait(1, 7, 7, 1000, 3000), wait(2, 7, 7, 5000, 3000), wait(3, 7, 70, 1000, 3000), wait(4, 7, 7, 21_000, 3000, owner="late"), wait(5, 7, 7, 12_000, 3000),
                      wait(6, 8, 8, 2000, 3000), wait(7, 9, 9, 2000, 3000)])

    def told(n):
        rows = json.loads(sonde("explain", "--json", "--request", f"GET /{n}", store=store, check=True).stdout)["rows"]
        return [(r["total_ns"], r["n"], r["reason"], r["object"], r["by"], r["function"]) for r in rows if r["what"] == "java"]
    assert told(1) == [(6_000_000, 2, "monitor", "Till", "holds", "Shop.pay:42")]
    assert told(2) == [(3_000_000, 1, "monitor", "Till", "late", "Shop.pay:42")]
    assert told(3) == told(5) == []
    text = " ".join(sonde("explain", "--request", "GET /1", store=store, check=True).stdout.split())
    assert "of these waits, as Java recorded them:" in text and "6 ms: shop waited 2 times for monitor Till, which thread holds had, in Shop.pay:42" in text


def test_explain_names_the_monitor_and_its_holder(shop, sonde):
    told = sonde("explain", "--from", str(HOT), "--to", str(TO), "--json", store=shop, check=True).stdout
    rows = {r["type"]: r for r in json.loads(told)["rows"]}
    assert rows["java-alloc"]["mostly"]["function"] == "new byte[]" and rows["java-lock"]["mostly"]["function"] == "monitor Till"
    cause = rows["java-lock"]["causes"][0]
    assert (cause["what"], cause["name"]) == ("holder", "holds") and cause["amount_after"] == 12_000_000_000
    answer = sonde("sql", "--csv", cause["query_after"], store=shop, check=True).stdout
    assert answer.split()[-1] == "12000000000"
