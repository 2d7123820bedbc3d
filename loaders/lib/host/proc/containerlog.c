/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/proc/containerlog.h"

#include <jansson.h>
#include <string.h>

#include "loaders/lib/host/proc/args.h"
#include "loaders/lib/host/proc/containerfile.h"

#define RAW_MAX    4096 /* bytes of a line before it is masked and cut */
#define RECORD_MAX (128u << 10)

struct reading {
	struct containerlog_joint joint;
	int64_t until_ns;
};

void containerlog_release(struct containerlog *l)
{
	for (int i = 0; i < CONTAINERLOG_LINES; i++)
		strbuf_release(&l->line[i].text);
}

/* ---- one line ---- */

/* After ESC: a control sequence up to its last byte, or one byte. Returns where it ends. */
static size_t escape_end(const char *s, size_t len, size_t at)
{
	if (++at < len && s[at] == '[') {
		for (at++; at < len && (s[at] < 0x40 || s[at] > 0x7e); at++)
			;
	}
	return at < len ? at + 1 : len;
}

static void add_shown(struct strbuf *out, const char *s, size_t len)
{
	struct strbuf plain cleanup_strbuf = STRBUF_INIT;

	for (size_t i = 0; i < len;) {
		if (s[i] == 0x1b) {
			i = escape_end(s, len, i);
			continue;
		}
		strbuf_addch(&plain, (unsigned char)s[i] < ' ' || s[i] == 0x7f ? ' ' : s[i]);
		i++;
	}
	while (plain.len && plain.buf[plain.len - 1] == ' ')
		plain.buf[--plain.len] = 0;
	strbuf_addutf8(out, strbuf_str(&plain), plain.len);
}

/* Where to cut: not inside a character, and not inside a word if the line was cut before it was
 * masked. */
static size_t cut_at(const char *s, size_t len, size_t most, bool longer)
{
	size_t n = len < most ? len : most;

	if (longer && n == len)
		while (n && s[n - 1] != ' ')
			n--;
	while (n && n < len && ((unsigned char)s[n] & 0xc0) == 0x80)
		n--;
	return n;
}

static void line_end(struct containerlog *l, struct containerlog_partial *p)
{
	struct containerlog_line *to = &l->line[l->n++ % CONTAINERLOG_LINES];
	struct strbuf masked cleanup_strbuf = STRBUF_INIT, shown cleanup_strbuf = STRBUF_INIT;
	size_t n;

	add_shown(&shown, strbuf_str(&p->raw), p->raw.len);
	args_mask_line(strbuf_str(&shown), shown.len, &masked);
	n = cut_at(strbuf_str(&masked), masked.len, CONTAINERLOG_LINE, p->longer);
	strbuf_reset(&to->text);
	strbuf_add(&to->text, strbuf_str(&masked), n);
	to->cut = p->longer || p->torn || n < masked.len;
	strbuf_reset(&p->raw);
	p->longer = p->begun = p->torn = false;
}

void containerlog_piece(struct containerlog_joint *j, int stream, const char *s, size_t len,
			bool ends)
{
	struct containerlog_partial *p = &j->stream[stream];
	size_t room = RAW_MAX - p->raw.len;

	p->begun = true;
	p->longer = p->longer || len > room;
	strbuf_add(&p->raw, s, len < room ? len : room);
	if (ends)
		line_end(j->l, p);
}

void containerlog_end(struct containerlog_joint *j)
{
	for (int i = 0; i < CONTAINERLOG_STREAMS; i++) {
		if (j->stream[i].begun) /* the program ended without a line end */
			line_end(j->l, &j->stream[i]);
		strbuf_release(&j->stream[i].raw);
	}
}

/* ---- records ---- */

static bool is_late(const struct reading *r, const char *time)
{
	int64_t ns;

	return time && containerfile_time(time, &ns) && ns >= r->until_ns;
}

static void docker_record(struct reading *r, const char *s, size_t len)
{
	json_t *o = json_loadb(s, len, JSON_ALLOW_NUL, NULL);
	const json_t *log = json_object_get(o, "log");
	const char *text = json_string_value(log),
		   *stream = json_string_value(json_object_get(o, "stream"));
	size_t n = text ? json_string_length(log) : 0;
	bool ends = n && text[n - 1] == '\n';

	if (text && !is_late(r, json_string_value(json_object_get(o, "time"))))
		containerlog_piece(&r->joint,
				   stream && !strcmp(stream, "stderr") ? CONTAINERLOG_ERR :
									 CONTAINERLOG_OUT,
				   text, n - ends, ends);
	json_decref(o);
}

/* "2026-11-25T20:00:00.123456789Z stderr F text" */
static void cri_record(struct reading *r, const char *s, size_t len)
{
	const char *blank = memchr(s, ' ', len), *end = s + len;
	char time[64];
	size_t n = blank ? (size_t)(blank - s) : 0;
	int stream;

	if (!n || n >= sizeof(time) || end - blank < 9)
		return;
	stream = !memcmp(blank + 1, "stderr ", 7) ? CONTAINERLOG_ERR : CONTAINERLOG_OUT;
	if ((stream == CONTAINERLOG_OUT && memcmp(blank + 1, "stdout ", 7) != 0) ||
	    (blank[8] != 'F' && blank[8] != 'P'))
		return;
	memcpy(time, s, n);
	time[n] = 0;
	if (!is_late(r, time))
		containerlog_piece(&r->joint, stream, end - blank > 10 ? blank + 10 : end,
				   end - blank > 10 ? (size_t)(end - blank - 10) : 0,
				   blank[8] == 'F');
}

void containerlog_read(struct containerlog *l, enum containerlog_form form, const char *text,
		       size_t len, bool whole, int64_t until_ns)
{
	struct reading r = {.joint = {.l = l, .stream = {{.torn = !whole}, {.torn = !whole}}},
			    .until_ns = until_ns};
	const char *at = text, *end = text + len, *newline;

	if (!whole) {
		newline = memchr(at, '\n', len);
		at = newline ? newline + 1 : end;
	}
	for (; at < end; at = newline + 1) {
		newline = memchr(at, '\n', (size_t)(end - at));
		if (!newline)
			break; /* it is still being written */
		if ((size_t)(newline - at) > RECORD_MAX)
			continue;
		if (form == CONTAINERLOG_DOCKER)
			docker_record(&r, at, (size_t)(newline - at));
		else
			cri_record(&r, at, (size_t)(newline - at));
	}
	containerlog_end(&r.joint);
}

void containerlog_each(const struct containerlog *l,
		       void (*each)(void *ctx, const char *line, bool cut), void *ctx)
{
	uint64_t first = l->n > CONTAINERLOG_LINES ? l->n - CONTAINERLOG_LINES : 0;
	size_t bytes = 0;

	for (uint64_t i = l->n; i > first; i--) { /* from the last one back, as many as fit */
		bytes += l->line[(i - 1) % CONTAINERLOG_LINES].text.len + 1;
		if (bytes > CONTAINERLOG_BYTES)
			first = i;
	}
	for (uint64_t i = first; i < l->n; i++)
		each(ctx, strbuf_str(&l->line[i % CONTAINERLOG_LINES].text),
		     l->line[i % CONTAINERLOG_LINES].cut);
}
