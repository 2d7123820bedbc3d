# SPDX-License-Identifier: Apache-2.0
"""Servers and clients inside TLS for the tests of family l7: a certificate, programs that begin with their port, and what the store
says was asked."""
import os
import re
import shutil
import subprocess
import sys

from conftest import need, sql_all
from sonded import until

TALK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tlstalk.py")
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


def certificate(folder):
    """(certificate, key) for localhost, in files of this folder."""
    need("openssl")
    cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, stderr=subprocess.DEVNULL)
    os.chmod(key, 0o644)
    return cert, key


class Files:
    """Files of an authority and of a certificate for localhost that it signed: in PEM, and in DER."""

    def __init__(self, folder):
        for name in ("ca", "cert", "key"):
            setattr(self, name, os.path.join(folder, f"{name}.pem"))
            setattr(self, f"{name}_der", os.path.join(folder, f"{name}.der"))


def authority(folder):
    """Files for a library that accepts no certificate signed by itself."""
    need("openssl")
    f, request, wants = Files(folder), os.path.join(folder, "request"), os.path.join(folder, "wants")
    ca_key = os.path.join(folder, "ca-key.pem")
    with open(wants, "w", encoding="ascii") as out:
        out.write("subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n")
    for args in (["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", ca_key, "-out", f.ca, "-days", "2", "-subj", "/CN=authority", "-addext",
                  "basicConstraints=critical,CA:TRUE"],
                 ["req", "-newkey", "rsa:2048", "-nodes", "-keyout", f.key, "-out", request, "-subj", "/CN=localhost"],
                 ["x509", "-req", "-in", request, "-CA", f.ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2", "-extfile", wants, "-out", f.cert],
                 ["x509", "-in", f.ca, "-outform", "DER", "-out", f.ca_der], ["x509", "-in", f.cert, "-outform", "DER", "-out", f.cert_der],
                 ["pkcs8", "-topk8", "-nocrypt", "-in", f.key, "-outform", "DER", "-out", f.key_der]):
        subprocess.run(["openssl", *args], check=True, stderr=subprocess.DEVNULL)
    for path in (f.key, f.key_der):
        os.chmod(path, 0o644)
    return f


class Server:
    """A program whose first line is its port."""

    def __init__(self, *argv, **kw):
        self.p = subprocess.Popen([str(a) for a in argv], stdout=subprocess.PIPE, text=True, **kw)
        line = self.p.stdout.readline()
        assert line.strip().isdigit(), f"{argv}: {line!r}"
        self.port = int(line)

    @property
    def pid(self):
        return self.p.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.kill()
        self.p.wait()
        self.p.stdout.close()


def client(cert, port, n, path, prefix=(), how="client"):
    done = subprocess.run([*prefix, PYTHON, TALK, how, cert, str(port), str(n)], input=path + "\n", stdout=subprocess.PIPE, text=True, timeout=120, check=True)
    return int(done.stdout)


def probes_in(capture, name, seconds=60):
    """Waits until the loader has attached its probes in the file of that name."""
    until(lambda: re.search(rf"probes in \S*{re.escape(name)}", capture.said()), seconds=seconds)


def asked(store, port, side, protocol="http"):
    """{(operation, status): requests} of one side of the service at this port."""
    rows = sql_all(store, "SELECT operation, status, sum(requests) AS n FROM requests WHERE service LIKE ? AND side = ? AND protocol = ? GROUP BY 1, 2",
                   (f"%:{port}", side, protocol))
    return {(r["operation"], r["status"]): r["n"] for r in rows}


def planted(store, *secrets):
    """Which of these occur anywhere in the store's files."""
    found = set()
    for at, _, names in os.walk(store):
        for name in names:
            try:
                with open(os.path.join(at, name), "rb") as f:
                    data = f.read()
            except FileNotFoundError:  # a program may still be tidying up
                continue
            found |= {s for s in secrets if s.encode() in data}
    return found


def which(*names):
    return next((shutil.which(n) for n in names if shutil.which(n)), None)
