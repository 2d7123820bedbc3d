# SPDX-License-Identifier: Apache-2.0
"""sonde pstack of Python programs that were started without any option: each Python frame against what the program itself says of
its threads (tests/workloads/pystand.py), of the interpreters that are here."""
import glob
import json
import os
import re
import subprocess

import pytest

from conftest import ROOT, need, need_root

STAND = os.path.join(ROOT, "tests", "workloads", "pystand.py")
PYENV = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python")))


class Standing:
    """pystand.py under one interpreter, until the end of the block."""

    def __init__(self, command, *args, env=None, cwd=None):
        self.child = subprocess.Popen([*command, "-W", "ignore", STAND, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd,
                                      env=dict(os.environ, TMPDIR=str(cwd), PYTHONDONTWRITEBYTECODE="1", **(env or {})))
        line = self.child.stdout.readline()
        assert line, f"{command} did not come to stand"
        self.told = json.loads(line)
        self.pid = self.child.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.stdin.close()
        self.child.wait(20)
        self.child.stdout.close()


def rows(sonde, store, *args):
    return json.loads(sonde("pstack", "--json", *args, store=store, check=True).stdout)["rows"]


def script(row):
    return [[f["function"], f["file"], f["line"]] for f in row["frames"] if f["runtime"] == "python"]


def check_all(sonde, store, command, cwd, env=None):
    """Every frame of every thread, in order. Returns the rows by what they stand in."""
    with Standing(command, env=env, cwd=cwd) as s:
        seen = {str(r["tid"]): r for r in rows(sonde, store, "-p", s.pid)}
    kinds = {}
    for tid, frames in s.told["threads"].items():
        row = seen[tid]
        assert not row["moved"] and not row["end"], row
        assert script(row) == frames, f"{command}: {frames[1]}"
        native = [f for f in row["frames"] if not f["runtime"] and not f["kernel"]]
        assert not [f for f in native if (f["function"] or "").startswith("_PyEval_EvalFrameDefault")], native
        kinds.update({f[0].split(".")[-1]: row for f in frames})
    return kinds


def between(row, inner, outer):
    """The native functions between two Python frames that stand next to one another."""
    names = [(f["runtime"], f["function"]) for f in row["frames"]]
    at = names.index(("python", inner))
    until = names.index(("python", outer), at + 1)
    return [n for _, n in names[at + 1:until]]


def calls_back_by_qsort(row):
    return any(n and "qsort" in n for n in between(row, "stand", "by_native"))


def test_python_frames_are_what_the_program_says_and_at_their_places(sonde, store, scratch):
    """Debian's interpreter: linked statically, stripped."""
    need_root()
    need("/usr/bin/python3", "/usr/bin/python3")
    kinds = check_all(sonde, store, ["/usr/bin/python3"], scratch)
    version = subprocess.run(["/usr/bin/python3", "-c", "import sys; print(sys.version_info >= (3, 11))"], capture_output=True,
                             text=True, check=True).stdout
    assert "PyObject_CallOneArg" in between(kinds["by_sorted"], "stand", "by_sorted")
    if "by_native" in kinds:
        assert calls_back_by_qsort(kinds["by_native"])
    if version.strip() == "True":  # calls from Python to Python have no native frames
        assert between(kinds["deep"], "stand", "deep") == []


@pytest.mark.live
@pytest.mark.parametrize("program", PYENV or [None])
def test_each_version_of_python_is_read_right(sonde, store, scratch, program):
    if not program:
        pytest.skip("missing: interpreters of pyenv")
    need_root()
    kinds = check_all(sonde, store, [program], scratch)
    assert calls_back_by_qsort(kinds["by_native"])


def test_a_process_that_lies_about_its_interpreter_is_not_believed(sonde, store, scratch):
    """A library with the names of an interpreter's, and nothing behind them: the stack is shown as native, and nobody falls."""
    need_root()
    need("gcc")
    source = os.path.join(scratch, "lie.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write("""
#include <unistd.h>
#include <stdint.h>
uint64_t _PyRuntime[512];
const unsigned long Py_Version = 0x030b02f0;
uint64_t PyCode_Type[64] = {1, 1, 1, 1, 184}, PyFrame_Type[64], PyUnicode_Type[64], PyBytes_Type[64];
static uint64_t interp[8], state[64], frame[64], cframe[8];
int _PyEval_EvalFrameDefault(void) {
	char c;
	uint64_t here[8] = {0, (uint64_t)frame};
	__asm__("mov %%fs:0, %0" : "=r"(state[19]));
	_PyRuntime[5] = (uint64_t)interp;   /* the interpreters' list */
	interp[0] = (uint64_t)interp;       /* in a circle */
	interp[2] = (uint64_t)state;
	state[1] = (uint64_t)state;
	state[7] = (uint64_t)here;
	frame[4] = (uint64_t)PyCode_Type;   /* no code object */
	frame[6] = (uint64_t)frame;         /* in a circle */
	write(1, "x", 1);
	return (int)read(0, &c, 1) + (int)here[3];
}
int main(void) { return _PyEval_EvalFrameDefault(); }
""")
    subprocess.run(["gcc", "-O1", "-g", "-rdynamic", "-o", os.path.join(scratch, "lie"), source], check=True, capture_output=True)
    child = subprocess.Popen([os.path.join(scratch, "lie")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        [row] = rows(sonde, store, "-p", child.pid)
    finally:
        child.stdin.close()
        child.wait(20)
    names = [f["function"] for f in row["frames"] if not f["kernel"]]
    assert "main" in names and not script(row)


def test_text_says_which_frames_are_a_script_s(sonde, store, scratch):
    need_root()
    need("/usr/bin/python3", "/usr/bin/python3")
    with Standing(["/usr/bin/python3"], cwd=scratch) as s:
        text = sonde("pstack", "-p", s.pid, store=store, check=True).stdout
    line = next(frames for frames in s.told["threads"].values() if frames[0][0] == "by_sleep")[0][2]
    assert f"      by_sleep  pystand.py:{line}  (python)\n" in text
    assert re.search(r"^      .*länge  世界.py:\d+  \(python\)$", text, re.M)
