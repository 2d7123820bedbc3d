#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""script_frames: what frames of scripts cost a sample.

1. A recursion of so many functions at 4999 Hz, beside one of none: what the program takes for a stack, by its own clock, and so for a frame.
   To reach: 6 us for a stack of 40 frames of Python, warm.
   The same of 40 functions that differ, for Python.
2. At 99 Hz with all CPUs busy in the language: what walking them adds, in cores: the difference of 1 by the samples a second, and what the
   loader takes beside one that records a native program as busy. To reach: 0.5 %.
3. 200 scripts of Python of 50 ms each, one after the other: how many of the samples in the interpreter's loop carry the script's names. To
   reach: 80 %.

How many are right, tests/e2e/names/test_python_frames.py, test_script_frames.py and test_java_frames.py judge.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOADER = os.path.join(os.environ.get("B", os.path.join(ROOT, "build")), "bin", "sonde-cpu")
DEEP = {"python": """
import sys, time
sys.setrecursionlimit(5000)
def spin(until):
    while time.time() < until:
        for i in range(20000): pass
def deep(n, until):
    return deep(n - 1, until) if n else spin(until)
sys.stdout.write("x"); sys.stdout.flush()
deep(int(sys.argv[1]), time.time() + float(sys.argv[2]))
""", "php": """
function spin($until) { while (microtime(true) < $until) for ($i = 0; $i < 20000; $i++); }
function deep($n, $until) { return $n ? deep($n - 1, $until) : spin($until); }
echo "x";
deep((int)$argv[1], microtime(true) + (float)$argv[2]);
""", "ruby": """
def spin(upto)
  while Process.clock_gettime(0) < upto
    i = 0
    i += 1 while i < 20000
  end
end
def deep(n, upto) = n > 0 ? deep(n - 1, upto) : spin(upto)
$stdout.write("x"); $stdout.flush
deep(ARGV[0].to_i, Process.clock_gettime(0) + ARGV[1].to_f)
""", "perl": """
sub spin { my $i; while (time() < $_[0]) { $i = 0; $i++ while $i < 20000 } }
sub deep { my ($n, $until) = @_; return $n ? deep($n - 1, $until) : spin($until) }
$| = 1; print "x";
deep($ARGV[0], time() + $ARGV[1]);
""", "java": """
public class Deep {
    static volatile long kept;
    static void spin(long until) { while (System.nanoTime() < until) for (int i = 0; i < 20000; i++) kept += i; }
    static void deep(int n, long until) { if (n > 0) deep(n - 1, until); else spin(until); }
    public static void main(String[] a) { System.out.print("x"); System.out.flush(); deep(Integer.parseInt(a[0]), System.nanoTime() + (long) (Double.parseDouble(a[1]) * 1e9)); }
}
"""}
DIFFERENT = """
import sys, time
def f0(until):
    while time.time() < until:
        for i in range(20000): pass
""" + "".join(f"def f{i}(until): return f{i - 1}(until)\n" for i in range(1, 38)) + """
sys.stdout.write("x"); sys.stdout.flush()
[f0, f37][int(sys.argv[1]) > 0](time.time() + float(sys.argv[2]))
"""
NATIVE = os.path.join(os.environ.get("B", os.path.join(ROOT, "build")), "tests", "workloads", "shares")
SHORT = "import time\ndef fifty():\n  until = time.process_time() + 0.05\n  while time.process_time() < until: pass\nfifty()"
FLAG = {"python": ["-c"], "php": ["-n", "-r"], "ruby": ["--disable-gems", "-e"], "perl": ["-e"], "java": []}


def capture(pids, freq, seconds, store):
    """sonde-cpu's last word."""
    read, write = os.pipe()
    done = subprocess.run([LOADER, "--freq", str(freq), "--store", store, "--duration", f"{seconds}s", *pids, "--progress-fd", str(write)],
                          pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(read) as f:
        told = [json.loads(line) for line in f]
    assert done.returncode == 0
    return next(t for t in told if t["event"] == "done")


def sample(command, depth, freq, seconds, store, programs=1):
    """sonde-cpu's last word on programs of that depth."""
    running = [subprocess.Popen([*command, str(depth), str(seconds + 4)], stdout=subprocess.PIPE) for _ in range(programs)]
    for p in running:
        p.stdout.read(1)
    try:
        return capture([a for p in running for a in ("--pid", str(p.pid))], freq, seconds, store)
    finally:
        for p in running:
            p.kill()
            p.wait()
            p.stdout.close()


def native(freq, seconds, store):
    """sonde-cpu's last word on native programs, as many as CPUs."""
    running = [subprocess.Popen([NATIVE, str(seconds + 4)], stdout=subprocess.DEVNULL) for _ in range(os.cpu_count())]
    try:
        return capture([a for p in running for a in ("--pid", str(p.pid))], freq, seconds, store)
    finally:
        for p in running:
            p.kill()
            p.wait()


def short_scripts(program, scripts):
    """(samples in a stack of the interpreter's loop, those of them with names of the script, all of user code)"""
    sys.path[:0] = [os.path.join(ROOT, "tests", "e2e", d) for d in ("", "lib", "lib/servers")]
    from scripting import stacks
    sonde = os.path.join(os.path.dirname(LOADER), "sonde")
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as store:
        run = f"for i in $(seq {scripts}); do {program} -S -E -c '{SHORT}'; done"
        subprocess.run([sonde, "record", "--store", store, "-q", "--families", "cpu", "--freq", "997", "--", "sh", "-c", run], check=True)
        running = named = user = 0
        for frames, n in stacks(store, "cpu"):
            names = [f for _, f, _, _ in frames]
            user += n
            if any(f in ("_PyEval_EvalFrameDefault", "PyEval_EvalCode") for f in names):
                running += n
                named += n * any(runtime == "python" and f for runtime, f, _, _ in frames)
    return running, named, user


def command_of(runtime, program, folder):
    if runtime != "java":
        return [program, *FLAG[runtime], DEEP[runtime]] + (["--"] if runtime != "python" else [])
    path = os.path.join(folder, "Deep.java")
    with open(path, "w", encoding="utf-8") as f:
        f.write(DEEP["java"])
    subprocess.run(["javac", "-d", folder, path], check=True)
    return [program, "-cp", folder, "Deep"]


def measure(runtime, program, smoke):
    seconds, rounds = (1, 1) if smoke else (3, 5)
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as store, tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        command = command_of(runtime, program, folder)
        sample(command, 37, 99, 1, store)  # the indexes
        flat = sorted(sample(command, 0, 4999, seconds, store)["probe_ns"] for _ in range(rounds))[0]
        deep = sorted(sample(command, 37, 4999, seconds, store)["probe_ns"] for _ in range(rounds))[0]
        slow = sample(command, 37, 99, (2 if smoke else 10) * seconds, store, os.cpu_count())
        slow_flat = sample(command, 0, 99, (2 if smoke else 10) * seconds, store, os.cpu_count())
        plain = native(99, (2 if smoke else 10) * seconds, store)
        if runtime == "python":
            differ = sorted(sample([program, "-c", DIFFERENT], 37, 4999, seconds, store)["probe_ns"] for _ in range(rounds))[0]
            print(f"python, 40 functions that differ: {differ / 1000:.1f} us a stack")
    added = (slow["probe_ns"] - slow_flat["probe_ns"]) * slow["samples"] / (slow["to"] - slow["from"]) / 1e9
    print(f"{runtime}, warm, 4999 Hz: {deep / 1000:.1f} us a stack of 40 script frames and some native ones; {flat / 1000:.1f} us with 3; "
          f"{(deep - flat) / 37:.0f} ns a frame (least of {rounds} rounds)")
    print(f"{runtime}, 99 Hz, {os.cpu_count()} CPUs busy: {slow['probe_ns'] / 1000:.1f} us a stack, {slow_flat['probe_ns'] / 1000:.1f} us with 3: "
          f"{100 * added:.3f} % of a core added in the kernel; the loader "
          f"{100 * slow['self_cores']:.2f} % of a core, of native programs {100 * plain['self_cores']:.2f} %", flush=True)
    return added <= 0.005 and (runtime != "python" or deep <= 6000)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--runtimes", default="python,php,ruby,perl,java")
    p.add_argument("--python", default="/usr/bin/python3")
    p.add_argument("--smoke", action="store_true")
    a = p.parse_args()
    fine = True
    for runtime in a.runtimes.split(","):
        program = a.python if runtime == "python" else shutil.which(runtime)
        if program:
            fine &= measure(runtime, program, a.smoke)
            if runtime == "python":
                running, named, user = short_scripts(program, 10 if a.smoke else 200)
                print(f"python, {10 if a.smoke else 200} scripts of 50 ms: {named} of {running} samples in the interpreter's loop carry the script's names, "
                      f"of {user} of their whole lives", flush=True)
                fine &= named >= 0.8 * running
        else:
            print(f"{runtime}: missing")
    return 0 if a.smoke or fine else 1


if __name__ == "__main__":
    sys.exit(main())
