/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small sections: .gnu_debuglink and notes.
 *
 * covers: loaders/index/elf/debuglink.c loaders/index/elf/note.c
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/index/elf/debuglink.h"
#include "loaders/index/elf/note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct debuglink d;
	struct debugaltlink alt;

	if (debugaltlink_parse(data, len, &alt) &&
	    (!*alt.name || alt.build_id_len < 2 || alt.build_id_len > sizeof(alt.build_id)))
		abort();
	if (debuglink_parse(data, len, &d) && (!*d.name || strchr(d.name, '/')))
		abort();
	for (size_t align = 4; align <= 8; align += 4) {
		struct note_facts f = {0};

		note_scan(data, len, align, &f);
		if (f.build_id_len > BUILD_ID_MAX)
			abort();
	}
	return 0;
}
