# SPDX-License-Identifier: Apache-2.0
"""Hints work as they are typed by whom they are said to: root or not, with sonde in the path or not. The unprivileged user is a real
one; the system's store is made in a mount namespace, where /var/lib is ours."""
import os
import re
import shlex
import shutil
import subprocess
import uuid

import pytest
from conftest import BIN, BUILD, need, need_root

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
NO_STORE = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /var/lib && exec "$@"', "sh"]  # whatever this host has recorded
BARE = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture(scope="module")
def place():
    """The programs where everybody may run them, and a home of nobody's."""
    need_root()
    need("setpriv")
    path = f"/tmp/sonde-hints-{uuid.uuid4().hex[:12]}"
    os.makedirs(f"{path}/build/bin")
    os.makedirs(f"{path}/home")
    os.chown(f"{path}/home", 65534, 65534)
    for name in ("sonde", "sonde-cpu", "sonde-maps", "sonde-index", "sonde-import", "sonde-seal"):
        shutil.copy(os.path.join(BIN, name), f"{path}/build/bin/")
    yield path
    shutil.rmtree(path)


def ask(place, *args, prefix=(), path=BARE, cwd=None, home=None):
    return subprocess.run([*prefix, f"{place}/build/bin/sonde", *args], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          cwd=cwd or place, env={"PATH": path, "HOME": home or f"{place}/home", "TZ": "UTC"})


def fix(done):
    return re.search(r"^  fix: (.*)$", done.stderr, re.M)[1]


def test_a_command_is_named_as_it_can_be_typed(place):
    wrong = ["sql", "selct"]
    for cwd, path, prefix, name in ((place, BARE, NOBODY, "build/bin/sonde"), ("/", BARE, NOBODY, f"{place}/build/bin/sonde"),
                                    ("/", f"{place}/build/bin:{BARE}", NOBODY, "sonde"),
                                    ("/", f"{BIN}:{place}/build/bin:{BARE}", NOBODY, f"{place}/build/bin/sonde"),
                                    (place, BARE, [], "build/bin/sonde")):
        done = ask(place, "flmae", prefix=prefix, cwd=cwd, path=path)
        assert fix(done) == f"{name} help", done.stderr
        typed = subprocess.run(["sh", "-c", fix(done)], cwd=cwd, env={"PATH": path}, capture_output=True, text=True)
        assert typed.returncode == 0 and "record" in typed.stdout
    assert ask(place, *wrong).returncode


def test_sudo_is_said_to_those_who_need_it_and_has_a_path_of_its_own(place):
    mine = f"{place}/build/bin:{BARE}"
    for path in (mine, BARE):
        done = ask(place, "stacks", prefix=[*NO_STORE, *NOBODY], path=path, cwd="/")
        assert done.returncode == 6 and f"sudo {place}/build/bin/sonde record -d 10s" in fix(done), done.stderr
        assert f"{place}/home/.local/state/sonde, and none in /var/lib/sonde" in done.stderr
    done = ask(place, "stacks", "--store", f"{place}/none", path=mine)
    assert fix(done).startswith(f"sonde record -d 10s --store {place}/none "), done.stderr
    done = ask(place, "record", "-d", "1s", prefix=NOBODY, path=BARE)
    assert done.returncode == 5 and "sudo build/bin/sonde record" in fix(done) and "sonde-cpu" not in done.stderr, done.stderr
    assert "sudo build/bin/sonde record -d 10s" in ask(place, prefix=[*NO_STORE, *NOBODY]).stdout
    assert re.search(r"^  build/bin/sonde record -d 10s ", ask(place, prefix=NO_STORE).stdout, re.M)


def test_what_to_type_next_is_about_the_store_that_was_asked(place, tmp_path):
    store = tmp_path / "it's here"
    subprocess.run([os.path.join(BUILD, "tests", "putstore"), store], input='{"run": "host", "from": 1795140000, "to": 1795140060, "bucket_s": 10}\n', text=True, check=True)
    done = ask(place, "oom", "--store", store)
    words = shlex.split(fix(done).split("    ")[0].split(" (")[0])
    assert done.returncode == 4 and words[words.index("--store") + 1] == str(store), done.stderr


def test_an_empty_folder_is_no_file_that_is_missing(place, tmp_path):
    done = ask(place, "stacks", "--store", str(tmp_path))
    assert done.returncode == 6 and f"the store {tmp_path} is empty" in done.stderr and "No such file" not in done.stderr
    done = ask(place, "stacks", "--store", f"{tmp_path}/x.db")
    assert done.returncode == 6 and "one .db file of it" in fix(done)


def test_hidden_kernel_symbols_are_mended_by_what_mends_them(place):
    said = ask(place, "doctor", prefix=NOBODY).stdout
    hidden = re.search(r"hidden \((?:kptr_restrict=(\d+))?.*\n\s+fix: (.*)", said)
    if not hidden:
        pytest.skip("missing: kernel symbols that are hidden from nobody")
    assert hidden[2] == ("sudo sysctl kernel.kptr_restrict=1" if int(hidden[1] or 0) >= 2 else "run it with sudo (CAP_SYSLOG)")


SYSTEM = """set -e
mount --bind "$1/var" /var/lib
export HOME="$1/home" TZ=UTC PATH="$3"
cd "$1"
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@" 2>&1 && echo "exit 0" || echo "exit $?"; }
folded() { printf 'main;%s 30\\n' "$1" > "$1.folded"; }
folded system; folded own
SUDO_GID=65534 build/bin/sonde import system.folded > /dev/null 2>&1
echo == reads; nobody build/bin/sonde export folded --from -1d
echo == shut; chgrp -R 0 /var/lib/sonde; nobody build/bin/sonde stacks --from -1d
if [ "$2" ]; then echo == group; chgrp -R "$2" /var/lib/sonde; nobody build/bin/sonde stacks --from -1d; fi
chgrp -R 65534 /var/lib/sonde
echo == own; nobody build/bin/sonde import own.folded; touch -d +1hour /var/lib/sonde; nobody build/bin/sonde export folded --from -1d
echo == named; nobody build/bin/sonde export folded --from -1d --store /var/lib/sonde
echo == older; touch -d -1day /var/lib/sonde; nobody build/bin/sonde export folded --from -1d
"""


def test_what_was_recorded_with_sudo_is_found_by_the_user(place):
    os.makedirs(f"{place}/var", exist_ok=True)
    os.chmod(f"{place}", 0o777)
    group = subprocess.run(["getent", "group", "sonde"], capture_output=True, text=True).stdout.split(":")[0]
    done = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", SYSTEM, "sh", place, group, BARE], capture_output=True, text=True)
    if "mount" in done.stderr:
        pytest.skip("missing: the right to mount")
    said = dict(re.findall(r"^== (\w+)\n(.*?)(?=^== |\Z)", done.stdout, re.M | re.S))
    assert "main;system 30\nexit 0" in said["reads"] and "note:" not in said["reads"], done.stdout + done.stderr
    assert "cannot read the store /var/lib/sonde: permission denied\n  fix: run it with sudo" in said["shut"] and "exit 5" in said["shut"]
    assert not group or "sudo usermod -aG sonde $USER, and log in again" in said["group"]
    assert "main;own 30\nexit 0" in said["own"] and "newer recordings are in /var/lib/sonde: --store /var/lib/sonde" in said["own"]
    assert "main;system 30" in said["named"] and "note:" not in said["named"]
    assert "main;own 30" in said["older"] and "note:" not in said["older"]


def test_seal_is_a_verb(place, tmp_path):
    (tmp_path / "x.folded").write_text("main;work 3\n")
    store = str(tmp_path / "store")
    assert ask(place, "import", str(tmp_path / "x.folded"), "--at", "2026-01-01T10:00:00Z", "--store", store).returncode == 0
    done = ask(place, "seal", "--plain", "0", "--keep", "0", "--json", "--store", store)
    assert done.returncode == 0 and '"segments"' in done.stdout, done.stderr
    assert ask(place, "seal", "--plain", "x", "--store", store).returncode == 2
