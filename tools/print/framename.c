/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/print/framename.h"

#include <string.h>

void framename_add(struct strbuf *s, const char *name)
{
	for (;;) {
		size_t n = strcspn(name, ";");

		strbuf_addshown(s, name, n);
		if (!name[n])
			return;
		strbuf_addstr(s, "\\x3b");
		name += n + 1;
	}
}
