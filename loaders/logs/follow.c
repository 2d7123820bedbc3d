/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/logs/follow.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/logs/packed/packed.h"
#include "schema/base/mem.h"

#define REST_MOST 256 /* buffers: it may grow as fast as it is read */

static void keep(struct follow *f, const char *end, size_t n)
{
	if (n >= FOLLOW_KEPT) {
		memcpy(f->kept, end - FOLLOW_KEPT, FOLLOW_KEPT);
		f->n_kept = FOLLOW_KEPT;
		return;
	}
	if (f->n_kept + n > FOLLOW_KEPT) {
		uint32_t drop = (uint32_t)(f->n_kept + n - FOLLOW_KEPT);

		memmove(f->kept, f->kept + drop, f->n_kept - drop);
		f->n_kept -= drop;
	}
	memcpy(f->kept + f->n_kept, end - n, n);
	f->n_kept += (uint32_t)n;
}

void follow_to_end(struct follow *f)
{
	char last[FOLLOW_KEPT];
	off_t end = lseek(f->fd, 0, SEEK_END);
	uint64_t n;

	f->n_kept = 0;
	f->offset = end > 0 ? (uint64_t)end : 0;
	n = f->offset < FOLLOW_KEPT ? f->offset : FOLLOW_KEPT;
	if (n && pread(f->fd, last, n, (off_t)(f->offset - n)) == (ssize_t)n)
		keep(f, last + n, n);
}

static void begin_again(struct follow *f)
{
	off_t data = lseek(f->fd, 0, SEEK_DATA);

	f->cuts++;
	f->offset = data > 0 ? (uint64_t)data : 0;
	f->n_kept = 0;
	f->long_line = f->damaged = false;
}

/* What is there from the place on, behind what was kept; -1: it was truncated. */
static ssize_t fetch(struct follow *f, char *buffer)
{
	size_t size = FOLLOW_BUFFER + f->n_kept;
	ssize_t n = pread(f->fd, buffer, size, (off_t)(f->offset - f->n_kept));

	if (n < 0)
		return 0;
	if ((size_t)n < f->n_kept || memcmp(buffer, f->kept, f->n_kept) != 0)
		return -1;
	return n - (ssize_t)f->n_kept;
}

static void line(struct follow *f, struct forms *forms, const char *s, size_t len, follow_take take,
		 void *ctx)
{
	struct log_record r;

	while (len && !*s) /* sparse, after a truncation */
		s++, len--;
	if (f->long_line && f->form != LOG_PLAIN) {
		f->long_line = false;
		f->strange++;
		return;
	}
	f->long_line = false;
	if (forms_line(forms, f->form, s, len, &r))
		take(ctx, &r);
	else
		f->strange++;
}

/* How much of the buffer was taken. */
static size_t lines(struct follow *f, struct forms *forms, const char *s, size_t len,
		    follow_take take, void *ctx)
{
	const char *at = s, *end = s + len, *newline;

	while ((newline = memchr(at, '\n', (size_t)(end - at)))) {
		line(f, forms, at, (size_t)(newline - at), take, ctx);
		at = newline + 1;
	}
	if (at == s && len == FOLLOW_BUFFER) { /* one line fills it */
		struct log_record r = {.text = s, .len = len, .piece = true};

		if (f->form == LOG_PLAIN)
			take(ctx, &r);
		f->long_line = true;
		at = end;
	}
	return (size_t)(at - s);
}

static size_t records(struct follow *f, const char *s, size_t len, follow_take take, void *ctx)
{
	struct log_record r;
	size_t at = 0;
	long n;

	while ((n = forms_local((const uint8_t *)s + at, len - at, &r)) > 0) {
		take(ctx, &r);
		at += (size_t)n;
	}
	f->damaged = n < 0 || (!at && len == FOLLOW_BUFFER);
	f->strange += f->damaged;
	return at;
}

/* ---- compressed ---- */

struct follow_packed {
	struct packed *packed;
	uint64_t at; /* of what it gave, without what is kept */
	size_t n_kept;
	char kept[FOLLOW_BUFFER]; /* an incomplete line */
};

void follow_pack(struct follow *f)
{
	f->packed = mem_alloc(sizeof(*f->packed));
	f->packed->packed = packed_new(f->fd);
}

void follow_release(struct follow *f)
{
	if (f->packed)
		packed_free(f->packed->packed);
	free(f->packed);
	f->packed = NULL;
}

/* The buffer from what is kept on; how much there is. */
static size_t unpack(struct follow *f, char *buffer)
{
	struct follow_packed *p = f->packed;
	size_t n;

	while (p->at < f->offset) { /* another reader had read so far */
		uint64_t left = f->offset - p->at;

		n = packed_read(p->packed, buffer, left < FOLLOW_BUFFER ? left : FOLLOW_BUFFER);
		if (!n)
			return 0;
		p->at += n;
	}
	memcpy(buffer, p->kept, p->n_kept);
	return p->n_kept + packed_read(p->packed, buffer + p->n_kept, FOLLOW_BUFFER - p->n_kept);
}

static bool packed_step(struct follow *f, struct forms *forms, char *buffer, follow_take take,
			void *ctx)
{
	struct follow_packed *p = f->packed;
	size_t n = f->damaged ? 0 : unpack(f, buffer), taken;

	taken = f->form == LOG_LOCAL ? records(f, buffer, n, take, ctx) :
				       lines(f, forms, buffer, n, take, ctx);
	p->n_kept = n - taken;
	memcpy(p->kept, buffer + taken, p->n_kept);
	f->offset += taken;
	p->at = f->offset;
	if (!taken && packed_is_damaged(p->packed) && !f->damaged) {
		f->damaged = true;
		f->cuts++;
	}
	return taken;
}

static void packed_rest(struct follow *f, struct forms *forms, char *buffer, follow_take take,
			void *ctx)
{
	struct follow_packed *p = f->packed;

	while (packed_step(f, forms, buffer, take, ctx))
		;
	if (p->n_kept && f->form != LOG_LOCAL && !f->damaged)
		line(f, forms, p->kept, p->n_kept, take, ctx);
	f->offset += p->n_kept;
	p->n_kept = 0;
}

bool follow_read(struct follow *f, struct forms *forms, char *buffer, follow_take take, void *ctx)
{
	ssize_t n;
	const char *s;
	size_t taken;

	if (f->packed)
		return packed_step(f, forms, buffer, take, ctx);
	n = fetch(f, buffer);
	if (n < 0) {
		begin_again(f);
		n = fetch(f, buffer);
	}
	if (n <= 0 || f->damaged)
		return false;
	s = buffer + f->n_kept;
	taken = f->form == LOG_LOCAL ? records(f, s, (size_t)n, take, ctx) :
				       lines(f, forms, s, (size_t)n, take, ctx);
	keep(f, s + taken, taken);
	f->offset += taken;
	return taken && (size_t)n == FOLLOW_BUFFER;
}

void follow_rest(struct follow *f, struct forms *forms, char *buffer, follow_take take, void *ctx)
{
	bool more = true;
	ssize_t n;

	if (f->packed) {
		packed_rest(f, forms, buffer, take, ctx);
		return;
	}
	for (int i = 0; more && i < REST_MOST; i++)
		more = follow_read(f, forms, buffer, take, ctx);
	n = more ? 0 : fetch(f, buffer);
	if (n <= 0 || f->form == LOG_LOCAL || f->damaged)
		return;
	line(f, forms, buffer + f->n_kept, (size_t)n, take, ctx);
	f->offset += (uint64_t)n;
	f->n_kept = 0;
}
