# SPDX-License-Identifier: Apache-2.0
"""A program that behaves like one of .NET 8, as far as sonde can tell: code of its own without a file, and a diagnostic socket, by the public
description of the protocol (dotnet/diagnostics, ipc-protocol.md). `dotnetlike.py [refuse|silent]`; each command that it was sent is a line of its output."""
import ctypes
import mmap
import os
import socket
import struct
import sys
import threading

# push rbp; mov rbp, rsp; mov eax, 0x1000000; dec eax; jne; pop rbp; ret
CODE = bytes.fromhex("554889e5b800000001ffc875fc5dc3")
NAME = b"void [app] Program::Spin(int32)[Tier0]"
WHERE = os.environ.get("TMPDIR", "/tmp")
MAGIC = b"DOTNET_IPC_V1\0"

code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(CODE)
address = ctypes.addressof(ctypes.c_char.from_buffer(code))
dump = None


def begin():
    """jit-PID.dump, mapped as the runtime maps it: perf finds it by that."""
    global dump
    path = f"{WHERE}/jit-{os.getpid()}.dump"
    fd = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600)
    os.write(fd, struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, os.getpid(), 0, 0))
    body = struct.pack("<IIQQQQ", os.getpid(), os.getpid(), address, address, len(CODE), 1) + NAME + b"\0" + CODE
    os.write(fd, struct.pack("<IIQ", 0, 16 + len(body), 0) + body)
    dump = mmap.mmap(fd, 40, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
    os.close(fd)


def end():
    dump.close()


def serve(server):
    while True:
        peer, _ = server.accept()
        head = peer.recv(20, socket.MSG_WAITALL)
        assert head[:14] == MAGIC, head
        size, group, command, zero = struct.unpack("<HBBH", head[14:])
        body = peer.recv(size - 20, socket.MSG_WAITALL) if size > 20 else b""
        print(group, command, body.hex(), zero, flush=True)
        answer = struct.pack("<HBBHI", 24, 255, 0, 0, 0)
        if sys.argv[1:] == ["refuse"]:
            answer = struct.pack("<HBBHI", 24, 255, 255, 0, 0x80131385)
        elif command == 5:
            begin()
        else:
            end()
        if sys.argv[1:] == ["silent"] and command == 5:
            peer.close()
            continue
        peer.sendall(MAGIC + answer)
        peer.close()


with open("/proc/self/stat", encoding="utf-8") as f:
    key = f.read().rsplit(")", 1)[1].split()[19]
server = socket.socket(socket.AF_UNIX)
path = f"{WHERE}/dotnet-diagnostic-{os.getpid()}-{key}-socket"
server.bind(path)
os.chmod(path, 0o600)
server.listen(8)
threading.Thread(target=serve, args=(server,), daemon=True).start()
print("ready", flush=True)
spin = ctypes.CFUNCTYPE(None)(address)
while True:
    spin()
