/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/print/spark.h"

static void level_add(struct strbuf *out, bool unicode, double share)
{
	static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char ascii[] = "_.:-=+*#@";
	const size_t levels = unicode ? 8 : sizeof(ascii) - 1;
	size_t level = share <= 0 ? 0 :
		       share >= 1 ? levels - 1 :
				    1 + (size_t)(share * (double)(levels - 1) - 1e-9);

	level = level < levels ? level : levels - 1;
	if (unicode)
		strbuf_addstr(out, blocks[level]);
	else
		strbuf_addch(out, ascii[level]);
}

void spark_add(struct strbuf *out, const double *x, size_t n, double top, bool unicode)
{
	for (size_t i = 0; i < n; i++) {
		if (x[i] < 0)
			strbuf_addch(out, ' ');
		else
			level_add(out, unicode, top > 0 ? x[i] / top : 0);
	}
}
