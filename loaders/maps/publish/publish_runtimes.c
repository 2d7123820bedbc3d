/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish_runtimes: what the walkers of script frames need to know of an interpreter's file
 * (probes/runtimes/runtime.h), from its index. Files with equal content share an element. Elements
 * are never freed: a host has few interpreters, and running programs point to them.
 */
#include "loaders/maps/publish/private.h"

#include <string.h>

#include "loaders/maps/publish/goroutine_offsets.h"
#include "loaders/maps/publish/tablemaps.h"
#include "probes/runtimes/runtime.h"
#include "schema/base/array.h"
#include "schema/base/log.h"
#include "schema/image/format.h"
#include "schema/image/go.h"

/* The program distinguishes code objects by their fields from the file's name to the lines
 * (probes/runtimes/python.bpf.h). */
static bool identity_is_near(const struct python_layout *l)
{
	return l->code_lines > l->code_file && l->code_lines - l->code_file <= 24 &&
	       !((l->code_lines - l->code_file) & 7) && l->code_name > l->code_file &&
	       l->code_name < l->code_lines &&
	       (!l->code_qualname ||
		(l->code_qualname > l->code_file && l->code_qualname < l->code_lines));
}

static bool python_read(const void *section, size_t size, struct tables_runtime *out)
{
	if (size != sizeof(out->python))
		return false;
	memcpy(&out->python, section, size);
	return out->python.format == PYTHON_FORMAT && identity_is_near(&out->python);
}

/* What it reads of a function at once holds all that it needs. */
static bool php_read(const void *section, size_t size, struct tables_runtime *out)
{
	const struct php_layout *l = &out->php;

	if (size != sizeof(*l))
		return false;
	memcpy(&out->php, section, size);
	return l->format == PHP_FORMAT && l->code + 8 <= PHP_FUNC_SIZE &&
	       l->code_count + 4 <= PHP_FUNC_SIZE && l->file + 12 <= PHP_FUNC_SIZE;
}

static bool ruby_read(const void *section, size_t size, struct tables_runtime *out)
{
	if (size != sizeof(out->ruby))
		return false;
	memcpy(&out->ruby, section, size);
	return out->ruby.format == RUBY_FORMAT;
}

static bool perl_read(const void *section, size_t size, struct tables_runtime *out)
{
	if (size != sizeof(out->perl))
		return false;
	memcpy(&out->perl, section, size);
	return out->perl.format == PERL_FORMAT;
}

static const struct {
	uint32_t kind, section;
	bool (*read)(const void *section, size_t size, struct tables_runtime *out);
} kinds[] = {
	{RUNTIME_PYTHON, IMAGE_SECTION_PYTHON, python_read},
	{RUNTIME_PHP, IMAGE_SECTION_PHP, php_read},
	{RUNTIME_RUBY, IMAGE_SECTION_RUBY, ruby_read},
	{RUNTIME_PERL, IMAGE_SECTION_PERL, perl_read},
};

static bool runtime_read(const struct image *index, struct tables_runtime *out)
{
	const void *section;
	size_t size;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!image_part(index, kinds[i].section, &section, &size))
			continue;
		out->kind = kinds[i].kind;
		return kinds[i].read(section, size, out);
	}
	return false;
}

uint32_t publish_runtime(struct publish *pub, const struct image *index, uint64_t text_base)
{
	struct tables_runtime r = {.text_base = text_base}, *at = pub->maps->runtimes;

	if (!runtime_read(index, &r))
		return 0;
	for (uint32_t i = 1; i < TABLES_RUNTIMES; i++) {
		uint32_t kind = r.kind;

		if (at[i].kind && memcmp(&at[i], &r, sizeof(r)))
			continue;
		if (at[i].kind)
			return i;
		r.kind = 0;
		at[i] = r;
		__atomic_store_n(&at[i].kind, kind, __ATOMIC_RELEASE);
		return i;
	}
	if (!pub->told_runtimes)
		log_warn(
			"no room for more than %d interpreters: script frames of the others are not walked",
			TABLES_RUNTIMES - 1);
	pub->told_runtimes = true;
	return 0;
}

static uint32_t go_flags(const struct image *index)
{
	struct image_go_record go;
	struct unwind_section s;
	const void *section;
	size_t size;

	if (!image_ident(index)->go)
		return 0;
	if (!image_unwind(index, &section, &size) || unwind_section_open(&s, section, size) ||
	    !image_go(index, &go))
		return TABLES_PROCESS_GO;
	return goroutine_offsets_flags(&s, go.version);
}

/* Go, or a V8 whose frames can be read. */
uint32_t publish_process_flags(const struct image *index)
{
	struct v8_layout l;
	const void *section;
	size_t size;

	if (!image_part(index, IMAGE_SECTION_V8, &section, &size) || size != sizeof(l))
		return go_flags(index);
	memcpy(&l, section, sizeof(l));
	return l.format == V8_FORMAT && l.known ? TABLES_PROCESS_OBJECTS : 0;
}
