/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/elf/region.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"

void region_release(struct region *r)
{
	free(take_ptr(r->bytes));
}

int region_read(struct elf_file *f, uint64_t vaddr, uint64_t len, struct region *out)
{
	void *p = NULL;
	int rc = elf_read_at(f, vaddr, len, &p);

	if (rc)
		return rc == -ERANGE || rc == -EFBIG ? -ENOENT : rc;
	rc = elf_relocate(f, p, vaddr, len);
	if (rc) {
		free(p);
		return rc;
	}
	*out = (struct region){.bytes = p, .vaddr = vaddr, .len = len};
	return 0;
}

uint64_t region_word(const struct region *r, uint64_t offset, unsigned size)
{
	uint64_t v = 0;

	if (offset <= r->len && size <= r->len - offset)
		memcpy(&v, r->bytes + offset, size);
	return v;
}
