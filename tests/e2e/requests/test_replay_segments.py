# SPDX-License-Identifier: Apache-2.0
"""sonde replay: what TCP does to a conversation and does not change it: segments that come again, otherwise cut, too early, or hold nothing new; numbers that wrap; ports that are used again; packets
of which only the first bytes were kept."""
import struct

import pytest
from test_replay_each import EACH, login
from test_replay_made import ACK, FIN, PUSH, RST, SYN, START, Made

SIDES = (0, 1)


def plain(x, who, data):
    x.say(who, data)


def keepalive(x, who, data):
    """A probe: the byte before the next one, with any content, and one without a byte."""
    x.packet(who, ACK, b"\xff", x.next[who] - 1)
    x.packet(who, ACK, b"", x.next[who] - 1)
    x.say(who, data)


def again(x, who, data):
    """Twice, the second time with the byte before it."""
    x.say(who, data)
    x.packet(who, PUSH | ACK, data, x.next[who] - len(data))
    if len(data) > 1:
        x.packet(who, PUSH | ACK, data[1:], x.next[who] - len(data) + 1)


def otherwise_cut(x, who, data):
    """The first half, then all but its first byte, then all."""
    at, half = x.next[who], (len(data) + 1) // 2
    x.packet(who, PUSH | ACK, data[:half], at)
    x.packet(who, PUSH | ACK, data[1:], at + 1)
    x.packet(who, PUSH | ACK, data, at)
    x.next[who] += len(data)


def backwards(x, who, data):
    """Each byte is sent before the one that it follows."""
    at = x.next[who]
    for i in reversed(range(len(data))):
        x.packet(who, PUSH | ACK, data[i:i + 1], at + i)
    x.next[who] += len(data)


def window_probe(x, who, data):
    """The first byte alone, refused and sent three times, then all."""
    at = x.next[who]
    for _ in range(3):
        x.packet(who, ACK, data[:1], at)
    x.packet(who, PUSH | ACK, data, at)
    x.next[who] += len(data)


def other_side_acks(x, who, data):
    for i in range(0, len(data), 7):
        x.packet(who, PUSH | ACK, data[i:i + 7], x.next[who])
        x.next[who] += len(data[i:i + 7])
        x.packet(1 - who, ACK)


HOW = [plain, keepalive, again, otherwise_cut, backwards, window_probe, other_side_acks]


def talk(x, name, say, ends=True):
    _, turns, ask, answer, _ = EACH[name]
    for who, data in [*turns, (0, ask), (1, answer), (0, ask), (1, answer)]:
        x.made.now += 1000
        say(x, who, data)
    if ends:
        x.fin()


def told(made):
    return [(r["operation"], r["result"], r["status"], r["request_bytes"], r["response_bytes"]) for r in made.rows()]


@pytest.fixture
def made(tmp_path):
    return Made(tmp_path / "x.pcap")


@pytest.fixture(params=[n for n in EACH if n != "tls"])
def name(request):
    return request.param


@pytest.fixture
def want(name, tmp_path):
    one = Made(tmp_path / "plain.pcap")
    talk(one.connect(EACH[name][0]), name, plain)
    return told(one)


@pytest.mark.parametrize("say", HOW[1:], ids=lambda h: h.__name__)
def test_it_makes_no_difference(made, name, want, say):
    talk(made.connect(EACH[name][0]), name, say)
    assert told(made) == want


def test_numbers_that_wrap_make_no_difference(made, name, want):
    x = made.connect(EACH[name][0], opened=False)
    x.next = [2**32 - 10, 2**32 - 20]
    x.packet(0, SYN)
    x.next[0] += 1
    x.packet(1, SYN | ACK)
    x.next[1] += 1
    packet = x.packet
    x.packet = lambda side, flags, data=b"", at=None: wrapped(x, packet, side, flags, data, at)
    talk(x, name, otherwise_cut)
    assert told(made) == want


def wrapped(x, packet, side, flags, data, at):
    kept = list(x.next)
    at = kept[side] if at is None else at
    x.next = [n % 2**32 for n in kept]
    packet(side, flags, data, at % 2**32)
    x.next = kept


def test_an_end_that_comes_before_the_last_bytes_does_not_cut_them(made, name, want):
    """The segment with FIN overtakes the last answer."""
    _, turns, ask, answer, _ = EACH[name]
    x = made.connect(EACH[name][0])
    login(x, turns)
    x.ask(ask)
    x.answer(answer)
    x.ask(ask)
    at = x.next[1]
    x.packet(1, FIN | ACK, b"", at + len(answer))
    x.packet(1, PUSH | ACK, answer, at)
    x.next[1] = at + len(answer) + 1
    x.packet(0, FIN | ACK)
    assert told(made) == want


def test_the_last_bytes_may_come_with_the_end(made, name, want):
    _, turns, ask, answer, _ = EACH[name]
    x = made.connect(EACH[name][0])
    login(x, turns)
    x.ask(ask)
    x.answer(answer)
    x.ask(ask)
    x.packet(1, FIN | PUSH | ACK, answer)
    x.next[1] += len(answer) + 1
    x.packet(0, RST | ACK)
    assert told(made) == want


def test_ports_that_are_used_again_are_another_connection(made, name, want):
    port = EACH[name][0]
    for i in range(3):
        x = made.connect(port, opened=False)
        x.next = [1_000_000_000 * (i + 1), 500_000_000 * (i + 1)]
        x.packet(0, SYN)
        x.next[0] += 1
        x.packet(1, SYN | ACK)
        x.next[1] += 1
        talk(x, name, plain, ends=i != 1)  # one is forgotten without an end
    got = told(made)
    assert len(got) == 3 * len(want) and sorted(got) == sorted(3 * want)


def test_of_packets_that_were_cut_nothing_is_told_wrong(tmp_path, name, want):
    """Of each packet 60, 80 or 120 bytes are kept: results are those that were, or it is unknown."""
    whole = {(w[0], w[1], w[2]) for w in want}
    for keep in (60, 80, 120):
        made = Made(tmp_path / f"{keep}.pcap")
        talk(made.connect(EACH[name][0]), name, plain)
        frames, made.frames = made.frames, []
        made.write()
        with open(made.path, "ab") as f:
            for us, frame in frames:
                f.write(struct.pack("<IIII", *divmod(START + us, 1_000_000), min(keep, len(frame)), len(frame)) + frame[:keep])
        made.write = lambda: None
        for row in made.rows():
            assert row["result"] == "blind" or row["result"] in {w[1] for w in whole}, (keep, row)
            assert row["result"] != "error" and len(made.rows()) <= len(want) + 1
