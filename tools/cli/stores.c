/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/stores.h"

#include <errno.h>
#include <glob.h>
#include <string.h>
#include <unistd.h>

#include "schema/store/read/reader.h"

static void add(struct strbuf *out, const char *path)
{
	if (out->len)
		strbuf_addch(out, STORE_LIST);
	strbuf_addstr(out, path);
}

static int add_pattern(struct strbuf *out, const char *pattern, struct err *e)
{
	glob_t g = {0};
	int rc = glob(pattern, 0, NULL, &g);

	for (size_t i = 0; !rc && i < g.gl_pathc; i++)
		add(out, g.gl_pathv[i]);
	globfree(&g);
	return rc ? err_set(e, -ENOENT, EXIT_STORE, "there is no store at %.300s", pattern) : 0;
}

int stores_join(const struct option_list *given, struct strbuf *out, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < given->n; i++) {
		const char *path = given->items[i];

		if (strchr(path, STORE_LIST))
			rc = err_set(e, -EINVAL, EXIT_USAGE,
				     "--store: a path cannot contain a line feed");
		else if (strpbrk(path, "*?[") && access(path, F_OK) < 0)
			rc = add_pattern(out, path, e);
		else
			add(out, path);
	}
	return rc;
}

bool stores_several(const char *store)
{
	return strchr(store, STORE_LIST) != NULL;
}
