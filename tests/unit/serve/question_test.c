/* SPDX-License-Identifier: Apache-2.0 */
/* question: from a URL to a command line, by the allow list. The tables here are short; tests/e2e
 * has the real ones. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/strbuf.h"
#include "serve/question.h"
#include "tests/unit/test.h"

#define OPT(name, arg, more) "{\"name\":\"" name "\",\"arg\":" arg ",\"repeatable\":" more "}"
#define VERB(name, options)                                                                      \
	"{\"verb\":\"" name "\",\"json\":[{\"name\":\"json\"}],\"options\":[" options            \
	"],\"range\":[" OPT("last", "\"TIME\"", "false") "],\"filters\":[" OPT(                  \
		"container", "\"NAME\"",                                                         \
		"true") "," OPT("self", "null", "false") "],\"store\":[" OPT("store", "\"DIR\"", \
									     "false") "]}"
static const char HELP[] = "{\"rows\":[" VERB("ps", OPT("number", "\"N\"", "false") "," OPT("evil", "\"N\"", "false")) "," VERB(
	"flame",
	OPT("output", "\"FILE\"", "false") "," OPT("type", "\"FILE\"", "false") "," OPT(
		"open",
		"null",
		"false")) "," VERB("sql",
				   OPT("timeout", "\"TIME\"",
				       "false")) "," VERB("diff",
							  OPT("before", "\"FILE\"",
							      "false")) "," VERB("explain",
										 OPT("before",
										     "\"TIME\"",
										     "false")) "," VERB("record",
													"") "," VERB("report",
														     OPT("output",
															 "\"FILE\"",
															 "false")) "]}";

static struct questions *questions;

static int begin(void **state)
{
	struct err e = {0};

	(void)state;
	return questions_read(HELP, strlen(HELP), &questions, &e);
}

static int end(void **state)
{
	(void)state;
	questions_free(questions);
	return 0;
}

/* "a=b&c" as values; the command line joined by |, or "-errno words". */
static char *asked(const char *verb, const char *query, const char *store, bool page)
{
	char *text = strdup(query), *rest = text, *part;
	struct question_value values[QUESTION_VALUES + 10];
	struct strbuf s = STRBUF_INIT;
	const char **argv = NULL;
	struct err e = {0};
	size_t n = 0;
	int rc;

	while (*query && (part = strsep(&rest, "&"))) {
		char *equal = strchr(part, '=');

		if (equal)
			*equal++ = '\0';
		values[n++] = (struct question_value){part, equal, strlen(part),
						      equal ? strlen(equal) : 0};
	}
	rc = question_argv(questions, "sonde", store, 30, verb, page, values, n, &argv, &e);
	if (rc)
		strbuf_addf(&s, "%d %s", rc, e.what);
	for (size_t i = 0; !rc && argv[i]; i++)
		strbuf_addf(&s, "%s%s", i ? "|" : "", argv[i]);
	free(argv);
	free(text);
	return strbuf_take(&s);
}

static void line_is(const char *verb, const char *query, const char *store, bool page,
		    const char *want)
{
	char *got = asked(verb, query, store, page);

	assert_string_equal(got, want);
	free(got);
}

static void refused(const char *verb, const char *query, int rc, const char *word)
{
	char *got = asked(verb, query, NULL, false), code[16];

	snprintf(code, sizeof(code), "%d ", rc);
	if (strncmp(got, code, strlen(code)) || !strstr(got, word))
		fail_msg("%s?%s: %s", verb, query, got);
	free(got);
}

TEST(values_become_words_of_their_own)
{
	line_is("ps", "", NULL, false, "sonde|ps|--json");
	line_is("ps", "last=20m&number=5", "/s", false,
		"sonde|ps|--json|--store|/s|--last=20m|--number=5");
	line_is("ps", "container=a&container=--output=x&self&what=we b", NULL, false,
		"sonde|ps|--json|--container=a|--container=--output=x|--self|we b");
	line_is("ps", "self=1&container=$(reboot);'", NULL, false,
		"sonde|ps|--json|--self|--container=$(reboot);'");
	line_is("sql", "query=-- x\nselect 1&last=1h", NULL, false,
		"sonde|sql|--json|--last=1h|--timeout=31s|--|-- x\nselect 1");
	line_is("explain", "before=5m", NULL, false, "sonde|explain|--json|--before=5m");
	line_is("report", "last=5m", NULL, true, "sonde|report|--output=-|--last=5m");
}

TEST(what_is_not_listed_is_not_there)
{
	refused("record", "", -ENOENT, "not available");
	refused("report", "", -ENOENT, "not available");
	refused("", "", -ENOENT, "not available");
	refused("../ps", "", -ENOENT, "not available");
	refused("PS", "", -ENOENT, "not available");
	refused("ps", "evil=1", -EINVAL, "takes no 'evil'");
	refused("ps", "store=/etc", -EINVAL, "takes no 'store'");
	refused("flame", "output=x", -EINVAL, "takes no 'output'");
	refused("flame", "open=1", -EINVAL, "takes no 'open'");
	refused("flame", "type=x", -EINVAL, "takes no 'type'"); /* here its value is a FILE */
	refused("diff", "before=/etc/passwd", -EINVAL, "takes no 'before'");
	refused("diff", "what=/etc/passwd", -EINVAL, "takes no 'what'");
	refused("sql", "timeout=1h", -EINVAL, "takes no 'timeout'");
	refused("ps", "json=1", -EINVAL, "takes no 'json'");
	refused("ps", "=x", -EINVAL, "takes no ''");
}

TEST(values_that_cannot_be_meant_are_refused)
{
	char many[QUESTION_VALUES * 8 + 16] = "", *large = malloc(QUESTION_VALUE + 64);

	refused("ps", "last=1&last=2", -EINVAL, "twice");
	refused("ps", "last", -EINVAL, "needs a value");
	refused("ps", "self=yes", -EINVAL, "is a flag");
	refused("ps", "what=-x", -EINVAL, "dash");
	refused("ps", "what=", -EINVAL, "needs a value");
	refused("sql", "", -EINVAL, "needs a query");
	for (int i = 0; i <= QUESTION_VALUES; i++)
		strcat(many, i ? "&what=a" : "what=a");
	refused("ps", many, -EINVAL, "more than");
	strcpy(large, "what=");
	memset(large + 5, 'x', QUESTION_VALUE + 1);
	large[5 + QUESTION_VALUE + 1] = '\0';
	refused("ps", large, -EINVAL, "longer than");
	free(large);
}

TEST(a_zero_byte_cuts_nothing_short)
{
	const struct question_value values[] = {{"what", "web", 4, 9}};
	const char **argv = NULL;
	struct err e = {0};

	assert_int_equal(
		question_argv(questions, "sonde", NULL, 30, "ps", false, values, 1, &argv, &e),
		-EINVAL);
	assert_non_null(strstr(e.what, "zero byte"));
}

TEST(what_is_no_help_is_said)
{
	static const char *const bad[] = {"",
					  "x",
					  "{}",
					  "[]",
					  "{\"rows\":3}",
					  "{\"rows\":[1,null,{\"verb\":7}]}",
					  "{\"rows\":[{\"verb\":\"ps\"}]}"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct questions *q = NULL;
		struct err e = {0};

		assert_int_equal(questions_read(bad[i], strlen(bad[i]), &q, &e), -EBADMSG);
		assert_int_equal(e.exit, EXIT_PREREQUISITE);
	}
}

const struct test_group test_group = {begin, end};
