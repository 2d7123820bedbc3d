# SPDX-License-Identifier: Apache-2.0
"""Debian's package on new systems: installed by apt, upgraded while it records, removed, purged. make long-package."""
import glob
import json
import os
import re
import shutil
import subprocess
import time

import pytest
from roots import BUILD, ROOT, root_of

import debian

BURN = os.path.join(BUILD, "tests/workloads/burn-static")
STORE = "/var/lib/sonde"


def package():
    made = glob.glob(f"{BUILD}/sonde_*_amd64.deb")
    if not made:
        pytest.skip("missing: the package (make deb)")
    return max(made, key=os.path.getmtime)


def sources(r, suite):
    """The archive, as this machine has it."""
    archive, security = debian.archives()
    lines = f"deb {archive} {suite} main\n" + (f"deb {security} {suite}-security main\n" if security else "")
    with open(f"{r.dir}/sources", "w", encoding="ascii") as f:
        f.write(lines)
    r.put(f"{r.dir}/sources", "/etc/apt/sources.list")
    for path in ("/etc/resolv.conf", "/etc/hosts"):
        r.put(path, path)
    for path in glob.glob("/etc/apt/apt.conf.d/*"):
        if "roxy" in open(path, encoding="utf-8").read():
            r.put(path, path)
    r.run("apt-get update -qq", timeout=600)


@pytest.fixture(params=["bookworm", "trixie"])
def system(request, tmp_path):
    with root_of(request.param) as r:
        r.put(package(), "/tmp/new/sonde.deb")
        r.put(BURN, "/tmp/burn", 0o755)
        sources(r, request.param)
        r.name, r.at_first = request.param, r.names("sonde")
        yield r


def of_another_version(tmp_path, version):
    """The same package, called older."""
    tree = tmp_path / version
    subprocess.run(["dpkg-deb", "-R", package(), tree], check=True)
    control = (tree / "DEBIAN/control").read_text()
    (tree / "DEBIAN/control").write_text(re.sub(r"^Version: .*", f"Version: {version}", control, flags=re.M))
    subprocess.run(["dpkg-deb", "-b", tree, f"{tree}.deb"], check=True, capture_output=True)
    return f"{tree}.deb"


def burned(r):
    told = json.loads(r.run("sonde stacks --comm burn --type cpu --json"))
    return told["samples"] if told["rows"] and told["rows"][0]["function"] == "burn_leaf" else 0


def runs_as_the_unit_would(r, pid):
    """sonded and what it started: the user sonde, and the unit's capabilities at most."""
    uid = int(r.run("id -u sonde"))
    with open(f"{ROOT}/supervisor/systemd/sonded.service", encoding="ascii") as f:
        names = re.search(r"^CapabilityBoundingSet=(.*)$", f.read(), re.M).group(1).split()
    most = sum(1 << {"CAP_BPF": 39, "CAP_PERFMON": 38, "CAP_SYS_PTRACE": 19, "CAP_DAC_READ_SEARCH": 2, "CAP_SYSLOG": 34}[n] for n in names)
    mine = [p for p in r.inside() if comm(p).startswith(("sonded", "sonde-cpu", "sonde-maps"))]
    assert pid in mine and len(mine) >= 3, mine
    for p in mine:
        told = dict(line.split(":\t", 1) for line in open(f"/proc/{p}/status", encoding="utf-8").read().splitlines() if ":\t" in line)
        assert told["Uid"].split() == [str(uid)] * 4, told["Uid"]
        assert all(int(told[w], 16) & ~most == 0 for w in ("CapPrm", "CapEff", "CapBnd", "CapAmb")), told
    assert [p for p in mine if p == pid and os.stat(f"/proc/{p}").st_uid == uid]


def test_lintian_finds_no_error():
    if not shutil.which("lintian"):
        pytest.skip("missing: lintian (sh scripts/deps.sh package)")
    done = subprocess.run(["lintian", "--fail-on", "error", package()], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_another_build_in_another_folder_gives_the_same_bytes(tmp_path):
    subprocess.run(["sh", "packaging/tree.sh", tmp_path / "tree"], cwd=ROOT, check=True)
    subprocess.run(["nice", "make", "-s", "deb", "B=build"], cwd=tmp_path / "tree", check=True, capture_output=True,
                   env={k: v for k, v in os.environ.items() if k not in ("B", "MAKEFLAGS", "MFLAGS")})
    (other,) = glob.glob(f"{tmp_path}/tree/build/sonde_*.deb")
    subprocess.run(["sh", "packaging/deb.sh", BUILD], cwd=ROOT, check=True, capture_output=True)
    with open(package(), "rb") as a, open(other, "rb") as b:
        assert a.read() == b.read()


def test_from_the_package_to_a_flame_graph(system):
    r = system
    began = time.monotonic()
    r.run("apt-get install -y --no-install-recommends /tmp/new/sonde.deb", timeout=600)
    installed = time.monotonic() - began
    r.run("sonde record -d 3s -- /tmp/burn 3000")
    r.run("sonde flame -o /tmp/x.html")
    print(f"{r.name}: {time.monotonic() - began:.1f} s from the package to a flame graph, {installed:.1f} of them apt with what it fetches")
    assert burned(r) and "Content-Security-Policy" in r.run("head -c 3000 /tmp/x.html")
    assert r.run(f"stat -c '%U:%G %a' {STORE}").strip() == "sonde:sonde 750"
    assert re.search(r"^sonde:[^:]*:\d+:\d+:[^:]*:/var/lib/sonde:/usr/sbin/nologin$", r.run("cat /etc/passwd"), re.M)
    for path in ("/usr/share/man/man1/sonde.1.gz", "/usr/share/bash-completion/completions/sonde", "/lib/systemd/system/sonded.service",
                 "/lib/systemd/system/sonde-pprof.socket", "/lib/systemd/system/sonde-pprof@.service", "/lib/systemd/system/sonde-push.service",
                 "/usr/libexec/sonde/sonde-scrape", "/usr/libexec/sonde/sonde-pprof", "/usr/libexec/sonde/sonde-push"):
        r.run(f"test -e {path} || grep -q '{path}' /var/lib/dpkg/info/sonde.list")  # minbase leaves out manual pages
    r.run("systemctl is-enabled sonded", status=None)
    assert "enabled" not in r.said.replace("disabled", ""), r.said


def test_an_upgrade_keeps_the_data_and_what_records_and_purge_leaves_nothing(system, tmp_path):
    r = system
    r.put(of_another_version(tmp_path, "0.0.9"), "/tmp/old/sonde.deb")
    r.run("apt-get install -y --no-install-recommends /tmp/old/sonde.deb", timeout=600)
    r.run("sonde up cpu")
    try:
        pid = json.loads(r.run("sonde status --json"))["sonded"]["sonded"]["pid"]
        runs_as_the_unit_would(r, pid)
        r.run("/tmp/burn 3000; sonde rotate")
        before = burned(r)
        assert before
        recorded = subprocess.Popen(r.command("sonde record -d 12s -- /tmp/burn 12000", SONDE_STORE="/tmp/other"), stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        r.run("until ls /tmp/other/*.db; do sleep 0.1; done", timeout=60)
        assert recorded.poll() is None
        r.run("apt-get install -y --no-install-recommends /tmp/new/sonde.deb", timeout=600)
        assert "0.0.9" not in r.run("dpkg-query -W -f '${Version}' sonde")
        said = recorded.communicate(timeout=120)[0]
        assert recorded.returncode == 0 and "burn_leaf" in said and " 0 lost" in said, said
        assert json.loads(r.run("sonde status --json"))["sonded"]["sonded"]["pid"] == pid
        r.run("/tmp/burn 2000; sonde rotate")
        assert burned(r) > before
        r.run("apt-get remove -y sonde")
        assert not [p for p in r.inside() if "sonde" in comm(p)], "a recorder outlived its programs"
    finally:
        r.run("sonde down", status=None)
    left = r.names("sonde")
    assert STORE in left and not [p for p in left if p.startswith("/usr/bin") or "libexec" in p], left
    assert r.run(f"ls {STORE}/*.db").strip()
    r.run("apt-get purge -y sonde")
    assert [p for p in r.names("sonde") if not p.startswith("/tmp/")] == [p for p in r.at_first if not p.startswith("/tmp/")]


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
            return f.read()
    except OSError:
        return ""


def tree_of_make_install(tmp_path):
    """What `make install` puts below /usr/local, as a tar."""
    where = tmp_path / "installed"
    subprocess.run(["nice", "make", "-s", "install", f"DESTDIR={where}", "PREFIX=/usr/local", f"B={os.path.relpath(BUILD, ROOT)}"],
                   cwd=ROOT, check=True, capture_output=True, env={k: v for k, v in os.environ.items() if k not in ("B", "MAKEFLAGS", "MFLAGS")})
    subprocess.run(["tar", "-C", where, "-cf", f"{where}.tar", "."], check=True)
    return f"{where}.tar"


def owners_agree(r):
    """What lies in the store is of the folder's owner, whoever recorded."""
    told = r.run(f"test ! -d {STORE} || find {STORE} ! -user $(stat -c %U {STORE})").split()
    assert not told, told


class Doors:
    """One step each; what must hold after it."""

    def __init__(self, r, tmp_path):
        self.r, self.tmp_path, self.up, self.before, self.recorded = r, tmp_path, False, 0, False

    def make_install(self):
        self.r.put(tree_of_make_install(self.tmp_path), "/tmp/local.tar")
        self.r.run("tar -C / -xf /tmp/local.tar && ldconfig")

    def record(self):
        self.r.run(f"sonde record -d 2s --store {STORE} -- /tmp/burn 2000")
        self.recorded = True

    def deb(self):
        self.r.run("apt-get install -y --no-install-recommends /tmp/old/sonde.deb", timeout=600)

    def upgrade(self):
        self.r.run("apt-get install -y --no-install-recommends /tmp/new/sonde.deb", timeout=600)
        assert "0.0.9" not in self.r.run("dpkg-query -W -f '${Version}' sonde")

    def start(self):
        self.r.run("sonde up cpu")
        self.up = self.recorded = True

    def down(self):
        self.r.run("sonde down")
        self.up = False

    def remove(self):
        self.r.run("apt-get remove -y sonde")
        self.up = False
        if self.recorded:
            self.r.run(f"ls {STORE}/*.db")

    def purge(self):
        self.r.run("apt-get purge -y sonde")
        self.up, self.before, self.recorded = False, 0, False
        assert STORE not in self.r.names("sonde")

    def holds(self):
        """While a recorder is up, what runs is in the store; when none is, none is left; the folder has one owner."""
        owners_agree(self.r)
        if self.up:
            self.r.run("/tmp/burn 2000; sonde rotate")
            now = burned(self.r)
            assert now > self.before, (now, self.before)
            self.before = now
        else:
            assert not [p for p in self.r.inside() if comm(p).startswith("sonded")], "a recorder is left"


ORDERS = ["make_install record deb start down", "make_install record start down deb start upgrade down remove", "deb record start upgrade remove deb start purge",
          "deb start down record start remove purge", "make_install start deb upgrade down purge", "deb remove make_install record start down deb start down purge"]


@pytest.mark.parametrize("order", ORDERS, ids=["-".join(step[:3] for step in o.split()) for o in ORDERS])
def test_each_order_of_doors_records_and_leaves_one_owner(order, tmp_path):
    with root_of("bookworm") as r:
        r.put(package(), "/tmp/new/sonde.deb")
        r.put(of_another_version(tmp_path, "0.0.9"), "/tmp/old/sonde.deb")
        r.put(BURN, "/tmp/burn", 0o755)
        sources(r, "bookworm")
        # what `make install` needs, as README's first line installs it
        r.run("apt-get install -y --no-install-recommends libbpf1 libelf1 libdw1 libsqlite3-0 libjansson4 libinih1 zlib1g libzstd1 liblzma5 libseccomp2 libmicrohttpd12",
              timeout=600)
        doors = Doors(r, tmp_path)
        try:
            for step in order.split():
                getattr(doors, step)()
                doors.holds()
                print(step, flush=True)
        finally:
            r.run("sonde down", status=None)
