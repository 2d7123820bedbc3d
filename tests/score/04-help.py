# SPDX-License-Identifier: Apache-2.0
"""`sonde` and each `sonde VERB --help`: exit 0, at most 24 lines, two examples"""
import json

from common import check, holds, sonde

bare = sonde()
check(bare.returncode == 0 and len(bare.stdout.splitlines()) <= 24 and bare.stdout.count("sonde ") >= 2, bare.stdout)
verbs = json.loads(sonde("help", "--json").stdout)["rows"]
most = 0
for v in verbs:
    done = sonde(v["verb"], "--help")
    lines = done.stdout.splitlines()
    most = max(most, len(lines))
    check(done.returncode == 0 and len(lines) <= 24, f"{v['verb']}: {len(lines)} lines, exit {done.returncode}")
    check(sum(x.strip() in v["examples"] for x in lines) >= 2, f"{v['verb']}: fewer than two examples")
holds(f"{len(verbs)} verbs, {most} lines at most")
