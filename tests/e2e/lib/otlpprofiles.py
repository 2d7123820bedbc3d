# SPDX-License-Identifier: Apache-2.0
"""A receiver of OTLP's profiles (profiles/v1development), read by the wire format alone: who used how much of what, stack by stack."""
import collections

from clickhouse import Receiver
from test_push_otlp import attributes
from wire import fields, packed

PATH = "/v1development/profiles"


class Dictionary:
    def __init__(self, raw):
        f = fields(raw)
        self.texts = [t.decode() for t in f[5]]
        self.mappings, self.locations, self.functions, self.links, self.attributes, self.stacks = ([fields(x) for x in f[i]] for i in (1, 2, 3, 4, 6, 7))
        assert not self.texts[0] and not any(map(any, (self.mappings[:1], self.locations[:1], self.functions[:1], self.links[:1], self.attributes[:1], self.stacks[:1])))
        assert len(set(self.texts)) == len(self.texts)

    def attribute(self, row, field):
        """{key: text}"""
        return {self.texts[self.attributes[i][1][0]]: fields(self.attributes[i][2][0])[1][0].decode() for i in packed(row.get(field, []))}

    def stack(self, index):
        """Names of functions, root first, with file and line."""
        out = []
        for i in packed(self.stacks[index][1]):
            assert i > 0
            for line in map(fields, self.locations[i][3]):
                function = self.functions[line[1][0]]
                out.append((self.texts[function[1][0]], self.texts[function.get(3, [0])[0]], line.get(2, [0])[0]))
        return tuple(reversed(out))

    def places(self):
        """{name of the physical function: (file of its mapping, attributes of that, attributes of the place)}"""
        out = {}
        for where in self.locations[1:]:
            m = self.mappings[where.get(1, [0])[0]]
            name = self.texts[self.functions[fields(where[3][-1])[1][0]][1][0]]
            out[name] = (self.texts[m.get(4, [0])[0]], self.attribute(m, 5), self.attribute(where, 4))
        return out


class Profiles(Receiver):
    """profiles: [(resource, type, unit, profile's id, start, {stack: value})] of what was taken."""

    def __init__(self):
        super().__init__()
        self.profiles, self.bodies, self.places = [], [], {}

    def take(self, path, body):
        if path != PATH:
            return
        self.bodies.append(body)
        request = fields(body)
        d = Dictionary(request[2][0])
        self.places.update(d.places())
        for resource in map(fields, request[1]):
            who = attributes(fields(resource[1][0])[1])
            for scope in map(fields, resource[2]):
                for p in map(fields, scope[2]):
                    kind = fields(p[1][0])
                    values = {}
                    for s in map(fields, p[2]):
                        [value] = packed(s[4])
                        values[d.stack(s[1][0])] = values.get(d.stack(s[1][0]), 0) + value
                    assert len(p[7][0]) == 16
                    self.profiles.append((who, d.texts[kind[1][0]], d.texts[kind[2][0]], p[7][0], p[3][0], values))

    def deduped(self, name, kind, **resource):
        """As receivers keep them: one of each id. The values of all of them, and how many there are."""
        kept = {p[3]: p for p in self.profiles if p[0]["sonde.profile"] == name and p[1] == kind and resource.items() <= {k.replace(".", "_"): v for k, v in p[0].items()}.items()}
        return sorted(kept.values(), key=lambda p: p[4])

    def stacks(self, name, kind, **resource):
        out = collections.Counter()
        for p in self.deduped(name, kind, **resource):
            out.update(p[5])
        return dict(out)


def flame(rows, number):
    """{stack: value} of `sonde flame --json`: own values."""
    paths, out = {0: ()}, {}
    for r in rows:
        if r["id"]:
            paths[r["id"]] = paths[r["parent"]] + ((r["name"], r["file"] or "", r["line"] or 0),)
        if r[number]:
            stack = paths[r["id"]] or (("[no stack]", "", 0),)
            out[stack] = out.get(stack, 0) + r[number]  # functions of one name in several files are several nodes
    return out
