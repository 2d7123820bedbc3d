/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_fuzz: any bytes as the unwind rows of a file, and any record of a late stack, end in frames
 * and a reason. hostmaps is played: everything below 1 TiB is one file with those rows.
 *
 * covers: loaders/lib/host/late/late.c loaders/lib/host/late/late_parts.c
 *         loaders/lib/host/unwind/unwind.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/late/late.h"
#include "loaders/lib/host/unwind/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct unwind_section rows;
static bool awaited;

bool hostmaps_seeded(const struct hostmaps *hm)
{
	(void)hm;
	return true;
}

uint64_t hostmaps_watermark(const struct hostmaps *hm)
{
	(void)hm;
	return UINT64_MAX / 2;
}

bool hostmaps_awaits(const struct hostmaps *hm, uint64_t pending)
{
	(void)hm;
	return awaited && pending;
}

struct hostmaps_process *hostmaps_process(struct hostmaps *hm, uint32_t tgid, uint64_t start_ns,
					  uint32_t exec_id)
{
	static struct hostmaps_process p;

	(void)hm;
	(void)start_ns;
	(void)exec_id;
	return tgid ? &p : NULL;
}

bool hostmaps_where(struct hostmaps *hm, struct hostmaps_process *p, uint64_t addr,
		    uint64_t time_ns, struct unwind_where *out, uint64_t *pending)
{
	(void)hm;
	(void)p;
	(void)time_ns;
	if (addr >> 40)
		return false;
	*out = (struct unwind_where){.end = 1ull << 40,
				     .state = awaited ? UNWIND_ROWS_PENDING : UNWIND_ROWS_READY};
	if (awaited)
		*pending = 1;
	else
		out->rows = rows;
	return true;
}

static void take(void *ctx, const struct stack_event *ev, size_t size)
{
	const uint64_t *frames = (const uint64_t *)(ev + 1);
	volatile uint64_t sum = 0;

	(void)ctx;
	if (ev->end >= STACK_END_N || ev->n_kernel > STACK_KERNEL_MAX ||
	    ev->n_user > STACK_USER_MAX || !ev->n_user ||
	    size != sizeof(*ev) + ((size_t)ev->n_kernel + ev->n_user) * sizeof(*frames))
		abort();
	for (size_t i = 0; i < (size_t)ev->n_kernel + ev->n_user; i++)
		sum += frames[i]; /* all of them are written */
	(void)sum;
}

/* [size of the rows / 8, two bytes] [rows] [record] */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	size_t n = len >= 2 ? (data[0] | (size_t)data[1] << 8) * 8 : 0;
	uint64_t *section, *record;
	struct late q;

	if (len < 2 || n > len - 2)
		return 0;
	section = malloc(n + 8);
	memcpy(section, data + 2, n);
	rows = (struct unwind_section){0};
	unwind_section_open(&rows, section, n);
	record = malloc(len - 2 - n + 8);
	memcpy(record, data + 2 + n, len - 2 - n);
	late_init(&q, 1 << 17);
	if (len - 2 - n >= sizeof(struct stack_event)) { /* as a part that comes before it, too */
		struct stack_event *ev = (void *)record;
		__u16 flags = ev->flags;

		ev->flags = STACK_F_MORE;
		late_push(&q, record, len - 2 - n);
		ev->flags = flags;
	}
	for (int i = 0; i < 3; i++)
		if (late_push(&q, record, len - 2 - n))
			late_shed(&q, NULL, take, NULL);
	awaited = true;
	late_drain(&q, NULL, 0, UINT64_MAX / 4, false, take, NULL);
	awaited = false;
	late_drain(&q, NULL, 0, UINT64_MAX / 4, false, take, NULL);
	late_drain(&q, NULL, 0, 0, true, take, NULL);
	if (q.n || q.bytes)
		abort();
	late_release(&q);
	free(section);
	free(record);
	return 0;
}
