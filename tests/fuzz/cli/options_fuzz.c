/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: schema/base/cli/options.c, schema/base/cli/quantity.c, schema/base/cli/suggest.c
 *
 * Any words (ended by line ends) are a command line or an error that says why; numbers are within
 * the table's bounds, what is read as a duration can be printed and is read back.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cli/options.h"
#include "schema/base/cli/quantity.h"

#define WORDS_MAX 32

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct values {
	bool flag;
	const char *text, *word;
	uint32_t number;
	uint64_t bytes;
	int64_t time;
	int which, what;
	struct option_list list;
	struct option_numbers numbers;
};

static const struct option TABLE[] = {
	{"flag", 'f', OPTION_FLAG, NULL, "", OPTION_AT(struct values, flag)},
	{"text", 't', OPTION_STRING, "TEXT", "", OPTION_AT(struct values, text)},
	{"word", 0, OPTION_WORD, "full|masked|none", "", OPTION_AT(struct values, word)},
	{"number", 'n', OPTION_UINT, "N", "", OPTION_AT(struct values, number), .min = 3,
	 .max = 4999},
	{"bytes", 'b', OPTION_BYTES, "SIZE", "", OPTION_AT(struct values, bytes)},
	{"time", 'd', OPTION_DURATION, "TIME", "", OPTION_AT(struct values, time), .min = 1000,
	 .zero = true},
	{"which", 'w', OPTION_ENUM, "auto|plain", "", OPTION_AT(struct values, which)},
	{"once", 'o', OPTION_SET, NULL, "", OPTION_AT(struct values, what), .min = 7},
	{"list", 'l', OPTION_LIST, "NAME", "", OPTION_AT(struct values, list), .min = 1, .max = 4},
	{"pid", 'p', OPTION_NUMBERS, "PID", "", OPTION_AT(struct values, numbers), .min = 1,
	 .max = INT32_MAX},
	{0},
};

static void check(const struct values *v)
{
	if (v->number && (v->number < 3 || v->number > 4999))
		abort();
	if (v->bytes > INT64_MAX || v->time < 0 || (v->time && v->time < 1000) || v->which < 0 ||
	    v->which > 1 || (v->what && v->what != 7) || v->list.n > 4)
		abort();
	for (size_t i = 0; i < v->numbers.n; i++)
		if (!v->numbers.items[i] || v->numbers.items[i] > INT32_MAX)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 1), *argv[WORDS_MAX + 1] = {"x"};
	struct values v = {0};
	const struct option_set set = {TABLE, &v};
	struct option_words words;
	struct err e = {0};
	int argc = 1, rc;

	memcpy(text, data, size);
	for (char *at = text; at && argc < WORDS_MAX; argc++)
		argv[argc] = strsep(&at, "\n");
	rc = options_parse(argc, argv, &set, 1, &words, &e);
	if (!rc != !e.code || (rc && !e.what[0]) || words.n > (size_t)argc)
		abort();
	check(&v);
	options_release(&set, 1, &words);
	free(text);
	return 0;
}
