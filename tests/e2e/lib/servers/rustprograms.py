# SPDX-License-Identifier: Apache-2.0
"""Programs built by cargo with TLS inside: rustls/talk.rs with five versions of rustls, rustls/stack.rs with what people build on it (axum, reqwest, sqlx), and
rustls/vendored.rs with OpenSSL from cargo's sources.

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
    "0.23": ('"=0.23.46"', '"=0.26.6"', NEW, 'lto = "thin"', "legacy"),  # with AWS-LC
}
# name: (dependencies, profile)
OTHERS = {
    "stack": ("""
rustls = { version = "=0.23.46", default-features = false, features = ["ring", "std", "tls12", "logging"] }
tokio = { version = "=1.54.1", features = ["rt-multi-thread", "net", "macros"] }
axum = "=0.8.9"
axum-server = { version = "=0.7.3", features = ["tls-rustls-no-provider"] }
reqwest = { version = "=0.12.28", default-features = false, features = ["http2", "rustls-tls-manual-roots"] }
sqlx = { version = "=0.8.6", default-features = false, features = ["postgres", "mysql", "runtime-tokio", "tls-rustls-ring-webpki"] }
""", 'lto = "thin"'),
    "vendored": ("""
openssl = { version = "=0.10.82", features = ["vendored"] }
openssl-src = "=300.6.1"
""", 'lto = "thin"'),
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
{dependencies}
[profile.release]
{profile}
[workspace]
"""
TALK = """
rustls = {rustls}
tokio-rustls = {tokio}
tokio = {{ version = "=1.54.1", features = ["rt-multi-thread", "net", "io-util", "macros"] }}
hyper = {{ version = "=1.12.0", features = ["full"] }}
hyper-util = {{ version = "=0.1.21", features = ["tokio"] }}
http-body-util = "=0.1.5"
bytes = "=1.12.2"
"""


class NoCrates(Exception):
    """The registry does not answer, or there is no cargo."""


def manifest_of(name):
    """(the program's name, its Cargo.toml, how names are mangled)"""
    if name in OTHERS:
        dependencies, profile = OTHERS[name]
        return name, CARGO.format(program=name, features="", source=os.path.join(HERE, "rustls", f"{name}.rs"), dependencies=dependencies, profile=profile), "legacy"
    rustls, tokio, features, profile, mangling = PROGRAMS[name]
    program = "talk-" + name.replace(".", "-")
    return program, CARGO.format(program=program, features=features, source=os.path.join(HERE, "rustls", "talk.rs"),
                                 dependencies=TALK.format(rustls=rustls, tokio=tokio), profile=profile), mangling


def build(folder, name):
    """The program's path; built if it is not there yet. Its crates are kept in that folder."""
    program, text, mangling = manifest_of(name)
    folder = os.path.abspath(folder)  # cargo runs in another one
    at = os.path.join(folder, program)
    os.makedirs(at, exist_ok=True)
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
    for each in sys.argv[2:] or (*PROGRAMS, *OTHERS):
        print(build(sys.argv[1], each), flush=True)
