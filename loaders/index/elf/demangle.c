/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses the callback forms of libiberty, which keep all their state on the stack (CP_DYNAMIC_ARRAYS,
 * so with gcc): so longjmp can leave them as soon as the output is too long.
 */
#include "loaders/index/elf/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

#include "schema/image/format.h"

struct output {
	struct strbuf *buf;
	jmp_buf too_long;
};

static void on_text(const char *text, size_t len, void *opaque)
{
	struct output *o = opaque;

	if (len > IMAGE_NAME_MAX || o->buf->len > IMAGE_NAME_MAX - len)
		longjmp(o->too_long, 1);
	strbuf_add(o->buf, text, len);
}

static bool looks_mangled(const char *s)
{
	return s[0] == '_' && (s[1] == 'Z' || s[1] == 'R' || !strncmp(s, "_GLOBAL_", 8));
}

/* Legacy Rust ends in 17h, 16 hex digits, E; sometimes ".llvm." and digits follow. */
static bool looks_rust(const char *s)
{
	return s[1] == 'R' || strstr(s, "17h");
}

bool demangle(const char *mangled, struct strbuf *out)
{
	const int options = DMGL_PARAMS | DMGL_ANSI;
	struct output o = {.buf = out};

	strbuf_reset(out);
	if (!looks_mangled(mangled) ||
	    strnlen(mangled, DEMANGLE_INPUT_MAX + 1) > DEMANGLE_INPUT_MAX)
		return false;
	if (setjmp(o.too_long))
		return false;
	if (looks_rust(mangled) && rust_demangle_callback(mangled, options, on_text, &o))
		return out->len > 0;
	strbuf_reset(out);
	return cplus_demangle_v3_callback(mangled, options, on_text, &o) && out->len > 0;
}
