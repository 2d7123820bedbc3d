/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: serve/question.c
 *
 * Any values are a command line or an error with words. A command line has nothing that was not
 * listed: every word before `--` is one of the first, begins with a listed option, or begins with
 * no dash. The same bytes are an address, or an error.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "serve/address.h"
#include "serve/question.h"

#define VERB(name)                                                                                                                       \
	"{\"verb\":\"" name                                                                                                              \
	"\",\"json\":[1],\"options\":[{\"name\":\"number\",\"arg\":\"N\",\"repeatable\":false},{\"name\":\"output\",\"arg\":\"FILE\"}]," \
	"\"range\":[{\"name\":\"last\",\"arg\":\"TIME\"}],\"filters\":[{\"name\":\"pid\",\"arg\":\"PID\",\"repeatable\":true},{\"name\":\"self\",\"arg\":null}]}"
static const char HELP[] = "{\"rows\":[" VERB("ps") "," VERB("sql") "," VERB("diff") "]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *const *argv)
{
	static const char *const good[] = {"--number=", "--last=", "--pid=", "--self",
					   "--timeout=31s"};

	for (size_t i = 3; argv[i] && strcmp(argv[i], "--"); i++) {
		bool known = *argv[i] != '-';

		for (size_t k = 0; k < ARRAY_SIZE(good); k++)
			known |= !strncmp(argv[i], good[k], strlen(good[k]));
		if (!known)
			abort();
	}
}

static void ask(const struct questions *q, const char *verb, const struct question_value *values,
		size_t n)
{
	const char **argv = NULL;
	struct err e = {0};

	if (!question_argv(q, "sonde", NULL, 30, verb, false, values, n, &argv, &e))
		check(argv);
	else if (!*e.what || argv)
		abort();
	free(argv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct questions *q;
	struct question_value values[QUESTION_VALUES + 1];
	char *text = malloc(size + 1), *rest = text, *part;
	struct questions *other = NULL;
	struct address a;
	struct err e = {0};
	size_t n = 0;

	if (!q && questions_read(HELP, strlen(HELP), &q, &e))
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	if (!questions_read(text, size, &other, &e))
		questions_free(other);
	address_parse(text, &a, &e);
	while (n < QUESTION_VALUES + 1 && (part = strsep(&rest, "&"))) {
		char *equal = strchr(part, '=');

		if (equal)
			*equal++ = '\0';
		values[n++] = (struct question_value){part, equal, strlen(part),
						      equal ? strlen(equal) : 0};
	}
	ask(q, "ps", values, n);
	ask(q, "sql", values, n);
	ask(q, "diff", values, n);
	free(text);
	return 0;
}
