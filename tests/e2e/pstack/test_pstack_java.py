# SPDX-License-Identifier: Apache-2.0
"""sonde pstack of Java programs: each Java frame of each thread against what the JVM itself says of it (tests/workloads/scripts/JavaStand.java by
Thread.getStackTrace, jcmd Thread.print). ShowHiddenFrames makes Java say those too that it leaves out of its stacks: it changes nothing else."""
import os
import re
import shutil
import subprocess

import pytest

from conftest import need, need_root
from scripting import JDKS, TEMURIN, Standing, between, compiled, other_jdk, rows, script, unpacked

TOLD = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+ShowHiddenFrames"]


def jdk_of_sid(version, name="JavaStand"):
    """In its own root, which is also the test's; JDK 8 finds its libraries by /proc/self/exe."""
    usr = unpacked("sid", f"openjdk-{version}-jre-headless libc6 zlib1g libstdc++6 libgcc-s1".split())
    java = f"/usr/lib/jvm/java-{version}-openjdk-amd64/{'jre/' if version == '8' else ''}bin/java"
    root = os.path.dirname(usr)
    for folder in ("proc", "tmp", "classes"):
        os.makedirs(os.path.join(root, folder), exist_ok=True)
    for link in ("lib", "lib64"):
        if not os.path.lexists(os.path.join(root, link)):
            os.symlink(f"usr/{link}", os.path.join(root, link))
    mounts = f"mount --bind /proc {root}/proc && mount --bind {compiled(name, 8)} {root}/classes"
    return ["unshare", "-m", "sh", "-c", f'{mounts} && exec chroot {root} {java} "$@"', "java"]


def plain(frames):
    """Java 8 and 11 write a number behind the name of a class made for a lambda, which the class itself does not have; 8 makes up a place in it."""
    return [[re.sub(r"(\$\$Lambda\$\d+|LambdaForm\$\w+)/(0x)?\w+", r"\1", f[0]), *([None, None] if f[1] == "<Unknown>" else f[1:])] for f in frames]


def check_all(sonde, store, scratch, command, *args):
    """Every frame of every thread. Returns the rows by thread's name."""
    classes = "/classes" if command[0] == "unshare" else compiled()
    with Standing([*command, *TOLD, "-cp", classes, "JavaStand", *args], cwd=scratch) as s:
        seen = {r["thread"]: r for r in rows(sonde, store, "-p", s.pid)}
    assert len(s.told) > 12
    for name, frames in s.told.items():
        row = seen[name]
        assert not row["moved"] and not row["end"], row
        assert plain(script(row, "java")) == plain(frames), name
    return seen


def check_places(seen):
    """Natives between Java frames, and below them."""
    names = [f["function"] for f in seen["initialised"]["frames"]]
    assert any("JavaCalls::call_helper" in (n or "") for n in between(seen["initialised"], "java", "JavaStand$Initialised.<clinit>",
                                                                     next(n for n in names if n and re.match(r"JavaStand\.lambda\$main\$\d+$", n))))
    assert any("Unsafe_Park" in (n or "") for n in names[:names.index("jdk.internal.misc.Unsafe.park")])
    assert any("JavaThread::" in (n or "") for n in names[-8:]) and names[-1] in ("clone3", "__clone3", "clone")


@pytest.mark.parametrize("options", [[], ["-Xint"], ["-Xcomp"]])
def test_java_frames_are_what_the_program_says_and_at_their_places(sonde, store, scratch, options):
    """Debian's JDK 17: interpreted and compiled, with what was inlined."""
    need_root()
    need("java")
    check_places(check_all(sonde, store, scratch, ["java", *options], *([] if options else ["warm"])))


def modes(command):
    return [(command, []), (command, ["warm"]), ([*command, "-Xint"], []), ([*command, "-Xcomp"], []), ([*command, "-XX:TieredStopAtLevel=1"], ["warm"]),
            ([*command, "-XX:+UseSerialGC", "-XX:-TieredCompilation"], ["warm"])]


@pytest.mark.live
def test_each_compiler_and_collector_of_java_17(sonde, store, scratch):
    need_root()
    need("java")
    for command, args in modes(["java"]):
        check_all(sonde, store, scratch, command, *args)


@pytest.mark.live
def test_a_jdk_25_of_others(sonde, store, scratch):
    need_root()
    need("Temurin 25", TEMURIN)
    for command, args in modes([TEMURIN]) + [([TEMURIN, "-XX:+UseZGC"], ["warm"])]:
        check_all(sonde, store, scratch, command, *args)


@pytest.mark.live
def test_java_11_of_debian_bullseye(sonde, store, scratch):
    need_root()
    for command, args in modes(other_jdk("11"))[:4]:
        check_all(sonde, store, scratch, command, *args)


@pytest.mark.live
def test_java_21_of_debian_trixie(sonde, store, scratch):
    need_root()
    java = other_jdk("21")
    for command, args in modes(java)[:4] + [([*java, "-XX:+UseZGC"], ["warm"])]:
        check_all(sonde, store, scratch, command, *args)


@pytest.mark.live
@pytest.mark.parametrize("version", ["8", "26", "27", "28"])
def test_the_oldest_and_the_newest_jdk_of_debian_sid(sonde, store, scratch, version):
    """27 and 28 came after this reader: their tables and their own compiled methods must say enough."""
    need_root()
    for command, args in modes(jdk_of_sid(version))[:5]:
        check_all(sonde, store, scratch, command, *args)


def altered_jdk(scratch, *names):
    """A copy of Temurin's JDK whose tables do not have these names: what a later JDK may be."""
    home, old = os.path.join(scratch, "jdk"), os.path.dirname(os.path.dirname(TEMURIN))
    shutil.rmtree(home, ignore_errors=True)
    subprocess.run(["cp", "-as", old, home], check=True)
    for path in ("bin/java", "lib/libjli.so", "lib/server/libjvm.so"):
        os.unlink(os.path.join(home, path))
        shutil.copy(os.path.join(old, path), os.path.join(home, path))
    with open(os.path.join(home, "lib/server/libjvm.so"), "r+b") as f:
        held = f.read()
        for name in names:
            at = held.find(b"\0" + name.encode() + b"\0")
            assert at >= 0, name
            while at >= 0:
                f.seek(at + 1)
                f.write(b"#")
                at = held.find(b"\0" + name.encode() + b"\0", at + 1)
    return [os.path.join(home, "bin/java")]


def shown_of(sonde, store, scratch, command, *args):
    """(frames of threads that Java tells, those that sonde shows, lines among them, what doctor says of Java): each that is shown is one that is there, in
    this order, and has its line or none."""
    told = shown = lines = 0
    with Standing([*command, *TOLD, "-cp", compiled(), "JavaStand", *args], cwd=scratch) as s:
        seen = {r["thread"]: r for r in rows(sonde, store, "-p", s.pid)}
        said = sonde("doctor", "--pid", s.pid).stdout
    for name, frames in s.told.items():
        rest = iter(plain(frames))
        for function, file, line in plain(script(seen[name], "java")):
            match = next((f for f in rest if f[0] == function), None)
            assert match and file in (None, match[1]) and line in (None, match[2]), (name, function, file, line, frames)
            shown += 1
            lines += line is not None
        told += len(frames)
    return told, shown, lines, next(line for line in said.splitlines() if "java" in line and "script frames" in line)


ALTERED = [  # what is missing, what must be there still: every frame; every frame and its line
    (["Abstract_VM_Version"], True, True), (["ConstMethodFlags::_misc_has_linenumber_table"], True, False), (["_deopt_handler_offset"], True, True),
    (["_immutable_data", "Abstract_VM_Version"], False, True), (["_mutable_data"], False, True), (["_scopes_pcs_offset"], False, False),
    (["frame::entry_frame_call_wrapper_offset"], False, False), (["_last_Java_fp"], False, False), (["_buffer_limit"], False, False),
    (["_source_file_name_index", "_segmap"], False, False)]


WITHOUT = ("ConstMethodFlags::_misc_has_linenumber_table", "_scopes_pcs_offset", "_buffer_limit")  # of these doctor says what they cost


@pytest.mark.live
@pytest.mark.parametrize("names, whole, lined", ALTERED, ids=["+".join(a[0]) for a in ALTERED])
def test_a_jdk_whose_tables_lack_a_name_shows_less_and_nothing_wrong(sonde, store, scratch, names, whole, lined):
    need_root()
    need("Temurin 25", TEMURIN)
    java = altered_jdk(scratch, *names)
    for command, args in [(java, []), (java, ["warm"]), ([*java, "-Xcomp"], [])]:
        told, shown, lines, said = shown_of(sonde, store, scratch, command, *args)
        assert shown == told or not whole
        assert lines > (shown / 2 if whole else 0) or not lined  # compiled frames have none where something is missing
        assert ("without" in said) == any(n in WITHOUT for n in names), said


@pytest.mark.live
def test_frames_are_those_that_jcmd_prints(sonde, store, scratch):
    """Of all threads that run Java, the JVM's own among them."""
    need_root()
    need("jcmd")
    with Standing(["java", "-cp", compiled(), "JavaStand"], cwd=scratch) as s:
        printed = subprocess.run(["jcmd", str(s.pid), "Thread.print"], capture_output=True, text=True, check=True).stdout
        seen = {r["tid"]: script(r, "java") for r in rows(sonde, store, "-p", s.pid)}
    told = {}
    for block in printed.split("\n\n"):
        tid = re.search(r"nid=0x([0-9a-f]+)", block)
        frames = re.findall(r"^\tat (?:[\w.@]*/)?([\w.$<>/]+)\((?:[\w.]+@[\w.+-]+/)?([^)]*)\)", block, re.M)
        if tid and frames:
            told[int(tid[1], 16)] = [[f, int(at.split(":")[1]) if ":" in at else None] for f, at in frames]
    assert len(told) > 15
    for tid, frames in told.items():
        ours = [[f[0], f[2]] for f in seen[tid]]
        assert [f for f in ours if "/0x" not in f[0]] == [f for f in frames if "/0x" not in f[0]]


BUSY = """
import java.util.*;
public class Busy {
    static int rests() throws Exception {
        Thread.sleep(new Random().nextInt(2) * 20, 100000);
        return 0;
    }
    static int one(int n) throws Exception {
        return n % 2 == 1 ? two(n - 1) : three(n - 1);
    }
    static int two(int n) throws Exception {
        return n <= 0 ? rests() : one(n - 1) + 1;
    }
    static int three(int n) throws Exception {
        return n <= 0 ? rests() : two(n - 1);
    }
    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 4; i++) {
            Thread t = new Thread(() -> {
                try {
                    while (true)
                        one(new Random().nextInt(30));
                } catch (Exception e) { }
            });
            t.setDaemon(true);
            t.start();
        }
        System.out.println("x");
        System.in.read();
    }
}
"""


@pytest.mark.long
def test_a_java_program_that_does_not_stand_still_is_never_shown_torn(sonde, store, scratch):
    """Each frame stands on a line that calls the frame before it, while its code is being compiled."""
    need_root()
    need("javac")
    path = os.path.join(scratch, "Busy.java")
    with open(path, "w", encoding="utf-8") as f:
        f.write(BUSY)
    subprocess.run(["javac", "-d", scratch, path], check=True, capture_output=True)
    lines, shown = BUSY.splitlines(), 0
    child = subprocess.Popen(["java", "-cp", scratch, "Busy"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        for _ in range(40):
            for row in rows(sonde, store, "-p", child.pid):
                frames = [f for f in script(row, "java") if f[0].startswith("Busy.")]
                for callee, caller in zip(frames, frames[1:]):
                    assert callee[0].split(".")[1] + "(" in lines[caller[2] - 1], (callee, caller)
                shown += len(frames) > 2 and not row["moved"]
            if shown >= 20:
                break
        assert shown >= 3
    finally:
        child.kill()
        child.wait(20)
        child.stdin.close()
        child.stdout.close()


def test_a_process_that_lies_about_its_jvm_is_not_believed(sonde, store, scratch):
    """A program with tables that lead nowhere: its stack is shown as native, and nobody falls."""
    need_root()
    need("gcc")
    with open(os.path.join(ROOT, "loaders", "index", "runtimes", "hotspotpart.c"), encoding="utf-8") as f:
        wanted = re.findall(r"\{HOTSPOT_(\w+), (\w+), \"([^\"]+)\", (?:\"([^\"]+)\"|NULL)\}", f.read())
    statics = {"VERSION", "THREADS", "FIRST_THREAD", "HEAPS", "LOW", "HIGH", "INTERPRETER", "CALL_RETURN"}
    rows_of = {table: [w for w in wanted if w[1] == table] for table in ("STRUCTS", "TYPES", "CONSTANTS")}
    structs = ",\n".join(f'{{"{t}", "{m}", "x", {int(n in statics)}, 0, {"&word" if n in statics else "0"}}}' for n, _, t, m in rows_of["STRUCTS"])
    types = ",\n".join(f'{{"{t}", 0, 0, 0, 0, 0, 16}}' for _, _, t, _ in rows_of["TYPES"])
    constants = ",\n".join(f'{{"{t}", 1}}' for _, _, t, _ in rows_of["CONSTANTS"])
    source = os.path.join(scratch, "lie.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write(f"""
#include <stdint.h>
#include <unistd.h>
uint64_t word = 17;
struct {{ const char *type, *member, *of; uint32_t is_static; uint64_t offset; void *address; }} structs[] = {{ {structs}, {{0}} }}, *gHotSpotVMStructs = structs;
struct {{ const char *name, *super; uint32_t a, b, c; uint32_t pad; uint64_t size; }} types[] = {{ {types}, {{0}} }}, *gHotSpotVMTypes = types;
struct {{ const char *name; int value; }} constants[] = {{ {constants}, {{0}} }}, *gHotSpotVMIntConstants = constants;
int main(void) {{
	char c;
	write(1, "x", 1);
	return (int)read(0, &c, 1);
}}
""")
    subprocess.run(["gcc", "-O1", "-g", "-rdynamic", "-w", "-o", os.path.join(scratch, "lie"), source], check=True, capture_output=True)
    child = subprocess.Popen([os.path.join(scratch, "lie")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        [row] = rows(sonde, store, "-p", child.pid)
    finally:
        child.stdin.close()
        child.wait(20)
        child.stdout.close()
    names = [f["function"] for f in row["frames"] if not f["kernel"]]
    assert "main" in names and not script(row, "java")
