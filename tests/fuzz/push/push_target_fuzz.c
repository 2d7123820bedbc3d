/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: export/push/target.c
 *
 * Any text is a configuration or none. One that is has targets with an address that holds no user,
 * and times within their bounds.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "export/push/target.h"
#include "schema/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct targets targets;
	struct err e = {0};
	char *text = mem_strndup((const char *)data, size);

	if (!targets_parse(text, "conf", &targets, &e)) {
		if (!targets.n || targets.n > TARGETS_MOST)
			abort();
		for (size_t i = 0; i < targets.n; i++) {
			const struct target *t = &targets.items[i];

			if (strncmp(t->url, "http", 4) || strchr(t->url, '@') || !t->every_s ||
			    t->every_s > 31 * 86400 || (*t->token_file && *t->user))
				abort();
			target_wants(t->tables, "host_stats");
			target_wants(t->profiles, "cpu");
		}
	} else if (!*e.what) {
		abort();
	}
	free(text);
	return 0;
}
