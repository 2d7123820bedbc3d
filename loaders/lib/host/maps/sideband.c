/* SPDX-License-Identifier: Apache-2.0 */
/* Every read is checked; the tail is read from the end, where the kernel puts it. */
#include "loaders/lib/host/maps/sideband.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "schema/base/cursor.h"

static void read_name(struct cursor *c, struct sideband_rec *r)
{
	size_t len = 0;

	r->name = cursor_str(c, &len);
	if (len >= SIDEBAND_PATH_MAX)
		c->bad = true;
	r->name_len = (uint32_t)len;
}

static void read_mmap2(struct cursor *c, struct sideband_rec *r)
{
	r->type = SIDEBAND_MMAP;
	r->pid = cursor_u32(c);
	r->tid = cursor_u32(c);
	r->addr = cursor_u64(c);
	r->len = cursor_u64(c);
	r->pgoff = cursor_u64(c);
	r->major = cursor_u32(c);
	r->minor = cursor_u32(c);
	r->ino = cursor_u64(c);
	r->ino_generation = cursor_u64(c);
	r->prot = cursor_u32(c);
	r->flags = cursor_u32(c);
	read_name(c, r);
	if (r->addr + r->len < r->addr)
		c->bad = true;
}

static void read_comm(struct cursor *c, uint16_t misc, struct sideband_rec *r)
{
	r->type = SIDEBAND_COMM;
	r->pid = cursor_u32(c);
	r->tid = cursor_u32(c);
	r->exec = misc & PERF_RECORD_MISC_COMM_EXEC;
	read_name(c, r);
}

static void read_task(struct cursor *c, enum sideband_type type, struct sideband_rec *r)
{
	r->type = type;
	r->pid = cursor_u32(c);
	r->ppid = cursor_u32(c);
	r->tid = cursor_u32(c);
	cursor_u32(c); /* ptid */
	cursor_u64(c); /* time, again in the tail */
}

static void read_tail(const uint8_t *data, size_t len, struct sideband_rec *r)
{
	struct cursor c = cursor_init(data + len - SIDEBAND_TAIL, SIDEBAND_TAIL);

	cursor_u64(&c); /* pid, tid: the process that caused it */
	r->time_ns = cursor_u64(&c);
	r->cpu = cursor_u32(&c);
}

int sideband_parse(const void *data, size_t len, struct sideband_rec *out)
{
	struct perf_event_header h;
	struct sideband_rec r = {0};
	struct cursor c;

	if (len < sizeof(h) + SIDEBAND_TAIL)
		return -EBADMSG;
	memcpy(&h, data, sizeof(h));
	if (h.size != len)
		return -EBADMSG;
	c = cursor_init((const uint8_t *)data + sizeof(h), len - sizeof(h) - SIDEBAND_TAIL);
	switch (h.type) {
	case PERF_RECORD_MMAP2:
		read_mmap2(&c, &r);
		break;
	case PERF_RECORD_COMM:
		read_comm(&c, h.misc, &r);
		break;
	case PERF_RECORD_FORK:
		read_task(&c, SIDEBAND_FORK, &r);
		break;
	case PERF_RECORD_EXIT:
		read_task(&c, SIDEBAND_EXIT, &r);
		break;
	case PERF_RECORD_LOST:
		r.type = SIDEBAND_LOST;
		cursor_u64(&c); /* id */
		r.lost = cursor_u64(&c);
		break;
	case PERF_RECORD_CGROUP:
		r.type = SIDEBAND_CGROUP;
		r.cgroup_id = cursor_u64(&c);
		read_name(&c, &r);
		break;
	default:
		return -ENOENT;
	}
	if (c.bad)
		return -EBADMSG;
	read_tail(data, len, &r);
	*out = r;
	return 0;
}
