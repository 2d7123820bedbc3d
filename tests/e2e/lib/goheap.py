# SPDX-License-Identifier: Apache-2.0
"""The Go program of tests/workloads/goheap, built in every form, and what is read of it from outside."""
import json
import os
import shutil
import subprocess
import sys

from conftest import BIN, BUILD, ROOT

sys.path.insert(0, os.path.join(ROOT, "tests", "unit", "loaders", "index"))

import gomatrix  # noqa: E402

FORMS = {
    "plain": [],
    "w": ["-ldflags=-w"],
    "sw": ["-ldflags=-s -w"],
    "pie": ["-buildmode=pie"],
    "pie-sw": ["-buildmode=pie", "-ldflags=-s -w"],
    "cgo": ["-ldflags=-linkmode=external"],
    "cgo-sw": ["-ldflags=-linkmode=external -s -w"],
    "trimpath": ["-trimpath", "-ldflags=-s -w"],
    "renamed": [],
}


def environment(go, folder, form):
    root = os.path.dirname(os.path.dirname(go))
    env = {"PATH": os.environ["PATH"], "HOME": folder, "GOENV": "off", "GOTOOLCHAIN": "local", "GOPROXY": "off", "GO111MODULE": "on",
           "GOFLAGS": "", "GOROOT": root, "CGO_ENABLED": "1" if form.startswith("cgo") else "0",
           "GOCACHE": os.environ.get("GOCACHE") or cache(go)}
    return env


def cache(go):
    """Each toolchain of the matrix has its own cache; the toolchain of this machine uses its own, which is warm."""
    if go.startswith(gomatrix.CACHE):
        return os.path.join(gomatrix.CACHE, "cache")
    return subprocess.run([go, "env", "GOCACHE"], capture_output=True, text=True, check=True).stdout.strip()


def build(go, folder, form):
    """The program's path. Its sources are copied: cgo adds a file."""
    source = os.path.join(folder, "src")
    out = os.path.join(folder, f"goheap-{form}")
    if not os.path.isdir(source):
        shutil.copytree(os.path.join(ROOT, "tests", "workloads", "goheap"), source)
    cgo = os.path.join(source, "cgo.go")
    if form.startswith("cgo"):
        with open(cgo, "w", encoding="utf-8") as f:
            f.write("package main\n\nimport \"C\"\n")
    elif os.path.exists(cgo):
        os.unlink(cgo)
    subprocess.run([go, "build", *FORMS[form], "-o", out, "."], cwd=source, env=environment(go, folder, form), check=True,
                   timeout=600)
    if form == "renamed":
        rename(out)
    return out


def rename(path):
    """As garble does: no symbol keeps its name, in no table."""
    subprocess.run(["strip", "--strip-all", path], check=True)
    with open(path, "rb") as f:
        data = bytearray(f.read())
    for name in (b"runtime.", b"runtime/pprof.", b"main."):
        at = 0
        while (at := data.find(b"\0" + name, at)) >= 0:
            end = data.find(b"\0", at + 1)
            for i in range(at + 1, min(end, at + 64)):
                if chr(data[i]).isalpha():
                    data[i] = ord("a") + (data[i] * 7 + i) % 26
            at += 1
    with open(path, "wb") as f:
        f.write(data)


class Program:
    """A running one: told() is what it says of itself, read() what is seen from outside."""

    def __init__(self, path, folder, *options):
        self.folder = folder
        self.index = os.path.join(folder, os.path.basename(path) + ".index")
        subprocess.run([os.path.join(BIN, "sonde-index"), path, "-o", self.index], check=True, capture_output=True)
        self.process = subprocess.Popen([path, *options, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        self.reader = self.reading()

    def reading(self, **env):
        return subprocess.Popen([os.path.join(BUILD, "tests", "goheap_read"), str(self.process.pid), self.index],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ, **env))

    def ask(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "ready\n"

    def told(self):
        with open(os.path.join(self.folder, "profile.json"), encoding="utf-8") as f:
            return json.load(f)

    def read(self, reader=None):
        reader = reader or self.reader
        reader.stdin.write("\n")
        reader.stdin.flush()
        text = []
        while True:
            line = reader.stdout.readline()
            assert line, "goheap_read ended"
            text.append(line)
            if '"states"' in line:
                return json.loads("".join(text))

    def end(self):
        for p in (self.reader, self.process):
            p.stdin.close()
            p.wait(timeout=120)
            p.stdout.close()
