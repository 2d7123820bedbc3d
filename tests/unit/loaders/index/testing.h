/* SPDX-License-Identifier: Apache-2.0 */
/* testing: makes an index from bytes and looks symbols up in it. */
#ifndef TESTS_INDEX_TESTING_H
#define TESTS_INDEX_TESTING_H

#include <stdlib.h>
#include <string.h>

#include "loaders/index/indexer.h"
#include "schema/image/image.h"
#include "tests/unit/test.h"

struct made {
	struct index_result r;
	struct image *img;
	int rc;
};

static inline void made_open(struct made *m)
{
	if (!m->rc)
		assert_int_equal(image_open_bytes(m->r.data, m->r.size, &m->img, NULL), 0);
}

static inline struct made made_of_bytes(const void *data, size_t len,
					const struct index_finder *finder)
{
	struct made m = {0};

	m.rc = indexer_run_bytes(data, len, finder, &m.r, NULL);
	made_open(&m);
	return m;
}

static inline void made_release(struct made *m)
{
	image_close(m->img);
	free(m->r.data);
}

/* The name at an address, or "". Borrowed. */
static inline const char *made_name(const struct made *m, uint64_t addr)
{
	struct image_symbol s;

	return m->img && image_symbol_at(m->img, addr, &s) ? s.name : "";
}

#endif
