/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: loaders/java/jfrpick.c
 *         loaders/java/jfrblock.c
 *         loaders/java/jcmd.c
 *
 * Any bytes are a recording that gives a block which holds, or no recording; a block or not; an
 * answer of a machine.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/java/jcmd.h"
#include "loaders/java/jfrblock.h"
#include "loaders/java/jfrpick.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void pick(const uint8_t *data, size_t size, bool live)
{
	const struct jfrpick_opts o = {.live = live, .since = live ? size / 3 : 0};
	struct jfrblock b;
	void *block = NULL;
	size_t len = 0;

	if (jfrpick(data, size, &o, &block, &len)) {
		if (block)
			abort();
		return;
	}
	if (jfrblock_open(block, len, &b))
		abort();
	free(block);
}

static void answer(const char *text)
{
	uint32_t id = 0;
	char line[40];

	if (jcmd_recordings(text, &id) > 0 && !id)
		abort();
	(void)jcmd_major(text);
	(void)jcmd_started(text);
	(void)jcmd_stopped(text);
	(void)jcmd_text(text);
	jcmd_line(text, line, sizeof(line));
	if (strlen(line) >= sizeof(line))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 8);
	struct jfrblock b;

	if (!text)
		return 0;
	memcpy(text, data, size); /* aligned as a block is */
	text[size] = '\0';
	pick(data, size, true);
	pick(data, size, false);
	(void)jfrblock_open(text, size, &b);
	answer(text);
	free(text);
	return 0;
}
