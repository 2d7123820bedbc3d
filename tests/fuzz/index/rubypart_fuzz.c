/* SPDX-License-Identifier: Apache-2.0 */
/* rubypart_fuzz: any bytes as code of rb_thread_current and rb_id2str, as a table of addresses, and
 * as a version. */
#include <stdlib.h>
#include <string.h>

#include "loaders/index/runtimes/rubypart.h"
#include "schema/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct rows_span spans[4];
	const struct rows rows = {.base = 0x1000, .spans = spans, .span_count = 4};
	uint64_t used[RUBYPART_ADDRESSES];
	uint64_t *words = mem_alloc(len + 8);
	struct ruby_layout l = {0};
	struct elf_range at;
	size_t n = rubypart_addresses(data, len, 0x1000, used, 0);
	char *text = mem_alloc(len + 1);

	for (uint32_t i = 0; i < 4; i++)
		spans[i] = (struct rows_span){
			.lo = i << 28, .hi = (i << 28) + 0x8000000, .source = ROWS_EH_FRAME};
	if (n > RUBYPART_ADDRESSES)
		abort();
	rubypart_pair(used, n);
	rubypart_local(data, len, 0x1000, &l);
	memcpy(words, data, len);
	if (rubypart_labels(words, len / 8, &rows, &at) &&
	    (at.start >= at.end || len / 8 < RUBYPART_LABELS))
		abort();
	memcpy(text, data, len);
	text[len] = 0;
	rubypart_layout(text, &l);
	free(text);
	free(words);
	return 0;
}
