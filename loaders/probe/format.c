/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/probe/format.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MOST 512

static bool starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* "\toffset:16;" -> 16 */
static bool number_after(const char *line, const char *key, uint64_t *out)
{
	const char *at = strstr(line, key);
	char *end;

	if (!at || !isdigit((unsigned char)at[strlen(key)]))
		return false;
	*out = strtoull(at + strlen(key), &end, 10);
	return *end == ';';
}

static enum format_what what_of(const char *type, bool array, uint64_t size)
{
	bool chars = strstr(type, "char") != NULL && !strchr(type, '*');

	if (starts(type, "__data_loc"))
		return chars && !strstr(type, "unsigned") ? FORMAT_DATA_LOC : FORMAT_OTHER;
	if (starts(type, "__rel_loc"))
		return chars && !strstr(type, "unsigned") ? FORMAT_REL_LOC : FORMAT_OTHER;
	if (array)
		return chars && !strstr(type, "unsigned") ? FORMAT_CHARS : FORMAT_OTHER;
	if (starts(type, "const char *") && size == 8)
		return FORMAT_POINTER_TEXT;
	return size == 1 || size == 2 || size == 4 || size == 8 ? FORMAT_NUMBER : FORMAT_OTHER;
}

/* "const char * name[16]" -> its parts. `decl` is changed. */
static bool declaration(char *decl, struct format_field *f, bool *array)
{
	char *end = decl + strlen(decl), *open;

	*array = end > decl && end[-1] == ']';
	if (*array) {
		open = strrchr(decl, '[');
		if (!open)
			return false;
		*open = 0;
		end = open;
	}
	while (end > decl && (isalnum((unsigned char)end[-1]) || end[-1] == '_'))
		end--;
	if (!*end || end == decl)
		return false;
	snprintf(f->name, sizeof(f->name), "%.31s", end);
	while (end > decl && end[-1] == ' ')
		end--;
	*end = 0;
	snprintf(f->type, sizeof(f->type), "%.47s", decl);
	return true;
}

static bool line_read(char *line, struct format_field *f)
{
	uint64_t offset, size, is_signed = 0;
	char *decl = strstr(line, "field:"), *end;
	bool array;

	if (!decl || !number_after(line, "offset:", &offset) ||
	    !number_after(line, "size:", &size) || offset > UINT16_MAX || size > UINT16_MAX)
		return false;
	number_after(line, "signed:", &is_signed);
	decl += strlen("field:");
	end = strchr(decl, ';');
	if (!end)
		return false;
	*end = 0;
	*f = (struct format_field){
		.offset = (uint16_t)offset, .size = (uint16_t)size, .is_signed = is_signed == 1};
	if (!declaration(decl, f, &array))
		return false;
	f->what = what_of(f->type, array, size);
	return !starts(f->name, "common_");
}

size_t format_read(const char *text, size_t len, struct format_field out[FORMAT_FIELDS])
{
	size_t n = 0;

	while (len && n < FORMAT_FIELDS) {
		const char *end = memchr(text, '\n', len);
		size_t length = end ? (size_t)(end - text) : len;
		char line[LINE_MOST];

		if (length < sizeof(line)) {
			memcpy(line, text, length);
			line[length] = 0;
			n += line_read(line, &out[n]);
		}
		if (!end)
			break;
		text += length + 1;
		len -= length + 1;
	}
	return n;
}
