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


def test_stacks_says_that_lua_s_functions_are_not_shown(sonde, store):
    need_root()
    need("lua5.4")
    sonde("record", "-q", "--families", "cpu", "--", "timeout", "2", "lua5.4", "-e", "while true do end", store=store)
    said = sonde("stacks", store=store, check=True)
    assert "of programs in lua" in " ".join(said.stderr.split()) and "debug.sethook" in " ".join(said.stderr.split()), said.stderr
