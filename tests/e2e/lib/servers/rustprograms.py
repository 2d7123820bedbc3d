# SPDX-License-Identifier: Apache-2.0
"""Programs with rustls inside, built by cargo: rustls/talk.rs with five versions of it, and as people build theirs.

Run as a program it builds all of them: rustprograms.py FOLDER"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
OLD = 'default = ["old"]'
NEW = 'default = ["new"]'
RING = 'default-features = false, features = ["ring", "tls12", "logging"'
# name: (rustls, tokio-rustls, features, profile, mangling)
PROGRAMS = {
    "0.20": ('"=0.20.9"', '"=0.23.4"', OLD, "", "legacy"),
    "0.21": ('"=0.21.12"', '"=0.24.1"', OLD, "", "legacy"),
    "0.22": ('"=0.22.4"', '"=0.25.0"', NEW, 'lto = "fat"\ncodegen-units = 1\npanic = "abort"', "v0"),
    "0.23.5": ('{ version = "=0.23.5", ' + RING + ', "std"] }', '{ version = "=0.26.0", ' + RING + "] }", NEW, 'lto = "thin"', "legacy"),
    "0.23": ('"=0.23.46"', '"=0.26.6"', NEW, "", "legacy"),  # with AWS-LC
}
CARGO = """
[package]
name = "{program}"
version = "0.1.0"
edition = "2021"
[features]
{features}
old = []
new = []
[[bin]]
name = "{program}"
path = "{source}"
[dependencies]
rustls = {rustls}
tokio-rustls = {tokio}
tokio = {{ version = "=1.54.1", features = ["rt-multi-thread", "net", "io-util", "macros"] }}
hyper = {{ version = "=1.12.0", features = ["full"] }}
hyper-util = {{ version = "=0.1.21", features = ["tokio"] }}
http-body-util = "=0.1.5"
bytes = "=1.12.2"
[profile.release]
{profile}
[workspace]
"""


class NoCrates(Exception):
    """The registry does not answer, or there is no cargo."""


def build(folder, name):
    """The program's path; built if it is not there yet. Its crates are kept in that folder."""
    rustls, tokio, features, profile, mangling = PROGRAMS[name]
    program = "talk-" + name.replace(".", "-")
    at = os.path.join(folder, program)
    os.makedirs(at, exist_ok=True)
    text = CARGO.format(program=program, features=features, source=os.path.join(HERE, "rustls", "talk.rs"), rustls=rustls, tokio=tokio, profile=profile)
    manifest = os.path.join(at, "Cargo.toml")
    if not os.path.exists(manifest) or open(manifest, encoding="utf-8").read() != text:
        with open(manifest, "w", encoding="utf-8") as f:
            f.write(text)
    env = dict(os.environ, CARGO_TARGET_DIR=os.path.join(folder, "target"))
    for each in ("MAKEFLAGS", "MFLAGS", "RUSTFLAGS"):
        env.pop(each, None)
    if mangling == "v0":
        env["RUSTFLAGS"] = "-Csymbol-mangling-version=v0"
    for offline in (["--offline"], []):
        try:
            done = subprocess.run(["cargo", "build", "--release", "--quiet", *offline], cwd=at, env=env, capture_output=True, text=True, timeout=3600)
        except FileNotFoundError as e:
            raise NoCrates("cargo") from e
        if not done.returncode:
            return os.path.join(folder, "target", "release", program)
    if re.search("failed to (get|download|fetch|query)|Unable to update|no matching package", done.stderr):
        raise NoCrates("crates of rustls: the registry does not answer")
    raise AssertionError(done.stderr[-3000:])


if __name__ == "__main__":
    for each in sys.argv[2:] or PROGRAMS:
        print(build(sys.argv[1], each), flush=True)
