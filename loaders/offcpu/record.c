/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/offcpu/record.h"

#include <errno.h>

bool record_is_end(const struct stack_event *ev, size_t size)
{
	return ev->end == OFFCPU_RECORD_END && !ev->n_kernel && !ev->n_user &&
	       size == sizeof(struct offcpu_end);
}

bool record_is_wake(const struct stack_event *ev, size_t size)
{
	return ev->end == OFFCPU_RECORD_WAKE && !ev->n_kernel && !ev->n_user &&
	       size == sizeof(struct offcpu_wake);
}

int record_value(const void *record, size_t size, uint64_t *n)
{
	const struct stack_event *ev = record;

	if (size < sizeof(*ev) || ev->n_kernel > STACK_KERNEL_MAX || ev->n_user > STACK_USER_MAX ||
	    size < sizeof(*ev) + ((size_t)ev->n_kernel + ev->n_user) * sizeof(__u64))
		return -EBADMSG;
	*n = 0;
	if (record_is_end(ev, size)) {
		const struct offcpu_end *end = record;

		*n = (uint64_t)end->weight * (end->blocked ? 2 : 1);
	}
	return 0;
}
