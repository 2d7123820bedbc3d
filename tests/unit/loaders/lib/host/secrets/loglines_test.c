/* SPDX-License-Identifier: Apache-2.0 */
/* secrets: lines as programs log them (log_lines.h). */
#include <stdbool.h>
#include <string.h>

#include "loaders/lib/host/secrets/secrets.h"
#include "schema/base/array.h"
#include "schema/base/strbuf.h"
#include "tests/unit/loaders/lib/host/secrets/log_lines.h"
#include "tests/unit/test.h"

static const char *const hidden[] = {LOG_LINES_HIDDEN}, *const mixed[] = {LOG_LINES_HIDDEN_MIXED},
			 *const kept[] = {LOG_LINES_KEPT};
static const char *const words[] = {"rosebud", "violetotter"}, *const others[] = {"Tr0ub4dor77",
										  "quiet-heron-9",
										  "Weiss.Dohle3",
										  "k4_Lm81wZ",
										  "aZ91kQ7pLm2V",
										  "a+b9==",
										  "s3cr$t!x",
										  "hunter2"};

static void with(const char *row, const char *secret, struct strbuf *out)
{
	strbuf_reset(out);
	for (const char *p = row; *p; p++) {
		if (!strncmp(p, "{S}", 3)) {
			strbuf_addstr(out, secret);
			p += 2;
		} else {
			strbuf_addch(out, *p);
		}
	}
}

static int comes_out(const char *const *rows, size_t n, const char *const *secrets,
		     size_t n_secrets)
{
	struct strbuf in cleanup_strbuf = STRBUF_INIT, out cleanup_strbuf = STRBUF_INIT;
	int found = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t s = 0; s < n_secrets; s++) {
			with(rows[i], secrets[s], &in);
			strbuf_reset(&out);
			secrets_mask_text(strbuf_str(&in), in.len, &out);
			if (!memmem(strbuf_str(&out), out.len, secrets[s], strlen(secrets[s])))
				continue;
			print_message("%s\n   gives %s\n", strbuf_str(&in), strbuf_str(&out));
			found++;
			break;
		}
	return found;
}

TEST(no_secret_comes_out_of_a_line_that_names_it)
{
	assert_int_equal(comes_out(hidden, ARRAY_SIZE(hidden), words, ARRAY_SIZE(words)) +
				 comes_out(hidden, ARRAY_SIZE(hidden), others, ARRAY_SIZE(others)),
			 0);
}

TEST(what_is_no_word_does_not_come_out_of_prose_either)
{
	assert_int_equal(comes_out(mixed, ARRAY_SIZE(mixed), others, ARRAY_SIZE(others)), 0);
}

TEST(a_line_that_only_speaks_of_secrets_stays_as_it_is)
{
	struct strbuf out cleanup_strbuf = STRBUF_INIT;
	int changed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		strbuf_reset(&out);
		secrets_mask_text(kept[i], strlen(kept[i]), &out);
		if (!strcmp(strbuf_str(&out), kept[i]))
			continue;
		print_message("%s\n   gives %s\n", kept[i], strbuf_str(&out));
		changed++;
	}
	assert_int_equal(changed, 0);
}
