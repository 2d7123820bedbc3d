#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""page-shots: screenshots of each view of the served page, of the made home server (tests/homelab/house.py), by the browser of the page's tests.

    scripts/page-shots.py FOLDER          all views, in both themes, at 1280 and 360 pixels, to be looked at
    scripts/page-shots.py --docs          the four of the documents: docs/shots/*.png

Needs a built tree with build/tests/putstore, and `sh scripts/deps.sh page`.
"""
import os
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "tests", d) for d in ("homelab", "e2e", "e2e/lib", "e2e/lib/servers")]
import house  # noqa: E402
from browser import Page  # noqa: E402
from serving import Serve  # noqa: E402

MOST_BYTES = 150_000


def views(end):
    """name -> (address, what is clicked first, where the picture begins)"""
    at = {k: f"in={house.stamp(end - house.HOUR + a)}&until={house.stamp(end - house.HOUR + b)}" for k, (a, b) in {"spike": house.SPIKE, "locks": house.LOCKS, "fails": house.FAILS}.items()}
    last = f"from={house.stamp(end - house.HOUR)}&to={house.stamp(end)}"
    return {
        "first": (f"?{last}", None), "spike": (f"?{last}&{at['spike']}&container=transcode", "#users"), "why": (f"?{last}&{at['locks']}&container=shop&why=1", "#why"),
        "requests": (f"?{last}&tab=requests", "#users"), "operation": (f"?{last}&tab=requests&op=server 10.8.0.3:5432 {house.SQL}", "#view"), "slowest": (f"?{last}&tab=requests&how=slowest", "#users"),
        "trace": (f"?{last}&tab=trace", "#users"), "checks": (f"?{last}&tab=check", "#users"), "restarts": (f"?{last}&tab=events", "#users"), "oom": (f"?{last}&tab=oom", "#users"),
        "memory": (f"?{last}&tab=memory", "#users"), "disk": (f"?{last}&tab=disk", "#users"), "map": (f"?{last}&{at['fails']}&pic=map", "#picture"), "net": (f"?{last}&tab=net", "#users"), "heap": (f"?{last}&tab=heap", "#users"),
        "neighbours": (f"?{last}&tab=neighbours", "#users"), "wakers": (f"?{last}&tab=wakers", "#users"), "waits": (f"?{last}&tab=waits", "#users"), "changes": (f"?{last}&{at['spike']}&tab=changes", "#users"), "sql": ("?page=sql&query=@containers", None),
    }


DOCS = ("first", "why", "operation", "oom")


def shoot(page, url, path, css):
    page.do("open", url="about:blank", wait=False)
    page.do("open", url=url, wait=False)
    page.until("return document.documentElement.dataset.state === 'ready'", timeout=60)
    page.settle()
    if css:
        page.js("document.querySelector(arguments[0]).scrollIntoView({block: 'start'}); scrollBy(0, -8)", css)
        page.settle()
    page.shot(path, whole=css is None and "docs" not in path)


def main():
    docs = sys.argv[1:] == ["--docs"]
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = os.path.join(ROOT, "docs", "shots") if docs else sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    end = int(time.time()) // house.BUCKET * house.BUCKET
    with tempfile.TemporaryDirectory() as scratch:
        s, page = Serve(house.make(os.path.join(scratch, "store"), end)), Page()
        try:
            for width, scheme in ((960, "light"),) if docs else ((1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")):
                page.start(width, 600 if docs else 900, media={"scheme": scheme})
                for name, (query, css) in views(end).items():
                    path = os.path.join(folder, f"{name}.png" if docs else f"{name}-{width}-{scheme}.png")
                    if docs and name not in DOCS:
                        continue
                    shoot(page, s.url + query.replace(" ", "%20"), path, css)
                    if docs and os.path.getsize(path) > MOST_BYTES:
                        sys.exit(f"page-shots: {path} has {os.path.getsize(path)} bytes; at most {MOST_BYTES} go into the repository")
        finally:
            page.close()
            s.close()


if __name__ == "__main__":
    main()
