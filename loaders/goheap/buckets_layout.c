/* SPDX-License-Identifier: Apache-2.0 */
/* buckets_layout: see buckets.h: where things are in a process, and what is made of a record's
 * parts. */

#include "loaders/goheap/buckets.h"
#include "loaders/goheap/buckets_parts.h"
#include "schema/image/go.h"

/* runtime.ticks, by Go 1.x: lock, padding, val; lock, val; lock, startTicks, startTime, val: words
 * of 8 bytes */
#define TICKS_SMALL_SINCE   20
#define TICKS_STARTED_SINCE 22
#define RECORD_SHORT_SINCE  27

static uint64_t place(const struct image_go_record *go, enum image_go_variable v, uint64_t bias)
{
	return go->variables[v] ? go->variables[v] + bias : 0;
}

bool buckets_layout_make(const struct image_go_record *go, uint64_t bias,
			 struct buckets_layout *out)
{
	const unsigned minor = image_go_minor(go->version);
	struct buckets_layout l = {0};

	l.heads[BUCKETS_MEMORY] = place(go, IMAGE_GO_MBUCKETS, bias);
	l.heads[BUCKETS_BLOCK] = place(go, IMAGE_GO_BBUCKETS, bias);
	l.heads[BUCKETS_MUTEX] = place(go, IMAGE_GO_XBUCKETS, bias);
	l.cycle = place(go, IMAGE_GO_MPROF_CYCLE, bias);
	if (!l.cycle) {
		l.cycle = place(go, IMAGE_GO_MPROF, bias);
		l.old_cycle = l.cycle;
	}
	l.mem_rate = place(go, IMAGE_GO_MEM_PROFILE_RATE, bias);
	l.block_rate = place(go, IMAGE_GO_BLOCK_PROFILE_RATE, bias);
	l.mutex_rate = place(go, IMAGE_GO_MUTEX_PROFILE_RATE, bias);
	l.ticks_started = minor >= TICKS_STARTED_SINCE;
	if (go->variables[IMAGE_GO_TICKS] && minor)
		l.ticks = place(go, IMAGE_GO_TICKS, bias) + (l.ticks_started            ? 24 :
							     minor >= TICKS_SMALL_SINCE ? 8 :
											  16);
	if (minor)
		l.record_len =
			minor >= RECORD_SHORT_SINCE ? BUCKET_RECORD_SHORT : BUCKET_RECORD_LONG;
	if (go->bss_end > go->bss_start) {
		l.search = go->bss_start + bias;
		l.search_len = go->bss_end - go->bss_start;
	}
	if (!l.heads[BUCKETS_MEMORY] && !l.search)
		return false;
	*out = l;
	return true;
}

static struct bucket_amounts add(struct bucket_amounts a, const struct bucket_amounts *b)
{
	a.allocs += b->allocs;
	a.frees += b->frees;
	a.alloc_bytes += b->alloc_bytes;
	a.free_bytes += b->free_bytes;
	return a;
}

struct bucket_amounts bucket_published(const struct bucket *b)
{
	return b->cycle_known ? add(b->active, &b->future[b->cycle % 3]) : b->active;
}

struct bucket_amounts bucket_pending(const struct bucket *b)
{
	struct bucket_amounts sum = {0};

	for (unsigned i = 0; i < 3; i++)
		if (!b->cycle_known || i != b->cycle % 3)
			sum = add(sum, &b->future[i]);
	return sum;
}

const char *buckets_state_text(enum buckets_state s)
{
	static const char *const texts[BUCKETS_STATES] = {
		[BUCKETS_OK] = "read",
		[BUCKETS_EMPTY] = "nothing was sampled yet",
		[BUCKETS_OFF] = "memory profiling is off in this program (MemProfileRate is 0)",
		[BUCKETS_NOT_FOUND] = "its symbols are stripped, and its profile is not found yet",
		[BUCKETS_UNKNOWN_LAYOUT] = "its profile has an unknown layout: a newer Go?",
		[BUCKETS_UNREADABLE] = "no permission to read its memory (CAP_SYS_PTRACE)",
		[BUCKETS_GONE] = "it ended, or became another program",
		[BUCKETS_BROKEN] =
			"its profile is damaged: a list is circular or leaves its memory",
		[BUCKETS_TOO_MANY] = "it has more allocating stacks than can be read",
	};

	return (unsigned)s < BUCKETS_STATES ? texts[s] : "?";
}
