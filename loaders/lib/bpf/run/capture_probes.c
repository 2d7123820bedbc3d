/* SPDX-License-Identifier: Apache-2.0 */
/* capture_probes: the rings of the family's programs, and what is passed on to the family. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "loaders/lib/bpf/run/private.h"
#include "loaders/lib/bpf/start/targetfeed.h"
#include "loaders/lib/host/names/naming.h"

/* Edge-triggered: a ring is readable all the time, only its calls count. */
static int ring_watch(const struct capture_probes *p, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

	return epoll_ctl(p->wake_fd, EPOLL_CTL_ADD, fd, &ev);
}

/* A family that reads by itself may have its own ring: this file only waits for its calls. */
static int wake_open(struct capture_probes *p, const struct capture_config *config, struct err *e)
{
	int fd = config->f->wake_fd ? config->f->wake_fd(config->state) : -1, err;

	if (fd < 0)
		return 0;
	p->wake_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->wake_fd >= 0 && !ring_watch(p, fd))
		return 0;
	err = -errno;
	return err_set(e, err, EXIT_RUNTIME, "cannot watch a ring buffer: %s", strerror(-err));
}

int capture_probes_open(struct capture_probes *p, struct capture_intake *in, struct err *e)
{
	const struct family *f = in->config->f;
	void *state = in->config->state;
	int late = f->late_fd ? f->late_fd(state) : -1, names, err;

	if (!f->ring_fd)
		return wake_open(p, in->config, e);
	scripts_open(&in->scripts, in->config->obj);
	late_jit_on_erlang(in->late_jit, scripts_erlang, &in->scripts);
	names = in->scripts.names_fd;
	p->wake_fd = epoll_create1(EPOLL_CLOEXEC);
	p->ring = ring_buffer__new(f->ring_fd(state), capture_intake_record, in, NULL);
	if (p->ring && (late < 0 || !ring_buffer__add(p->ring, late, capture_intake_late, in)) &&
	    (names < 0 || !ring_buffer__add(p->ring, names, capture_intake_script_name, in)) &&
	    !ring_watch(p, f->ring_fd(state)) && (late < 0 || !ring_watch(p, late)) &&
	    (names < 0 || !ring_watch(p, names)))
		return 0;
	err = -errno;
	return err_set(e, err, EXIT_RUNTIME, "cannot map the ring buffer: %s", strerror(-err));
}

void capture_probes_close(struct capture_probes *p)
{
	if (p->ring)
		ring_buffer__free(p->ring);
	if (p->wake_fd >= 0)
		close(p->wake_fd);
}

void capture_probes_read(struct capture_probes *p, struct capture_intake *in)
{
	int64_t now = clock_boot_ns();

	if (p->ring)
		ring_buffer__consume(p->ring);
	capture_intake_read(in, now);
}

void capture_probes_called(struct capture_probes *p, struct capture_intake *in)
{
	struct epoll_event ev[3];

	epoll_wait(p->wake_fd, ev, 3, 0); /* acknowledge the calls */
	capture_probes_read(p, in);
	if (in->config->f->poll)
		in->host.next_ns = in->read_ns; /* tick now */
}

void capture_probes_feed(struct capture_probes *p, const struct capture_config *config)
{
	if (!config->feed)
		return;
	targetfeed_read(config->feed);
	if (config->f->reduce && p->step != targetfeed_step(config->feed)) {
		p->step = targetfeed_step(config->feed);
		config->f->reduce(config->state, p->step);
	}
}

void capture_probes_symbols(struct capture_probes *p, const struct capture_config *config)
{
	const struct kallsyms *k = naming_kallsyms(config->naming);

	if (!config->f->symbols || p->symbols_given || !k)
		return;
	config->f->symbols(config->state, k);
	p->symbols_given = true;
}
