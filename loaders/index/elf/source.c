/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/elf/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/hash.h"

#define CRC_CHUNK (1u << 20)

int source_init_fd(struct source *s, int fd, uint64_t *hash, uint64_t *left)
{
	struct stat st;

	/* glibc 2.33-2.36 make newfstatat of fstat(), which takes a path: the sandbox knows only
	 * fstat itself. */
	if (syscall(SYS_fstat, fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*s = (struct source){.fd = fd, .size = (uint64_t)st.st_size, .hash = hash, .left = left};
	return 0;
}

void source_init_bytes(struct source *s, const void *data, size_t len, uint64_t *hash,
		       uint64_t *left)
{
	*s = (struct source){.fd = -1, .data = data, .size = len, .hash = hash, .left = left};
}

static int read_all(const struct source *s, uint64_t offset, void *buf, size_t len)
{
	uint8_t *p = buf;

	if (s->fd < 0) {
		if (len)
			memcpy(p, (const uint8_t *)s->data + offset, len);
		return 0;
	}
	while (len) {
		ssize_t n = pread(s->fd, p, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ESTALE;
		p += n;
		len -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

int source_read_into(struct source *s, uint64_t offset, uint64_t len, void *buf)
{
	int rc;

	if (offset > s->size || len > s->size - offset)
		return -ERANGE;
	if (len > SOURCE_READ_MAX || len > *s->left)
		return -EFBIG;
	rc = read_all(s, offset, buf, (size_t)len);
	if (rc)
		return rc;
	*s->left -= len;
	*s->hash = hash_bytes(*s->hash, buf, (size_t)len);
	return 0;
}

int source_read(struct source *s, uint64_t offset, uint64_t len, void **out)
{
	cleanup_free uint8_t *buf = NULL;
	int rc;

	if (offset > s->size || len > s->size - offset)
		return -ERANGE;
	if (len > SOURCE_READ_MAX || len > *s->left)
		return -EFBIG;
	buf = malloc((size_t)len + 1);
	if (!buf)
		return -ENOMEM;
	rc = source_read_into(s, offset, len, buf);
	if (rc)
		return rc;
	buf[len] = 0;
	*out = take_ptr(buf);
	return 0;
}

int source_crc32(const struct source *s, uint64_t max, uint32_t *out)
{
	cleanup_free uint8_t *buf = malloc(CRC_CHUNK);
	uLong crc = crc32(0, NULL, 0);

	if (!buf)
		return -ENOMEM;
	if (s->size > max)
		return -EFBIG;
	for (uint64_t at = 0; at < s->size;) {
		uint64_t n = s->size - at < CRC_CHUNK ? s->size - at : CRC_CHUNK;
		int rc = read_all(s, at, buf, (size_t)n);

		if (rc)
			return rc;
		crc = crc32(crc, buf, (uInt)n);
		at += n;
	}
	*out = (uint32_t)crc;
	return 0;
}
