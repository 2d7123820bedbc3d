/* SPDX-License-Identifier: Apache-2.0 */
/* hostmaps_link: the connection to sonde-maps: how it begins and ends, and what happens when
 * sonde-maps is gone. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/lib/host/maps/hostmaps_packet.h"
#include "loaders/lib/host/maps/private.h"
#include "loaders/lib/host/maps/mapslink.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define BACKOFF_MAX_NS (5 * NSEC_PER_SEC)
#define AWAIT_MS       20 /* between looks for the watermark */

/* ---- start and restart ---- */

static void ask(const struct hostmaps *hm, uint32_t type)
{
	struct mp_head m = {.type = type, .size = sizeof(m)};

	if (hm->fd >= 0)
		(void)!send(hm->fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* A sonde-maps that is started later keeps its indexes where the store is then. */
static void follow_store(struct hostmaps *hm)
{
	char now[PATH_MAX];

	if (hm->store_dir && hm->store.fd < 0)
		(void)place_open(&hm->store, hm->store_dir);
	if (!hm->store_dir || place_look(&hm->store, hm->store_dir, now) != PLACE_MOVED)
		return;
	free(hm->store_dir);
	hm->store_dir = mem_strdup(now);
}

static int start(struct hostmaps *hm, struct err *e)
{
	int rc;

	follow_store(hm);

	hm->generation++;
	hm->generation_ns[hm->generation % GENERATIONS] = hm->gone_ns;
	rc = hm->socket_path ? maps_link_connect(hm->socket_path, &hm->fd, e) :
			       maps_link_start(hm->program, hm->store_dir, hm->args_policy,
					       hm->no_lines, hm->tables, &hm->child, &hm->fd, e);
	if (hm->books)
		ask(hm, MP_BOOKS);
	return rc;
}

/* sonde-maps is gone: its requests are void; what is known stays, but is unsure after its last
 * message. */
static void gone(struct hostmaps *hm)
{
	uint64_t now = (uint64_t)clock_boot_ns();

	close(hm->fd);
	hm->fd = -1;
	hm->gone_ns = now;
	if (hm->child > 0) {
		int status = 0;

		kill(hm->child, SIGKILL);
		waitpid(hm->child, &status, 0);
		hm->child = 0;
		log_warn("sonde-maps ended (%s %d); it is started again",
			 WIFSIGNALED(status) ? "signal" : "code",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	}
	if (hm->seeded)
		hm->lost++;
	hostmaps_unsure(hm, hm->watermark ? hm->watermark : now);
	hostmaps_images_orphaned(hm);
	hm->seeded = hm->greeted = hm->ends_based = false;
	hm->cost_before.cpu_ns += hm->cost.cpu_ns;
	hm->cost_before.index_cpu_ns += hm->cost.index_cpu_ns;
	hm->cost_before.bpf_ns += hm->cost.bpf_ns;
	hm->cost_before.bpf_runs += hm->cost.bpf_runs;
	hm->cost = (struct hostmaps_cost){0};
	hm->restart_ns = now + hm->backoff_ns;
	hm->backoff_ns = hm->backoff_ns ? hm->backoff_ns * 2 : NSEC_PER_SEC / 10;
	if (hm->backoff_ns > BACKOFF_MAX_NS)
		hm->backoff_ns = BACKOFF_MAX_NS;
}

static int restart(struct hostmaps *hm)
{
	struct err e = {0};

	if ((uint64_t)clock_boot_ns() < hm->restart_ns)
		return -EPIPE;
	if (!start(hm, &e))
		return 0;
	log_warn("%s", e.what);
	hm->restart_ns = (uint64_t)clock_boot_ns() + hm->backoff_ns;
	hm->backoff_ns = hm->backoff_ns * 2 > BACKOFF_MAX_NS ? BACKOFF_MAX_NS : hm->backoff_ns * 2;
	return -EPIPE;
}

static void close_fds(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

int hostmaps_read(struct hostmaps *hm)
{
	int rc;

	if (hm->fd < 0 && restart(hm))
		return -EPIPE;
	for (;;) {
		int fds[MP_FDS_MAX];
		size_t len = 0;

		rc = maps_link_receive(hm->fd, hm->packet, sizeof(hm->packet), &len, fds);
		if (!rc)
			break;
		if (rc == 1)
			rc = hostmaps_packet(hm, hm->packet, len, fds);
		close_fds(fds, MP_FDS_MAX);
		if (rc < 0) {
			gone(hm);
			return restart(hm) ? -EPIPE : 0;
		}
	}
	hostmaps_sweep(hm);
	return 0;
}

static char *dup_or_null(const char *s)
{
	return s ? mem_strdup(s) : NULL;
}

struct hostmaps *hostmaps_new(void)
{
	struct hostmaps *hm = mem_alloc(sizeof(*hm));

	hm->fd = hm->store.fd = -1;
	for (int i = 0; i < MP_TABLES_N; i++)
		hm->tables[i] = -1;
	hm->ready_tail = &hm->ready;
	hm->generation = 1;
	hm->swept_ns = (uint64_t)clock_boot_ns();
	return hm;
}

int hostmaps_open(const struct hostmaps_opts *o, struct hostmaps **out, struct err *e)
{
	struct hostmaps *hm = hostmaps_new();
	int rc;

	hm->store_dir = dup_or_null(o->store_dir);
	hm->socket_path = dup_or_null(o->socket_path);
	hm->args_policy = dup_or_null(o->args_policy);
	hm->no_lines = o->no_lines;
	hm->no_mappings = o->no_mappings;
	hm->books = o->books;
	hm->program = o->program ? mem_strdup(o->program) : maps_link_program();
	rc = start(hm, e);
	if (rc) {
		hostmaps_close(hm);
		return rc;
	}
	*out = hm;
	return 0;
}

void hostmaps_close(struct hostmaps *hm)
{
	struct process *p, *next;
	struct newest *n, *next_n;
	struct image_entry *img, *next_img;

	if (!hm)
		return;
	if (hm->fd >= 0)
		close(hm->fd);
	maps_link_end(hm->child);
	HASH_ITER (hh, hm->newest, n, next_n) {
		HASH_DEL(hm->newest, n);
		free(n);
	}
	HASH_ITER (hh, hm->processes, p, next)
		hostmaps_process_free(hm, p);
	HASH_ITER (hh, hm->images, img, next_img)
		hostmaps_image_free(hm, img);
	hostmaps_containers_release(hm);
	close_fds(hm->tables, MP_TABLES_N);
	place_close(&hm->store);
	free(hm->store_dir);
	free(hm->socket_path);
	free(hm->args_policy);
	free(hm->program);
	free(hm);
}

int hostmaps_fd(const struct hostmaps *hm)
{
	return hm->fd;
}

void hostmaps_hurry(const struct hostmaps *hm)
{
	ask(hm, MP_HURRY);
}

void hostmaps_await(struct hostmaps *hm, int64_t until_ns)
{
	const int64_t now = clock_boot_ns();

	hostmaps_hurry(hm);
	while ((int64_t)hostmaps_watermark(hm) < now && clock_boot_ns() < until_ns) {
		struct pollfd f = {.fd = hostmaps_fd(hm), .events = POLLIN};

		poll(&f, 1, AWAIT_MS);
		hostmaps_read(hm);
	}
}
