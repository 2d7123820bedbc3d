# SPDX-License-Identifier: Apache-2.0
"""Kernels of Debian's suites, taken by apt and kept.

Each suite has an apt root of its own under the cache: nothing of this system is changed. Where packages come from is
read from this machine's own sources when it is asked. What a suite's meta-package linux-image-cloud-amd64 depends on
today is the kernel; only its vmlinuz is kept. A suite that is gone raises Gone, with the reason; one that does not
answer while a kernel of it is kept is answered from what is kept.
"""
import fcntl
import glob
import lzma
import os
import re
import subprocess
import tempfile

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
META = "linux-image-cloud-amd64"
# name of the test -> suite, and whether that is a suite of security updates
KERNELS = {"5.10": ("bullseye", False), "6.1": ("bookworm-security", True), "6.12": ("trixie", False),
           "newest": ("sid", False)}


class Gone(Exception):
    """This suite or package cannot be had; the text says why."""


def archives():
    """(URI of the archive, URI of the security archive) as this machine's apt has them; None where there is none."""
    found = {False: None, True: None}
    for path in glob.glob("/etc/apt/sources.list.d/*.sources"):
        with open(path, encoding="utf-8") as f:
            for block in re.split(r"\n\s*\n", f.read()):
                uri = re.search(r"^URIs:\s*(\S+)", block, re.M)
                suites = re.search(r"^Suites:\s*(.+)", block, re.M)
                if uri and suites:
                    found["-security" in suites.group(1)] = uri.group(1)
    for path in ["/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*.list")]:
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                for uri, suite in re.findall(r"^deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)", f.read(), re.M):
                    found["-security" in suite] = found["-security" in suite] or uri
    return found[False], found[True]


class Suite:
    """A private apt root of one suite."""

    def __init__(self, suite, security, cache):
        uri = archives()[security]
        if not uri:
            raise Gone(f"this machine's apt names no {'security ' if security else ''}archive")
        self.root = os.path.join(cache, "apt", suite)
        for part in ("lists/partial", "cache/archives/partial", "state"):
            os.makedirs(os.path.join(self.root, part), exist_ok=True)
        self.write("state/status", "")
        self.write("sources.list", f"deb [signed-by={KEYRING}] {uri} {suite} main\n")
        self.write("apt.conf", "".join(f'{key} "{value}";\n' for key, value in {
            "Dir::Etc::sourcelist": f"{self.root}/sources.list", "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferences": "/dev/null", "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::State::lists": f"{self.root}/lists", "Dir::State::status": f"{self.root}/state/status",
            "Dir::Cache": f"{self.root}/cache", "APT::Sandbox::User": "root", "APT::Architecture": "amd64",
            "Acquire::Languages": "none", "Acquire::Retries": "2", "Acquire::http::Timeout": "30"}.items()))

    def write(self, name, text):
        with open(os.path.join(self.root, name), "w", encoding="utf-8") as f:
            f.write(text)

    def apt(self, *args):
        done = subprocess.run(args, capture_output=True, text=True, timeout=240, cwd=self.root, stdin=subprocess.DEVNULL,
                              env=dict(os.environ, APT_CONFIG=os.path.join(self.root, "apt.conf"), LC_ALL="C"))
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines()
            # an error may name a package host: that stays here
            raise Gone(re.sub(r"\w+://\S+", "the archive", lines[0] if lines else f"{args[0]} failed"))
        return done.stdout

    def update(self):
        self.apt("apt-get", "update", "-qq", "-o", "APT::Update::Error-Mode=any")

    def depends(self, package):
        return re.findall(r"^\s+Depends: (linux-(?:image|binary)-\S+)", self.apt("apt-cache", "depends", package), re.M)

    def kernel_package(self):
        """The package that holds the kernel itself: what the meta-package leads to."""
        package = META
        while following := self.depends(package):
            package = following[0]
        if package == META:
            raise Gone(f"{META} leads to no kernel")
        return package

    def download(self, package):
        """The .deb; whoever calls removes it."""
        self.apt("apt-get", "download", "-qq", package)
        return max(glob.glob(os.path.join(self.root, f"{package}_*.deb")), key=os.path.getmtime)

    def download_all(self, package):
        """The .debs of a package and of all that it depends on; whoever calls removes them."""
        self.apt("apt-get", "install", "-qq", "-y", "--download-only", "--no-install-recommends", package)
        return glob.glob(os.path.join(self.root, "cache/archives/*.deb"))


def take_vmlinuz(deb, out):
    """Only the kernel out of the package, without unpacking its modules."""
    with open(out + ".part", "wb") as f:
        tar = subprocess.Popen(["dpkg", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
        done = subprocess.run(["tar", "-x", "-O", "--wildcards", "*/vmlinuz*"], stdin=tar.stdout, stdout=f, check=False)
        tar.stdout.close()
        tar.wait()
    if done.returncode or not os.path.getsize(out + ".part"):
        raise Gone(f"{os.path.basename(deb)} holds no vmlinuz")
    os.rename(out + ".part", out)


UNPACK = {".ko": bytes, ".xz": lzma.decompress}


def take_modules(deb, wanted, folder):
    """The modules of these names and those that they need, unpacked, and their file names in the order in which they load."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(folder)) as tree:
        tar = subprocess.Popen(["dpkg", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", tree, "--wildcards", "*/lib/modules/*.ko*"], stdin=tar.stdout, check=False)
        tar.stdout.close()
        tar.wait()
        files = {re.sub(r"\.ko(\.\w+)?$", "", os.path.basename(p)).replace("-", "_"): p for p in glob.glob(f"{tree}/**/*.ko*", recursive=True)}
        order = []

        def take(name):
            path = files.get(name)
            if not path or name in order:  # built in
                return
            unpack = UNPACK.get(os.path.splitext(path)[1])
            if not unpack:
                raise Gone(f"{os.path.basename(path)} is packed in a way that is not known here")
            with open(path, "rb") as f:
                text = unpack(f.read())
            for other in re.search(rb"\0depends=([^\0]*)", text)[1].decode().split(","):
                take(other.replace("-", "_"))
            order.append(name)
            with open(os.path.join(folder, name), "wb") as f:
                f.write(text)

        for name in wanted:
            take(name)
    if not order:
        raise Gone(f"{os.path.basename(deb)} holds none of {' '.join(wanted)}")
    with open(os.path.join(folder, "order"), "w", encoding="ascii") as f:
        f.write("\n".join(order) + "\n")


def modules(name, cache, wanted):
    """A folder with these modules of the kernel, and the file `order`; after kernel()."""
    suite, security = KERNELS[name]
    with open(os.path.join(cache, f"{suite}.lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        apt = Suite(suite, security, cache)
        apt.update()
        package = re.sub("^linux-binary-", "linux-modules-", apt.kernel_package())  # since 7.0 in a package of their own
        folder = os.path.join(cache, suite, f"modules-{package}-{'-'.join(wanted)}")
        if os.path.exists(os.path.join(folder, "order")):
            return folder
        deb = apt.download(package)
        os.makedirs(folder, exist_ok=True)
        take_modules(deb, wanted, folder)
        os.unlink(deb)
        return folder


def kernel(name, cache):
    """Path of the vmlinuz of one of KERNELS."""
    suite, security = KERNELS[name]
    os.makedirs(cache, exist_ok=True)
    with open(os.path.join(cache, f"{suite}.lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = glob.glob(os.path.join(cache, suite, "vmlinuz-*[0-9a-z]"))
        try:
            apt = Suite(suite, security, cache)
            apt.update()
            package = apt.kernel_package()
            path = os.path.join(cache, suite, "vmlinuz-" + re.sub(r"^linux-(image|binary)-|-cloud-amd64$", "", package))
            if not os.path.exists(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                deb = apt.download(package)
                take_vmlinuz(deb, path)
                os.unlink(deb)
            return path
        except (Gone, subprocess.TimeoutExpired) as e:
            if kept:
                return max(kept, key=os.path.getmtime)
            raise Gone(f"no kernel from {suite}: {e}") from None
