# SPDX-License-Identifier: Apache-2.0
"""sonde replay: the captures that are kept, as they are and treated badly; files that are none."""
import glob
import json
import os
import random
import sqlite3
import struct
import subprocess

import pytest
from conftest import BIN, ROOT

KEPT = sorted(glob.glob(os.path.join(ROOT, "tests", "e2e", "captures", "*.pcap")))
NAMES = [os.path.basename(p)[:-5] for p in KEPT]
ETHERNET = 1


def run(path, *args):
    return subprocess.run([os.path.join(BIN, "sonde"), "replay", path, *args], capture_output=True, text=True, timeout=60)


def answer(path, *args):
    done = run(path, "--json", *args)
    assert done.returncode in (0, 4), done.stderr
    return json.loads(done.stdout)


def told(path, *args):
    """{operation: (requests, how many are errors, without an answer, or blind)}"""
    return {r["operation"]: [r["count"], r["errors"] + r["no_answer"] + r["blind"]] for r in answer(path, *args)["rows"]}


def most(path):
    """{operation: how many there can be}"""
    return {r["operation"]: r["count"] for r in answer(path)["rows"]}


def says_itself(operation):
    """That something was not seen: a statement's text, a name; a delivery whose question was not."""
    return "?" in operation or "<" in operation or operation.endswith("...") or operation.startswith("MSG _INBOX")


def packets(path):
    with open(path, "rb") as f:
        head = f.read(24)
        assert struct.unpack("<I", head[:4])[0] in (0xa1b2c3d4, 0xa1b23c4d)
        out = []
        while len(one := f.read(16)) == 16:
            s, sub, n, size = struct.unpack("<IIII", one)
            out.append([s, sub, size, f.read(n)])
    return head, out


def write(path, head, out, link=None):
    if link is not None:
        head = head[:20] + struct.pack("<I", link)
    with open(path, "wb") as f:
        f.write(head)
        for s, sub, size, data in out:
            f.write(struct.pack("<IIII", s, sub, len(data), max(size, len(data))) + data)
    return str(path)


def tcp_payload(data):
    """(where the payload begins, its end) of an Ethernet packet of IPv4 and TCP; None."""
    if data[12:14] != b"\x08\x00" or data[23] != 6:
        return None
    ip = 14 + (data[14] & 15) * 4
    return ip + (data[ip + 12] >> 4) * 4, 14 + struct.unpack(">H", data[16:18])[0]


@pytest.fixture(params=KEPT, ids=NAMES)
def kept(request):
    return request.param


def test_what_is_kept_is_told_as_it_was(kept):
    with open(os.path.join(os.path.dirname(kept), "expected.json")) as f:
        expected = json.load(f)
    assert told(kept) == expected[os.path.basename(kept)[:-5]]


def test_twice_and_out_of_order_makes_no_difference(kept, tmp_path):
    head, all_ = packets(kept)
    mixed = []
    for i in range(0, len(all_) - 1, 2):  # neighbours of one direction change places, and every third comes twice
        a, b = all_[i], all_[i + 1]
        same = a[3][26:38] == b[3][26:38] and not (a[3][47] | b[3][47]) & 7
        mixed += [b, a] if same else [a, b]
        mixed += [a] if i % 3 == 0 and not a[3][47] & 7 and a[3][23] == 6 else []
    mixed += all_[len(all_) // 2 * 2:]
    assert told(write(tmp_path / "x.pcap", head, mixed)) == told(kept)


def test_a_greeting_of_tcp_that_comes_again_late_makes_no_difference(kept, tmp_path):
    head, all_ = packets(kept)
    late, greetings = [], [p for p in all_ if p[3][23] == 6 and p[3][47] & 2]
    for i, p in enumerate(all_):
        late.append(p)
        closed = p[3][23] == 6 and p[3][47] & 5
        late += [g for g in greetings if g[3][26:34] == p[3][26:34] and g[3][34:38] == p[3][34:38]] if i % 5 == 4 and not closed else []
    got, plain = answer(write(tmp_path / "x.pcap", head, late)), answer(kept)
    assert got["rows"] == plain["rows"] and got["capture"]["missing_bytes"] == plain["capture"]["missing_bytes"]


def test_segments_of_one_byte_make_no_difference(kept, tmp_path):
    head, all_ = packets(kept)
    out = []
    for s, sub, size, data in all_:
        at = tcp_payload(data)
        if not at or at[1] - at[0] < 2 or len(data) > 1500:
            out.append([s, sub, size, data])
            continue
        ip = 14 + (data[14] & 15) * 4
        seq, = struct.unpack(">I", data[ip + 4:ip + 8])
        for i in range(at[0], at[1]):
            whole = bytearray(data[:at[0]] + data[i:i + 1])
            whole[16:18] = struct.pack(">H", at[0] - 14 + 1)
            whole[ip + 13] &= 0xff if i == at[1] - 1 else 0xfe  # the end is with the last one
            whole[ip + 4:ip + 8] = struct.pack(">I", (seq + i - at[0]) & 0xffffffff)
            out.append([s, sub, len(whole), bytes(whole)])
    assert told(write(tmp_path / "x.pcap", head, out)) == told(kept)


def test_cut_to_128_bytes_a_packet_all_are_counted_or_told_as_blind(kept, tmp_path):
    head, all_ = packets(kept)
    whole, cut = most(kept), answer(write(tmp_path / "x.pcap", head, [[s, sub, size, data[:128 + 66]] for s, sub, size, data in all_]))
    for r in cut["rows"]:
        if r["operation"] in whole:  # a statement's text may be cut: its name is then another
            assert r["count"] <= whole[r["operation"]]
    said = run(str(tmp_path / "x.pcap")).stderr
    assert (f"{cut['capture']['missing_bytes']} bytes are not in the capture" in said) == (cut["capture"]["missing_bytes"] > 0)
    assert (f"{cut['capture']['blind_bytes']} bytes could not be read" in said) == (cut["capture"]["blind_bytes"] > 0)
    missed = sum(n for n, _ in told(kept).values()) - sum(r["count"] for r in cut["rows"])
    assert missed <= 0 or cut["capture"]["missing_bytes"] > 0


@pytest.mark.parametrize("seed", range(3))
def test_lost_packets_give_no_wrong_answer(kept, tmp_path, seed):
    head, all_ = packets(kept)
    chance = random.Random(seed)
    left = [p for p in all_ if chance.random() > 0.1 or p[3][47] & 2]
    whole, errors, got = most(kept), told(kept), answer(write(tmp_path / "x.pcap", head, left))
    for r in got["rows"]:
        if not says_itself(r["operation"]):
            assert r["operation"] in whole and r["count"] <= whole[r["operation"]] and r["errors"] <= errors[r["operation"]][1], r


@pytest.mark.parametrize("form", ["vlan", "raw", "cooked", "ipv6", "loopback"])
def test_links_and_ip_versions_make_no_difference(kept, tmp_path, form):
    head, all_ = packets(kept)
    out, link = [], ETHERNET
    for s, sub, size, data in all_:
        ip = data[14:]
        if form == "vlan":
            data = data[:12] + b"\x81\x00\x00\x07" + data[12:]
        elif form == "raw":
            data, link = ip, 101
        elif form == "cooked":
            data, link = b"\0\0\3\4\0\6" + b"\0" * 8 + b"\x08\x00" + ip, 113
        elif form == "loopback":
            data, link = b"\2\0\0\0" + ip, 0
        else:
            n = (ip[0] & 15) * 4
            length, = struct.unpack(">H", ip[2:4])
            v6 = b"\x60\0\0\0" + struct.pack(">H", (length - n + 8) & 0xffff) + b"\x3c\x40" + b"\0" * 12 + ip[12:16] + b"\0" * 12 + ip[16:20]
            data = data[:12] + b"\x86\xdd" + v6 + bytes([ip[9], 0, 1, 4, 0, 0, 0, 0]) + ip[n:]
        out.append([s, sub, len(data), data])
    assert [sorted(told(write(tmp_path / "x.pcap", head, out, link)).values())] == [sorted(told(kept).values())]


def test_pcapng_makes_no_difference(kept, tmp_path):
    head, all_ = packets(kept)
    block = lambda kind, body: struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))  # noqa: E731
    with open(tmp_path / "x.pcapng", "wb") as f:
        f.write(block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1)) + block(1, struct.pack("<HHI", ETHERNET, 0, 0)))
        for s, sub, size, data in all_:
            at = s * 1000000 + sub
            f.write(block(6, struct.pack("<IIIII", 0, at >> 32, at & 0xffffffff, len(data), size) + data + b"\0" * (-len(data) % 4)))
    assert answer(str(tmp_path / "x.pcapng"))["rows"] == answer(kept)["rows"]


def in_fragments(data, size, ident, v6):
    """The Ethernet packet of IPv4 as fragments of so many bytes (a multiple of 8)."""
    ip = data[14:14 + struct.unpack(">H", data[16:18])[0]]
    head, body = ip[:(ip[0] & 15) * 4], ip[(ip[0] & 15) * 4:]
    out = []
    for at in range(0, len(body), size):
        part, more = body[at:at + size], at + size < len(body)
        if v6:
            out.append(data[:12] + b"\x86\xdd" + b"\x60\0\0\0" + struct.pack(">H", len(part) + 8) + b"\x2c\x40" + b"\0" * 12 + head[12:16] + b"\0" * 12 + head[16:20] +
                       struct.pack(">BBHI", head[9], 0, at | more, ident) + part)
        else:
            out.append(data[:14] + head[:2] + struct.pack(">HHH", len(head) + len(part), ident & 0xffff, at // 8 | more << 13) + head[8:] + part)
    return out


@pytest.mark.parametrize("v6", [False, True], ids=["ipv4", "ipv6"])
def test_fragments_make_no_difference_in_any_order(kept, tmp_path, v6):
    head, all_ = packets(kept)
    chance, out = random.Random(3), []
    for i, (s, sub, _, data) in enumerate(all_):
        parts = in_fragments(data, chance.choice((8, 24, 64)) if len(data) < 500 else 4000, i, v6)
        parts.append(parts[0])
        chance.shuffle(parts)
        out += [[s, sub, len(p), p] for p in parts]
    path = write(tmp_path / "x.pcap", head, out)
    assert sorted(told(path).values()) == sorted(told(kept).values())


def test_fragments_whose_rest_is_missing_give_no_wrong_answer(kept, tmp_path):
    head, all_ = packets(kept)
    whole, out = most(kept), []
    for i, (s, sub, _, data) in enumerate(all_):
        parts = in_fragments(data, 40, i, False)
        out += [[s, sub, len(p), p] for p in (parts[:-1] if i % 3 == 0 and len(parts) > 1 else parts)]
    got = answer(write(tmp_path / "x.pcap", head, out))
    assert got["capture"]["fragments"] > 0
    for r in got["rows"]:
        if not says_itself(r["operation"]):  # of a name that was cut its verb is left
            assert r["count"] <= sum(n for name, n in whole.items() if name == r["operation"] or name.startswith(r["operation"] + " ")), r


def test_begun_in_the_middle_nothing_is_named_falsely(kept, tmp_path):
    head, all_ = packets(kept)
    whole = most(kept)
    for cut in (4, 7, 11, len(all_) // 2):
        for r in answer(write(tmp_path / "x.pcap", head, all_[cut:]))["rows"]:
            if not says_itself(r["operation"]):
                assert r["operation"] in whole and r["count"] <= whole[r["operation"]], r


def test_each_request_is_a_line_with_its_times(kept):
    done = run(kept, "--requests", "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == sum(n for n, _ in told(kept).values())
    for r in rows:
        assert r["begin_ns"] <= r["sent_ns"] and (r["latency_ns"] is None or r["latency_ns"] >= 0)
        assert r["end_ns"] is None or r["first_ns"] is None or r["first_ns"] <= r["end_ns"]
    assert len(run(kept, "--requests").stdout.splitlines()) == len(rows)


def test_random_bytes_and_what_is_encrypted_are_no_requests(tmp_path):
    head, all_ = packets(KEPT[0])
    chance = random.Random(7)
    out = []
    for port in range(2000):
        for i in range(4):
            body = chance.randbytes(chance.choice((1, 20, 200, 1400)))
            ends = struct.pack(">HH", 20000 + port, 7000) if i % 2 == 0 else struct.pack(">HH", 7000, 20000 + port)
            tcp = ends + struct.pack(">II", 1 + 5000 * i, 1) + b"\x50\x18\xff\xff\0\0\0\0" + body
            ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, b"\x0a\0\0\1", b"\x0a\0\0\1")
            out.append([1, i, 0, b"\0" * 12 + b"\x08\0" + ip + tcp])
    done = run(write(tmp_path / "x.pcap", head, out, ETHERNET))
    assert done.returncode == 4 and "holds no request" in done.stderr, done.stdout


def test_masked_by_default(tmp_path):
    path = os.path.join(os.path.dirname(KEPT[0]), "postgres.pcap")
    full, masked, none = (set(told(path, "--payload", how)) for how in ("full", "masked", "none"))
    assert len(full) > len(masked) > len(none) and "BEGIN" in none and "SELECT" in none
    assert not [op for op in masked if any(c.isdigit() for c in op.replace("o.n", ""))]


def stored(store, query):
    done = subprocess.run([os.path.join(BIN, "sonde"), "sql", "--store", store, "--json", query], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["rows"]


def test_a_store_has_the_same_counts_and_latencies_as_the_table(kept, tmp_path):
    store, rows = str(tmp_path / "store"), {(r["service"], r["operation"]): r for r in answer(kept)["rows"]}
    done = run(kept, "-o", store)
    assert done.returncode == 0 and not done.stdout and f"stored {sum(r['count'] for r in rows.values())} requests" in done.stderr, done.stderr
    got = stored(store, "SELECT service, operation, sum(requests) AS n, sum(errors) AS errors, sum(total_ns) AS ns, max(max_ns) AS max, sum(request_bytes) AS out,"
                        " sum(response_bytes) AS back FROM requests GROUP BY 1, 2")
    assert len(got) == len(rows)
    for g in got:
        r = rows[g["service"], g["operation"]]
        assert (g["n"], g["errors"], g["out"], g["back"]) == (r["count"], r["errors"] + r["no_answer"], r["request_bytes"], r["response_bytes"])
        assert g["ns"] == (r["sum_ns"] or 0) and g["max"] == (r["max_ns"] or 0)
    exact = sorted(json.loads(line)["latency_ns"] or 0 for line in run(kept, "--requests", "--json").stdout.splitlines()
                   if json.loads(line)["result"] in ("ok", "error"))
    spread = stored(store, "SELECT low_ns, high_ns, sum(n) AS n FROM request_spread GROUP BY 1 ORDER BY 1")
    assert sum(x["n"] for x in spread) == len(exact)
    for x in spread:  # each is in its step
        assert sum(x["low_ns"] <= ns < x["high_ns"] for ns in exact) == x["n"] and x["high_ns"] - x["low_ns"] <= max(1, x["low_ns"] / 8)


def test_a_capture_of_hours_is_stored_by_second_and_archived(tmp_path):
    store, (head, all_) = str(tmp_path / "store"), packets(KEPT[0])
    out = [[s + 60 * i, sub, size, data] for i in range(200) for s, sub, size, data in all_]
    path = write(tmp_path / "x.pcap", head, out)
    assert run(path, "-o", store).returncode == 0
    with sqlite3.connect(glob.glob(f"{store}/*.db")[0]) as db:  # the next writer begins a segment of its own
        db.execute("UPDATE meta SET value = 'another' WHERE key = 'boot_id'")
    assert run(KEPT[0], "-o", store).returncode == 0
    once = sum(r["count"] for r in answer(KEPT[0])["rows"])
    n = sum(r["count"] for r in answer(path)["rows"])  # what has no answer when the capture ends is told once
    assert 200 * (once - 1) <= n <= 200 * once
    for _ in range(2):
        assert stored(store, "SELECT sum(requests) AS n, count(DISTINCT ts) >= 200 AS seconds FROM requests") == [{"n": n + once, "seconds": 1}]
        assert stored(store, "SELECT options, state FROM runs ORDER BY 1") == [{"options": p, "state": "ended"} for p in sorted((path, KEPT[0]))]
        subprocess.run([os.path.join(BIN, "sonde-seal"), "--store", store, "--quiet"], check=True)
    with sqlite3.connect(sorted(glob.glob(f"{store}/*.db"))[0]) as db:
        assert "request_row" in [name for (name,) in db.execute("SELECT name FROM packed_table")]


def test_what_is_no_store_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    done = run(KEPT[0], "-o", str(tmp_path / "file"))
    assert done.returncode not in (0, 4) and "file" in done.stderr
    assert run(KEPT[0], "-o", str(tmp_path / "s"), "--requests").returncode == 2
    assert not (tmp_path / "s").exists()


def test_bad_files_are_told_with_what_to_do(tmp_path):
    for content, why in ((b"", "truncated"), (b"no capture at all" * 9, "unknown file format")):
        path = tmp_path / "x"
        path.write_bytes(content)
        done = run(str(path))
        assert done.returncode == 2 and why in done.stderr and "fix:" in done.stderr
    done = run(str(tmp_path / "none"))
    assert done.returncode == 2 and "No such file" in done.stderr
    done = run(KEPT[0], "--payload", "some")
    assert done.returncode == 2 and "masked, full or none" in done.stderr
    assert run(KEPT[0], KEPT[0]).returncode == 2
    head, all_ = packets(KEPT[0])
    done = run(write(tmp_path / "y", head, all_, 105))
    assert done.returncode == 2 and "IEEE802_11" in done.stderr


def test_a_file_that_ends_early_tells_what_it_had(tmp_path):
    with open(KEPT[NAMES.index("dns")], "rb") as f:
        data = f.read()
    (tmp_path / "x").write_bytes(data[:-7])
    done = run(str(tmp_path / "x"))
    assert done.returncode == 0 and "this is what came before" in done.stderr and "dns" in done.stdout
