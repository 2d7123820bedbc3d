# SPDX-License-Identifier: Apache-2.0
"""Completion in the three shells: each loads its script in a real shell, on a pseudo-terminal where it must, and what is
typed is completed by the store's own names."""
import os
import pty
import select
import subprocess
import time

import pytest
from conftest import BIN, BUILD, families, need, sql_all

ENV = dict(os.environ, PATH=f"{BIN}:{os.environ['PATH']}", TERM="xterm", HOME="/nonexistent")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("completion") / "store")
    program = os.path.join(BUILD, "tests", "makestore")
    need("build/tests/makestore", program)
    subprocess.run([program, path, "--rows", "500"], check=True, stdout=subprocess.DEVNULL)
    return path


def fits(sonde, *words, store=None):
    done = sonde("completion", "words", "--", *words, store=store, check=True)
    assert not done.stderr
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


def test_what_fits_depends_on_where_the_cursor_stands(sonde, made):
    assert fits(sonde, "stat") == ["status"]
    assert "--callers" in fits(sonde, "stacks", "--c") and "--comm" in fits(sonde, "stacks", "--c")
    assert "--comm" not in fits(sonde, "status", "--c")  # takes no filters
    assert set(fits(sonde, "stacks", "--comm", "server-1", store=made)) == {"server-1"}
    assert "server-2" in fits(sonde, "flame", "--group", "process", "--store", made, "--comm", "")
    assert "web-1" in fits(sonde, "flame", "w", store=made)
    assert fits(sonde, "flame", "-o", "") == ["<file>"]
    assert "@hottest" in fits(sonde, "sql", "@")
    assert "record" in fits(sonde, "help", "r")


def test_keys_families_and_functions_are_offered(sonde, made):
    assert {"cpu", "pid", "name", "start", "offcpu", "inuse"} <= set(fits(sonde, "ps", "--sort", ""))
    assert fits(sonde, "top", "--sort", "na") == ["name"]
    assert fits(sonde, "record", "--families", "") == families()
    assert fits(sonde, "record", "--families", "cpu,of") == ["cpu,offcpu"]
    assert fits(sonde, "record", "--families", "offcpu,") == [f"offcpu,{f}" for f in families() if f != "offcpu"]
    assert fits(sonde, "up", "go") == ["goheap"] and fits(sonde, "down", "off") == ["offcpu"]
    theirs = {r["function"] for r in sql_all(made, "SELECT function FROM functions")}
    some = sorted(f for f in theirs if f.startswith("function_00"))
    assert len(some) > 1 and fits(sonde, "stacks", "--callers", "function_00", store=made) == some
    assert fits(sonde, "lines", "FUNCTION_00", store=made) == some and fits(sonde, "stacks", "--callees", "function_00", store=made) == some


@pytest.fixture(scope="module")
def colons(tmp_path_factory):
    """A store with a function whose name a shell splits."""
    path = tmp_path_factory.mktemp("colons")
    (path / "x.folded").write_text("main;ns::outer::work(int, char) 3\nmain;other 1\n")
    subprocess.run([f"{BIN}/sonde", "import", path / "x.folded", "--store", path / "store"], check=True, capture_output=True)
    return str(path / "store")


def test_bash_completes_what_it_splits(colons):
    need("bash")
    for words, cword, line, want in (
            ("sonde stacks --store %s --callers ns::outer::wo", 8, None, r"work\(int\,\ char\)"),
            ("sonde record --families cpu,of", 3, None, "cpu\\,offcpu"), ("sonde ps --sort na", 3, None, "name")):
        line = words % colons if "%s" in words else words
        split = line.replace("::", " :: ").split(" ")
        script = (f"source <(sonde completion bash); COMP_LINE={line!r}; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=({' '.join(split)}); "
                  f"COMP_CWORD={len(split) - 1}; _sonde; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
        done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, env=ENV, timeout=180)
        assert done.stdout.splitlines() == [want], (done.stdout, done.stderr)


def test_fish_and_zsh_complete_functions_families_and_keys(colons, tmp_path):
    need("fish")
    need("zsh")
    script = ("sonde completion fish | source; " + "; ".join(f"complete -C 'sonde {words}'" for words in (
        f"stacks --store {colons} --callers ns", "record --families cpu,of", "ps --sort na")))
    done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, timeout=180, env=dict(ENV, HOME=str(tmp_path)))
    assert done.stdout.splitlines() == ["ns::outer::work(int, char)", "cpu,offcpu", "name"], done.stderr
    zsh = Zsh(tmp_path / "line")
    try:
        assert zsh.completed(f"sonde lines --store {colons} ns") == f"sonde lines --store {colons} ns::outer::work\\(int,\\ char\\) "
        assert zsh.completed("sonde record --families cpu,of") == "sonde record --families cpu,offcpu "
        assert zsh.completed("sonde ps --sort na") == "sonde ps --sort name "
    finally:
        zsh.end()


def test_names_that_cannot_be_typed_are_not_offered_and_no_store_is_no_error(sonde, tmp_path):
    assert fits(sonde, "stacks", "--comm", "", store=tmp_path / "none") == []
    assert fits(sonde, "nosuchverb", "x") == []


def test_bash_completes(made):
    need("bash")
    script = ('source <(sonde completion bash); COMP_WORDS=(sonde stacks --store %s --comm server-1); COMP_CWORD=5; '
              '_sonde; echo "${COMPREPLY[@]}"; complete -p sonde' % made)
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, env=ENV, timeout=180)
    assert done.stdout.splitlines() == ["server-1", "complete -F _sonde sonde"] and not done.stderr


def test_fish_completes(made, tmp_path):
    need("fish")
    script = f"sonde completion fish | source; complete -C 'sonde stacks --store {made} --comm server-1'; complete -C 'sonde stat'"
    done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, timeout=180,
                          env=dict(ENV, HOME=str(tmp_path)))
    lines = done.stdout.splitlines()
    assert lines[0] == "server-1" and lines[1].startswith("status\t") and len(lines) == 2


class Zsh:
    """An interactive zsh on a terminal. `^T` writes what stands on its line to a file, and empties it."""

    def __init__(self, file):
        self.file = file
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.execvpe("zsh", ["zsh", "-f", "-i"], ENV)
        self.say(f"autoload -Uz compinit; compinit -D -u; source <(sonde completion zsh); "
                 f"tell() {{ print -r -- \"$BUFFER\" > {file}.tmp; mv {file}.tmp {file}; BUFFER= }}; zle -N tell; "
                 f"bindkey '^T' tell; : > {file}\n")
        self.line()

    def say(self, text):
        os.write(self.fd, text.encode())

    def line(self, seconds=20):
        """What the file says once it is there; the terminal is emptied meanwhile."""
        end = time.monotonic() + seconds
        while not os.path.exists(self.file):
            assert time.monotonic() < end, "zsh does not answer"
            if select.select([self.fd], [], [], 0.05)[0]:
                os.read(self.fd, 65536)
        with open(self.file, encoding="utf-8") as f:
            text = f.read()
        os.unlink(self.file)
        return text.rstrip("\n")

    def completed(self, text):
        self.say(text + "\t\x14")
        return self.line()

    def end(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def test_zsh_completes(made, tmp_path):
    need("zsh")
    zsh = Zsh(tmp_path / "line")
    try:
        assert zsh.completed("sonde stat") == "sonde status "
        assert zsh.completed(f"sonde stacks --store {made} --comm server-1") == (
            f"sonde stacks --store {made} --comm server-1 ")
    finally:
        zsh.end()


def test_another_shell_is_told_which_there_are(sonde):
    done = sonde("completion", "tcsh")
    assert done.returncode == 2 and "bash, zsh or fish" in done.stderr
