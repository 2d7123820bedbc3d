# SPDX-License-Identifier: Apache-2.0
"""A terminal that a test can type on and look at: tmux, with a separate server."""
import os
import shutil
import subprocess
import tempfile
import time

from conftest import BIN, need


class Terminal:
    def __init__(self, columns=100, rows=24, env=None):
        need("tmux")
        self.folder = tempfile.mkdtemp(prefix="sonde-tmux-")
        self.base = ["tmux", "-S", os.path.join(self.folder, "s"), "-f", "/dev/null"]
        env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "PS1": "$ ", "TERM": "xterm-256color",
               **(env or {})}
        env.pop("TMUX", None)
        env.pop("ENV", None)
        subprocess.run([*self.base, "new-session", "-d", "-x", str(columns), "-y", str(rows), "sh"], env=env, check=True)
        self.until(lambda s: s.strip() in ("$", "#"))

    def tmux(self, *args):
        return subprocess.run([*self.base, *args], capture_output=True, text=True, check=True).stdout

    def keys(self, *names):
        """Names as tmux has them: Down, Enter, C-c, Escape; else text."""
        for name in names:
            self.tmux("send-keys", name)

    def type(self, text, enter=True):
        self.tmux("send-keys", "-l", text)
        if enter:
            self.keys("Enter")

    def screen(self, escapes=False):
        return self.tmux("capture-pane", "-p", *(["-e"] if escapes else []))

    def until(self, holds, timeout=180):
        """The screen, once that holds of it."""
        end = time.monotonic() + timeout
        while True:
            text = self.screen()
            if holds(text):
                return text
            assert time.monotonic() < end, f"not within {timeout} s; the screen is:\n{text}"
            time.sleep(0.03)

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def close(self):
        subprocess.run([*self.base, "kill-server"], capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)
