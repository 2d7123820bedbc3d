/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/elf/unpack.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "schema/base/cleanup.h"

#define OLD_HEAD 12u   /* "ZLIB", u64 */
#define RATIO    1040u /* deflate cannot do better than 1032 to 1 */

int unpack_zlib(const void *data, size_t len, uint64_t size, void **out)
{
	cleanup_free void *buf = NULL;
	uLongf n = (uLongf)size;

	if (size > UNPACK_MAX)
		return -EFBIG;
	if (size / RATIO > len)
		return -EBADMSG;
	buf = malloc((size_t)size + 1);
	if (!buf)
		return -ENOMEM;
	if (uncompress(buf, &n, data, (uLong)len) != Z_OK || n != size)
		return -EBADMSG;
	*out = take_ptr(buf);
	return 0;
}

static int unpack_new(const struct elf_file *f, const uint8_t *raw, uint64_t raw_len, void **out,
		      size_t *len)
{
	Elf64_Chdr h;
	int rc;

	if (!f->is64)
		return -EOPNOTSUPP;
	if (raw_len < sizeof(h))
		return -EBADMSG;
	memcpy(&h, raw, sizeof(h));
	if (h.ch_type != ELFCOMPRESS_ZLIB)
		return -EOPNOTSUPP;
	rc = unpack_zlib(raw + sizeof(h), (size_t)(raw_len - sizeof(h)), h.ch_size, out);
	if (!rc)
		*len = (size_t)h.ch_size;
	return rc;
}

static int unpack_old(const uint8_t *raw, uint64_t raw_len, void **out, size_t *len)
{
	uint64_t size;
	int rc;

	if (raw_len < OLD_HEAD || memcmp(raw, "ZLIB", 4))
		return -EBADMSG;
	memcpy(&size, raw + 4, 8);
	size = be64toh(size);
	rc = unpack_zlib(raw + OLD_HEAD, (size_t)raw_len - OLD_HEAD, size, out);
	if (!rc)
		*len = (size_t)size;
	return rc;
}

int unpack_section(struct elf_file *f, const Elf64_Shdr *s, void **out, size_t *len)
{
	cleanup_free void *raw = NULL;
	int rc;

	if (s->sh_type == SHT_NOBITS || s->sh_type == SHT_NULL)
		return -ERANGE;
	rc = source_read(&f->src, s->sh_offset, s->sh_size, &raw);
	if (rc)
		return rc;
	if (s->sh_flags & SHF_COMPRESSED)
		return unpack_new(f, raw, s->sh_size, out, len);
	if (!strncmp(elf_section_name(f, s), ".z", 2))
		return unpack_old(raw, s->sh_size, out, len);
	*len = (size_t)s->sh_size;
	*out = take_ptr(raw);
	return 0;
}
