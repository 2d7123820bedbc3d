# SPDX-License-Identifier: Apache-2.0
"""What the scripts share: the programs, a store, and how to say what was found."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("B", "build"))
BIN = os.path.join(BUILD, "bin")
SONDE = os.path.join(BIN, "sonde")
sys.path[:0] = [*(os.path.join(ROOT, "tests", "e2e", d) for d in ("", "lib", "lib/servers")), os.path.dirname(os.path.abspath(__file__))]


def holds(said):
    print(said)
    sys.exit(0)


def fails(said):
    print(said)
    sys.exit(1)


def later(said):
    """It waits for something, or cannot be asked here."""
    print(said)
    sys.exit(77)


def check(ok, said):
    if not ok:
        fails(said)


def run(*args, store=None, env=None, cwd=None, timeout=300):
    full = dict(os.environ, TZ="UTC", **(env or {}))
    full.pop("SONDE_STORE", None)
    if store:
        full["SONDE_STORE"] = store
    return subprocess.run([str(a) for a in args], capture_output=True, text=True, errors="replace", cwd=cwd, env=full,
                          timeout=timeout, stdin=subprocess.DEVNULL)


def sonde(*args, **kw):
    return run(SONDE, *args, **kw)


def need_root():
    if os.geteuid() != 0:
        later("needs root")


class Scratch:
    """with Scratch() as folder: an empty folder that any user can reach, gone afterwards."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="sonde-score-")
        os.chmod(self.path, 0o755)
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def lived_in(folder, end=1795144200):
    """A store in which every verb finds something (tests/e2e/lib/livedin.py)."""
    import livedin
    return livedin.make(os.path.join(folder, "store"), end)


def tests(*args, least=1, full=False):
    """What pytest says of these tests: (passed, said). None at all that ran: later()."""
    env = {"SONDE_SOAK": "1"} if full else {}
    done = run("/usr/bin/python3", "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rs", *args, cwd=ROOT, timeout=900,
               env={"PYTHONDONTWRITEBYTECODE": "1", **env})
    last = (done.stdout.strip().splitlines() or ["nothing"])[-1]
    passed, failed, skipped = (int(m[1]) if (m := re.search(rf"(\d+) {what}", last)) else 0
                               for what in ("passed", "(?:failed|error)", "skipped"))
    if skipped and not passed and not failed:
        why = re.search(r"^SKIPPED.*?: (.*)$", done.stdout, re.M)
        later(why[1] if why else last)
    check(done.returncode == 0 and passed >= least and not failed and not skipped, f"{last}\n{done.stdout[-2500:]}")
    return f"{passed} tests of {', '.join(sorted({os.path.basename(a) for a in args if a.startswith('tests/')}))}"


def e2e(name):
    found = glob.glob(f"tests/e2e/*/{name}", root_dir=ROOT)
    return found[0] if found else f"tests/e2e/{name}"
