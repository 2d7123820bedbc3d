/* SPDX-License-Identifier: Apache-2.0 */
/* inorder: records of the probes, in order of their time. Those of one time come as they were put
 * in. */
#ifndef SONDE_L7_INORDER_H
#define SONDE_L7_INORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inorder {
	uint8_t *bytes;
	size_t len, cap;
	struct inorder_record {
		int64_t at_ns;
		uint32_t at, size;
	} * records;
	size_t n, cap_records;
};

void inorder_release(struct inorder *h);
void inorder_put(struct inorder *h, const void *record, size_t size, int64_t at_ns);
/* Those of before until_ns, given one by one, then forgotten. `take` must not put. */
void inorder_take(struct inorder *h, int64_t until_ns,
		  void (*take)(void *ctx, const void *record, size_t size), void *ctx);

#endif
