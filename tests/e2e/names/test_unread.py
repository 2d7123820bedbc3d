# SPDX-License-Identifier: Apache-2.0
"""Runtimes whose functions are not read: what `doctor --pid` and `stacks` say of them."""
import os
import subprocess

import pytest

from conftest import need, need_root

# a text that the runtime of each has in all its programs (strings of shellcheck, unison, a native image)
TEXTS = {"ghc": "GHCRTS", "ocaml": "CAMLRUNPARAM", "native-image": "com.oracle.svm.core.VM=GraalVM CE"}
SAYS = {"ghc": "a stack of Haskell's own", "ocaml": "camlModule__function_123", "native-image": "PreserveFramePointer"}


def waiting(scratch, text):
    source = os.path.join(scratch, "waits.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write(f'#include <unistd.h>\nconst volatile char text[] = "{text}";\nint main(void) {{ write(1, "x", 1); return pause(); }}\n')
    subprocess.run(["cc", "-o", source[:-2], source], check=True)
    return source[:-2]


@pytest.mark.parametrize("runtime", [*TEXTS, "none"])
def test_doctor_says_what_a_native_program_is(sonde, store, scratch, runtime):
    need_root()
    need("cc")
    child = subprocess.Popen([waiting(scratch, TEXTS.get(runtime, "none"))], stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        said = sonde("doctor", "--pid", child.pid, store=store).stdout
    finally:
        child.kill()
        child.wait(20)
        child.stdout.close()
    assert [name for name, words in SAYS.items() if words in said] == ([runtime] if runtime in TEXTS else []), said


# a program or a library of that name holds a runtime that is not read, or cannot be; what helps
NAMED = {"deno": "--v8-flags=--perf-basic-prof", "bun": "BUN_JSC_useJITDump=1", "wasmtime": "--profile=perfmap", "julia": "ENABLE_JITPROFILING=1", "R": "Rprof()",
         "beam.smp": "+JPperf true", "libcoreclr.so": "DOTNET_PerfMapEnabled=1", "libjvm.so": "a JDK 8 to 26 of HotSpot", "python3.99": "2.7 or 3.6 to 3.15",
         "php9.9": "PHP 7.4 to 8.6", "ruby9.9": "Ruby 2.7, 3.1, 3.3, 3.4 or 4.0", "perl5.10.1": "Perl 5.32 to 5.42", "node": "node --perf-basic-prof"}


def named(scratch, name):
    """A program of that name; or one that has a library of that name."""
    program = os.path.join(scratch, name)
    if not name.endswith(".so"):
        os.rename(waiting(scratch, "none"), program)
        return program
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", program], input=b"int here(void) { return 1; }", check=True)
    source = os.path.join(scratch, "loads.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write(f'#include <dlfcn.h>\n#include <unistd.h>\nint main(void) {{ if (!dlopen("{program}", RTLD_NOW)) return 1; write(1, "x", 1); return pause(); }}\n')
    subprocess.run(["cc", "-o", source[:-2], source, "-ldl"], check=True)
    return source[:-2]


@pytest.mark.parametrize("name", NAMED)
def test_doctor_says_of_each_runtime_that_is_not_read_what_helps(sonde, store, scratch, name):
    need_root()
    need("cc")
    with subprocess.Popen([named(scratch, name)], stdout=subprocess.PIPE) as child:
        assert child.stdout.read(1) == b"x"
        said = " ".join(sonde("doctor", "--pid", child.pid, store=store).stdout.split())
        child.kill()
    assert NAMED[name] in said, said
    assert "script frames have function" not in said, said


def test_stacks_says_that_lua_s_functions_are_not_shown(sonde, store):
    need_root()
    need("lua5.4")
    sonde("record", "-q", "--families", "cpu", "--", "timeout", "2", "lua5.4", "-e", "while true do end", store=store)
    said = sonde("stacks", store=store, check=True)
    assert "of programs in lua" in " ".join(said.stderr.split()) and "debug.sethook" in " ".join(said.stderr.split()), said.stderr
