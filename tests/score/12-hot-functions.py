# SPDX-License-Identifier: Apache-2.0
"""The hot function of a C, a Go, a Java and a Python program is first, with 80 % and more; unnamed frames at most 5 %"""
import json
import os
import subprocess

from common import Scratch, check, later, need_root, sonde

need_root()
C = "static volatile unsigned long x;\nvoid __attribute__((noinline)) hot_c(void) { for (long i = 0; i < 100000; i++) x += i; }\nint main(void) { for (;;) hot_c(); }\n"
GO = "package main\n\nvar x uint64\n\n//go:noinline\nfunc hotGo() {\n\tfor i := uint64(0); i < 100000; i++ {\n\t\tx = x*31 + i\n\t}\n}\n\nfunc main() {\n\tfor {\n\t\thotGo()\n\t}\n}\n"
PYTHON = "import time\ndef hot_python(end):\n while time.monotonic() < end:\n  for i in range(100000): pass\nhot_python(time.monotonic() + 60)\n"
JAVA = "class Hot { static long spin(long n) { long x = 1; for (long i = 0; i < n; i++) x = x * 31 + i; return x; } public static void main(String[] a) { long x = 0; while (true) x += spin(100000); } }"


def programs(folder):
    """{language: (command, what its hot function is called)}"""
    def built(name, text, *command):
        source, program = os.path.join(folder, name), os.path.join(folder, name.replace(".", "-"))
        open(source, "w").write(text)
        subprocess.run([*command, "-o", program, source], check=False, cwd=folder, capture_output=True, env=dict(os.environ, GOFLAGS="-mod=mod"))
        return [program]

    open(os.path.join(folder, "Hot.java"), "w").write(JAVA)
    return {"C": (built("c.c", C, "gcc", "-O2"), "hot_c"),
            "Go": (built("go.go", GO, "go", "build"), "main.hotGo"),
            "Python": (["/usr/bin/python3", "-c", PYTHON], "hot_python"),
            "Java": (["java", os.path.join(folder, "Hot.java")], "spin")}


def rank(folder, language, command):
    """(first function, its share, share of samples without a name)"""
    store = os.path.join(folder, language)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        try:
            done = sonde("record", "-d", "4s", "-F", "499", "-p", child.pid, "-q", store=store)
            check(done.returncode == 0, f"{language}: {done.stderr}")
        finally:
            child.kill()
    rows = json.loads(sonde("stacks", "--json", "-n", "100000", store=store).stdout)["rows"]
    whole = sum(r["self_ns"] for r in rows)
    unnamed = sum(r["self_ns"] for r in rows if not r.get("named", True) or "+0x" in (r["function"] or ""))
    return rows[0]["function"], rows[0]["self_ns"] / whole, unnamed / whole


with Scratch() as folder:
    good, bad = [], []
    for language, (command, hot) in programs(folder).items():
        if not os.path.exists(command[0]) and "/" in command[0] or (language == "Java" and subprocess.run(
                ["which", "java"], capture_output=True).returncode):
            bad.append(f"{language} (no such program here)")
            continue
        name, share, unnamed = rank(folder, language, command)
        ok = hot in name and share >= 0.8 and unnamed <= 0.05
        (good if ok else bad).append(f"{language}: {name} {share:.0%}, unnamed {unnamed:.0%}")
    families = [x for x in bad if x.startswith(("Python", "Java"))]
    check(len(families) == len(bad), "; ".join(bad))
    said = "; ".join(good)
    if bad:
        later(f"names of interpreted and JIT code come with later families: {'; '.join(bad)} (holds: {said})")
    print(said)
