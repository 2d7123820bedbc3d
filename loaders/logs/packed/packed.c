/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/logs/packed/packed.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "loaders/logs/forms.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define IN_BYTES  16384
#define HEAD      512 /* what is looked at of a header */
#define GZIP_BITS (15 + 16)
#define FEXTRA    4

struct packed {
	z_stream z;
	int fd;
	uint64_t at, out;
	bool over, damaged;
	unsigned char in[IN_BYTES];
};

struct packed *packed_new(int fd)
{
	struct packed *p = mem_alloc(sizeof(*p));

	p->fd = fd;
	p->damaged = inflateInit2(&p->z, GZIP_BITS) != Z_OK;
	p->over = p->damaged;
	return p;
}

void packed_free(struct packed *p)
{
	if (p)
		inflateEnd(&p->z);
	free(p);
}

static bool fill(struct packed *p)
{
	ssize_t n;

	if (p->z.avail_in)
		return true;
	n = pread(p->fd, p->in, sizeof(p->in), (off_t)p->at);
	if (n <= 0)
		return false;
	p->at += (uint64_t)n;
	p->z.next_in = p->in;
	p->z.avail_in = (uInt)n;
	return true;
}

size_t packed_read(struct packed *p, char *to, size_t room)
{
	bool between = !p->out && !p->at; /* no member has begun */
	int rc;

	p->z.next_out = (Bytef *)to;
	p->z.avail_out = (uInt)(room < (1u << 30) ? room : 1u << 30);
	while (!p->over && p->z.avail_out) {
		if (!fill(p)) {
			p->over = true;
			p->damaged = !between;
			break;
		}
		between = false;
		rc = inflate(&p->z, Z_NO_FLUSH);
		if (rc == Z_STREAM_END) {
			between = true;
			rc = fill(p) ? inflateReset(&p->z) : Z_STREAM_END;
		}
		p->over = rc != Z_OK;
		p->damaged = rc != Z_OK && rc != Z_STREAM_END;
	}
	room = (size_t)((char *)p->z.next_out - to);
	p->out += room;
	if (p->out > PACKED_MOST)
		p->over = p->damaged = true;
	return room;
}

bool packed_is_damaged(const struct packed *p)
{
	return p->damaged;
}

/* Rule 2, of Docker's: {"lastTime":"RFC 3339"}. */
static int64_t last_time(const unsigned char *head, size_t n)
{
	static const char key[] = "\"lastTime\":\"";
	static struct forms forms;
	size_t len = n > 12 ? head[10] | (size_t)head[11] << 8 : 0;
	const char *extra = (const char *)head + 12, *at, *end;

	if (!len || len > n - 12)
		return 0;
	at = memmem(extra, len, key, sizeof(key) - 1);
	if (!at)
		return 0;
	at += sizeof(key) - 1;
	end = memchr(at, '"', len - (size_t)(at - extra));
	return end ? forms_time(&forms, at, (size_t)(end - at)) / NSEC_PER_SEC : 0;
}

bool packed_look(int fd, int64_t *written_s, uint32_t *size)
{
	unsigned char head[HEAD], tail[4];
	ssize_t n = pread(fd, head, sizeof(head), 0);
	struct stat st;

	if (n < 18 || head[0] != 0x1f || head[1] != 0x8b || fstat(fd, &st) ||
	    pread(fd, tail, 4, st.st_size - 4) != 4)
		return false;
	*size = tail[0] | (uint32_t)tail[1] << 8 | (uint32_t)tail[2] << 16 |
		(uint32_t)tail[3] << 24;
	*written_s =
		head[4] | (int64_t)head[5] << 8 | (int64_t)head[6] << 16 | (int64_t)head[7] << 24;
	if (!*written_s && head[3] & FEXTRA)
		*written_s = last_time(head, (size_t)n);
	return true;
}
