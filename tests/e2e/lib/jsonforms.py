# SPDX-License-Identifier: Apache-2.0
"""What each reading verb is asked with --json, in every form that has keys of its own; and where JSON differs from a schema."""
#: verb -> lists of words, beside the range
FORMS = {
    "overview": [[], ["-n", "1"]], "timeline": [[], ["--by", "process"], *(["--of", of] for of in ("mem", "io", "net", "pressure", "disk", "requests", "errors", "latency"))],
    "explain": [[], ["--sql"]], "events": [[], ["--all"]], "oom": [[]], "check": [["--all"], ["--list"], [], ["-n", "2"]],
    "ps": [[], ["--sort", "mem"], ["--with", "ended"]], "top": [[], ["--with", "ended,running"]], "containers": [[], ["--with", "ended"]],
    "stacks": [[], ["--type", "offcpu"], ["--callers", "deflate"], ["--callees", "deflate"], ["--type", "inuse"]], "lines": [["deflate"]],
    "heap": [[], ["--growth"], ["--alloc"]], "diff": [["--baseline", "5m"]],
    "waits": [[], ["--idle"], ["--by", "thread"], ["--by", "container"], ["--neighbours"], ["--wakers"], ["--wakers", "--stacks"]], "neighbours": [[]], "wakers": [[], ["--stacks"]],
    "net": [[], ["--by", "peer"], ["--by", "process"], ["--failed"], ["--listen"]], "map": [[], ["--drawing"]],
    "disk": [[], ["--by", "process"], ["--slow"], ["--fsync"], ["--opens"], ["--files"], ["--calls"], ["--locks"], ["--full"], ["--deleted"]],
    "requests": [[], ["--failed"], ["--slowest"], ["--by", "service"], ["--by", "status"], ["--running"], ["--with", "running,unread_tls"]], "trace": [[], ["-n", "0"]],
    "flame": [[], ["--type", "wall"], ["--nodes", "5"], ["--group", "container"]], "sql": [["@hottest"], ["SELECT 1 AS a, NULL AS b, x'00' AS c, 1.5 AS d"]],
    "status": [[]], "help": [[], ["stacks"]], "version": [[]],
}
#: compared with the time before: a range that has something there
COMPARES = {"explain", "diff"}
NO_RANGE = {"check", "sql", "status", "help", "version"}


def strict(schema):
    """The same schema, but of objects that name their keys no others may be there."""
    if not isinstance(schema, dict):
        return schema
    out = {k: ({n: strict(v) for n, v in value.items()} if k == "properties" else strict(value)) for k, value in schema.items()}
    if out.get("properties"):
        out["additionalProperties"] = False
    return out


def paths(schema, at=""):
    """(path, types) of each value that a schema names."""
    yield at, tuple(schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type", "any")])
    for name, inner in schema.get("properties", {}).items():
        yield from paths(inner, f"{at}.{name}")
    if "items" in schema:
        yield from paths(schema["items"], f"{at}[]")

