# SPDX-License-Identifier: Apache-2.0
"""With whose rights `sonde lines` reads the text of a source file, when root asks: a program's debug information may name any file. The stores
are made (tests/workloads/putstore.c)."""
import json
import os
import shutil
import subprocess
import tempfile

import pytest

from conftest import BUILD, need, need_root

AT = 1_800_000_000
EVE, BOB = 4242, 4343


@pytest.fixture
def host():
    """A folder that all may enter: /FILE as told, by owner, mode and text."""
    need_root()
    base = tempfile.mkdtemp(prefix="sonde-source-")
    os.chmod(base, 0o755)

    def make(name, owner, mode, text="the only line\n"):
        path = os.path.join(base, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
        os.chown(path, owner, owner)
        os.chmod(path, mode)
        return path
    make.base = base
    yield make
    shutil.rmtree(base)


def lines(store, path, module, *args, uid=0, container="", owner=0, family="cpu"):
    """What a store tells whose one function is in that file."""
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    store = f"{store}/store"
    rows = [{"run": family, "from": AT, "to": AT + 5, "bucket_s": 1, "period_ns": 10**7, "recording": 7},
            {"kind": "cpu", "at": AT, "n": 3, "pid": 77, "uid": uid, "comm": module, "container": container, "stack": [["named", path, 1]]}]
    shutil.rmtree(store, ignore_errors=True)
    subprocess.run([program, store], input="\n".join(map(json.dumps, rows)), text=True, check=True)
    for f in os.listdir(store):
        os.chown(os.path.join(store, f), owner, owner)
    done = subprocess.run([os.path.join(BUILD, "bin", "sonde"), "lines", "named", "--rec", "1", "--store", store, *args], capture_output=True, text=True,
                          check=False)
    shown = json.loads(subprocess.run([os.path.join(BUILD, "bin", "sonde"), "lines", "named", "--rec", "1", "--store", store, "--json", "-q", *args],
                                      capture_output=True, text=True, check=True).stdout)
    assert done.returncode == 0, done.stderr
    texts = [r["text"] for r in shown["rows"]]
    assert ("the only line" in done.stdout) == (texts == ["the only line"]), (done.stdout, texts)
    return texts == ["the only line"], done.stderr


def test_what_a_strangers_program_names_is_read_as_the_stranger_could(host):
    secret, own = host("secret", 0, 0o600), host("own.c", EVE, 0o600)
    eves, roots = host("eves", EVE, 0o755), host("roots", 0, 0o755)
    # its process is the stranger's, or root's of a file that is the stranger's
    for uid in (EVE, 0):
        shown, said = lines(host.base, secret, eves, uid=uid)
        assert not shown and "which do not suffice" in said, said
        assert lines(host.base, own, eves, uid=uid)[0]
    # it calls itself like a file of root's: in its own mount namespace it may
    assert not lines(host.base, secret, roots, uid=EVE)[0]
    assert not lines(host.base, secret, roots, container="eve")[0]
    assert not lines(host.base, own, roots, uid=BOB)[0]
    # what is root's own is shown
    assert lines(host.base, secret, roots)[0]
    # a store, a profile of another tool's, a file that is gone
    assert not lines(host.base, secret, roots, owner=EVE)[0]
    assert lines(host.base, own, roots, owner=EVE)[0]
    assert not lines(host.base, secret, roots, family="import")[0]
    assert not lines(host.base, secret, f"{host.base}/gone")[0]
    # of everybody's, anybody
    everybodys = host("everybodys.c", 0, 0o644)
    for more in ({"uid": EVE}, {"container": "eve"}, {"owner": EVE}, {"family": "import"}):
        assert lines(host.base, everybodys, roots, **more)[0], more


def test_below_a_folder_that_root_gives_root_reads_but_no_link_leads_out(host):
    host("src/a/named.c", 0, 0o600)
    secret, eves = host("secret", 0, 0o600), host("eves", EVE, 0o755)
    os.symlink(secret, f"{host.base}/src/a/link.c")
    os.symlink("named.c", f"{host.base}/src/a/inside.c")
    src = f"{host.base}/src"
    assert lines(host.base, "/build/a/named.c", eves, "--source-dir", src, uid=EVE)[0]
    assert lines(host.base, "/build/a/named.c", eves, "--source-dir", f"/build={src}", uid=EVE)[0]
    assert lines(host.base, "/build/a/inside.c", eves, "--source-dir", src, uid=EVE)[0]
    assert not lines(host.base, "/build/a/link.c", eves, "--source-dir", src, uid=EVE)[0]
    assert not lines(host.base, f"/build/a/../../../{secret}", eves, "--source-dir", src, uid=EVE)[0]


def test_only_a_regular_file_is_read(host):
    eves = host("eves", EVE, 0o755)
    os.mkfifo(f"{host.base}/pipe.c")
    for path in (f"{host.base}/pipe.c", "/dev/zero", host.base):
        shown, said = lines(host.base, path, eves, uid=EVE)
        assert not shown and "not a regular file" in said, (path, said)
