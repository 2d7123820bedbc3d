/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/logs/unitname.h"

#include <stdbool.h>
#include <string.h>

/* What systemd counts with after "session-" and "run-": letters that say of what, and a number. */
static bool is_number(const char *s, size_t len)
{
	size_t n = strspn(s, "cupri-0123456789abcdef");

	return n == len && strcspn(s, "0123456789") < len;
}

static void fold(char *name, const char *begin, const char *end)
{
	size_t len = strlen(name), first = strlen(begin), last = strlen(end);

	if (len <= first + last || strncmp(name, begin, first) != 0 ||
	    strcmp(name + len - last, end) != 0 || !is_number(name + first, len - first - last))
		return;
	memmove(name + first - 1, name + len - last, last + 1); /* over the dash */
}

void unitname_fold(char *name)
{
	fold(name, "session-", ".scope");
	fold(name, "run-", ".scope");
	fold(name, "run-", ".service");
}
