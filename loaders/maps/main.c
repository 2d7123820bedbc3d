// SPDX-License-Identifier: Apache-2.0
/*
 * sonde-maps: tells its clients which processes there are, what is mapped where in them, and the
 * index of each file. This file makes the parts and takes them apart; what they do together is the
 * loop (loop.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "loaders/lib/host/maps/cache.h"
#include "loaders/lib/sandbox/confine.h"
#include "loaders/maps/world/cgroups.h"
#include "loaders/maps/world/containers.h"
#include "loaders/maps/dump.h"
#include "loaders/maps/world/exec_race.h"
#include "loaders/maps/explain.h"
#include "loaders/maps/world/side_band_feed.h"
#include "loaders/maps/hub/hub.h"
#include "loaders/maps/indexing/indexer.h"
#include "loaders/maps/main_parts.h"
#include "loaders/maps/print.h"
#include "loaders/maps/publish/publish.h"
#include "loaders/maps/publish/wanted.h"
#include "schema/base/cleanup.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

/* ---- what the hub asks ---- */

static void dump(void *ctx)
{
	struct maps *m = ctx;

	world_tell_all(&m->world);
	containers_tell(m->world.containers, m->hub, true);
	for (struct mimage *img = m->world.by_id; img; img = img->hh_id.next)
		indexer_tell(m->indexer, img);
}

static void want(void *ctx, uint32_t image, uint32_t flags)
{
	struct maps *m = ctx;
	struct mimage *img = world_image(&m->world, image);

	if (!img)
		return;
	img->awaited |= !!(flags & MP_WANT_NOW);
	indexer_want(m->indexer, img, flags & MP_WANT_DAMAGED);
}

static void print_one(void *ctx, const struct mapspack_msg *msg)
{
	const struct maps *m = ctx;

	print_message(msg, m->o.json);
}

static void image_new(void *ctx, struct mimage *img, struct proc *p, uint64_t start, uint64_t end)
{
	indexer_see(((struct maps *)ctx)->indexer, img, p, start, end);
}

static void image_gone(void *ctx, struct mimage *img)
{
	struct maps *m = ctx;

	if (m->indexer)
		indexer_drop(m->indexer, img);
}

static uint64_t born(void *ctx, const struct proc *p, const char *path, uint64_t ino,
		     uint64_t time_ns)
{
	return indexer_born(((struct maps *)ctx)->indexer, p, path, ino, time_ns);
}

static bool is_still(void *ctx, const struct proc *p)
{
	return side_band_feed_is_still(((struct maps *)ctx)->feed, p);
}

static void watch(struct maps *m, int fd, void *ptr)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = ptr};

	epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

/* Ctrl-C goes to the whole group; one who was started by a loader ends when that is done with it.
 */
static void catch_signals(struct maps *m)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	if (m->o.fd < 0)
		sigaddset(&set, SIGINT);
	else
		signal(SIGINT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	m->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	watch(m, m->signal_fd, &m->signal_fd);
}

static char *index_program(const struct cmdline *o)
{
	char path[4096];
	ssize_t n;
	char *slash;

	if (o->index)
		return mem_strdup(o->index);
	n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	if (n < 0)
		return mem_strdup("sonde-index");
	path[n] = 0;
	slash = strrchr(path, '/');
	strcpy(slash ? slash + 1 : path, "sonde-index");
	return mem_strdup(path);
}

/* What a predecessor left, from --tables-fd on. */
static void inherited(const struct cmdline *o, int from[MP_TABLES_N])
{
	for (int i = 0; i < MP_TABLES_N; i++) {
		from[i] = o->tables_fd < 0 ? -1 : o->tables_fd + i;
		if (from[i] >= 0)
			fcntl(from[i], F_SETFD, FD_CLOEXEC);
	}
}

/* Without the program that follows forks and execs the tables would be wrong too often: there are
 * none then. */
static void open_tables(struct maps *m)
{
	int from[MP_TABLES_N], rc;

	inherited(&m->o, from);
	rc = m->o.check ? -ECANCELED : tablemaps_open(&m->tables, m->o.rows_mb, from);
	for (int i = 0; i < MP_TABLES_N; i++)
		if (from[i] >= 0)
			close(from[i]);
	if (rc && !m->o.check)
		log_warn("no BPF maps for unwinding (%s): stacks are found by frame pointers alone",
			 strerror(-rc));
}

/*
 * Whoever started us loads its own program with our maps: it hears of them before we load ours.
 * (Who comes by the socket finds everything ready.)
 */
static void start_hub(struct maps *m)
{
	struct hub_ops ops = {.ctx = m,
			      .dump = dump,
			      .want = want,
			      .hurry = maps_hurry,
			      .print = m->o.print ? print_one : NULL};

	m->hub = hub_new(&ops, m->epoll_fd, m->tables.state ? m->tables.fd : NULL,
			 m->tables.state ? publish_generation(&m->tables) : 0);
	if (m->o.fd >= 0 && !m->o.socket)
		hub_own(m->hub, m->o.fd);
}

static void start_tables(struct maps *m)
{
	if (!m->world.bpf) {
		hub_degrade(m->hub);
		tablemaps_close(&m->tables);
	}
	if (!m->tables.state)
		return;
	m->publish = m->world.publish = publish_new(&m->tables, &m->world);
	m->tables_bytes = tablemaps_bytes(&m->tables);
}

static int open_all(struct maps *m, struct err *e)
{
	cleanup_free char *index = index_program(&m->o);
	char why[256];
	int rc;

	if (args_policy_parse(m->o.args, &m->world.args_policy)) {
		err_set(e, -EINVAL, EXIT_USAGE, "--args is full, masked or none, not '%s'",
			m->o.args);
		return -EINVAL;
	}
	m->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	catch_signals(m);
	world_init(&m->world);
	m->world.cgroups = cgroups_new();
	m->world.containers = containers_new();
	open_tables(m);
	start_hub(m);
	m->cache = cache_open(m->o.store, (uint64_t)m->o.images_mb << 20);
	rc = side_band_feed_open(&m->world, m->tables.fd[MP_TABLES_PROCESSES], m->o.store, &m->feed,
				 why, sizeof(why), e);
	if (rc)
		return rc;
	if (!m->world.bpf)
		log_warn("no BPF program (%s): short processes will lack their arguments", why);
	start_tables(m);
	if (side_band_feed_urgent_fd(m->feed) >= 0)
		m->early = exec_race_start(side_band_feed_urgent_fd(m->feed), m->world.containers);
	m->indexer = indexer_new(&m->world, m->hub, m->cache, m->early, m->epoll_fd, index,
				 !m->o.no_lines);
	m->world.hub = m->hub;
	m->world.ctx = m;
	m->world.image_new = image_new;
	m->world.image_gone = image_gone;
	m->world.is_still = is_still;
	m->world.born = born;
	publish_use_indexer(m->publish, m->indexer);
	side_band_feed_poll(m->feed, m->epoll_fd);
	m->wanted = m->publish ? wanted_open(m->tables.fd[MP_TABLES_WANTED], m->epoll_fd) : NULL;
	if (m->o.socket) {
		m->listen_fd = hub_listen(m->hub, m->o.socket, e);
		if (m->listen_fd < 0)
			return m->listen_fd;
		watch(m, m->listen_fd, &m->listen_fd);
		if (m->o.fd >= 0)
			hub_own(m->hub, m->o.fd);
	}
	return 0;
}

static void close_all(struct maps *m)
{
	indexer_free(m->indexer);
	m->indexer = NULL;
	m->world.publish = NULL;
	publish_free(m->publish);
	world_release(&m->world);
	tablemaps_close(&m->tables);
	hub_free(m->hub);
	exec_race_stop(m->early);
	wanted_close(m->wanted);
	side_band_feed_close(m->feed);
	cache_close(m->cache);
	cgroups_free(m->world.cgroups);
	containers_free(m->world.containers);
}

static int check(struct maps *m)
{
	struct world *w = &m->world;
	size_t maps = 0;

	side_band_feed_seed(m->feed);
	for (struct proc *p = w->procs; p; p = p->hh.next)
		maps += p->maps.n_now;
	printf("side-band  %s\n", side_band_feed_has_perf(m->feed) ?
					  "ok" :
					  "missing: processes are found in /proc, once a second");
	printf("programs   %s\n", w->bpf ? "ok (exec, fork, exit, tasks)" :
					   "missing: short processes lack their arguments");
	printf("seed       %llu processes, %zu executable mappings, %llu files\n",
	       (unsigned long long)w->stats.procs, maps, (unsigned long long)w->stats.images);
	return EXIT_OK;
}

int main(int argc, char **argv)
{
	struct maps m = {
		.epoll_fd = -1, .signal_fd = -1, .listen_fd = -1, .tables = TABLEMAPS_NONE};
	struct err e = {0};
	int rc = cmdline_parse(argc, argv, &m.o, &e);

	if (rc)
		return rc > 0 ? EXIT_OK : err_report(&e, "sonde-maps");
	log_init("sonde-maps", m.o.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN);
	if (m.o.explain >= 0)
		return explain((uint32_t)m.o.explain, m.o.store, &e) ?
			       err_report(&e, "sonde-maps") :
			       EXIT_OK;
	if (m.o.dump >= 0)
		return dump_tables(m.o.socket, (uint32_t)m.o.dump, &e) ?
			       err_report(&e, "sonde-maps") :
			       EXIT_OK;
	if (open_all(&m, &e)) {
		close_all(&m);
		return err_report(&e, "sonde-maps");
	}
	if (m.o.check) {
		rc = check(&m);
	} else {
		side_band_feed_seed(m.feed);
		m.good_ns = m.cpus_ns = side_band_feed_read(m.feed);
		publish_tick(m.publish, m.good_ns);
		hub_open(m.hub);
		/* it goes on: what is recorded counts for more */
		if (confine(CONFINE_EXECS | CONFINE_HANDLES, &e))
			log_warn("%s", e.what);
		maps_loop(&m);
	}
	log_debug("%llu records came after their watermark",
		  (unsigned long long)side_band_feed_late(m.feed));
	close_all(&m);
	return rc;
}
