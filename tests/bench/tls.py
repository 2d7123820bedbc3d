#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tls: what probes inside TLS add to one write and one read of clear text (200 bytes), by CPU time of the program that makes them.

Four rounds for each program: alone; with sonde-l7 --tls off, which sees its system calls; with sonde-l7; and, for OpenSSL's library,
with probes where others put them, on the first instructions of SSL_write and SSL_read and on SSL_read's return (bpftrace). What TLS adds
is the third less the second. To reach: 5 us for Debian's libssl, 3 us for Node's own, 6 us for Go. Exit 1 where that is missed (not with --smoke).
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("B", os.path.join(ROOT, "build"))
LOADER = os.path.join(BUILD, "bin", "sonde-l7")
PAIR = os.path.join(BUILD, "tests", "tls_pair")
BYTES = 200
WANTED = {"libssl": 5.0, "node": 3.0, "go": 6.0}

NODE = """
const fs = require('fs'), tls = require('tls'), [cert, key, seconds] = process.argv.slice(2);
const s = tls.createServer({cert: fs.readFileSync(cert), key: fs.readFileSync(key)}, c => c.on('data', d => c.write(d)));
s.listen(0, '127.0.0.1', () => {
  const c = tls.connect({port: s.address().port, host: '127.0.0.1', ca: fs.readFileSync(cert), servername: 'localhost'}), b = Buffer.alloc(200, 'x');
  let n = 0, at = Date.now(), cpu = process.cpuUsage(), end = at + 1000 * seconds;
  c.setNoDelay(true); c.on('secureConnect', () => c.write(b));
  c.on('data', () => {
    n += 2; const now = Date.now();
    if (now - at >= 500) { const u = process.cpuUsage(cpu); console.log(JSON.stringify({pairs: n, ns: 1000 * (u.user + u.system) / n}));
      n = 0; at = now; cpu = process.cpuUsage(); if (now > end) process.exit(0); }
    c.write(b); });
});
"""
GO = """
package main
import ("crypto/tls"; "crypto/x509"; "fmt"; "io"; "os"; "strconv"; "syscall"; "time")
func cpu() int64 { var u syscall.Rusage; syscall.Getrusage(0, &u); return u.Utime.Nano() + u.Stime.Nano() }
func main() {
	cert, err := tls.LoadX509KeyPair(os.Args[1], os.Args[2])
	if err != nil { panic(err) }
	pem, _ := os.ReadFile(os.Args[1]); pool := x509.NewCertPool(); pool.AppendCertsFromPEM(pem)
	seconds, _ := strconv.Atoi(os.Args[3])
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil { panic(err) }
	go func() { c, _ := l.Accept(); b := make([]byte, 4096); for { n, err := c.Read(b); if err != nil { return }; c.Write(b[:n]) } }()
	c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: pool, ServerName: "localhost"})
	if err != nil { panic(err) }
	b := make([]byte, 200); end := time.Now().Add(time.Duration(seconds) * time.Second)
	for time.Now().Before(end) {
		n, at, from := 0, time.Now(), cpu()
		for time.Since(at) < 500 * time.Millisecond { c.Write(b); io.ReadFull(c, b); n += 2 }
		fmt.Printf("{\\"pairs\\": %d, \\"ns\\": %d}\\n", n, (cpu() - from) / int64(n))
	}
}
"""


def programs(folder, cert, key):
    """{name: argv up to the seconds}"""
    out = {"libssl": lambda s: [PAIR, cert, key, str(s), str(BYTES)]}
    if shutil.which("node"):
        path = os.path.join(folder, "pair.js")
        with open(path, "w", encoding="ascii") as f:
            f.write(NODE)
        out["node"] = lambda s: ["node", path, cert, key, str(s)]
    if shutil.which("go"):
        with open(os.path.join(folder, "main.go"), "w", encoding="ascii") as f:
            f.write(GO)
        with open(os.path.join(folder, "go.mod"), "w", encoding="ascii") as f:
            f.write("module pair\n\ngo 1.19\n")
        subprocess.run(["go", "build", "-o", "pair", "."], cwd=folder, check=True)
        out["go"] = lambda s: [os.path.join(folder, "pair"), cert, key, str(s)]
    return out


def sonde(store, pid, tls):
    return subprocess.Popen([LOADER, "-v", "--store", store, "--bucket", "10s", "--pid", str(pid), "--tls", tls], stdout=subprocess.DEVNULL,
                            stderr=open(os.path.join(store, "said"), "w", encoding="utf-8"))  # pylint: disable=consider-using-with


def peers(_store, _pid, library):
    script = f"uprobe:{library}:SSL_write {{ @w = count(); }} uprobe:{library}:SSL_read {{ @r = count(); }} uretprobe:{library}:SSL_read {{ @b = sum(retval); }}"
    return subprocess.Popen(["bpftrace", "-e", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def attached(store, tls):
    """The programs are there: told, or, without TLS, after a while."""
    if tls != "on":
        return True
    with open(os.path.join(store, "said"), encoding="utf-8") as f:
        return re.search("probes in", f.read())


def added_to(argv, watcher, seconds, ready):
    """Nanoseconds a pair while it is watched: the median of the last half seconds."""
    with tempfile.TemporaryDirectory() as store, subprocess.Popen(argv(seconds + 12), stdout=subprocess.PIPE, text=True) as p:
        w = watcher(store, p.pid) if watcher else None
        began = time.monotonic()
        while w and time.monotonic() - began < 10 and not (ready(store) and time.monotonic() - began > 4):
            time.sleep(0.2)
        got, end = [], time.monotonic() + 1 + seconds
        skip = time.monotonic() + 1
        while time.monotonic() < end:
            line = p.stdout.readline()
            if time.monotonic() > skip:
                got.append(json.loads(line)["ns"])
        p.kill()
        if w:
            w.terminate()
            w.wait()
    return statistics.median(got)


def library_of(program):
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return re.search(r"libssl\S* => (\S+)", done).group(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--smoke", action="store_true", help="that it runs")
    a = ap.parse_args()
    seconds, good = 2 if a.smoke else 6, True
    with tempfile.TemporaryDirectory() as folder:
        cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, stderr=subprocess.DEVNULL)
        for name, argv in programs(folder, cert, key).items():
            alone = added_to(argv, None, seconds, None)
            clear = added_to(argv, lambda s, p: sonde(s, p, "off"), seconds, lambda s: True)
            inside = added_to(argv, lambda s, p: sonde(s, p, "on"), seconds, lambda s: attached(s, "on"))
            print(f"{name}: a write and a read {alone / 1000:.1f} us; system calls seen +{(clear - alone) / 1000:.1f}; "
                  f"inside TLS +{(inside - clear) / 1000:.1f} us ({WANTED[name]:.0f})", flush=True)
            good &= inside - clear <= 1000 * WANTED[name]
            if name == "libssl" and shutil.which("bpftrace"):
                others = added_to(argv, lambda s, p: peers(s, p, library_of(PAIR)), seconds, lambda s: True)
                print(f"  probes on first instructions and on return (bpftrace): +{(others - alone) / 1000:.1f} us", flush=True)
    return 0 if a.smoke or good else 1


if __name__ == "__main__":
    sys.exit(main())
