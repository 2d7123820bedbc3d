# SPDX-License-Identifier: Apache-2.0
"""build: the load's programs, and those peers that can be had from a package registry by its ordinary client. What cannot be made is
named, with the reason, and its rows are left out."""
import os
import shutil
import subprocess

import agents
import bench
import loads

HERE = os.path.dirname(os.path.abspath(__file__))
OTEL = "go.opentelemetry.io/ebpf-profiler"
OTEL_VERSION = os.environ.get("OTEL_VERSION", "latest")


def programs():
    os.makedirs(loads.PROGRAMS, exist_ok=True)
    flags = ["-O2", "-fno-optimize-sibling-calls", "-fomit-frame-pointer"]
    for name, folder in (("recurse", loads.MIX), ("spawner", loads.MIX), ("pairs", loads.LOAD), ("rate", loads.LOAD)):
        subprocess.run(["gcc", *flags, "-o", f"{loads.PROGRAMS}/{name}", f"{folder}/{name}.c"], check=True)


def go(args, to, cwd=None):
    """None, or why it failed."""
    if not shutil.which("go"):
        return "no go"
    env = dict(os.environ, GOBIN=to, GOFLAGS="-buildvcs=false")
    done = subprocess.run(["nice", "go", *args], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    lines = done.stderr.strip().splitlines()
    return (lines[-1] if lines else f"go ended with {done.returncode}") if done.returncode else None


def peers():
    """{program: why it is not there}"""
    os.makedirs(agents.PEERS, exist_ok=True)
    missing = {}
    if not os.path.exists(f"{agents.PEERS}/sink"):
        missing["sink"] = go(["build", "-o", f"{agents.PEERS}/sink", "main.go"], agents.PEERS, cwd=f"{HERE}/sink")
    if not os.path.exists(f"{agents.PEERS}/ebpf-profiler"):
        missing["ebpf-profiler"] = go(["install", "-p", "1", f"{OTEL}@{OTEL_VERSION}"], agents.PEERS)
    return {name: why for name, why in missing.items() if why}


def said(argv):
    """What a program prints; "": it is not there or fails."""
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def versions():
    """Of what is compared: one line."""
    found = [' '.join(said([f'{bench.BIN}/sonde', '--version']).split()[:2]) or 'sonde']
    if os.path.exists(f"{agents.PEERS}/ebpf-profiler"):
        lines = said(["go", "version", "-m", f"{agents.PEERS}/ebpf-profiler"]).splitlines()
        found.append("opentelemetry-ebpf-profiler " + next((line.split()[2] for line in lines if line.split()[:1] == ["mod"]), "?"))
    for name in ("perf", "bpftrace"):
        if shutil.which(name):
            found.append(said([name, "--version"]).replace(" version", ""))
    return ", ".join(found)
