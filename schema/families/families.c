/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/families/families.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* `record` takes cpu alone by default: each further family adds its cost, and `sonde status` shows
 * it once it was measured here. sonded takes host too: 0.3 % of a core with 30 containers and 500
 * processes. */
/* clang-format off */
const struct probe_family FAMILIES[] = {
	{.name = "cpu", .by_default = true, .always = true, .has_freq = true, .steps = 3, .event = "sample", .nothing = "no samples: nothing that was asked for ran on a CPU"},
	{.name = "offcpu", .event = "event", .steps = 3, .by_switches = true, .standing = true},
	{.name = "goheap", .has_mode = true, .rights = FAMILY_LOADS, .event = "event"},
	{.name = "host", .always = true, .rights = FAMILY_READS, .event = "row"},
	{.name = "gpu", .rights = FAMILY_READS, .event = "row"},
	{.name = "scrape", .rights = FAMILY_READS, .event = "event",
	 .nothing = "no profiles: no Go program offered one; sonde sql \"SELECT comm, pid, reason FROM scraped\" says why"},
	{.name = "net", .rights = FAMILY_LOADS, .event = "row"},
	{.name = "l7", .word = "requests", .rights = FAMILY_LOADS, .event = "event"},
	{0},
};
/* clang-format on */

size_t families_count(void)
{
	size_t n = 0;

	while (FAMILIES[n].name)
		n++;
	return n;
}

const struct probe_family *family_named(const char *name)
{
	for (const struct probe_family *f = FAMILIES; f->name; f++)
		if (!strcmp(f->name, name) || (f->word && !strcmp(f->word, name)))
			return f;
	return NULL;
}

const char *families_always(void)
{
	static char list[16 * FAMILIES_MAX];
	size_t len = 0;

	for (const struct probe_family *f = FAMILIES; f->name && len < sizeof(list); f++)
		if (f->always)
			len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
						len ? "," : "", f->name);
	return list;
}

static int unknown(const char *name, struct err *e)
{
	char known[128] = "";
	size_t len = 0;

	for (const struct probe_family *f = FAMILIES; f->name && len < sizeof(known); f++)
		len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", len ? ", " : "",
					f->name);
	err_set(e, -EINVAL, EXIT_USAGE, "unknown family '%.40s': known are %s", name, known);
	err_fix(e, "sudo sonde record --families cpu");
	return -EINVAL;
}

int families_of(const char *list, const struct probe_family **out, size_t *n, struct err *e)
{
	char name[40];

	*n = 0;
	for (const struct probe_family *f = FAMILIES; !list && f->name; f++)
		if (f->by_default)
			out[(*n)++] = f;
	while (list) {
		size_t len = strcspn(list, ",");
		const struct probe_family *f;
		bool again = false;

		snprintf(name, sizeof(name), "%.*s", (int)len, list);
		f = len < sizeof(name) ? family_named(name) : NULL;
		if (!f)
			return unknown(name, e);
		for (size_t i = 0; i < *n; i++)
			again = again || out[i] == f;
		if (!again)
			out[(*n)++] = f;
		list = list[len] ? list + len + 1 : NULL;
	}
	return 0;
}
