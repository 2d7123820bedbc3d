# SPDX-License-Identifier: Apache-2.0
"""taskstats over generic netlink: what the kernel accounts for one thread or process (linux/taskstats.h, whose first fields
have not moved since version 1)."""
import socket
import struct

GENL_ID_CTRL, GETFAMILY, ATTR_FAMILY_ID, ATTR_FAMILY_NAME = 0x10, 3, 1, 2
GET, CMD_PID, TYPE_PID, TYPE_STATS, TYPE_AGGR_PID = 1, 1, 1, 3, 4
FIELDS = ("cpu_count", "cpu_delay_ns", "blkio_count", "blkio_delay_ns", "swapin_count", "swapin_delay_ns", "cpu_real_ns",
          "cpu_ns")


def attributes(data):
    while len(data) >= 4:
        size, kind = struct.unpack("=HH", data[:4])
        yield kind & 0x3fff, data[4:size]
        data = data[(size + 3) & ~3:]


def ask(sock, family, command, kind, value):
    value += b"\0" * (-len(value) % 4)
    body = struct.pack("=BBH", command, 1, 0) + struct.pack("=HH", 4 + len(value), kind) + value
    sock.send(struct.pack("=IHHII", 16 + len(body), family, 1, 1, 0) + body)
    answer = sock.recv(65536)
    if struct.unpack("=H", answer[4:6])[0] == 2:  # NLMSG_ERROR
        raise OSError(-struct.unpack("=i", answer[16:20])[0], "netlink")
    return dict(attributes(answer[20:]))


def of_thread(tid):
    """{field: value} of the thread at this moment."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16) as sock:
        sock.bind((0, 0))
        family = struct.unpack("=H", ask(sock, GENL_ID_CTRL, GETFAMILY, ATTR_FAMILY_NAME, b"TASKSTATS\0")[ATTR_FAMILY_ID][:2])[0]
        told = dict(attributes(ask(sock, family, GET, CMD_PID, struct.pack("=I", tid))[TYPE_AGGR_PID]))
        return dict(zip(FIELDS, struct.unpack("=8Q", told[TYPE_STATS][16:80])))
