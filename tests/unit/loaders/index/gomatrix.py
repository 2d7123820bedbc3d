#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gomatrix: the tests of Go's rows, lines and stacks with versions of Go from Debian's suites, at their full length.

    gomatrix.py --results DIR PROGRAM...       the programs are those tests (gotest.h)

SONDE_GO_VERSIONS chooses ("1.15 1.27", or "all"); without it two of them take a turn, by the number of commits. The
version of Debian 12 and the one on the path are tested every day. A toolchain is unpacked under build/go and kept; it
needs nothing of the system. A version that cannot be had is skipped, with the reason.
"""
import argparse
import fcntl
import glob
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))
sys.path.insert(0, os.path.join(ROOT, "tests", "kernels"))

import debian  # noqa: E402

CACHE = os.path.join(ROOT, "build", "go")
SUITES = {"1.15": "bullseye", "1.21": "bookworm-backports", "1.22": "bookworm-backports", "1.23": "bookworm-backports",
          "1.24": "trixie", "1.26": "sid", "1.27": "sid"}
A_TURN = 2


def chosen():
    asked = os.environ.get("SONDE_GO_VERSIONS", "").split()
    names = list(SUITES)
    if asked:
        return names if asked == ["all"] else asked
    count = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    first = int(count.stdout) if count.returncode == 0 else 0
    return [names[(A_TURN * first + i) % len(names)] for i in range(A_TURN)]


def toolchain(version):
    """Path of its go program."""
    suite = SUITES.get(version)
    if not suite:
        raise debian.Gone(f"no suite is known to have Go {version}")
    os.makedirs(CACHE, exist_ok=True)
    root = os.path.join(CACHE, "root")
    go = os.path.join(root, "usr", "lib", f"go-{version}", "bin", "go")
    with open(os.path.join(CACHE, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(go):
            apt = debian.Suite(suite, False, CACHE)
            apt.update()
            for part in ("src", "go"):  # go last: its presence says that all is there
                deb = apt.download(f"golang-{version}-{part}")
                subprocess.run(["dpkg", "-x", deb, root], check=True)
                os.unlink(deb)
    return go


def step(results, name, command, env, limit):
    return subprocess.run([sys.executable, os.path.join(ROOT, "tests", "run.py"), "--results", results, "--timeout", str(limit),
                           "--step", name, "--", *command], env=env, check=False).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", required=True)
    parser.add_argument("programs", nargs="+")
    opts = parser.parse_args()
    bad = 0
    for version in chosen():
        env = dict(os.environ, GOCACHE=os.path.join(CACHE, "cache"))
        try:
            env["SONDE_GO"] = toolchain(version)
        except (debian.Gone, subprocess.SubprocessError) as e:
            step(opts.results, f"go-{version}", ["sh", "-c", 'echo "$0"; exit 77', f"Go {version}: {e}"], env, 5)
            continue
        for program in opts.programs:
            name = os.path.basename(program).removeprefix("index_").removesuffix("_test")
            bad |= step(opts.results, f"go-{version}-{name}", [program], env, 300)
    for old in glob.glob(os.path.join(CACHE, "apt", "*", "*.deb")):
        os.unlink(old)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
