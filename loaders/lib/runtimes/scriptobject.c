/* SPDX-License-Identifier: Apache-2.0 */
/* scriptobject: see the header. */
#include "loaders/lib/runtimes/scriptobject.h"

#include <errno.h>
#include <string.h>

static const uint32_t piece_from[SCRIPT_PIECES] = {
	[SCRIPT_HEAD] = 0, [SCRIPT_NAME] = SCRIPT_NAME_AT, [SCRIPT_FILE] = SCRIPT_FILE_AT, [SCRIPT_LINES] = SCRIPT_LINES_AT};
static const uint32_t piece_max[SCRIPT_PIECES] = {
	[SCRIPT_HEAD] = SCRIPT_HEAD_BYTES, [SCRIPT_NAME] = SCRIPT_TEXT_BYTES, [SCRIPT_FILE] = SCRIPT_TEXT_BYTES,
	[SCRIPT_LINES] = SCRIPT_LINES_BYTES};

/* The record's pieces as the process's memory. */
struct copy {
	const struct script_names *names;
	size_t data; /* bytes of it that there are */
};

static bool copy_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	const struct copy *c = ctx;

	for (int i = 0; i < SCRIPT_PIECES; i++) {
		const uint32_t size = c->names->piece_size[i];
		const uint64_t into = addr - c->names->piece_at[i];

		if (size > piece_max[i] || piece_from[i] + (size_t)size > c->data || into >= size || len > size - into)
			continue;
		memcpy(to, c->names->data + piece_from[i] + into, len);
		return true;
	}
	return false;
}

int scriptobject_read(const void *record, size_t size, struct scriptobject *out)
{
	struct copy c = {.names = record};
	const struct runtime_memory memory = {.ctx = &c, .read = copy_read};
	const struct script_names *n = record;
	struct scriptobject o = {0};

	if (size < offsetof(struct script_names, data) + SCRIPT_LINES_AT || size > sizeof(*n) || !n->id ||
	    n->layout.kind != RUNTIME_PYTHON)
		return -EBADMSG;
	c.data = size - offsetof(struct script_names, data);
	o.id = n->id;
	o.kind = n->layout.kind;
	o.image = n->image;
	o.key = n->key;
	o.time_ns = n->time_ns;
	pycode_object_read(&memory, &n->layout.python, n->bias, n->key.object, &o.python);
	*out = o;
	return 0;
}

const char *scriptobject_function(const struct scriptobject *o)
{
	return o->python.function;
}

const char *scriptobject_file(const struct scriptobject *o)
{
	return o->python.file;
}

uint32_t scriptobject_first_line(const struct scriptobject *o)
{
	return o->python.first_line > 0 ? (uint32_t)o->python.first_line : 0;
}

uint32_t scriptobject_line(const struct scriptobject *o, uint32_t position)
{
	return position ? pycode_object_line(&o->python, (int64_t)position - SCRIPT_PYTHON_NONE) : 0;
}

void scriptobject_release(struct scriptobject *o)
{
	pycode_object_release(&o->python);
	*o = (struct scriptobject){0};
}
