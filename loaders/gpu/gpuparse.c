/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/gpu/gpuparse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/facts/gpu.h"

struct line {
	const char *word, *rest;
	size_t word_len, rest_len;
};

/* False: there is no whole line from *pos on. */
static bool line_next(const char *text, size_t len, size_t *pos, struct line *out)
{
	const char *end = *pos < len ? memchr(text + *pos, '\n', len - *pos) : NULL, *blank;
	size_t all;

	if (!end)
		return false;
	out->word = text + *pos;
	all = (size_t)(end - out->word);
	blank = memchr(out->word, ' ', all);
	out->word_len = blank ? (size_t)(blank - out->word) : all;
	out->rest = blank ? blank + 1 : end;
	out->rest_len = (size_t)(end - out->rest);
	*pos += all + 1;
	return true;
}

static bool is_word(const struct line *l, const char *word)
{
	return l->word_len == strlen(word) && !memcmp(l->word, word, l->word_len);
}

static void text_copy(const struct line *l, char *out, size_t size)
{
	size_t n = l->rest_len < size - 1 ? l->rest_len : size - 1;

	memcpy(out, l->rest, n);
	for (size_t i = 0; i < n; i++)
		if (out[i] < ' ' || out[i] > '~')
			out[i] = '?';
	out[n] = 0;
}

static bool number_of(const char *s, size_t len, uint64_t *out)
{
	uint64_t n = 0;

	if (!len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (s[i] < '0' || s[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(s[i] - '0'), &n))
			return false;
	*out = n;
	return true;
}

enum gpuparse_what gpuparse_next(const char *text, size_t len, size_t *block)
{
	static const struct {
		const char *word;
		enum gpuparse_what what;
	} ends[] = {{"ready", GPUPARSE_READY},
		    {"fix", GPUPARSE_ERROR},
		    {"done", GPUPARSE_DEVICE},
		    {"end", GPUPARSE_END}};
	struct line l;

	*block = 0;
	while (line_next(text, len, block, &l))
		for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
			if (is_word(&l, ends[i].word))
				return ends[i].what;
	return GPUPARSE_MORE;
}

void gpuparse_hello(const char *text, size_t len, struct gpuparse_hello *out)
{
	size_t pos = 0;
	struct line l;
	uint64_t n;

	*out = (struct gpuparse_hello){0};
	while (line_next(text, len, &pos, &l)) {
		if (is_word(&l, "driver"))
			text_copy(&l, out->driver, sizeof(out->driver));
		else if (is_word(&l, "library"))
			text_copy(&l, out->library, sizeof(out->library));
		else if (is_word(&l, "missing"))
			text_copy(&l, out->missing, sizeof(out->missing));
		else if (is_word(&l, "devices") && number_of(l.rest, l.rest_len, &n) &&
			 n <= UINT32_MAX)
			out->devices = (uint32_t)n;
	}
}

int gpuparse_error(const char *text, size_t len, struct err *e)
{
	char what[400] = "NVIDIA's library cannot be used", fix[300] = "";
	size_t pos = 0;
	struct line l;

	while (line_next(text, len, &pos, &l)) {
		if (is_word(&l, "error"))
			text_copy(&l, what, sizeof(what));
		else if (is_word(&l, "fix"))
			text_copy(&l, fix, sizeof(fix));
	}
	err_set(e, -EIO, EXIT_PREREQUISITE, "%s", what);
	if (*fix)
		err_fix(e, "%s", fix);
	return -EIO;
}

/* "PID NTH MEM SM MEMORY ENCODER DECODER" */
static void process_take(const struct line *l, struct gpuparse_device *out)
{
	static const int columns[] = {GPU_PROCESS_MEM, GPU_PROCESS_BUSY, GPU_PROCESS_MEM_BUSY,
				      GPU_PROCESS_ENC, GPU_PROCESS_DEC};
	struct gpuparse_process p = {0};
	const char *at = l->rest, *end = at + l->rest_len;
	uint64_t n;

	for (int i = 0; i < 7; i++) {
		const char *blank = memchr(at, ' ', (size_t)(end - at));
		size_t len = (size_t)((blank ? blank : end) - at);
		bool is = number_of(at, len, &n);

		if (i < 2 && (!is || n > UINT32_MAX))
			return;
		if (i == 0)
			p.pid = (uint32_t)n;
		else if (i == 1)
			p.nth = (uint32_t)n;
		else if (is)
			fact_put(&p.row, columns[i - 2], n);
		if (!blank && i < 6)
			return;
		at = blank ? blank + 1 : end;
	}
	if (p.pid && out->n < GPUPARSE_PROCESSES)
		out->processes[out->n++] = p;
}

static void column_take(const struct line *l, struct fact_row *row)
{
	uint64_t n;

	for (int i = 0; i < GPU_N; i++)
		if (GPU_FACT.columns[i].type == FACT_NUMBER &&
		    is_word(l, GPU_FACT.columns[i].name) && number_of(l->rest, l->rest_len, &n))
			fact_put(row, i, n);
}

bool gpuparse_device(const char *text, size_t len, struct gpuparse_device *out)
{
	size_t pos = 0;
	struct line l;

	out->uuid[0] = out->number[0] = out->name[0] = 0;
	out->row = (struct fact_row){0};
	out->n = 0;
	while (line_next(text, len, &pos, &l)) {
		if (is_word(&l, "device"))
			text_copy(&l, out->uuid, sizeof(out->uuid));
		else if (is_word(&l, "gpu"))
			text_copy(&l, out->number, sizeof(out->number));
		else if (is_word(&l, "name"))
			text_copy(&l, out->name, sizeof(out->name));
		else if (is_word(&l, "process"))
			process_take(&l, out);
		else
			column_take(&l, &out->row);
	}
	return out->uuid[0] != 0;
}
