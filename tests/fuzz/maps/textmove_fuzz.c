/* SPDX-License-Identifier: Apache-2.0 */
/*
 * textmove_fuzz: any bytes as /proc/PID/maps, in which memory that replaces a file's text is looked
 * for, at the start of each of its lines.
 *
 * covers: loaders/maps/world/textmove.c
 */
#include <stdlib.h>

#include "loaders/maps/world/textmove.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *text = (const char *)data;
	struct proc_map m, file;
	size_t pos = 0;

	for (int i = 0; i < 64 && proc_next_map(text, len, &pos, &m); i++)
		if (textmove_find(text, len, m.start, &file) &&
		    (!file.inode || !file.path_len || file.path < text ||
		     file.path + file.path_len > text + len))
			abort();
	return 0;
}
