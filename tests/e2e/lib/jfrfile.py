# SPDX-License-Identifier: Apache-2.0
"""A recording of Java's flight recorder, as schema/jfr/jfr.h describes it: types, constants and events that a test names."""
import struct


def varint(n):
    n &= 2**64 - 1
    out = b""
    for _ in range(8):
        if n < 128:
            return out + bytes([n])
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def text(s):
    if s is None:
        return b"\0"
    b = s.encode()
    return b"\3" + varint(len(b)) + b if b else b"\1"


def sized(body):
    """With its own size in front, which counts itself; padded to four bytes, as OpenJDK does."""
    n = len(body) + 4
    return bytes([n & 127 | 128, n >> 7 & 127 | 128, n >> 14 & 127 | 128, n >> 21 & 127]) + body


class Chunk:
    """types: name -> [(field, type, how)]; how: "" a value, "key" a constant, "list" values, or a unit of time."""
    BASE = ("boolean", "byte", "char", "short", "int", "long", "float", "double", "java.lang.String")

    def __init__(self, types, start_ns, first_id=40, ticks_per_s=1_000_000_000):
        self.ids, self.types, self.start_ns, self.hz = {}, types, start_ns, ticks_per_s
        for name in (*self.BASE, *types, "jdk.jfr.Timespan"):
            self.ids[name] = first_id + len(self.ids)
        self.events, self.pools = b"", {}

    def value(self, kind, v):
        if isinstance(v, bytes):  # as it is
            return v
        if kind == "java.lang.String":
            return text(v)
        if kind in ("boolean", "byte"):
            return bytes([int(v)])
        if kind in ("float", "double"):
            return struct.pack(">f" if kind == "float" else ">d", v)
        if kind in self.BASE:
            return varint(v)
        return b"".join(varint(v[f]) if how == "key" else
                        varint(len(v[f])) + b"".join(self.value(t, x) for x in v[f]) if how == "list" else self.value(t, v[f])
                        for f, t, how in self.types[kind])

    def constant(self, kind, key, **fields):
        self.pools.setdefault(kind, []).append((key, fields))

    def event(self, kind, **fields):
        self.events += sized(varint(self.ids[kind]) + self.value(kind, fields))

    def metadata(self):
        strings = []

        def at(s):
            if s not in strings:
                strings.append(s)
            return varint(strings.index(s))

        def element(name, attributes, children=()):
            return (at(name) + varint(len(attributes)) + b"".join(at(k) + at(v) for k, v in attributes.items())
                    + varint(len(children)) + b"".join(children))

        classes = []
        for name, i in self.ids.items():
            fields = []
            for f, t, how in self.types.get(name, ()):
                a = {"name": f, "class": str(self.ids[t]), **({"constantPool": "true"} if how == "key" else {}),
                     **({"dimension": "1"} if how == "list" else {})}
                note = [element("annotation", {"class": str(self.ids["jdk.jfr.Timespan"]), "value": how})] if how.isupper() else []
                fields.append(element("field", a, note))
            classes.append(element("class", {"id": str(i), "name": name}, fields))
        tree = element("root", {}, [element("metadata", {}, classes), element("region", {"locale": "en"})])
        return sized(varint(0) + varint(0) * 3 + varint(len(strings)) + b"".join(map(text, strings)) + tree)

    def bytes(self, duration_ns=2_000_000_000):
        """Each pool is a checkpoint of its own, chained backwards."""
        body, back, at = self.events, 0, 68 + len(self.events)
        for kind, values in self.pools.items():
            pool = varint(self.ids[kind]) + varint(len(values)) + b"".join(varint(k) + self.value(kind, v) for k, v in values)
            checkpoint = sized(varint(1) + varint(0) * 2 + varint(back) + b"\0" + varint(1) + pool)
            last, back, at = at, -len(checkpoint), at + len(checkpoint)
            body += checkpoint
        head = struct.pack(">4sHHQQQQQQQBBH", b"FLR\0", 2, 1, at + len(self.metadata()), last, at, self.start_ns, duration_ns, 0, self.hz, 0, 0, 1)
        return head + body + self.metadata()


TYPES = {
    "jdk.types.Symbol": [("string", "java.lang.String", "")],
    "java.lang.Class": [("name", "jdk.types.Symbol", "key"), ("modifiers", "int", "")],
    "jdk.types.Method": [("type", "java.lang.Class", "key"), ("name", "jdk.types.Symbol", "key"), ("descriptor", "jdk.types.Symbol", "key")],
    "jdk.types.FrameType": [("description", "java.lang.String", "")],
    "jdk.types.StackFrame": [("method", "jdk.types.Method", "key"), ("lineNumber", "int", ""), ("bytecodeIndex", "int", ""),
                             ("type", "jdk.types.FrameType", "key")],
    "jdk.types.StackTrace": [("truncated", "boolean", ""), ("frames", "jdk.types.StackFrame", "list")],
    "java.lang.Thread": [("osName", "java.lang.String", ""), ("osThreadId", "long", ""), ("javaName", "java.lang.String", ""), ("javaThreadId", "long", "")],
    "jdk.types.ThreadState": [("name", "java.lang.String", "")],
    "jdk.ExecutionSample": [("startTime", "long", ""), ("sampledThread", "java.lang.Thread", "key"), ("stackTrace", "jdk.types.StackTrace", "key"),
                            ("state", "jdk.types.ThreadState", "key")],
    "jdk.ObjectAllocationSample": [("startTime", "long", ""), ("eventThread", "java.lang.Thread", "key"), ("stackTrace", "jdk.types.StackTrace", "key"),
                                   ("objectClass", "java.lang.Class", "key"), ("weight", "long", "")],
    "jdk.ThreadPark": [("startTime", "long", ""), ("duration", "long", "TICKS"), ("eventThread", "java.lang.Thread", "key"),
                       ("stackTrace", "jdk.types.StackTrace", "key")],
    "jdk.JavaMonitorEnter": [("startTime", "long", ""), ("duration", "long", "MILLISECONDS"), ("eventThread", "java.lang.Thread", "key"),
                             ("stackTrace", "jdk.types.StackTrace", "key")],
    "jdk.JavaExceptionThrow": [("startTime", "long", ""), ("eventThread", "java.lang.Thread", "key"), ("stackTrace", "jdk.types.StackTrace", "key")],
    "jdk.ActiveSetting": [("startTime", "long", ""), ("id", "long", ""), ("name", "java.lang.String", ""), ("value", "java.lang.String", "")],
    "jdk.JVMInformation": [("startTime", "long", ""), ("javaArguments", "java.lang.String", ""), ("jvmStartTime", "long", ""), ("pid", "long", "")],
}


def chunk(start_ns, first_id=40, period="10 ms"):
    """With two threads, the stacks 1 (W.main > W.hot), 2 (W.main > W.cold) and 3 (main > write in libc.so.6), and a period."""
    c = Chunk(TYPES, start_ns, first_id)
    names = ["com/shop/W", "main", "hot", "cold", "libc.so.6", "write"]
    for i, s in enumerate(names, 1):
        c.constant("jdk.types.Symbol", i, string=s)
    c.constant("java.lang.Class", 1, name=1, modifiers=0)
    c.constant("java.lang.Class", 2, name=5, modifiers=0)
    for i, (owner, name) in enumerate([(1, 2), (1, 3), (1, 4), (2, 6)], 1):
        c.constant("jdk.types.Method", i, type=owner, name=name, descriptor=0)
    for i, s in enumerate(["JIT compiled", "Interpreted", "Native"], 1):
        c.constant("jdk.types.FrameType", i, description=s)

    def frame(method, line, kind):
        return {"method": method, "lineNumber": line, "bytecodeIndex": 0, "type": kind}
    for i, leaf in enumerate([frame(2, 7, 1), frame(3, 9, 1), frame(4, -1, 3)], 1):
        c.constant("jdk.types.StackTrace", i, truncated=False, frames=[leaf, frame(1, 12, 2)])
    for i, s in enumerate(["main", "w\u00e4iter"], 1):
        c.constant("java.lang.Thread", i, osName="os", osThreadId=100 + i, javaName=s, javaThreadId=i)
    for i, s in enumerate(["STATE_RUNNABLE", "STATE_SLEEPING"], 1):
        c.constant("jdk.types.ThreadState", i, name=s)
    c.event("jdk.JVMInformation", startTime=0, javaArguments="shop.jar --password=S3cret", jvmStartTime=start_ns // 10**6 - 5000, pid=4321)
    if period:
        c.event("jdk.ActiveSetting", startTime=0, id=c.ids["jdk.ExecutionSample"], name="period", value=period)
    return c
