/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack: a section's bytes, decompressed if the file has them compressed by zlib: SHF_COMPRESSED
 * with ELFCOMPRESS_ZLIB (gABI), or the older form, a name that begins with .z and "ZLIB", the size
 * in 8 bytes, big endian, before the stream.
 */
#ifndef SONDE_INDEX_UNPACK_H
#define SONDE_INDEX_UNPACK_H

#include "loaders/index/elf/elffile.h"

#define UNPACK_MAX (256ull << 20)

/* A fresh buffer (free it). -ERANGE: the section has no bytes in the file; -EOPNOTSUPP: packed in
 * another way (zstd); -EBADMSG: damaged; -EFBIG; -ENOMEM; else as source_read. */
int unpack_section(struct elf_file *f, const Elf64_Shdr *s, void **out, size_t *len);
/* A zlib stream that unpacks to exactly `size` bytes. Pure. -EBADMSG, -EFBIG, -ENOMEM. */
int unpack_zlib(const void *data, size_t len, uint64_t size, void **out);

#endif
