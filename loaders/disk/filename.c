/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/disk/filename.h"

#include <stdio.h>
#include <string.h>

#define CUT "..."

bool filename_join(const char *names, size_t n, size_t size, char out[FILENAME_PATH])
{
	char *at = out + FILENAME_PATH - 1;
	size_t parts = 0;
	bool root, all = true, front;

	while (parts < n && names[parts * size] && names[parts * size] != '/')
		parts++;
	root = parts < n && names[parts * size] == '/';
	front = parts == n;
	*at = 0;
	for (size_t i = 0; i < parts; i++) { /* from the end of the path to its beginning */
		const char *name = names + i * size;
		size_t len = strnlen(name, size - 1), cut = len == size - 1 ? sizeof(CUT) - 1 : 0;

		front = front || (size_t)(at - out) < len + cut + sizeof(CUT);
		if ((size_t)(at - out) < len + cut + sizeof(CUT))
			break;
		at -= cut;
		memcpy(at, CUT, cut);
		at -= len;
		memcpy(at, name, len);
		*--at = '/';
		all = all && !cut;
	}
	if (front) {
		at -= sizeof(CUT) - 1;
		memcpy(at, CUT, sizeof(CUT) - 1);
	}
	memmove(out, at, strlen(at) + 1);
	return root && all && !front && parts;
}

void filename_cut(const char *path, size_t len, char out[FILENAME_PATH])
{
	size_t room = FILENAME_PATH - sizeof(CUT);

	if (len < FILENAME_PATH)
		snprintf(out, FILENAME_PATH, "%.*s", (int)len, path);
	else
		snprintf(out, FILENAME_PATH, CUT "%.*s", (int)room, path + len - room);
}

bool filename_ends(const char *path, const char *name, size_t size)
{
	const char *last = strrchr(path, '/');

	return last && !strncmp(last + 1, name, size - 1);
}
