# SPDX-License-Identifier: Apache-2.0
"""A queue worker: parses, matches and packs text a fifth of the time."""
import json
import re
import time
import zlib


def parse(n):
    rows = json.loads(json.dumps([{"id": i, "name": "row %d" % i, "tags": ["a", "b"]} for i in range(n)]))
    return [r["name"] for r in rows if re.search(r"7+$", r["name"])]


def pack(names):
    return zlib.compress("\n".join(names * 50).encode())


while True:
    began = time.monotonic()
    pack(parse(3000))
    time.sleep(4 * (time.monotonic() - began))
