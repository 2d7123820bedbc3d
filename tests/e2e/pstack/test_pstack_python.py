# SPDX-License-Identifier: Apache-2.0
"""sonde pstack of Python programs that were started without any option: each Python frame against what the program itself says of
its threads (tests/workloads/scripts/pystand.py), of Debian's interpreter every day, of all that can be had among the live tests."""
import fcntl
import glob
import json
import os
import re
import subprocess
import sys

import pytest

import scripting
from conftest import BUILD, ROOT, need, need_root
from scripting import rows


STAND = os.path.join(ROOT, "tests", "workloads", "scripts", "pystand.py")
CACHE = os.path.join(BUILD, "pythons")
PYENV = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python")))
# suite -> the versions it has, and what they need beside themselves; those of newer suites run with a C library of their own
SUITES = {"bullseye": (["3.9"], []),
          "trixie": (["3.13"], "libc6 libexpat1 zlib1g libffi8".split()),
          "sid": (["3.14", "3.15"], "libc6 libexpat1 zlib1g libffi8".split())}


class Standing(scripting.Standing):
    """pystand.py under one interpreter, until the end of the block."""

    def __init__(self, command, *args, env=None, cwd=None):
        super().__init__([*command, "-W", "ignore", STAND, *args], cwd, {"TMPDIR": str(cwd), "PYTHONDONTWRITEBYTECODE": "1", **(env or {})})


def script(row):
    return scripting.script(row, "python")


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


def calls_back_by_qsort(row):
    return any(n and "qsort" in n for n in scripting.between(row, "python", "stand", "by_native"))


def test_python_frames_are_what_the_program_says_and_at_their_places(sonde, store, scratch):
    """Debian's interpreter: linked statically, stripped."""
    need_root()
    need("/usr/bin/python3", "/usr/bin/python3")
    kinds = check_all(sonde, store, ["/usr/bin/python3"], scratch)
    version = subprocess.run(["/usr/bin/python3", "-c", "import sys; print(sys.version_info >= (3, 11))"], capture_output=True,
                             text=True, check=True).stdout
    assert "PyObject_CallOneArg" in scripting.between(kinds["by_sorted"], "python", "stand", "by_sorted")
    if "by_native" in kinds:
        assert calls_back_by_qsort(kinds["by_native"])
    if version.strip() == "True":  # calls from Python to Python have no native frames
        assert scripting.between(kinds["deep"], "python", "stand", "deep") == []


def unpacked(suite):
    """usr/ of a suite's interpreters, their libraries and headers."""
    versions, libraries = SUITES[suite]
    return scripting.unpacked(suite, [f"{part}python{v}-{kind}" for v in versions for part, kind in
                                      (("", "minimal"), ("lib", "minimal"), ("lib", "stdlib"), ("lib", "dev"))] + libraries)


@pytest.mark.live
@pytest.mark.parametrize("suite,version", [(s, v) for s in SUITES for v in SUITES[s][0]])
def test_interpreters_of_debian_s_other_suites_are_read_right(sonde, store, scratch, suite, version):
    """Static and stripped; those of sid are built of tail calls. Their headers say the same as the layouts."""
    need_root()
    usr = unpacked(suite)
    command = [f"{usr}/bin/python{version}"]
    if SUITES[suite][1]:
        command = [f"{usr}/lib64/ld-linux-x86-64.so.2", "--library-path", f"{usr}/lib/x86_64-linux-gnu", *command]
    kinds = check_all(sonde, store, command, scratch, env={"PYTHONHOME": usr})
    if "by_native" in kinds:
        assert scripting.between(kinds["by_native"], "python", "stand", "by_native")
    done = subprocess.run([os.path.join(BUILD, "tests", "unit", "index_pylayout_test")], env=dict(os.environ, SONDE_PYTHONS=usr),
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.live
def test_layouts_and_line_tables_are_those_of_every_python_here():
    for name in ("index_pylayout_test", "index_pypart_test", "pylines_test"):
        done = subprocess.run([os.path.join(BUILD, "tests", "unit", name)], env=dict(os.environ, SONDE_PYTHONS="all"), capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def installed(package):
    """A package of PyPI under build/; its folder."""
    folder = os.path.join(CACHE, package)
    os.makedirs(CACHE, exist_ok=True)
    with open(os.path.join(CACHE, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", folder, package],
                              capture_output=True, text=True) if not os.path.isdir(folder) else None
    if done and done.returncode:
        pytest.skip(f"missing: {package} of PyPI")
    return folder


@pytest.mark.live
@pytest.mark.parametrize("program", ["/usr/bin/python3", *PYENV])
def test_frames_are_those_that_py_spy_sees(sonde, store, scratch, program):
    need_root()
    need(program, program)
    spy = os.path.join(installed("py-spy==0.4.2"), "bin", "py-spy")
    with Standing([program], cwd=scratch) as s:
        seen = {r["tid"]: script(r) for r in rows(sonde, store, "-p", s.pid)}
        told = json.loads(subprocess.run([spy, "dump", "--json", "--pid", str(s.pid)], capture_output=True, text=True, check=True).stdout)
        if not all(t["os_thread_id"] for t in told):
            pytest.skip("missing: py-spy does not know this version's thread ids")
        for t in told:
            theirs = [[f["name"].rsplit(".", 1)[-1], f["filename"], f["line"]] for f in t["frames"]]
            ours = [[name.rsplit(".", 1)[-1], file, line] for name, file, line in seen[t["os_thread_id"]]]
            if s.told["version"] == "3.13":  # of a call over several lines it says another one than Python itself
                theirs, ours = [f[:2] for f in theirs], [f[:2] for f in ours]
            # it shows a thread's outermost function at some times and hides it at others
            assert theirs in (ours, ours[:-1] if ours[-1][0].endswith("_bootstrap") else ours)


GREENLETS = """
import json, os, sys, threading
import greenlet
def frames(f):
    told = []
    while f:
        told.append([getattr(f.f_code, "co_qualname", f.f_code.co_name), f.f_code.co_filename, f.f_lineno])
        f = f.f_back
    return told
def inner():
    told = frames(sys._getframe())
    told[0][2] = sys._getframe().f_lineno + 3
    print(json.dumps(told))
    sys.stdout.flush()
    os.read(0, 1)
def worker():
    sorted([1], key=lambda x: inner())
def other():
    hub.switch()
def main():
    global hub
    hub = greenlet.getcurrent()
    greenlet.greenlet(other).switch()
    greenlet.greenlet(worker).switch()
main()
"""


@pytest.mark.live
def test_a_greenlet_s_frames_are_its_own(sonde, store, scratch):
    """Its Python frames end where its function began; the native stack goes on with who started it."""
    need_root()
    folder = installed("greenlet==3.0.3")
    child = subprocess.Popen(["/usr/bin/python3", "-c", GREENLETS], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env=dict(os.environ, PYTHONPATH=folder))
    try:
        told = json.loads(child.stdout.readline())
        [row] = rows(sonde, store, "-p", child.pid)
    finally:
        child.stdin.close()
        child.wait(20)
    assert [f[0] for f in told] == ["inner", "worker.<locals>.<lambda>", "worker"]
    assert script(row) == told


SUBINTERPRETER = """
import _xxsubinterpreters as subs
def main():
    subs.run_string(subs.create(), "import os\\ndef sub():\\n    os.write(1, b'x')\\n    os.read(0, 1)\\nsub()\\n")
main()
"""


@pytest.mark.live
def test_frames_of_a_subinterpreter_stand_before_those_of_its_caller(sonde, store, scratch):
    need_root()
    if subprocess.run(["/usr/bin/python3", "-c", "import sys, _xxsubinterpreters; assert sys.version_info >= (3, 11)"],
                      capture_output=True).returncode:
        pytest.skip("missing: a python3 of 3.11 or 3.12")
    child = subprocess.Popen(["/usr/bin/python3", "-c", SUBINTERPRETER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        [row] = rows(sonde, store, "-p", child.pid)
    finally:
        child.stdin.close()
        child.wait(20)
    found = script(row)
    assert [f[0] for f in found] == ["sub", "<module>", "main", "<module>"], found
    assert [f[2] for f in found] == [4, 5, 4, 5]


EMBEDDED = """
#include <Python.h>
static PyObject *from_python(PyObject *self, PyObject *f) { return PyObject_CallNoArgs(f); }
static PyMethodDef method = {"from_python", from_python, METH_O, 0};
int my_server(void) {
	PyObject *main = PyImport_AddModule("__main__");
	PyObject_SetAttrString(main, "from_python", PyCFunction_New(&method, 0));
	return PyRun_SimpleString("import os\\ndef waits():\\n os.write(1, b'x')\\n os.read(0, 1)\\ndef handler():\\n from_python(waits)\\nhandler()\\n");
}
int main(void) { Py_Initialize(); return my_server(); }
"""


@pytest.mark.live
def test_python_in_a_c_program_stands_between_its_functions(sonde, store, scratch):
    need_root()
    with open(os.path.join(scratch, "embedded.c"), "w", encoding="utf-8") as f:
        f.write(EMBEDDED)
    if subprocess.run("gcc -O1 -g -fno-optimize-sibling-calls -o embedded embedded.c $(/usr/bin/python3-config --embed --cflags --ldflags)", shell=True, cwd=scratch,
                      capture_output=True).returncode:
        pytest.skip("missing: libpython3-dev")
    child = subprocess.Popen([os.path.join(scratch, "embedded")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        [row] = rows(sonde, store, "-p", child.pid)
    finally:
        child.stdin.close()
        child.wait(20)
    names = [f["function"] for f in row["frames"]]
    order = [names.index(n) for n in ("waits", "from_python", "handler", "<module>", "my_server", "main")]
    assert order == sorted(order), names
    assert script(row) == [["waits", "<string>", 4], ["handler", "<string>", 6], ["<module>", "<string>", 7]]


@pytest.mark.live
@pytest.mark.parametrize("program", PYENV or [None])
def test_each_version_of_python_is_read_right(sonde, store, scratch, program):
    if not program:
        pytest.skip("missing: interpreters of pyenv")
    need_root()
    kinds = check_all(sonde, store, [program], scratch)
    assert calls_back_by_qsort(kinds["by_native"])


HOLDER = """
import ctypes, os, threading
free, holding = ctypes.CDLL(None), ctypes.PyDLL(None)  # PyDLL keeps the lock while it calls
def holds():
    os.write(1, b"x")
    holding.pause()
def waits():
    free.usleep(1000)
    waits()
threads = [threading.Thread(target=f, daemon=True) for f in (waits, waits, holds)]
for t in threads:
    t.start()
os.read(0, 1)
"""


def check_gil(sonde, store, command):
    """A thread that stands with the lock, and those that it keeps from going on."""
    child = subprocess.Popen([*command, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        for _ in range(40):  # who waits for the lock looks up every 5 ms, and may be met on its way
            seen = {tuple(f[0] for f in script(r))[:1]: r for r in rows(sonde, store, "-p", child.pid)}
            if {("holds",), ("waits",)} <= set(seen):
                break
        assert (seen[("holds",)]["gil"], seen[("waits",)]["gil"]) == ("holds", "waits")
        assert [r["gil"] for r in seen.values()].count("holds") == 1
        text = sonde("pstack", "-p", child.pid, store=store, check=True).stdout
        assert "  holds the GIL\n" in text
    finally:
        child.kill()
        child.wait(20)
        child.stdin.close()
        child.stdout.close()


def test_who_holds_the_gil_while_it_stands_and_who_waits_for_it(sonde, store):
    need_root()
    need("/usr/bin/python3", "/usr/bin/python3")
    check_gil(sonde, store, ["/usr/bin/python3"])


@pytest.mark.live
@pytest.mark.parametrize("program", [p for p in PYENV if "/2.7." not in p and "/3.6." not in p] or [None])
def test_the_gil_of_each_version(sonde, store, program):
    if not program:
        pytest.skip("missing: interpreters of pyenv")
    need_root()
    check_gil(sonde, store, [program])


BUSY = """
import random, sys, threading, time
def rests():
    time.sleep(random.choice((0.0001, 0.02)))
    return 0
def one(n):
    return two(n - 1) if n % 2 else three(n - 1)
def two(n):
    if n <= 0:
        return rests()
    return sum(x for x in generator(n))
def three(n):
    return rests() if n <= 0 else max([n, 1], key=lambda x: one(n - 1))
def generator(n):
    yield three(n - 1)
def main():
    while True:
        one(random.randrange(1, 30))
for _ in range(4):
    threading.Thread(target=main, daemon=True).start()
sys.stdout.write("x")
sys.stdout.flush()
sys.stdin.read()
"""


def check_busy(sonde, store, scratch, program):
    """Each frame stands on a line that calls the frame before it."""
    path = os.path.join(scratch, "busy.py")
    with open(path, "w", encoding="utf-8") as f:
        f.write(BUSY)
    lines, shown = BUSY.splitlines(), 0
    child = subprocess.Popen([program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        for _ in range(30):
            for row in rows(sonde, store, "-p", child.pid):
                frames = [f for f in script(row) if f[1] == path]
                if not frames or frames[-1][0] != "main":
                    continue
                assert not row["moved"] and not row["end"], row
                for callee, caller in zip(frames, frames[1:]):
                    name = callee[0].rsplit(".", 1)[-1].strip("<>")
                    calls = {"lambda": "max(", "genexpr": "sum("}.get(name, f"{name}(")
                    assert calls in lines[caller[2] - 1], (callee, caller)
                shown += len(frames) > 1
            if shown >= 20:
                break
        assert shown >= 3
    finally:
        child.kill()
        child.wait(20)
        child.stdin.close()
        child.stdout.close()


def test_a_program_that_does_not_stand_still_is_never_shown_torn(sonde, store, scratch):
    need_root()
    need("/usr/bin/python3", "/usr/bin/python3")
    check_busy(sonde, store, scratch, "/usr/bin/python3")


@pytest.mark.live
@pytest.mark.parametrize("program", [p for p in PYENV if "/2.7." not in p] or [None])
def test_no_version_is_shown_torn(sonde, store, scratch, program):
    if not program:
        pytest.skip("missing: interpreters of pyenv")
    need_root()
    check_busy(sonde, store, scratch, program)


LIE = """
#include <unistd.h>
#include <stdint.h>
uint64_t _PyRuntime[512];
const unsigned long Py_Version = 0x030b02f0;
uint64_t PyCode_Type[64] = {1, 1, 1, 1, 184}, PyFrame_Type[64], PyUnicode_Type[64], PyBytes_Type[64];
static int busy;
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
	while (busy)
		__asm__ volatile("");
	return (int)read(0, &c, 1) + (int)here[3];
}
int main(int argc, char **argv) {
	(void)argv;
	busy = argc > 1;
	return _PyEval_EvalFrameDefault();
}
"""


def lying(scratch):
    """A program with the names of an interpreter's, and nothing behind them. With an argument it does not wait but runs for ever."""
    source, program = os.path.join(scratch, "lie.c"), os.path.join(scratch, "lie")
    with open(source, "w", encoding="utf-8") as f:
        f.write(LIE)
    subprocess.run(["gcc", "-O1", "-g", "-rdynamic", "-o", program, source], check=True, capture_output=True)
    return program


def test_a_process_that_lies_about_its_interpreter_is_not_believed(sonde, store, scratch):
    """The stack is shown as native, and nobody falls."""
    need_root()
    need("gcc")
    child = subprocess.Popen([lying(scratch)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
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
        plain = sonde("pstack", "--no-lines", "-p", s.pid, store=store, check=True).stdout
    line = next(frames for frames in s.told["threads"].values() if frames[0][0] == "by_sleep")[0][2]
    assert f"      by_sleep  pystand.py:{line}  (python)\n" in text
    assert re.search(r"^      .*länge  世界.py:\d+  \(python\)$", text, re.M)
    assert "      by_sleep  [python]  (python)\n" in plain and "pystand.py:" not in plain
