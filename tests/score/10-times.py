# SPDX-License-Identifier: Apache-2.0
"""Twelve forms of a time mean the same in every place that takes one; the range is echoed"""
import json
import time

from common import Scratch, check, holds, lived_in, sonde

with Scratch() as folder:
    now = int(time.time()) // 60 * 60
    store = lived_in(folder, now)
    at = now - 900
    utc = time.gmtime(at)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", utc)
    day = "today" if utc.tm_yday == time.gmtime().tm_yday else "yesterday"
    forms = [stamp + "Z", time.strftime("%Y-%m-%dT%H:%M:%S+01:00", time.gmtime(at + 3600)), stamp + ".000Z",
             stamp.replace("T", " "), stamp, stamp[:-3], stamp.replace("T", " ")[:-3], stamp[11:], stamp[11:16],
             f"{day} {stamp[11:16]}", str(at), str(at * 1000), f"{at}.0"]
    counted = set()
    for form in forms:
        done = sonde("stacks", "--json", "--from", form, "--to", str(at + 120), store=store)
        check(done.returncode == 0, f"{form}: {done.stderr}")
        told = json.loads(done.stdout)
        check(told["from_ns"] == at * 10**9, f"{form}: {told['from']}")
        check(stamp[11:16] in done.stderr, f"{form}: the range is not echoed: {done.stderr}")
        rows = json.loads(sonde("sql", "@hottest", f"from={form}", f"to={at + 120}", "--json", store=store).stdout)["rows"]
        counted.add(sum(r["samples"] for r in rows))
    check(len(counted) == 1, f"@hottest counts {counted}")
    ago = int(time.time()) - at
    check(abs(json.loads(sonde("stacks", "--json", "--from", f"-{ago}s", "--to", "now", store=store).stdout)["from_ns"] / 1e9 - at) < 3,
          "-Ns is another time")
    holds(f"{len(forms) + 1} forms, in flags and in named queries (there is no web page to ask)")
