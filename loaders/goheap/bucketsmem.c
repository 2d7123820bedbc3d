/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/goheap/bucketsmem.h"

#include <errno.h>
#include <sys/uio.h>

static_assert(BUCKETS_RANGES_MAX <= 1024, "UIO_MAXIOV");

/* The kernel copies ranges one after the other, and stops inside the first that it cannot read. */
static long process_read(void *ctx, const struct buckets_range *ranges, size_t count)
{
	const struct bucketsmem *m = ctx;
	struct iovec here[BUCKETS_RANGES_MAX] = {{0}}, there[BUCKETS_RANGES_MAX] = {{0}};
	ssize_t got;
	long whole = 0;

	if (!count || count > BUCKETS_RANGES_MAX)
		return -EINVAL;
	for (size_t i = 0; i < count; i++) {
		here[i] = (struct iovec){ranges[i].to, ranges[i].len};
		there[i] = (struct iovec){(void *)(uintptr_t)ranges[i].addr, ranges[i].len};
	}
	got = process_vm_readv(m->pid, here, count, there, count, 0);
	if (got < 0)
		return errno == EFAULT ? 0 : -errno;
	for (; (size_t)whole < count && (size_t)got >= ranges[whole].len; whole++)
		got -= (ssize_t)ranges[whole].len;
	return whole;
}

struct buckets_memory bucketsmem_init(struct bucketsmem *m, int32_t pid)
{
	m->pid = pid;
	return (struct buckets_memory){.read = process_read, .ctx = m};
}
