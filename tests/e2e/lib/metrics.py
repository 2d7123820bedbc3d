# SPDX-License-Identifier: Apache-2.0
"""Prometheus' text format and OpenMetrics, read strictly: what breaks a rule of the format fails the test."""
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
UNESCAPED = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}


def labels_of(text):
    at, out = 0, {}
    while text and at < len(text):
        found = LABEL.match(text, at)
        assert found, text
        assert found[1] not in out and found[2] != "", text
        out[found[1]] = re.sub(r'\\["\\n]', lambda m: UNESCAPED[m[0]], found[2])
        at = found.end()
    return out


def family_of(name, types):
    """The metric that a sample belongs to."""
    for end in ("", "_total", "_bucket", "_sum", "_count"):
        if name.endswith(end) and name[:len(name) - len(end)] in types:
            return name[:len(name) - len(end)]
    raise AssertionError(f"{name} has no TYPE before it")


def read(text, openmetrics=False):
    """{name: {(label, value)...: number}}, of text that keeps the rules."""
    types, out, current, ended = {}, {}, None, []
    lines = text.split("\n")
    assert lines.pop() == ""
    if openmetrics:
        assert lines.pop() == "# EOF"
    for line in lines:
        if line.startswith("# "):
            kind, name, rest = re.match(rf"# (HELP|TYPE|UNIT) ({NAME}) (.+)", line).groups()
            if kind == "HELP":
                assert name not in types and name not in ended, name
                current = name
            assert name == current, line
            if kind == "TYPE":
                types[name] = rest
            if kind == "UNIT":
                assert name.endswith("_" + rest), line
            continue
        name, labels, value = SAMPLE.fullmatch(line).groups()
        family = family_of(name, types)
        assert family == current, f"{name} does not stand with its metric"
        counter = name.endswith("_total")
        assert (types[family] == "counter") == counter, f"{name} is a {types[family]}"
        key = frozenset(labels_of(labels).items())
        assert key not in out.setdefault(name, {}), line
        out[name][key] = float(value)
        assert out[name][key] >= 0
    check_histograms(types, out)
    return out


def check_histograms(types, out):
    for family in [f for f, t in types.items() if t == "histogram"]:
        spread = {}
        for key, n in out[family + "_bucket"].items():
            labels = dict(key)
            spread.setdefault(frozenset((k, v) for k, v in key if k != "le"), []).append((float(labels["le"]), n))
        assert set(spread) == set(out[family + "_count"]) == set(out[family + "_sum"])
        for key, bounds in spread.items():
            assert bounds == sorted(bounds) and [n for _, n in bounds] == sorted(n for _, n in bounds), (family, bounds)
            assert bounds[-1] == (float("inf"), out[family + "_count"][key])


def total(metrics, name, **labels):
    """The sum of the series that have these labels."""
    return sum(n for key, n in metrics.get(name, {}).items() if labels.items() <= dict(key).items())
