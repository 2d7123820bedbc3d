/* SPDX-License-Identifier: Apache-2.0 */
/* log: one write(2) a line, so that lines of several processes do not mix. */
#include "schema/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/strbuf.h"

static const char *log_prog = "sonde";
static enum log_level log_max = LOG_LEVEL_WARN;

void log_init(const char *prog, enum log_level max)
{
	log_prog = prog;
	log_max = max;
}

void log_at(enum log_level level, const char *fmt, ...)
{
	struct strbuf line cleanup_strbuf = STRBUF_INIT;
	char msg[1000];
	va_list ap;

	if (level > log_max)
		return;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	strbuf_addf(&line, "%s: ", log_prog);
	strbuf_addshown(&line, msg, strlen(msg));
	strbuf_addch(&line, '\n');
	if (write(STDERR_FILENO, line.buf, line.len) < 0)
		return; /* there is nowhere left to report it */
}
