/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/disk/diskother.h"

#include <stdio.h>
#include <string.h>

#define NAME  "~other"
#define SHOWN 1024

bool diskother_is(const char *file)
{
	size_t len = strlen(file), name = sizeof(NAME) - 1;

	return len >= name && !strcmp(file + len - name, NAME) &&
	       (len == name || file[len - name - 1] == '/');
}

const char *diskother_shown(const char *file, const char *what, char *buf, size_t size)
{
	size_t len = strlen(file), end = sizeof(NAME); /* with the '/' before it */

	if (!diskother_is(file))
		return file;
	if (len < end)
		snprintf(buf, size, "other %s", what);
	else
		snprintf(buf, size, "other %s of %.*s", what, len == end ? 1 : (int)(len - end),
			 file);
	return buf;
}

void diskother_row(struct row *o, const char *title, const char *key, const char *file,
		   const char *what)
{
	char text[SHOWN];

	row_cell(o, title, TABLE_MIDDLE,
		 *file ? diskother_shown(file, what, text, sizeof(text)) : NULL);
	row_text(o, NULL, TABLE_LEFT, key, file);
}
