/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/probe/usdt.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/probe/regs.h"
#include "schema/base/array.h"

/* "%rdi" and nothing behind it but `end` -> its place; -1. */
static int register_at(const char *text, size_t len, char end)
{
	char name[8];

	if (len < 2 || *text != '%')
		return -1;
	text++;
	len--;
	if (end && text[len - 1] != end)
		return -1;
	len -= end != 0;
	if (!len || len >= sizeof(name))
		return -1;
	memcpy(name, text, len);
	name[len] = 0;
	return regs_named(name);
}

static bool place(const char *text, size_t len, struct probe_fetch *f)
{
	char *end;
	int at;

	if (*text == '$') {
		f->more = strtoll(text + 1, &end, 0);
		f->from = PROBE_FROM_CONSTANT;
		return end == text + len && end > text + 1;
	}
	at = register_at(text, len, 0);
	if (at >= 0) {
		f->from = PROBE_FROM_CONTEXT;
		f->offset = (uint16_t)at;
		return true;
	}
	f->more = strtoll(text, &end, 0);
	if (end >= text + len || *end != '(')
		return false;
	at = register_at(end + 1, len - (size_t)(end + 1 - text), ')');
	if (at < 0)
		return false;
	f->from = PROBE_FROM_CONTEXT;
	f->offset = (uint16_t)at;
	f->deref = 1;
	return true;
}

static void one(const char *text, size_t len, struct probe_fetch *f)
{
	char *end;
	long size = strtol(text, &end, 10);
	long bytes = size < 0 ? -size : size;

	*f = (struct probe_fetch){0};
	if (end == text || *end != '@' || end + 1 >= text + len ||
	    (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8))
		return;
	f->size = (__u8)bytes;
	f->is_signed = size < 0;
	if (!place(end + 1, len - (size_t)(end + 1 - text), f))
		*f = (struct probe_fetch){0};
}

void usdt_args(const char *text, struct plan_notes *out)
{
	*out = (struct plan_notes){0};
	while (out->n < ARRAY_SIZE(out->args)) {
		size_t len;

		text += strspn(text, " ");
		len = strcspn(text, " ");
		if (!len)
			return;
		one(text, len, &out->args[out->n++]);
		text += len;
	}
}
