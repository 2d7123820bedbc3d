/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkfile_fuzz: a user's check may be any file: it is refused with a message, or its values are
 * within their bounds.
 *
 * covers: tools/checks/checkfile.c tools/checks/checkslo.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/checks/checkfile.h"
#include "tools/checks/checkslo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void files(void)
{
	struct checkfiles all;
	struct err e = {0};

	if (checkfiles_read("/nonexistent", &all, &e) == 0 || !e.what[0])
		abort();
	if (!checkfiles_read(NULL, &all, &e))
		checkfiles_release(&all);
}

static void promise(const char *text, size_t len)
{
	struct checkfile c[CHECKSLO_MOST];
	struct err e = {0};
	size_t n = 0;

	if (checkslo_parse("x", "x", text, len, c, &n, &e) ? !e.what[0] : !n || n > CHECKSLO_MOST)
		abort();
	for (size_t i = 0; i < n; i++)
		checkfile_release(&c[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len + !len); /* of just that length */
	struct checkfile c;
	struct err e = {0};

	memcpy(text, data, len);
	if (!checkfile_parse("x", "x", text, len, &c, &e)) {
		if (c.for_min < 1 || c.window_min < 1 || c.window_min > CHECKFILE_WINDOW_MIN ||
		    !c.summary[0] || !*c.sql)
			abort();
		checkfile_release(&c);
	} else if (!e.what[0]) {
		abort();
	}
	promise(text, len);
	free(text);
	if (len && data[0] == '!')
		files();
	return 0;
}
