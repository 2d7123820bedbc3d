/* SPDX-License-Identifier: Apache-2.0 */
/* Which patterns came more often than before, and what is said of them. */
#include "tests/unit/test.h"
#include "tools/logs/logrise.h"

static struct logread_pattern pattern(const char *text, enum log_badness level, uint64_t n)
{
	return (struct logread_pattern){
		.source = "db", .pattern = (char *)text, .level = level, .messages = n};
}

TEST(what_was_not_there_before_comes_first_and_what_is_as_often_is_left_out)
{
	struct logread_pattern was[] = {pattern("slow answer", LOGREAD_WARNING, 60),
					pattern("cannot reach *", LOGREAD_ERROR, 60)};
	struct logread_pattern is[] = {pattern("slow answer", LOGREAD_WARNING, 90),
				       pattern("cannot reach db", LOGREAD_ERROR, 400),
				       pattern("deadlock detected", LOGREAD_ERROR, 40),
				       pattern("~other", LOGREAD_ERROR, 900),
				       pattern("once", LOGREAD_ERROR, 1)};
	const struct logread before = {.known = true,
				       .patterns = was,
				       .n_patterns = 2,
				       .seconds = 60},
			     after = {
				     .known = true, .patterns = is, .n_patterns = 5, .seconds = 60};
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	struct logrise r[LOGRISE_MOST];

	assert_int_equal(logrise_find(&before, &after, r), 2);
	assert_string_equal(r[0].pattern->pattern, "deadlock detected");
	assert_int_equal(r[1].before, 60);
	logrise_say(&r[0], &text);
	assert_string_equal(
		strbuf_str(&text),
		"db logs an error it did not log before, 40 times in 60 s: deadlock detected");
}

TEST(where_logs_were_not_recorded_before_nothing_is_said)
{
	struct logread_pattern is[] = {pattern("deadlock detected", LOGREAD_ERROR, 40)};
	const struct logread before = {.seconds = 60},
			     after = {
				     .known = true, .patterns = is, .n_patterns = 1, .seconds = 60};
	struct logrise r[LOGRISE_MOST];

	assert_int_equal(logrise_find(&before, &after, r), 0);
}
