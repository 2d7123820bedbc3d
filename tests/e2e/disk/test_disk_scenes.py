# SPDX-License-Identifier: Apache-2.0
"""Family disk as a host meets it: programs of every day, judged by what the kernel or other programs count of them."""
import json
import os
import subprocess
import sys
import time

import loops
import pytest
from conftest import BIN, need, need_root, sql_all

MIB = 1 << 20


@pytest.fixture
def disk():
    """(device, folder): an ext4 that nobody else uses."""
    with loops.device(700 * MIB) as (path, _), loops.mounted(path) as where:
        yield path, where


def io_of(argv):
    """(pid, /proc/PID/io when it had ended, before its parent took its sums)"""
    child = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    with open(f"/proc/{child.pid}/io", encoding="ascii") as f:
        io = {k: int(v) for k, v in (line.split(": ") for line in f)}
    assert child.wait() == 0, argv
    return child.pid, io


def cold(folder):
    """Nothing of its files is in the page cache."""
    os.sync()
    for at, _, names in os.walk(folder):
        for name in names:
            fd = os.open(f"{at}/{name}", os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


@pytest.mark.long
def test_bytes_of_a_process_are_those_of_its_io_file_without_its_childrens(capture, store, disk):
    """dd direct and buffered, tar and rsync; the shell that starts them gets their sums in /proc/PID/io, and has none here."""
    need("rsync")
    path, where = disk
    os.mkdir(f"{where}/tree")
    for i in range(8):
        with open(f"{where}/tree/{i}", "wb") as f:
            f.write(os.urandom(2 * MIB))
    cap = capture("--bucket", "1s", program="sonde-disk")
    commands = {"dd direct": ["dd", "if=/dev/zero", f"of={where}/direct", "bs=64k", "count=256", "oflag=direct"],
                "dd buffered": ["dd", "if=/dev/zero", f"of={where}/buffered", "bs=64k", "count=256"],
                "dd reads": ["dd", f"if={where}/direct", "of=/dev/null", "bs=64k", "iflag=direct"],
                "tar": ["tar", "cf", f"{where}/all.tar", "-C", where, "tree"],
                "rsync": ["rsync", "-a", "--whole-file", f"{where}/tree/", f"{where}/copy/"],
                "shell": ["sh", "-c", f"dd if={where}/direct of=/dev/null bs=64k iflag=direct; dd if=/dev/zero of={where}/child bs=64k count=64; exit 0"]}
    ios = {}
    for name, argv in commands.items():
        cold(where)
        ios[name] = io_of(argv)
    os.sync()
    time.sleep(2.5)
    cap.stop()
    name = os.path.basename(path)
    rows = sql_all(store, f"SELECT pid, sum(iif(disk = '{name}', read_bytes, 0)) AS got, sum(iif(disk = '{name}', write_bytes, 0)) AS put, sum(dirty_bytes) AS dirty FROM disk_files"
                          f" WHERE pid IN ({', '.join(str(pid) for pid, _ in ios.values())}) AND (file LIKE '{where}%' OR disk = '{name}') GROUP BY pid")
    got = {r["pid"]: r for r in rows}
    pids = {k: pid for k, (pid, _) in ios.items()}
    assert got[pids["dd direct"]]["put"] == 16 * MIB == ios["dd direct"][1]["write_bytes"]
    assert got[pids["dd reads"]]["got"] == 16 * MIB == ios["dd reads"][1]["read_bytes"]
    for one, size in (("dd buffered", 16 * MIB), ("tar", 16 * MIB)):
        io = ios[one][1]
        assert size <= io["write_bytes"] and got[pids[one]]["dirty"] == pytest.approx(io["write_bytes"], rel=0.02), (one, io, rows)
    read = got[pids["tar"]]["got"]
    assert 16 * MIB <= read <= ios["tar"][1]["read_bytes"] and read >= 0.98 * ios["tar"][1]["read_bytes"], (ios["tar"], rows)  # that has what else it read: its own program
    copied = sql_all(store, f"SELECT comm, sum(dirty_bytes) AS dirty FROM disk_files WHERE file LIKE '{where}/copy/%' AND dirty_bytes > 0 GROUP BY comm")
    assert [(r["comm"], r["dirty"]) for r in copied] == [("rsync", 16 * MIB)]
    assert ios["shell"][1]["read_bytes"] >= 16 * MIB and ios["shell"][1]["write_bytes"] >= 4 * MIB  # its children's
    own = got.get(pids["shell"], {"got": 0, "dirty": 0, "put": 0})
    assert not any((own["got"] or 0, own["put"] or 0, own["dirty"] or 0)), rows


PLANTED = """
import mmap, os, sys, time
how, path, end = sys.argv[1], sys.argv[2], time.monotonic() + float(sys.argv[3])
flags = os.O_RDWR | os.O_CREAT | (os.O_DIRECT if how == "direct" else 0)
fd, n, page = os.open(path, flags, 0o600), 0, mmap.mmap(-1, 1 << 20)
while time.monotonic() < end and n < 24:  # a mebibyte each quarter of a second
    if how == "log":
        for _ in range(1024): os.write(fd, b"l" * 1024)
    elif how == "mapped":
        os.ftruncate(fd, (n + 1) << 20)
        with mmap.mmap(fd, (n + 1) << 20) as m:
            for at in range(n << 20, (n + 1) << 20, 4096): m[at] = 1
    elif how == "direct":
        os.pwrite(fd, page, n << 20)
    elif how == "fallocate":
        os.posix_fallocate(fd, n << 20, 1 << 20)
    elif how == "many":
        for k in range(4):
            with open(f"{path}.{n}.{k}", "wb") as f: f.write(b"m" * (256 << 10))
    n += 1
    time.sleep(0.25)
"""
BESIDE = """
import os, sys, time
sparse, inside = (os.open(f"{sys.argv[1]}/{name}", os.O_RDWR | os.O_CREAT, 0o600) for name in ("sparse", "inside"))
for n in range(200):
    os.pwrite(sparse, b"s" * 4096, n << 28)  # its size grows by 256 MiB, and it takes a page
    os.pwrite(inside, b"p" * (1 << 20), (n % 64) << 20)  # more is written, into what it has already
    time.sleep(0.1)
"""


@pytest.mark.long
@pytest.mark.parametrize("how", ["log", "mapped", "direct", "fallocate", "many"])
def test_who_fills_the_disk_is_named_first(how, sonde, disk, tmp_path):
    """Beside a file whose size grows a thousand times as fast but takes nothing, and one that was laid out before and of which more is written."""
    path, where = disk
    store = str(tmp_path / "store")
    with open(f"{where}/inside", "wb") as f:
        os.posix_fallocate(f.fileno(), 0, 64 * MIB)
        os.fsync(f.fileno())
    with open(f"{store}.said", "w", encoding="utf-8") as said:
        recording = subprocess.Popen([f"{BIN}/sonde", "record", "--families", "host,disk", "-d", "34s", "--store", store], stderr=said)
    while open(f"{store}.said", encoding="utf-8").read().count("recording ") < 2:  # both families say so
        assert recording.poll() is None, open(f"{store}.said", encoding="utf-8").read()
        time.sleep(0.2)
    os.mkdir(f"{where}/home")
    beside = subprocess.Popen([sys.executable, "-c", BESIDE, where])
    filler = subprocess.Popen([sys.executable, "-c", PLANTED, how, f"{where}/home/{how}", "20"])
    filler.wait()
    beside.kill()
    beside.wait()
    assert recording.wait() == 0
    rows = json.loads(sonde("disk", "--full", "--json", "-n", "0", store=store, check=True).stdout)["rows"]
    (mount,) = [r for r in rows if r["mount"] == where]
    grew = {name: 512 * os.stat(f"{where}/home/{name}").st_blocks for name in os.listdir(f"{where}/home")}
    first = mount["by"][0]
    assert os.path.dirname(first["file"]) == f"{where}/home" and first["pid"] == filler.pid, mount
    if how == "many":
        assert all(os.path.dirname(b["file"]) == f"{where}/home" for b in mount["by"][:3]), mount
        name = first["file"].rsplit("/", 1)[1]
        assert name == "~other" or first["grown_bytes"] == grew[name], mount
    else:
        assert first["file"] == f"{where}/home/{how}" and first["grown_bytes"] == pytest.approx(grew[how], rel=0.01), (mount, grew)
    (sum_,) = sql_all(store, f"SELECT sum(coalesce(grown_bytes, 0) - coalesce(shrunk_bytes, 0)) AS n FROM disk_files WHERE file LIKE '{where}/home/%'")
    said = subprocess.run(["du", "-s", "-B1", f"{where}/home"], capture_output=True, text=True, check=True).stdout
    assert sum_["n"] == pytest.approx(int(said.split()[0]), rel=0.01), (sum_, said)  # du's has the folder itself, a block


@pytest.mark.long
def test_a_deleted_log_of_two_gigabytes_that_is_held_open(sonde, capture, store):
    """`df` says what is free once it is closed; of two that hold it the older one is named."""
    need_root()
    folder = "/var/tmp"
    space = os.statvfs(folder)
    if space.f_bavail * space.f_frsize < 5 << 30:
        pytest.skip("missing: 5 GiB in /var/tmp")
    name = f"{folder}/sonde-held-{os.getpid()}.log"
    held = subprocess.Popen([sys.executable, "-c", "import os, sys, time\nfd = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)\nos.posix_fallocate(fd, 0, 2 << 30)\nprint(os.fstat(fd).st_blocks, flush=True)\n"
                             "if not os.fork(): time.sleep(600)\ntime.sleep(600)", name], stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        took = 512 * int(held.stdout.readline())
        os.unlink(name)
        cap = capture("--bucket", "1s", program="sonde-disk")
        time.sleep(1)
        cap.stop()
    finally:
        os.killpg(held.pid, 9)
        held.wait()
    answer = json.loads(sonde("disk", "--deleted", "--json", store=store, check=True).stdout)
    (row,) = [r for r in answer["rows"] if r["file"] == name]
    assert took >= 2 << 30 and (row["bytes"], row["pid"], row["holders"], row["mount"]) == (took, held.pid, 2, mount_of(folder))
    assert answer["rows"][0]["bytes"] >= took and answer["bytes"] >= took


def mount_of(path):
    return subprocess.run(["findmnt", "-n", "-o", "TARGET", "-T", path], capture_output=True, text=True, check=True).stdout.strip()


STORM = """
import os, sys
for i in range(int(sys.argv[1])):
    if not os.fork():
        try:
            os.execvp("nosuchtool", ["nosuchtool"])  # each folder of PATH in turn
        except OSError:
            os._exit(0)
    os.wait()
"""


def test_a_wrong_path_is_a_storm_of_programs_that_are_not_there(sonde, capture, store, tmp_path):
    """strace, or the loop that starts them, knows how often. A folder that may not be entered is refused."""
    need_root()
    folders = [f"/nowhere/{i}" for i in range(6)]
    locked = tmp_path / "locked"
    locked.mkdir(mode=0)
    env = dict(os.environ, PATH=":".join([*folders, str(locked)]))
    cap = capture("--comm", "python3", program="sonde-disk")
    user = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    os.chmod(tmp_path, 0o755)
    subprocess.run([*user, "/usr/bin/python3", "-c", STORM, "60"], env=env, check=True)
    lost = cap.stop()["lost_total"]
    rows = sql_all(store, "SELECT path, error, sum(opens) AS n FROM failed_opens WHERE path LIKE '%/nosuchtool' GROUP BY 1, 2")
    told = {(r["path"], r["error"]): r["n"] for r in rows}
    want = {(f"{f}/nosuchtool", "ENOENT"): 60 for f in folders}
    assert set(want) <= set(told) and all(60 - lost <= told[k] <= 60 for k in want), (told, lost)
    assert sum(n for (_, error), n in told.items() if error == "EACCES") in range(60 - lost, 61), told
    shown = json.loads(sonde("disk", "--opens", "--json", store=store, check=True).stdout)["rows"]
    assert {r["path"] for r in shown[:7]} >= set(f"{f}/nosuchtool" for f in folders), shown[:10]
