/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/logs/follow.h"

#include <string.h>
#include <unistd.h>

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

bool follow_read(struct follow *f, struct forms *forms, char *buffer, follow_take take, void *ctx)
{
	ssize_t n = fetch(f, buffer);
	const char *s;
	size_t taken;

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

	for (int i = 0; more && i < REST_MOST; i++)
		more = follow_read(f, forms, buffer, take, ctx);
	n = more ? 0 : fetch(f, buffer);
	if (n <= 0 || f->form == LOG_LOCAL || f->damaged)
		return;
	line(f, forms, buffer + f->n_kept, (size_t)n, take, ctx);
	f->offset += (uint64_t)n;
	f->n_kept = 0;
}
