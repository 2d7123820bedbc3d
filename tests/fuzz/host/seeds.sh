#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: real files of this host, small pieces of large ones.
set -eu
out=$1
mkdir -p "$out/kallsyms_fuzz" "$out/perfmap_fuzz" "$out/proc_fuzz" "$out/args_fuzz" "$out/container_fuzz" "$out/late_fuzz" "$out/jitdump_fuzz" "$out/jitpack_fuzz"

head -n 40 /proc/kallsyms >"$out/kallsyms_fuzz/head"
tail -n 40 /proc/kallsyms >"$out/kallsyms_fuzz/tail"
printf 'ffffffff81000000 T _text\nffffffff81000010 t __pfx_a\nffffffff81000020 t a\nffffffff81000400 T _etext\nffffffffc0000010 t m\t[mod]\nffffffffc0100000 t bpf_prog_1_x\t[bpf]\nffff800000000000 T low\n' \
	>"$out/kallsyms_fuzz/mixed"
printf '0000000000000000 T _text\n0000000000000000 t a\t[m]\n' >"$out/kallsyms_fuzz/hidden"
printf 'ffffffff81000400 T b\nffffffff81000200 W a\nffffffff81000200 t _a\nffffffff81000200 T aa\nbad\n' \
	>"$out/kallsyms_fuzz/unsorted"

# a kept file: three entries, 32 bits each
python3 - "$out/kallsyms_fuzz/kept" <<'END'
import struct
import sys

text = 0xffffffff81000000
pool = b"one\0\0mod\0"
with open(sys.argv[1], "wb") as f:
    f.write(struct.pack("<8s5Q6Q4IQ", b"sndksym1", 0, 7, text, text, text + 0x100, *[0] * 6, 0, 3, 2, 2, len(pool)))
    f.write(struct.pack("<4I4I4H", 0, 0x10, 0x40, 0, 1 << 31, 0, 0xffffffff, 0, 0, 0, 1, 0))
    f.write(struct.pack("<4Q", text, 4, text + 0x40, 5) + pool)
END

printf '7f0010 20 LazyCompile:*fast /a b.js:1:2\n0x7f0018 0X10 second\r\n7f0000 100 over\n-1 2 neg\nffffffffffffff00 100 wraps\n' \
	>"$out/perfmap_fuzz/mixed"
python3 - "$out/jitdump_fuzz" <<'PY'
import struct, sys
def record(kind, body): return struct.pack("<IIQ", kind, 16 + len(body), 1) + body
def load(addr, size, number, name): return record(0, struct.pack("<IIQQQQ", 7, 7, addr, addr, size, number) + name + b"\0code")
head = struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 7, 0, 0)
lines = record(2, struct.pack("<QQ", 0x1000, 2) + struct.pack("<QII", 0x1000, 7, 0) + b"a.js\0" + struct.pack("<QII", 0x1008, 8, 0) + b"\xff\0")
move = record(1, struct.pack("<IIQQQQQ", 7, 7, 0x5000, 0x1000, 0x5000, 0x20, 1))
for name, body in {"lines": lines + load(0x1000, 0x20, 1, b"first"), "overlap": load(0x1000, 0x20, 1, b"a") + load(0x1010, 0x20, 2, b"b"),
                   "moved": lines + load(0x1000, 0x20, 1, b"first") + move}.items():
    with open(f"{sys.argv[1]}/{name}", "wb") as f:
        f.write(head + body + record(3, b""))
for i, name in enumerate((b"/tmp/jit-7.dump", b"/tmp/.debug/jit-9-7.dump", b"/tmp/jit-7x.dump")):
    with open(f"{sys.argv[1]}/path{i}", "wb") as f:
        f.write(name)
PY
# one function with a place, as a map that is handed over: head, line, piece, place, pool
python3 - "$out/jitpack_fuzz/one" <<'PY'
import struct, sys
pool = b"f\0a.js\0"
with open(sys.argv[1], "wb") as f:
    f.write(struct.pack("<6Q", 0x31706d66726570, 1, 1, 1, len(pool), 0) + struct.pack("<QQIII4x", 0x1000, 0x20, 0, 0, 1) +
            struct.pack("<QQI4x", 0x1000, 0x1020, 0) + struct.pack("<III4x", 0, 2, 7) + pool.ljust(8, b"\0"))
PY
printf '100 100 old\n140 20 new\n180 10 x\n170 40 newest\n100 10 same\n' >"$out/perfmap_fuzz/overlaps"

tail -n 30 /proc/stat >"$out/proc_fuzz/btime"
for f in stat status maps cgroup; do
	cat "/proc/self/$f" >"$out/proc_fuzz/$f"
done
printf '77 (a) R 1 (b\n) S 5 1 1 0 -1 2129984 1 2 3 4 11 12 13 14 20 0 1 0 999 0' >"$out/proc_fuzz/hostile"
printf '8:pids:/p\n4:cpu,memory:/docker/x\n1:name=systemd:/s\n0::/u\n' >"$out/proc_fuzz/hybrid"
printf 'Tgid:\t812\nPPid:\t4\nUid:\t7\t8\t9\t10\nNSpid:\t812\t31\t2\n' >"$out/proc_fuzz/nspid"
printf '00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/a b\\012c (deleted)\n' >"$out/proc_fuzz/deleted"

cat /proc/self/cmdline >"$out/args_fuzz/own"
printf 'mysql\0-uroot\0-phunter2\0--password\0x\0' >"$out/args_fuzz/mysql"
printf 'curl\0-u\0a:b\0-H\0Authorization: Bearer x\0--user=a:b\0https://a:b@h/?token=x' >"$out/args_fuzz/curl"
printf 'sh\0-c\0PASSWORD="a b" run --token x; psql "host=h password=y"\0{"apiKey": "z"}\0' >"$out/args_fuzz/shell"
printf 'redis-cli\0-a\0x\0ghp_0123456789abcdefABCDEF0123456789abcd\0ldapsearch\0-w\0y\0' >"$out/args_fuzz/others"

id=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
n=0
for p in "/docker/$id" "/system.slice/docker-$id.scope/x" "/docker/$id/docker/$id" "/kubepods/burstable/pod1a-2b/$id" \
	"/kubepods.slice/kubepods-pod1a_2b.slice/cri-containerd-$id.scope" "/a.service/kubepods-pod1.slice:cri-containerd:$id" \
	"/machine.slice/libpod-$id.scope" "/lxc/web" "/lxc.payload.web/y.service" \
	'/machine.slice/systemd-nspawn@deb\x2d12.service' "/moby/$id" "/buildkit/$id" "/libpod_parent/$id" \
	'/machine.slice/machine-qemu\x2d1.scope' '/system.slice/my\x2dapp.service'; do
	n=$((n + 1))
	printf '%s' "$p" >"$out/container_fuzz/path$n"
done
printf '{"Name": "/web", "Config": {"Image": "nginx:1.25"}}' >"$out/container_fuzz/docker"
printf '{"Name":"/web","Created":"2026-11-21T03:10:00.5Z","RestartCount":3,"State":{"Running":false,"OOMKilled":true,"ExitCode":137,"Health":{"Status":"unhealthy","Log":[{"ExitCode":1,"Output":"no answer"}]}}}' >"$out/container_fuzz/state"
printf '2026-11-21T03:10:00.123456789+01:00' >"$out/container_fuzz/time"
printf '[{"id":"0123456789abcdef","names":["web"],"metadata":"{\\"image-name\\":\\"nginx:1.25\\"}"}]' >"$out/container_fuzz/storage"
printf '{"annotations":{"io.kubernetes.cri.container-name":"a","io.kubernetes.cri.sandbox-name":"p","io.kubernetes.cri.image-name":"i"}}' \
	>"$out/container_fuzz/bundle"
printf '{"annotations":{"nerdctl/name":"db"}}' >"$out/container_fuzz/nerdctl"
printf '{"annotations":{"io.kubernetes.container.name":"a","io.kubernetes.cri-o.Labels":"{\\"x\\":\\"y\\"}","io.podman.compose.project":"p"}}' \
	>"$out/container_fuzz/crio"
printf 'root:x:0:0::/root:/bin/sh\nann:x:1000:1000:A,,:/home/user:/bin/sh\n' >"$out/container_fuzz/passwd"

# rows: a leaf, a function with locals, RBP with a saved one, an extension, a signal frame, a root; then a stack for them
python3 - "$out/late_fuzz" <<'END'
import struct
import sys

def rule(kind, bp=0, saved=0, offset=0):
    return kind | bp << 2 | saved << 4 | offset << 16

def special(what, arg=0):
    return what << 2 | arg << 10

def bx(how, saved=0):
    return how << 32 | saved << 36

def section(rows, exts=()):
    rules = sorted({0, *(r for _, r in rows)})
    pages, packed = [], []
    for page in range(8):
        inside = [(a & 511, rules.index(r)) for a, r in rows if a >> 9 == page]
        begin = [n for a, n in inside if not a] or [rules.index(max([(-1, 0), *(r for r in rows if r[0] >> 9 < page)])[1])]
        pages.append(begin[0] << 48 | sum(a > 0 for a, _ in inside) << 32 | len(packed))
        packed += [a << 16 | n for a, n in inside if a]
    head = struct.pack("<QIIIIIIII", 0, 2, 8, len(rules), len(exts), len(packed), 0, 0, 0)
    return head + struct.pack(f"<{8 + len(rules)}Q", *pages, *rules) + b"".join(exts) + \
        struct.pack(f"<{len(packed) + len(packed) % 2}I", *packed, *[0] * (len(packed) % 2))

def record(pc, stack, exact=1, rbp=0x7010, tgid=5):
    event = struct.pack("<QQQQQIIIIHHHH16s", 100, 50, 0, 0, 0, tgid, tgid, 1, 0, 1, 0, 32, 2, b"seed")
    regs = [0] * 16
    regs[6], regs[7] = rbp, 0x7000
    return event + struct.pack("<127Q", *([0xffffffff81000000] + [0] * 126)) + struct.pack("<16Q", *regs) + \
        struct.pack("<QQII", pc, 0x7000, exact, len(stack) * 8) + struct.pack(f"<{len(stack)}Q", *stack)

ext = [struct.pack("<BBBBiii", k, r, bp, r2, a, b, o) for k, r, bp, r2, a, b, o in
       [(1, 7, 1, 0, 16, 0, -16), (2, 6, 2, 0, -8, 0, 0), (3, 7, 3, 0, 8, 8, 8), (4, 7, 0, 5, 8, 0, 0),
        (5, 0, 0, 0, 0, 0, 0), (6, 0, 4, 0, 0, 0, 16), (1, 3, 0, 0, 32, 0, 0)]]
rows = [(0, rule(1, 0, 0, 1) | bx(1)), (0x100, rule(1, 0, 0, 3) | bx(2, 2)), (0x200, rule(2, 1, 2, 2)), (0x300, special(1)),
        (0x340, special(2)), (0x380, special(3, 11)), (0x3c0, special(4)), (0x400, special(5, 1)), (0x440, special(0))]
rows += [(0x500 + 0x20 * i, 3 | i << 2) for i in range(len(ext))]
for name, pc in [("leaf", 0x20), ("locals", 0x110), ("rbp", 0x210), ("root", 0x310), ("signal", 0x341), ("plt", 0x38c),
                 ("fp", 0x3c1), ("unsupported", 0x401), ("none", 0x441)] + \
                [(f"ext{i}", 0x501 + 0x20 * i) for i in range(len(ext))]:
    s = section(rows, ext)
    stack = [0x110, 1, 2, 0x210, 0x7038, 0x310, 0x7040, 0x7040, 0x310] * 4
    with open(f"{sys.argv[1]}/{name}", "wb") as f:
        f.write(struct.pack("<H", len(s) // 8) + s + record(pc, stack))
END

# command lines of engines and a shim's folder
printf 'dockerd\0--data-root=/srv/d\0--config-file\0/etc/d.json\0' >"$out/container_fuzz/dockerd"
printf 'conmon\0-b\0/s/overlay-containers/00/userdata\0' >"$out/container_fuzz/conmon"
printf '/run/c/io.containerd.runtime.v2.task/moby/00' >"$out/container_fuzz/shim"

printf '{"ContainerExitCode":7,"ID":"%064d","Name":"pw","Status":"died","Time":"2026-11-25T21:16:37.16Z","Type":"container","health_status":"healthy"}' 7 >"$out/container_fuzz/podman"

mkdir -p "$out/containerlog_fuzz"
printf '0{"log":"half ","stream":"stdout","time":"2026-11-25T20:00:00Z"}\n{"log":"a token=abc \\u001b[31mline\\n","stream":"stdout","time":"x"}\n' >"$out/containerlog_fuzz/docker"
printf '12026-11-25T20:00:00Z stdout P half \n2026-11-25T20:00:00Z stdout F line\n' >"$out/containerlog_fuzz/podman"

# command lines with secrets: the rows of the unit test
mkdir -p "$out/args_fuzz"
sed -n 's/^\t"\(.*\)",$/\1/p' tests/unit/loaders/lib/host/secrets/secrets_test.c | sed 's/\\"/"/g; s/\\\\/\\/g; s/{S}/Tr0ub4/g' |
    awk -v out="$out/args_fuzz" '{ print >(out "/" NR); close(out "/" NR) }'
for seed in "$out"/args_fuzz/*; do
    tr '^' '\000' <"$seed" >"$seed.nul" && mv "$seed.nul" "$seed"
done
