# SPDX-License-Identifier: Apache-2.0
"""Conversations in protocols whose messages begin with a length and small numbers, which are those of other protocols as well: each as {name: (port, [(0 or 1: who
speaks, bytes)])}, of some dozens of questions whose numbers count up. And a protocol of nobody's, that looks like several."""
import struct


def at(order, *of):
    return struct.pack(order, *of)


def framed(order, body, more=0):
    return struct.pack(order, len(body) + more) + body


def text(s):
    return at(">h", len(s)) + s


def short(s):
    return bytes([len(s) + 1]) + s


def kafka(version, first=0, client=b"producer-1"):
    """Requests to store, of a version in the form of old or of new ones; and to fetch."""
    for i in range(first, first + 40):
        if i % 10 in (3, 7):
            q = at(">hhi", 1, 12, i) + text(client) + b"\0" + at(">iiiibii", -1, 500, 1, 1 << 20, 0, 0, -1) + b"\2" + short(b"shop") + b"\2" + \
                at(">iiqiqi", 0, 0, i, -1, -1, 1 << 20) + b"\0\0\1\1\0"
            a = at(">i", i) + b"\0" + at(">ihi", 0, 0, 0) + b"\2" + short(b"shop") + b"\2" + at(">ihqqq", 0, 0, i, i, 0) + b"\1" + at(">i", -1) + b"\1" + b"\0\0\0"
        elif version >= 9:
            q = at(">hhi", 0, version, i) + text(client) + b"\0\0" + at(">hi", -1, 30000) + b"\2" + short(b"shop") + b"\2" + at(">i", 0) + short(bytes(range(75))) + b"\0\0\0"
            a = at(">i", i) + b"\0\2" + short(b"shop") + b"\2" + at(">ihqqq", 0, 0, i, -1, 0) + b"\1\0\0\0" + at(">i", 0) + b"\0"
        else:
            q = at(">hhi", 0, version, i) + text(client) + (b"\xff\xff" if version >= 3 else b"") + at(">hii", 1, 1500, 1) + text(b"shop") + at(">iii", 1, 0, 70) + bytes(70)
            a = at(">ii", i, 1) + text(b"shop") + at(">iihq", 1, 0, 0, i) + bytes(8 * ((version >= 2) + (version >= 5)) + 4 * (version >= 1))
        yield from ((0, framed(">i", q)), (1, framed(">i", a)))


def zookeeper(first=1):
    stat = bytes(68)
    for x in range(first, first + 44):
        op = (4, 1, 5, 3, 12, 2, 11, 8, 9, 4, 14)[x % 11]
        path = framed(">i", b"/app/users/%d" % x)
        q = {1: path + framed(">i", b"abc") + at(">ii", 1, 31) + framed(">i", b"world") + framed(">i", b"anyone") + at(">i", 0), 2: path + at(">i", -1),
             5: path + framed(">i", b"y") + at(">i", -1), 9: path, 11: b"",
             14: at(">ibi", 13, 0, -1) + path + at(">iibi", 0, -1, 1, -1)}.get(op, path + b"\0")
        a = {1: path, 2: b"", 4: framed(">i", b"y") + stat, 8: at(">i", 0), 9: path, 11: b"", 12: at(">i", 0) + stat, 14: at(">ibiibi", 13, 0, 0, -1, 1, -1)}.get(op, stat)
        x = -2 if op == 11 else x
        yield from ((0, framed(">i", at(">ii", x, op) + q)), (1, framed(">i", at(">iqi", x, 0x100000000 + x, 0) + a)))


def mongodb():
    for i in range(1, 30):
        find = framed("<i", b"\x02find\0\7\0\0\0orders\0\x02$db\0\5\0\0\0shop\0\0", 4)
        good = framed("<i", b"\x01ok\0" + at("<d", 1) + b"\0", 4)
        for side, head, doc in ((0, (i, 0), find), (1, (1000 + i, i), good)):
            yield side, framed("<i", at("<iiiIB", *head, 2013, 0, 0) + doc, 4)


def postgres():
    def said(kind, body=b""):
        return kind + framed(">i", body, 4)

    for i in range(30):
        if i % 2:
            yield 0, said(b"Q", b"SELECT %d\0" % i)
            yield 1, said(b"T", b"\0\1a\0" + at(">ihihih", 0, 0, 23, 4, -1, 0)) + said(b"D", b"\0\1\0\0\0\1x") + said(b"C", b"SELECT 1\0") + said(b"Z", b"I")
        else:
            yield 0, said(b"P", b"s\0SELECT $1\0\0\0") + said(b"B", b"\0s\0\0\0\0\1\0\0\0\1x\0\0") + said(b"E", bytes(5)) + said(b"S")
            yield 1, said(b"1") + said(b"2") + said(b"D", b"\0\1\0\0\0\1x") + said(b"C", b"SELECT 1\0") + said(b"Z", b"I")


def mysql():
    def said(number, body):
        return at("<I", len(body) | number << 24) + body

    for i in range(40):
        yield 0, said(0, (b"\x0e", b"\x03INSERT INTO t VALUES (%d)" % i, b"\x03SELECT %d" % i, b"\x17\1\0\0\0\0\1\0\0\0")[i % 4])
        yield 1, said(1, b"\1") + said(2, b"\3def\0\0\0\1a\0\x0c\x3f\0\1\0\0\0\x08\x81\0\0\0\0") + said(3, b"\xfe\0\0\2\0") + said(4, b"\1x") + said(5, b"\xfe\0\0\2\0") \
            if i % 4 == 2 else said(1, b"\0\1\0\2\0\0\0" if i % 4 == 1 else b"\0\0\0\2\0\0\0")


def cassandra():
    for i in range(40):
        op, q = (10, at(">h", 4) + b"abcd\0\1\0") if i % 3 == 0 else (7, framed(">i", b"SELECT a FROM t WHERE k = %d" % i) + b"\0\1\0")
        yield 0, at(">BBhBi", 4, 0, i, op, len(q)) + q
        yield 1, at(">BBhBii", 0x84, 0, i, 8, 4, 1)


def amqp():
    def frame(kind, body):
        return at(">BHI", kind, 1, len(body)) + body + b"\xce"

    for i in range(30):
        if i % 3 == 2:
            yield from ((0, frame(1, at(">HHHBcB", 60, 70, 0, 1, b"q", 0))), (1, frame(1, at(">HHB", 60, 72, 0))))
        else:
            yield 0, frame(1, at(">HHHBBcB", 60, 40, 0, 0, 1, b"q", 0)) + frame(2, at(">HHQH", 60, 0, 3, 0)) + frame(3, b"abc")
            yield 1, frame(1, at(">HHQB", 60, 80, i + 1, 0))


def dns():
    for i in range(30):
        name = b"\4host\7example\3com\0" + at(">HH", 1, 1)
        yield 0, framed(">H", at(">HHHHHH", i, 0x100, 1, 0, 0, 0) + name)
        yield 1, framed(">H", at(">HHHHHH", i, 0x8180, 1, 1, 0, 0) + name + b"\xc0\x0c" + at(">HHIH", 1, 1, 60, 4) + b"\1\2\3\4")


def mqtt():
    for i in range(1, 40):
        topic = b"home/%d/temp" % i
        yield 0, b"\x32" + framed("B", text(topic) + at(">H", i) + b"21.5")
        yield 1, b"\x40\2" + at(">H", i)
        if i % 5 == 0:
            yield from ((0, b"\xc0\0"), (1, b"\xd0\0"))


def fastcgi():
    asked = b"\x0e\3REQUEST_METHODGET\x0b\2REQUEST_URI/a"
    for _ in range(20):
        yield 0, b"\1\1\0\1\0\x08\0\0\0\1\1\0\0\0\0\0" + b"\1\4\0\1" + at(">HH", len(asked), 0) + asked + b"\1\4\0\1\0\0\0\0" + b"\1\5\0\1\0\0\0\0"
        yield 1, b"\1\6\0\1\0\x1e\0\0Content-type: text/html\r\n\r\nhi!" + b"\1\3\0\1\0\x08\0\0" + bytes(8)


def dubbo():
    for i in range(20):
        yield 0, b"\xda\xbb\xc6\0" + at(">Q", i) + framed(">I", b'"2.0.2"\n"a.Shop"\n"0.0.0"\n"buy"\n""\n{}\n')
        yield 1, b"\xda\xbb\x06\x14" + at(">Q", i) + framed(">I", b"1\n2\n")


def nobodys(first):
    """A number, a kind, and a text; answered with the number and zeros."""
    for i in range(first, first + 50):
        yield 0, framed(">i", at(">ii", i, (1, 2, 3, 11, 14, 4)[i % 6]) + framed(">i", b"abcd") * (i % 3))
        yield 1, framed(">i", at(">iiii", i, 0, 0, 0) + b"zz" * (i % 4))


ALL = {"kafka": (9092, list(kafka(11))), "kafka old": (9092, list(kafka(3, client=b"c"))), "kafka late": (9092, list(kafka(11, 100000))),
       "kafka nameless": (9092, list(kafka(5, client=b""))), "zookeeper": (2181, list(zookeeper())), "zookeeper late": (2181, list(zookeeper(70000))),
       "mongodb": (27017, list(mongodb())), "postgres": (5432, list(postgres())), "mysql": (3306, list(mysql())), "cassandra": (9042, list(cassandra())),
       "amqp": (5672, list(amqp())), "dns": (53, list(dns())), "mqtt": (1883, list(mqtt())), "fastcgi": (9000, list(fastcgi())), "dubbo": (20880, list(dubbo())),
       "nobodys": (7777, list(nobodys(1))), "nobodys late": (7777, list(nobodys(70000)))}
