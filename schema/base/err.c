/* SPDX-License-Identifier: Apache-2.0 */
/* err: filling in and printing an error for people. */
#include "schema/base/err.h"

#include <stdarg.h>
#include <stdio.h>

#include "schema/base/strbuf.h"
#include "schema/base/typed.h"

int err_set(struct err *e, int code, enum sonde_exit exit, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return code;
	e->code = code;
	e->exit = (int)exit;
	e->fix[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(e->what, sizeof(e->what), fmt, ap);
	va_end(ap);
	return code;
}

void err_fix(struct err *e, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return;
	va_start(ap, fmt);
	vsnprintf(e->fix, sizeof(e->fix), fmt, ap);
	va_end(ap);
}

int err_report(const struct err *e, const char *prog)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT, fix cleanup_strbuf = STRBUF_INIT;

	strbuf_addf(&text, "%s: ", prog);
	strbuf_addlines(&text,
			e->what[0] ? e->what : "failed"); /* quotes names and words from anywhere */
	strbuf_addch(&text, '\n');
	if (e->fix[0]) {
		strbuf_addstr(&text, "  fix: ");
		typed_add(&fix, e->fix);
		strbuf_addlines(&text, strbuf_str(&fix));
		strbuf_addch(&text, '\n');
	}
	fputs(strbuf_str(&text), stderr);
	return e->exit ? e->exit : EXIT_RUNTIME;
}
