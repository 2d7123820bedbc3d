# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium from Debian, driven by playwright-core (node/browser.js): for the tests of pages. Nothing here asks
the page's script: the tests learn about the canvas from the pointer, the keyboard and screenshots."""
import json
import os
import shutil
import struct
import subprocess
import zlib

import pytest
from conftest import BUILD, ROOT
from sonded import PATIENCE

ROW = 20  # pixels


def node_modules():
    """Where scripts/deps.sh put playwright-core and axe-core; skips with what is missing."""
    for program in ("node", "chromium"):
        if not shutil.which(program):
            pytest.skip(f"missing: {program}")
    for folder in (os.path.join(BUILD, "node", "node_modules"), os.path.join(ROOT, "build", "node", "node_modules")):
        if os.path.exists(os.path.join(folder, "playwright-core", "package.json")):
            return folder
    pytest.skip("missing: playwright-core (scripts/deps.sh page brings it from npm)")


class Page:
    """One browser with one page open."""

    def __init__(self, width=1280, height=900, **more):
        env = {**os.environ, "NODE_PATH": node_modules()}
        self.child = subprocess.Popen(["node", os.path.join(ROOT, "tests", "e2e", "node", "browser.js")], env=env,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.start(width, height, **more)

    def do(self, op, **args):
        self.child.stdin.write(json.dumps({"op": op, **args}) + "\n")
        self.child.stdin.flush()
        answer = json.loads(self.child.stdout.readline())
        assert "error" not in answer, f"{op} {args}: {answer['error']}"
        return answer["ok"]

    def start(self, width=1280, height=900, **more):
        """A new context: nothing is remembered of what was before."""
        self.do("start", executable=shutil.which("chromium"), width=width, height=height, **more)

    def open(self, path, address=""):
        """From disk, until the page says that it is ready."""
        self.do("open", url="about:blank", wait=False)
        state = self.do("open", url="file://" + os.path.abspath(path) + address, wait=True)
        assert state == "ready", self.text("#note")
        return self

    def js(self, script, *args):
        return self.do("js", script=script, args=args)

    def until(self, script, *args, timeout=60):
        self.do("until", script=script, args=args, timeout=timeout * PATIENCE * 1000)

    def keys(self, *keys):
        self.do("keys", keys=keys)

    def press(self, css):
        self.do("press", css=css)

    def text(self, css):
        return self.do("text", css=css)

    def box(self, css):
        return self.do("box", css=css)

    def settle(self):
        """Until nothing glides any more: two frames, and the zoom's 140 ms."""
        self.js("return new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 200))")

    def canvas(self, which="lower"):
        return self.box(f"#{which} canvas")

    def point(self, x, y, click=False, which="lower"):
        """The real pointer to a place on a canvas; what the tip says: (name, whole text), or None."""
        at = self.canvas(which)
        self.do("click" if click else "move", x=at["x"] + x, y=at["y"] + y)
        if click:
            return None
        return self.js("const t = document.getElementById('tip');"
                       "return t.hidden ? null : [t.querySelector('.name').textContent, t.textContent]")

    def shot(self, path, css=None, whole=False):
        clip = self.box(css) if css else None
        self.do("shot", path=str(path), clip=clip, whole=whole)
        return str(path)

    def close(self):
        self.child.stdin.close()
        try:
            self.child.wait(20)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


def png_read(path):
    """(width, height, rows of RGB tuples' bytes) of a PNG as Chromium writes it: 8 bits, RGB or RGBA, not interlaced."""
    data = open(path, "rb").read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", data[at + 8:at + 21])
            assert depth == 8 and colour in (2, 6) and not interlace
        elif kind == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += size + 12
    bpp = 3 if colour == 2 else 4
    raw, stride, rows, last = zlib.decompress(packed), width * bpp, [], bytes(width * bpp)
    for y in range(height):
        kind, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for i in range(stride):
            a = line[i - bpp] if i >= bpp else 0
            b, c = last[i], last[i - bpp] if i >= bpp else 0
            if kind == 1:
                line[i] = line[i] + a & 255
            elif kind == 2:
                line[i] = line[i] + b & 255
            elif kind == 3:
                line[i] = line[i] + (a + b) // 2 & 255
            elif kind == 4:
                p = a + b - c
                d = (abs(p - a), abs(p - b), abs(p - c))
                line[i] = line[i] + (a, b, c)[d.index(min(d))] & 255
        rows.append([tuple(line[x * bpp:x * bpp + 3]) for x in range(width)])
        last = bytes(line)
    return width, height, rows


@pytest.fixture(scope="module")
def page():
    p = Page()
    yield p
    p.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """make(NODES=None) -> a page that tests/unit/tools/makepage wrote, and with NODES also FILE.json with its rows;
    without NODES that of fold_sample.h."""
    program = os.path.join(BUILD, "tests", "makepage")
    if not os.path.exists(program):
        pytest.skip("missing: build/tests/makepage (make unit-tests)")
    folder = tmp_path_factory.mktemp("pages")

    def make(nodes=None):
        path = str(folder / f"{nodes or 'sample'}.html")
        if not os.path.exists(path):
            subprocess.run([program, path, *([str(nodes), path + ".json"] if nodes else [])], check=True)
        return path
    return make
