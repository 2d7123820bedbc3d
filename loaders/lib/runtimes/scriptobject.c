/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/scriptobject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/perl/perlcode.h"
#include "loaders/lib/runtimes/phpcode.h"
#include "loaders/lib/runtimes/rubycode.h"

/* The record's pieces as the process's memory. */
struct copy {
	const struct script_names *names;
	size_t data; /* bytes of it that there are */
};

static bool copy_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	const struct copy *c = ctx;

	for (int i = 0; i < SCRIPT_PIECES; i++) {
		const struct script_piece *p = &c->names->piece[i];
		const uint64_t into = addr - p->at;

		if (p->size > c->data || p->from > c->data - p->size || into >= p->size ||
		    len > p->size - into)
			continue;
		memcpy(to, c->names->data + p->from + into, len);
		return true;
	}
	return false;
}

static void python_read(const struct runtime_memory *m, const struct script_names *n,
			struct scriptobject *o)
{
	pycode_object_read(m, &n->layout.python, n->bias, n->key.object, &o->python);
}

static void php_read(const struct runtime_memory *m, const struct script_names *n,
		     struct scriptobject *o)
{
	const struct phpcode c = {.m = m, .l = &n->layout.php};
	const uint32_t type = n->what & 0xff;

	if (type != PHP_INTERNAL && type != PHP_SCRIPT && type != PHP_EVAL)
		return;
	if (phpcode_read(&c, n->of, type, n->what & SCRIPT_OUTERMOST, &o->place))
		o->place.line = phpcode_first_line(&c, n->of, type);
}

static void ruby_read(const struct runtime_memory *m, const struct script_names *n,
		      struct scriptobject *o)
{
	const struct rubycode c = {.m = m, .l = &n->layout.ruby, .bias = n->bias};

	if (n->what & SCRIPT_NATIVE) {
		rubycode_method(&c, n->of, &o->place);
		return;
	}
	if (!rubycode_iseq(&c, n->key.object, 0, n->of, &o->place))
		return;
	o->lines = rubycode_lines(&c, n->key.object, &o->n_lines);
	o->place.line = o->n_lines ? o->lines[0] : 0;
}

static void perl_read(const struct runtime_memory *m, const struct script_names *n,
		      struct scriptobject *o)
{
	const struct perlcode c = {.m = m, .l = &n->layout.perl};

	perlcode_read(&c, n->what, n->of, n->of, &o->place);
}

static void (*const readers[RUNTIME_N])(const struct runtime_memory *m,
					const struct script_names *n,
					struct scriptobject *o) = {[RUNTIME_PYTHON] = python_read,
								   [RUNTIME_PHP] = php_read,
								   [RUNTIME_RUBY] = ruby_read,
								   [RUNTIME_PERL] = perl_read};

int scriptobject_read(const void *record, size_t size, struct scriptobject *out)
{
	struct copy c = {.names = record};
	const struct runtime_memory memory = {.ctx = &c, .read = copy_read};
	const struct script_names *n = record;
	struct scriptobject o = {0};

	if (size < offsetof(struct script_names, data) || size > sizeof(*n) || !n->id ||
	    n->layout.kind >= RUNTIME_N || !readers[n->layout.kind])
		return -EBADMSG;
	c.data = size - offsetof(struct script_names, data);
	o.id = n->id;
	o.kind = n->layout.kind;
	o.image = n->image;
	o.key = n->key;
	o.time_ns = n->time_ns;
	readers[o.kind](&memory, n, &o);
	*out = o;
	return 0;
}

const char *scriptobject_function(const struct scriptobject *o)
{
	return o->kind == RUNTIME_PYTHON ? o->python.function : o->place.function;
}

const char *scriptobject_file(const struct scriptobject *o)
{
	return o->kind == RUNTIME_PYTHON ? o->python.file : o->place.file;
}

uint32_t scriptobject_first_line(const struct scriptobject *o)
{
	if (o->kind == RUNTIME_PYTHON)
		return o->python.first_line > 0 ? (uint32_t)o->python.first_line : 0;
	return o->place.line;
}

uint32_t scriptobject_line(const struct scriptobject *o, uint32_t position)
{
	if (!position)
		return 0;
	if (o->kind == RUNTIME_PYTHON)
		return pycode_object_line(&o->python, (int64_t)position - SCRIPT_PYTHON_NONE);
	if (o->kind == RUNTIME_PHP || o->kind == RUNTIME_PERL || o->kind == RUNTIME_HOTSPOT ||
	    o->kind == RUNTIME_V8 || o->kind == RUNTIME_BEAM)
		return position;
	return position <= o->n_lines ? o->lines[position - 1] : 0;
}

void scriptobject_release(struct scriptobject *o)
{
	pycode_object_release(&o->python);
	script_place_release(&o->place);
	free(o->lines);
	*o = (struct scriptobject){0};
}
