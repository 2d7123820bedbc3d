/* SPDX-License-Identifier: Apache-2.0 */
/* log: one write(2) a line, so that lines of several processes do not mix. */
#include "schema/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const char *log_prog = "sonde";
static enum log_level log_max = LOG_LEVEL_WARN;

void log_init(const char *prog, enum log_level max)
{
	log_prog = prog;
	log_max = max;
}

void log_at(enum log_level level, const char *fmt, ...)
{
	char line[1024];
	int n, m;
	va_list ap;

	if (level > log_max)
		return;
	n = snprintf(line, sizeof(line), "%s: ", log_prog);
	va_start(ap, fmt);
	m = vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	if (m < 0)
		return;
	n += m;
	if ((size_t)n > sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return; /* nobody is left to be told */
}
