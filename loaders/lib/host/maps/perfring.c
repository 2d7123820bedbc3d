/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffer protocol (perf_event_open(2)): the kernel writes data_head, which we read with acquire; we
 * write data_tail with release. A record that wraps is assembled in `wrap`.
 */
#include "loaders/lib/host/maps/perfring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

struct ring {
	int fd;
	struct perf_event_mmap_page *page; /* NULL: not open */
	size_t data_bytes;
	uint64_t enabled_ns; /* how long its event had run at the last check */
};

struct perfring {
	struct perfring_opts opts;
	struct ring *rings; /* by CPU number */
	size_t n;
	uint8_t wrap[65536];
};

static int event_open(struct perf_event_attr *a, int cpu)
{
	return (int)syscall(SYS_perf_event_open, a, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static struct perf_event_attr event_attr(const struct perfring_opts *o)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(struct perf_event_attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = o->task,
		.cgroup = 1,
		.sample_id_all = 1,
		.watermark = 1,
		.wakeup_watermark = (uint32_t)(o->bytes / 2),
		.use_clockid = 1,
		.clockid = CLOCK_BOOTTIME,
		.exclude_kernel = 1,
		.disabled = 1,
	};
}

static int event_open_on(const struct perfring_opts *o, int cpu)
{
	struct perf_event_attr a = event_attr(o);
	int fd = event_open(&a, cpu);

	return fd < 0 ? -errno : fd;
}

static void ring_close(struct ring *g)
{
	if (g->page)
		munmap(g->page, g->data_bytes + (size_t)sysconf(_SC_PAGESIZE));
	if (g->fd >= 0)
		close(g->fd);
	*g = (struct ring){.fd = -1};
}

static int ring_open(struct perfring *r, int cpu)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct ring g = {.fd = -1, .data_bytes = r->opts.bytes};
	void *m;

	g.fd = event_open_on(&r->opts, cpu);
	if (g.fd < 0)
		return g.fd;
	m = mmap(NULL, g.data_bytes + page, PROT_READ | PROT_WRITE, MAP_SHARED, g.fd, 0);
	while (m == MAP_FAILED && (errno == EPERM || errno == ENOMEM) && g.data_bytes > 4 * page) {
		/* the watermark is part of the event: open it again for the smaller buffer */
		close(g.fd);
		g.data_bytes /= 2;
		r->opts.bytes = g.data_bytes;
		g.fd = event_open_on(&r->opts, cpu);
		if (g.fd < 0)
			return g.fd;
		m = mmap(NULL, g.data_bytes + page, PROT_READ | PROT_WRITE, MAP_SHARED, g.fd, 0);
	}
	if (m == MAP_FAILED) {
		int code = -errno;

		ring_close(&g);
		return code;
	}
	g.page = m;
	ioctl(g.fd, PERF_EVENT_IOC_ENABLE, 0);
	r->rings[cpu] = g;
	return 0;
}

static void ring_read(struct perfring *r, struct ring *g, perfring_fn *fn, void *ctx)
{
	uint64_t head = __atomic_load_n(&g->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = g->page->data_tail;
	const uint8_t *base = (const uint8_t *)g->page + sysconf(_SC_PAGESIZE);

	if (head == tail)
		return;
	while (tail < head) {
		size_t at = tail & (g->data_bytes - 1), room = g->data_bytes - at;
		struct perf_event_header h;
		const void *rec = base + at;

		memcpy(&h, base + at,
		       sizeof(h)); /* records are 8-aligned: the header never wraps */
		if (h.size < sizeof(h) || h.size > head - tail)
			break; /* impossible; drop the rest rather than loop forever */
		if (h.size > room) {
			memcpy(r->wrap, base + at, room);
			memcpy(r->wrap + room, base, h.size - room);
			rec = r->wrap;
		}
		fn(ctx, rec, h.size);
		tail += h.size;
	}
	__atomic_store_n(&g->page->data_tail, head, __ATOMIC_RELEASE);
}

/* Which of CPUs 0..n-1 are online: "0-3,8\n". Ignores CPUs beyond n. */
static void online_cpus(bool *on, size_t n)
{
	char buf[4096];
	int fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);
	char *p = buf;

	if (fd >= 0)
		close(fd);
	memset(on, 0, n * sizeof(*on));
	buf[len > 0 ? len : 0] = 0;
	while (*p >= '0' && *p <= '9') {
		size_t lo = strtoul(p, &p, 10), hi = lo;

		if (*p == '-')
			hi = strtoul(p + 1, &p, 10);
		for (size_t i = lo; i <= hi && i < n; i++)
			on[i] = true;
		if (*p == ',')
			p++;
	}
}

/*
 * When a CPU goes offline (also while the host sleeps) its event dies, and stays dead when the CPU
 * returns: the event's time does not advance any more. Reading that time interrupts the CPU, so it
 * is not done at every check.
 */
static bool ring_dead(struct ring *g)
{
	struct {
		uint64_t count, enabled_ns;
	} now;
	bool dead =
		read(g->fd, &now, sizeof(now)) != sizeof(now) || now.enabled_ns == g->enabled_ns;

	g->enabled_ns = now.enabled_ns;
	return dead;
}

int perfring_follow_cpus(struct perfring *r, bool ask, perfring_fn *fn, void *ctx)
{
	bool *on = mem_array(r->n, sizeof(*on));
	int came = 0;

	online_cpus(on, r->n);
	for (size_t i = 0; i < r->n; i++) {
		struct ring *g = &r->rings[i];
		int rc = 0;

		if (g->page && (!on[i] || (ask && ring_dead(g)))) {
			ring_read(r, g, fn, ctx);
			ring_close(g);
		}
		if (on[i] && !g->page) {
			rc = ring_open(r, (int)i);
			came += !rc;
		}
		if (rc)
			log_debug("cannot open the side-band of CPU %zu: %s", i, strerror(-rc));
	}
	free(on);
	return came;
}

static int perfring_paranoia(void)
{
	cleanup_file FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int level = -1;

	return f && fscanf(f, "%d", &level) == 1 ? level : -1;
}

int perfring_open(const struct perfring_opts *o, struct perfring **out, struct err *e)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);
	struct perfring *r = mem_alloc(sizeof(*r));
	int rc;

	r->opts = *o;
	r->n = n > 0 ? (size_t)n : 1;
	r->rings = mem_array(r->n, sizeof(*r->rings));
	for (size_t i = 0; i < r->n; i++)
		r->rings[i].fd = -1;
	if (perfring_follow_cpus(r, false, NULL, NULL) > 0) {
		*out = r;
		return 0;
	}
	rc = event_open_on(o, 0);
	if (rc >= 0) {
		close(rc);
		rc = -ENOMEM;
	}
	perfring_close(r);
	if (rc == -EACCES || rc == -EPERM) {
		err_set(e, rc, EXIT_PERMISSION,
			"cannot watch the mappings of all processes: %s (perf_event_open)",
			strerror(-rc));
		/* Debian's and Ubuntu's kernels; CAP_PERFMON is not enough then */
		if (perfring_paranoia() > 2)
			err_fix(e,
				"sudo sysctl kernel.perf_event_paranoid=2 (it is %d, and asks for CAP_SYS_ADMIN)%s",
				perfring_paranoia(),
				geteuid() ? "; or run as root" :
					    "; in a container: cap_add: [SYS_ADMIN]");
		else
			err_fix(e, "%s",
				geteuid() ?
					"run as root, or with CAP_PERFMON" :
					"this root lacks CAP_PERFMON; in a container: cap_add: [PERFMON]");
		return rc;
	}
	return err_set(e, rc, EXIT_PREREQUISITE,
		       "cannot watch the mappings of all processes: %s (perf_event_open)",
		       strerror(-rc));
}

void perfring_close(struct perfring *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++)
		ring_close(&r->rings[i]);
	free(r->rings);
	free(r);
}

size_t perfring_slots(const struct perfring *r)
{
	return r->n;
}

int perfring_fd(const struct perfring *r, size_t slot)
{
	return slot < r->n ? r->rings[slot].fd : -1;
}

size_t perfring_bytes(const struct perfring *r)
{
	size_t sum = 0;

	for (size_t i = 0; i < r->n; i++)
		sum += r->rings[i].data_bytes;
	return sum;
}

void perfring_read(struct perfring *r, perfring_fn *fn, void *ctx)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->rings[i].page)
			ring_read(r, &r->rings[i], fn, ctx);
}
