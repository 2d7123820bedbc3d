# SPDX-License-Identifier: Apache-2.0
"""Protocol buffers by their wire format alone (protobuf.dev, "Encoding"): {field number: [value, ...]}, bytes where they have a length."""
import struct


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    out, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        number, form = tag >> 3, tag & 7
        if form == 0:
            value, at = varint(data, at)
        elif form == 1:
            value, at = struct.unpack("<Q", data[at:at + 8])[0], at + 8
        else:
            assert form == 2, form
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size
        out.setdefault(number, []).append(value)
    return out


def packed(items):
    """Numbers of a repeated field, packed, as int64."""
    out = []
    for data in items:
        at = 0
        while at < len(data):
            value, at = varint(data, at)
            out.append(value - (1 << 64) if value >> 63 else value)
    return out
