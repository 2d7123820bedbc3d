/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/formats/folded_read.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "schema/base/strbuf.h"
#include "tools/fold/fold_build.h"

#define NODES_MAX    (8u << 20)
#define SUM_MAX      (UINT64_MAX / 4)
#define DECIMALS_MAX 6

/* "_[k]" and its kin at the end of a name. */
static size_t take_mark(const char *name, size_t len, struct fold_frame *fr)
{
	if (len < 5 || name[len - 4] != '_' || name[len - 3] != '[' || name[len - 1] != ']')
		return len;
	switch (name[len - 2]) {
	case 'k':
		fr->origin = FOLD_KERNEL;
		return len - 4;
	case 'j':
		fr->origin = FOLD_JIT;
		return len - 4;
	case 'i':
		fr->inlined = true;
		return len - 4;
	default:
		return len;
	}
}

static uint32_t frame_of(struct fold_build *b, const char *name, size_t len)
{
	const char *none = fold_text(b, "");
	struct fold_frame fr = {
		.module = none, .module_path = none, .build_id = none, .file = none, .named = true};
	struct strbuf s = STRBUF_INIT;
	uint32_t frame;

	len = take_mark(name, len, &fr);
	for (size_t i = 0; i < len; i++) {
		if (len - i >= 4 && !memcmp(name + i, "\\x3b", 4)) {
			strbuf_addch(&s, ';');
			i += 3;
		} else if (name[i]) {
			strbuf_addch(&s, name[i]);
		}
	}
	fr.name = fold_text(b, s.len ? strbuf_str(&s) : "[unknown]");
	frame = fold_add_frame(b, &fr);
	strbuf_release(&s);
	return frame;
}

/* The last blank of a line; NULL: it has none. */
static const char *last_blank(const char *line, size_t len)
{
	while (len && line[len - 1] != ' ' && line[len - 1] != '\t')
		len--;
	return len ? line + len - 1 : NULL;
}

/* Without white space at its end. */
static size_t trimmed(const char *line, size_t len)
{
	while (len && memchr(" \t\r", line[len - 1], 3))
		len--;
	return len;
}

/* As many digits as any count has after its point, at most DECIMALS_MAX: further ones are rounded.
 */
static unsigned decimals_of(const char *at, size_t len)
{
	const char *end = at + len;
	size_t most = 0;

	while (at < end && most < DECIMALS_MAX) {
		const char *stop = memchr(at, '\n', (size_t)(end - at)), *space, *point;
		size_t n;

		stop = stop ? stop : end;
		n = trimmed(at, (size_t)(stop - at));
		space = last_blank(at, n);
		point = space ? memchr(space, '.', (size_t)(at + n - space)) : NULL;
		if (point && (size_t)(at + n - point - 1) > most)
			most = (size_t)(at + n - point - 1);
		at = stop + 1;
	}
	return most < DECIMALS_MAX ? (unsigned)most : DECIMALS_MAX;
}

static bool is_count(const char *text, size_t len)
{
	size_t points = 0;

	for (size_t i = 0; i < len; i++) {
		points += text[i] == '.';
		if (text[i] != '.' && (text[i] < '0' || text[i] > '9'))
			return false;
	}
	return len && *text != '.' && points < 2;
}

/* As a number of 10^-decimals; false: it is too large. */
static bool read_count(const char *text, size_t len, unsigned decimals, uint64_t *n)
{
	const char *point = memchr(text, '.', len);
	const size_t whole = point ? (size_t)(point - text) : len;

	*n = 0;
	for (size_t i = 0; i < len; i++) {
		if (i == whole)
			continue;
		if (*n > SUM_MAX / 10)
			return false;
		if (i <= whole + decimals)
			*n = *n * 10 + (uint64_t)(text[i] - '0');
		else if (i == whole + decimals + 1)
			*n += text[i] >= '5';
	}
	for (size_t have = point ? len - whole - 1 : 0; have < decimals; have++) {
		if (*n > SUM_MAX / 10)
			return false;
		*n *= 10;
	}
	return true;
}

/* The space before the last number of a line; NULL: it does not end with one. */
static const char *count_at(const char *line, size_t len)
{
	const char *space = last_blank(line, len);

	return space && is_count(space + 1, len - (size_t)(space + 1 - line)) ? space : NULL;
}

/* What difffolded.pl writes: each line has a count of the first profile, and one of the second. */
static bool has_two_counts(const char *at, size_t len)
{
	const char *end = at + len;
	bool any = false;

	for (const char *stop; at < end; at = stop + 1) {
		const char *space;
		size_t n;

		stop = memchr(at, '\n', (size_t)(end - at));
		stop = stop ? stop : end;
		n = trimmed(at, (size_t)(stop - at));
		if (!n || *at == '#')
			continue;
		space = count_at(at, n);
		space = space ? count_at(at, trimmed(at, (size_t)(space - at))) : NULL;
		if (!space || space == at)
			return false;
		any = true;
	}
	return any;
}

static const char *why_no_count(const char *line, size_t len)
{
	const char *space = last_blank(line, len), *word = space ? space + 1 : line;
	size_t n = len - (size_t)(word - line);

	if (!space || !n || !memchr("+-0123456789", *word, 12) ||
	    !isdigit((unsigned char)line[len - 1]))
		return "does not end with a space and a number";
	if (*word == '-' && is_count(word + 1, n - 1))
		return "has a count below 0: it is of a difference of profiles";
	return "has a count that is not written as 1500 or 1500.5";
}

static const char *read_one(struct fold_build *b, const char *line, size_t len, bool leaves,
			    unsigned decimals, bool two, uint64_t *sum)
{
	const char *space = count_at(line, len);
	uint64_t n;
	uint32_t node = 0;

	if (!space)
		return why_no_count(line, len);
	if (!read_count(space + 1, len - (size_t)(space + 1 - line), decimals, &n))
		return "has a number that is too large";
	if (n > SUM_MAX - *sum)
		return "makes the sum too large";
	*sum += n;
	if (two)
		space = count_at(line, trimmed(line, (size_t)(space - line)));
	for (const char *at = line; at < space;) {
		const char *end = memchr(at, ';', (size_t)(space - at));

		end = end ? end : space;
		node = fold_child(b, node, frame_of(b, at, (size_t)(end - at)));
		at = end + 1;
	}
	if (b->pub.n_nodes > NODES_MAX)
		return "is one too many";
	b->pub.nodes[node].self_ns += n;
	b->pub.nodes[node].self_samples += n;
	if (leaves)
		fold_add_leaf(b, &(struct fold_leaf){.node = node,
						     .process = 0,
						     .thread = fold_text(b, ""),
						     .samples = n,
						     .ns = n});
	return NULL;
}

/* From 10^-decimals to the largest part of a sample that all counts are multiples of. */
static void reduce(struct fold *f, unsigned decimals)
{
	uint64_t parts = 1, unit;

	while (decimals--)
		parts *= 10;
	unit = parts;

	for (size_t i = 0; i < f->n_nodes && unit > 1; i++)
		for (uint64_t a = f->nodes[i].self_ns; a;) {
			uint64_t rest = unit % a;

			unit = a;
			a = rest;
		}
	for (size_t i = 0; i < f->n_nodes; i++)
		f->nodes[i].self_ns = f->nodes[i].self_samples /= unit;
	for (size_t i = 0; i < f->n_leaves; i++)
		f->leaves[i].ns = f->leaves[i].samples /= unit;
	f->parts = (uint32_t)(parts / unit);
}

int folded_read(const void *data, size_t len, const char *name, const struct fold_opts *o,
		struct fold **out, struct err *e)
{
	struct fold_build *b = fold_begin();
	const char *at = data, *end = at + len, *why = NULL;
	unsigned long number = 0;
	const unsigned decimals = decimals_of(data, len);
	const bool two = has_two_counts(data, len);
	uint64_t sum = 0;
	struct fold *f;
	const char *none = fold_text(b, "");

	fold_add_process(b, 0,
			 &(struct fold_process){.comm = none,
						.exe = none,
						.args = none,
						.container = none,
						.container_id = none});

	while (at < end && !why) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t n = trimmed(at, (size_t)((stop ? stop : end) - at));

		number++;
		if (n && *at != '#')
			why = read_one(b, at, n, o->leaves, decimals, two, &sum);
		at = stop ? stop + 1 : end;
	}
	b->pub.unit = STORE_SAMPLES;
	if (two)
		fold_add_loss(
			b,
			&(struct fold_loss){
				.reason =
					"first counts: the file is a difference, whose second counts are read",
				.n = number});
	if (!why)
		reduce(&b->pub, decimals);
	f = fold_end(b);
	if (!why) {
		*out = f;
		return 0;
	}
	fold_free(f);
	err_set(e, -EBADMSG, EXIT_USAGE, "%.300s is neither pprof nor folded stacks: line %lu %s",
		name, number, why);
	err_fix(e, "a folded stack is one line:  main;work;small 30");
	return -EBADMSG;
}
