# SPDX-License-Identifier: Apache-2.0
"""Images of this host's own programs, with the libraries they need; nothing is pulled from anywhere."""
import os
import re
import shutil
import subprocess

FOLDERS = ("bin", "tmp", "proc", "sys", "dev", "etc", "var/tmp", "run", "data")


def libraries_of(path):
    """The files that the dynamic linker would load for a program, and the linker itself."""
    said = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
    return re.findall(r"(/\S+) \(0x", said)


def copy_in(root, path, to=None):
    """A file with all that its path leads over, as the host has it (links followed)."""
    to = root + (to or path)
    if not os.path.exists(to):
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy2(os.path.realpath(path), to)


class Images:
    def __init__(self, engine, folder):
        self.engine, self.folder = engine, folder

    def make(self, name, programs=(), trees=(), files=None, owner=None):
        """programs: {path in the image: path here} or paths; trees: whole folders; files: {path: text}; owner: of /data."""
        root = os.path.join(self.folder, f"root-{name}")
        for folder in FOLDERS:
            os.makedirs(f"{root}/{folder}", exist_ok=True)
        copy_in(root, shutil.which("busybox"), "/bin/busybox")
        for applet in ("sh", "sleep", "true", "tail", "gzip", "usleep", "cat", "id", "yes", "dd"):
            os.symlink("busybox", f"{root}/bin/{applet}")
        wanted = programs.items() if isinstance(programs, dict) else [(p, p) for p in programs]
        for to, path in wanted:
            copy_in(root, path, to)
            for library in libraries_of(path):
                copy_in(root, library)
        for tree in trees:
            shutil.copytree(tree, root + tree, symlinks=True, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("test", "tests", "idlelib", "config-3*", "bitcode"))
            for folder, _, names in os.walk(tree):
                for so in (n for n in names if n.endswith(".so")):
                    for library in libraries_of(os.path.join(folder, so)):
                        copy_in(root, library)
        passwd = "root:x:0:0:root:/:/bin/sh\npostgres:x:70:70::/data:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"
        for path, text in {"/etc/passwd": passwd, "/etc/group": "root:x:0:\npostgres:x:70:\nnogroup:x:65534:\n", **(files or {})}.items():
            os.makedirs(os.path.dirname(root + path), exist_ok=True)
            with open(root + path, "w", encoding="utf-8") as f:
                f.write(text)
        os.chmod(f"{root}/tmp", 0o1777)
        if owner:
            os.chown(f"{root}/data", owner, owner)
        tar = subprocess.Popen(["tar", "-C", root, "--numeric-owner", "-c", "."], stdout=subprocess.PIPE)
        done = subprocess.run(["docker", "-H", self.engine.socket, "import", "-", name], stdin=tar.stdout, capture_output=True,
                              timeout=300, check=False)
        tar.wait()
        assert done.returncode == 0, done.stderr
        shutil.rmtree(root)
        return name
