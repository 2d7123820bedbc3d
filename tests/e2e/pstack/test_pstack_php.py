# SPDX-License-Identifier: Apache-2.0
"""sonde pstack of PHP programs that were started without any option: each PHP frame against what the program itself says by
debug_backtrace (tests/workloads/scripts/phpstand.php)."""
import glob
import os
import re
import signal
import socket
import struct
import subprocess
import time

import pytest

from conftest import BUILD, ROOT, need, need_root
from scripting import Standing, between, of_sid, rows, script, unpacked, with_its_libraries, with_its_loader

STAND = os.path.join(ROOT, "tests", "workloads", "scripts", "phpstand.php")
PHP = (sorted(glob.glob("/usr/bin/php[78].[0-9]")) or [None])[-1]
JIT = ["-d", "opcache.enable_cli=1", "-d", "opcache.jit_buffer_size=64M", "-d"]
# version -> suite, its packages, how a program of it runs
SUITES = {"7.4": ("bullseye", ["php7.4-cli", "php7.4-dev", "libssl1.1"], with_its_libraries),
          "8.4": ("trixie", """php8.4-cli php8.4-dev libc6 libssl3t64 libsodium23 libpcre2-8-0 libxml2 zlib1g libargon2-1 libedit2 libtinfo6 libbsd0
                  libmd0 liblzma5 libicu76 libstdc++6 libgcc-s1 libcap-ng0 libselinux1 libsystemd0 libcap2 libapparmor1 libaudit1 libzstd1
                  libonig5 libcrypt1""".split(), with_its_loader),
          **{v: ("experimental", [f"php{v}-cli", f"php{v}-dev", *of_sid("""libc6 libssl3t64 libsodium26 libpcre2-8-0 libxml2-16 zlib1g libargon2-1
                  libedit2 libtinfo6 libbsd0 libmd0 liblzma5 libicu78 libstdc++6 libgcc-s1 libzstd1 libonig5 libcrypt1""")], with_its_loader)
             for v in ("8.5", "8.6")}}


def need_php():
    need_root()
    if not PHP:
        pytest.skip("missing: php-cli")


def check_all(sonde, store, scratch, command):
    """Every frame of every scene. Returns the rows by scene."""
    included = os.path.join(scratch, "included.php")
    with open(included, "w", encoding="utf-8") as f:
        f.write("<?php\n\nreturn recursion(1);\n")
    scenes = subprocess.run([*command, STAND, "list"], capture_output=True, text=True, check=True).stdout.split()
    assert len(scenes) > 15
    seen = {}
    for scene in scenes:
        with Standing([*command, STAND, scene, included], cwd=scratch) as s:
            [row] = rows(sonde, store, "-p", s.pid)
        assert not row["moved"], row
        assert script(row, "php") == s.told, scene
        seen[scene] = row
    return seen


def test_php_frames_are_what_the_program_says_and_at_their_places(sonde, store, scratch):
    need_php()
    seen = check_all(sonde, store, scratch, [PHP, "-n"])
    native = [f["function"] for r in seen.values() for f in r["frames"] if not f["runtime"]]
    assert "execute_ex" not in native
    assert "zend_call_function" in between(seen["usort"], "php", "{closure}", "usort")
    assert between(seen["usort"], "php", "usort", "by_usort") == []
    assert between(seen["recursion"], "php", "recursion", "recursion") == []
    assert [f["function"] for f in seen["plain"]["frames"]][-1] == "_start"
    assert all(not r["end"] for scene, r in seen.items() if scene != "fiber")


@pytest.mark.parametrize("options", [pytest.param([*JIT, "opcache.jit=off"], marks=pytest.mark.long), pytest.param([*JIT, "opcache.jit=function"], marks=pytest.mark.long),
                                     [*JIT, "opcache.jit=tracing", "-d", "opcache.jit_hot_func=1", "-d", "opcache.jit_hot_loop=1"]])
def test_names_stay_right_with_opcache_and_its_jit(sonde, store, scratch, options):
    need_php()
    if b"Zend OPcache" not in subprocess.run([PHP, *options, "-v"], capture_output=True, check=True).stdout:
        pytest.skip("missing: php-opcache")
    check_all(sonde, store, scratch, [PHP, *options])


@pytest.mark.live
@pytest.mark.parametrize("version", SUITES)
def test_php_of_debian_s_other_suites_is_read_right(sonde, store, scratch, version):
    need_root()
    suite, packages, runs = SUITES[version]
    usr = unpacked(suite, packages)
    seen = check_all(sonde, store, scratch, [*runs(usr, f"php{version}"), "-n"])
    assert "zend_call_function" in between(seen["map"], "php", script(seen["map"], "php")[2][0], "array_map")
    done = subprocess.run([os.path.join(BUILD, "tests", "unit", "index_phppart_test")], capture_output=True, text=True,
                          env=dict(os.environ, SONDE_PHP_HEADERS=":".join(glob.glob(f"{usr}/include/php/20*"))))
    assert done.returncode == 0, done.stdout + done.stderr
    if version >= "8.5":  # opcache is part of PHP
        check_all(sonde, store, scratch, [*runs(usr, f"php{version}"), "-n", *JIT, "opcache.jit=tracing", "-d", "opcache.jit_hot_func=1", "-d",
                                          "opcache.jit_hot_loop=1"])


BUSY = """<?php
function rests() {
    usleep([100, 20000][random_int(0, 1)]);
    return 0;
}
function one($n) {
    return $n % 2 ? two($n - 1) : three($n - 1);
}
function two($n) {
    return $n <= 0 ? rests() : array_sum(array_map(function ($x) { return one($x); }, [$n - 1]));
}
function three($n) {
    if ($n <= 0) return rests();
    foreach (generator($n) as $x) return $x;
}
function generator($n) {
    yield one($n - 1);
}
echo "x\\n";
while (true) {
    one(random_int(1, 30));
}
"""


@pytest.mark.long
def test_a_php_program_that_does_not_stand_still_is_never_shown_torn(sonde, store, scratch):
    """Each frame stands on a line that calls the frame before it."""
    need_php()
    path = os.path.join(scratch, "busy.php")
    with open(path, "w", encoding="utf-8") as f:
        f.write(BUSY)
    lines, shown = BUSY.splitlines(), 0
    children = [subprocess.Popen([PHP, "-n", path], stdout=subprocess.PIPE) for _ in range(4)]
    try:
        for c in children:
            c.stdout.read(1)
        for _ in range(30):
            for row in rows(sonde, store, *(a for c in children for a in ("-p", c.pid))):
                frames = script(row, "php")
                if not frames:
                    continue
                assert frames[-1][0] == "{main}" and not row["moved"] and not row["end"], row
                for callee, caller in zip(frames, frames[1:]):
                    if caller[1]:
                        calls = callee[0] + ("(" if callee[0] != "{closure}" else "")
                        assert calls.replace("{closure}", "function ($x)") in lines[caller[2] - 1], (callee, caller)
                shown += len(frames) > 2
            if shown >= 20:
                break
        assert shown >= 3
    finally:
        for c in children:
            c.kill()
            c.wait(20)
            c.stdout.close()


def lying(scratch):
    """A program with the names of an engine's, whose frames go in a circle; with an argument it is busy."""
    source = os.path.join(scratch, "lie.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write("""
#include <stdint.h>
#include <unistd.h>
uint64_t executor_globals[300];
__attribute__((used)) const char build[] = "API20220829,NTS";
static uint64_t frame[16], function[64];
static volatile int busy;
int execute_ex(void) {
	char c;
	executor_globals[61] = (uint64_t)frame;
	frame[3] = (uint64_t)function;
	frame[5] = 1 << 17;
	frame[6] = (uint64_t)frame;         /* in a circle */
	function[0] = 2;
	function[1] = function[19] = (uint64_t)frame; /* no string */
	write(1, "x", 1);
	while (busy)
		;
	return (int)read(0, &c, 1) + (int)frame[0];
}
int main(int argc, char **argv) { busy = argc > 1; return execute_ex() + !argv; }
""")
    subprocess.run(["gcc", "-O1", "-g", "-rdynamic", "-o", os.path.join(scratch, "lie"), source], check=True, capture_output=True)
    return os.path.join(scratch, "lie")


def test_a_process_that_lies_about_php_is_not_believed(sonde, store, scratch):
    """Its stack is shown as native, and nobody falls."""
    need_root()
    need("gcc")
    child = subprocess.Popen([lying(scratch)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        [row] = rows(sonde, store, "-p", child.pid)
    finally:
        child.stdin.close()
        child.wait(20)
        child.stdout.close()
    names = [f["function"] for f in row["frames"] if not f["kernel"]]
    assert "main" in names and "execute_ex" in names and not script(row, "php")


def fastcgi(kind, content):
    return struct.pack(">BBHHBB", 1, kind, 1, len(content), 0, 0) + content


def request(path, script_path):
    """A FastCGI request on a connection of its own, which stays open."""
    params = b"".join(struct.pack("BB", len(k), len(v)) + k + v for k, v in
                      ((b"SCRIPT_FILENAME", script_path.encode()), (b"REQUEST_METHOD", b"GET")))
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    s.sendall(fastcgi(1, struct.pack(">HB5x", 1, 0)) + fastcgi(4, params) + fastcgi(4, b"") + fastcgi(5, b""))
    return s


@pytest.mark.live
def test_a_request_of_php_fpm_stands_in_its_script(sonde, store, scratch):
    need_root()
    fpm = (sorted(glob.glob("/usr/sbin/php-fpm[78].[0-9]")) or [None])[-1]
    if not fpm:
        pytest.skip("missing: php-fpm")
    os.chmod(scratch, 0o755)
    page, conf, at = (os.path.join(scratch, name) for name in ("page.php", "fpm.conf", "fpm.sock"))
    with open(page, "w", encoding="utf-8") as f:
        f.write("<?php\nclass Shop {\n  function basket() {\n    file_put_contents(__DIR__ . '/stands', 'x');\n    sleep(60);\n  }\n}\n(new Shop)->basket();\n")
    with open(conf, "w", encoding="utf-8") as f:
        f.write(f"[global]\nerror_log = {scratch}/log\ndaemonize = no\n[www]\nuser = root\ngroup = root\nlisten = {at}\npm = static\npm.max_children = 2\n")
    server = subprocess.Popen([fpm, "-R", "-n", "-y", conf])
    try:
        until = time.monotonic() + 20
        while not os.path.exists(at) and time.monotonic() < until:
            time.sleep(0.05)
        with request(at, page):
            while not os.path.exists(f"{scratch}/stands") and time.monotonic() < until:
                time.sleep(0.05)
            workers = [int(p) for p in re.findall(r"\d+", open(f"/proc/{server.pid}/task/{server.pid}/children", encoding="ascii").read())]
            found = [f for f in (script(r, "php") for r in rows(sonde, store, *(a for w in workers for a in ("-p", w)))) if f]
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(20)
    assert found == [[["sleep", None, None], ["Shop::basket", page, 5], ["{main}", page, 8]]]
