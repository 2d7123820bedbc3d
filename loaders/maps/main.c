// SPDX-License-Identifier: Apache-2.0
/*
 * sonde-maps: tells its clients which processes there are, what is mapped where in them, and the index of each file. One
 * thread, one loop: the feed is read and what happened is told, then the watermark; every 100 ms while anything happens,
 * else every 500 ms (loaders/lib/host/pace.h). The first exec after a while, a probe that wants a process's tables, and a
 * client that is in a hurry have it read at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "loaders/lib/host/cache.h"
#include "loaders/lib/host/pace.h"
#include "loaders/maps/cgroups.h"
#include "loaders/maps/cmdline.h"
#include "loaders/maps/containers.h"
#include "loaders/maps/dump.h"
#include "loaders/maps/early.h"
#include "loaders/maps/explain.h"
#include "loaders/maps/feed.h"
#include "loaders/maps/hub.h"
#include "loaders/maps/indexer.h"
#include "loaders/maps/print.h"
#include "loaders/maps/publish.h"
#include "loaders/maps/tablemaps.h"
#include "loaders/maps/wanted.h"
#include "loaders/maps/world.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/err.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define QUICK_NS     (NSEC_PER_SEC / 10)
#define SLOW_NS      (NSEC_PER_SEC / 2) /* well below TABLES_STALE_NS: it is the heartbeat too */
#define BEGIN_NS     (5 * NSEC_PER_SEC) /* quick from the start: rows are being published, loaders wait for them */
#define SOON_NS      ((int64_t)FEED_MARGIN_NS + 1000000)
#define RECONCILE_NS (5 * NSEC_PER_SEC) /* look; act ACT_NS later, when what the look saw has been told */
#define ACT_NS       (3 * NSEC_PER_SEC / 10)
#define SWEEP_NS     (15 * NSEC_PER_SEC)
#define CPUS_NS      (SLOW_NS)
#define CPUS_ASK_NS  (5 * NSEC_PER_SEC) /* costs each CPU an interrupt */
#define COST_NS      NSEC_PER_SEC
#define MEMORY_NS    (10 * NSEC_PER_SEC)

/* What is done now and then: when next. */
struct due {
	int64_t reconcile_ns, act_ns, sweep_ns, cpus_ns, ask_ns, cost_ns, memory_ns;
};

struct maps {
	int64_t soon_ns; /* read again then; 0: not before the next tick */
	bool tell_soon;  /* and tell what was read */
	struct pace pace;
	struct due due;
	struct cmdline o;
	int epoll_fd, signal_fd, listen_fd;
	struct world world;
	struct feed *feed;
	struct hub *hub;
	struct cache *cache;
	struct indexer *indexer;
	struct early *early;
	struct wanted *wanted;
	struct tablemaps tables;
	struct publish *publish;
	uint64_t good_ns;  /* the last T at which nothing was lost */
	uint64_t cpus_ns;  /* the last T at which every CPU's event was known to live */
	uint64_t rss, private, tables_bytes;
	bool stop;
};

/* ---- what the hub asks ---- */

static void dump(void *ctx)
{
	struct maps *m = ctx;

	world_tell_all(&m->world);
	containers_tell(m->world.containers, m->hub, true);
	for (struct mimage *img = m->world.by_id; img; img = img->hh_id.next)
		indexer_tell(m->indexer, img);
}

static void want(void *ctx, uint32_t image, bool damaged)
{
	struct maps *m = ctx;
	struct mimage *img = world_image(&m->world, image);

	if (img)
		indexer_want(m->indexer, img, damaged);
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

/* A client waits for what has happened up to now. */
static void hurry(void *ctx)
{
	struct maps *m = ctx;

	m->tell_soon = true;
	m->soon_ns = clock_boot_ns() + SOON_NS;
}

/* ---- ticks ---- */

static void read_memory(struct maps *m)
{
	cleanup_file FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char line[256];
	unsigned long long kb;

	m->rss = m->private = 0;
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Rss: %llu", &kb) == 1)
			m->rss = kb << 10;
		else if (sscanf(line, "Anonymous: %llu", &kb) == 1)
			m->private = kb << 10; /* mapped BPF maps and indexes are counted elsewhere */
	}
}

static uint64_t cpu_of(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NSEC_PER_SEC +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

/* Has its time come? Then it comes again `every_ns` from now. */
static bool is_due(int64_t *at_ns, int64_t every_ns)
{
	int64_t now = clock_boot_ns();

	if (now < *at_ns)
		return false;
	*at_ns = now + every_ns;
	return true;
}

static void tell_cost(struct maps *m)
{
	struct feed_cost c;
	struct mp_cost out;

	if (is_due(&m->due.memory_ns, MEMORY_NS))
		read_memory(m);
	feed_cost(m->feed, &c);
	out = (struct mp_cost){.cpu_ns = cpu_of(RUSAGE_SELF), .index_cpu_ns = cpu_of(RUSAGE_CHILDREN),
			       .bpf_ns = c.bpf_ns, .bpf_runs = c.bpf_runs, .rss_bytes = m->rss,
			       .private_bytes = m->private, .map_bytes = c.map_bytes + m->tables_bytes};
	publish_cost(m->publish, &out);
	hub_emit(m->hub, MP_COST, &out, NULL);
}

/* Records were lost since then (0: nobody knows how many): read /proc again for all, tell all anew. */
static void recover(struct maps *m, uint64_t since_ns, uint64_t lost)
{
	hub_mute(m->hub, true);
	feed_seed(m->feed);
	hub_mute(m->hub, false);
	hub_reseed_all(m->hub, since_ns, lost);
}

/* What happened is known here and in the tables; clients hear of it at the next tick. */
static void read_and_publish(struct maps *m)
{
	uint64_t until = feed_read(m->feed), lost = feed_lost(m->feed);

	if (lost) {
		log_warn("%llu side-band records were lost: reading /proc again", (unsigned long long)lost);
		recover(m, m->good_ns, lost);
	}
	m->good_ns = until;
	publish_tick(m->publish, until);
	if (feed_is_busy(m->feed))
		pace_busy(&m->pace, clock_boot_ns());
}

static void read_and_tell(struct maps *m)
{
	struct mp_watermark w;

	read_and_publish(m);
	w = (struct mp_watermark){.time_ns = m->good_ns, .ends = m->world.ends};
	hub_emit(m->hub, MP_WATERMARK, &w, NULL);
}

/* One that comes had no event until now. */
static void follow_cpus(struct maps *m)
{
	bool ask = is_due(&m->due.ask_ns, CPUS_ASK_NS);

	if (feed_follow_cpus(m->feed, ask)) {
		log_debug("CPUs came: reading /proc again");
		recover(m, m->cpus_ns, 0);
	}
	if (ask)
		m->cpus_ns = m->good_ns;
}

static void reconcile(struct maps *m)
{
	if (is_due(&m->due.reconcile_ns, RECONCILE_NS)) {
		feed_reconcile_look(m->feed);
		m->due.act_ns = clock_boot_ns() + ACT_NS;
	} else if (is_due(&m->due.act_ns, RECONCILE_NS)) {
		feed_reconcile_act(m->feed);
	}
}

static void tick(struct maps *m)
{
	if (pace_is_slow(&m->pace, clock_boot_ns()))
		feed_sleep(m->feed); /* before it is read: what comes from now on calls */
	if (is_due(&m->due.cpus_ns, CPUS_NS))
		follow_cpus(m);
	read_and_tell(m);
	reconcile(m);
	if (is_due(&m->due.sweep_ns, SWEEP_NS))
		world_sweep(&m->world, (uint64_t)clock_boot_ns());
	if (is_due(&m->due.cost_ns, COST_NS))
		tell_cost(m);
	indexer_tick(m->indexer, (uint64_t)clock_boot_ns());
	if (indexer_busy(m->indexer))
		pace_busy(&m->pace, clock_boot_ns());
	hub_flush(m->hub);
	if (m->o.print)
		fflush(stdout);
	pace_ticked(&m->pace, clock_boot_ns());
}

/* ---- the loop ---- */

static void dispatch(struct maps *m, const struct epoll_event *ev)
{
	void *ptr = ev->data.ptr;
	struct signalfd_siginfo si;

	if (ptr == m->feed) {
		read_and_tell(m);
		hub_flush(m->hub);
	} else if (ptr == m->wanted) {
		wanted_take(m->wanted);
		read_and_publish(m);
		if (!m->tell_soon) /* what is younger than the margin: its newest mappings, say */
			m->soon_ns = clock_boot_ns() + SOON_NS;
	} else if (ptr == &m->listen_fd) {
		hub_accept(m->hub);
	} else if (ptr == &m->signal_fd) {
		if (read(m->signal_fd, &si, sizeof(si)) == sizeof(si))
			m->stop = true;
	} else if (indexer_ready(m->indexer, ptr)) {
		publish_tick(m->publish, m->good_ns); /* at once, if rows came */
	} else {
		hub_ready(m->hub, ptr, ev->events);
	}
}

/* What was asked for SOON_NS ago: what was younger than the margin then. */
static void soon(struct maps *m)
{
	m->soon_ns = 0;
	if (!m->tell_soon) {
		read_and_publish(m);
		return;
	}
	m->tell_soon = false;
	read_and_tell(m);
	hub_flush(m->hub);
}

static void loop(struct maps *m)
{
	int64_t now = clock_boot_ns();

	m->pace = (struct pace){.quick_ns = QUICK_NS, .slow_ns = SLOW_NS, .next_ns = now, .busy_until_ns = now + BEGIN_NS};
	m->due = (struct due){.reconcile_ns = now + RECONCILE_NS, .act_ns = INT64_MAX, .sweep_ns = now + SWEEP_NS,
			      .memory_ns = now + COST_NS};
	while (!m->stop && !hub_orphaned(m->hub)) {
		struct epoll_event ev[16];
		int64_t next = m->pace.next_ns;
		int n;

		now = clock_boot_ns();
		if (m->soon_ns && now >= m->soon_ns) {
			soon(m);
			continue;
		}
		if (now >= next) {
			tick(m);
			continue;
		}
		if (m->soon_ns && m->soon_ns < next)
			next = m->soon_ns;
		n = epoll_wait(m->epoll_fd, ev, 16, (int)((next - now + 999999) / 1000000));
		for (int i = 0; i < n; i++)
			dispatch(m, &ev[i]);
	}
}

static void watch(struct maps *m, int fd, void *ptr)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = ptr};

	epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

/* Ctrl-C goes to the whole group; one who was started by a loader ends when that is done with it. */
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

/* Without the program that follows forks and execs the tables would be wrong too often: there are none then. */
static void open_tables(struct maps *m)
{
	int from[MP_TABLES_N], rc;

	inherited(&m->o, from);
	rc = m->o.check ? -ECANCELED : tablemaps_open(&m->tables, m->o.rows_mb, from);
	for (int i = 0; i < MP_TABLES_N; i++)
		if (from[i] >= 0)
			close(from[i]);
	if (rc && !m->o.check)
		log_warn("no BPF maps for unwinding (%s): stacks are found by frame pointers alone", strerror(-rc));
}

static void start_tables(struct maps *m)
{
	if (!m->tables.state)
		return;
	if (!m->world.bpf) {
		tablemaps_close(&m->tables);
		return;
	}
	m->publish = m->world.publish = publish_new(&m->tables, &m->world);
	m->tables_bytes = tablemaps_bytes(&m->tables);
}

static int open_all(struct maps *m, struct err *e)
{
	struct hub_ops ops = {.ctx = m, .dump = dump, .want = want, .hurry = hurry,
			       .print = m->o.print ? print_one : NULL};
	cleanup_free char *index = index_program(&m->o);
	char why[256];
	int rc;

	if (args_policy_parse(m->o.args, &m->world.args_policy)) {
		err_set(e, -EINVAL, EXIT_USAGE, "--args is full, masked or none, not '%s'", m->o.args);
		return -EINVAL;
	}
	m->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	catch_signals(m);
	world_init(&m->world);
	m->world.cgroups = cgroups_new();
	m->world.containers = containers_new();
	open_tables(m);
	rc = feed_open(&m->world, m->tables.fd[MP_TABLES_PROCESSES], &m->feed, why, sizeof(why), e);
	if (rc)
		return rc;
	if (!m->world.bpf)
		log_warn("no BPF program (%s): short processes will lack their arguments", why);
	start_tables(m);
	m->cache = cache_open(m->o.store, (uint64_t)m->o.images_mb << 20);
	m->hub = hub_new(&ops, m->epoll_fd, m->publish ? m->tables.fd : NULL,
			 m->publish ? m->tables.state->generation : 0, !m->world.bpf);
	if (feed_urgent_fd(m->feed) >= 0)
		m->early = early_start(feed_urgent_fd(m->feed), m->world.containers);
	m->indexer = indexer_new(&m->world, m->hub, m->cache, m->early, m->epoll_fd, index, !m->o.no_lines);
	m->world.hub = m->hub;
	m->world.ctx = m;
	m->world.image_new = image_new;
	m->world.image_gone = image_gone;
	publish_use_indexer(m->publish, m->indexer);
	feed_poll(m->feed, m->epoll_fd);
	m->wanted = m->publish ? wanted_open(m->tables.fd[MP_TABLES_WANTED], m->epoll_fd) : NULL;
	if (m->o.socket) {
		m->listen_fd = hub_listen(m->hub, m->o.socket, e);
		if (m->listen_fd < 0)
			return m->listen_fd;
		watch(m, m->listen_fd, &m->listen_fd);
	}
	if (m->o.fd >= 0)
		hub_add(m->hub, m->o.fd, true);
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
	early_stop(m->early);
	wanted_close(m->wanted);
	feed_close(m->feed);
	cache_close(m->cache);
	cgroups_free(m->world.cgroups);
	containers_free(m->world.containers);
}

static int check(struct maps *m)
{
	struct world *w = &m->world;
	size_t maps = 0;

	feed_seed(m->feed);
	for (struct proc *p = w->procs; p; p = p->hh.next)
		maps += p->maps.n_now;
	printf("side-band  %s\n", feed_side_band(m->feed) ? "ok" : "missing: processes are found in /proc, once a second");
	printf("programs   %s\n", w->bpf ? "ok (exec, fork, exit, tasks)" : "missing: short processes lack their arguments");
	printf("seed       %llu processes, %zu executable mappings, %llu files\n", (unsigned long long)w->stats.procs, maps,
	       (unsigned long long)w->stats.images);
	return EXIT_OK;
}

int main(int argc, char **argv)
{
	struct maps m = {.epoll_fd = -1, .signal_fd = -1, .listen_fd = -1, .tables = TABLEMAPS_NONE};
	struct err e = {0};
	int rc = cmdline_parse(argc, argv, &m.o, &e);

	if (rc)
		return rc > 0 ? EXIT_OK : err_report(&e, "sonde-maps");
	log_init("sonde-maps", m.o.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN);
	if (m.o.explain >= 0)
		return explain((uint32_t)m.o.explain, m.o.store, &e) ? err_report(&e, "sonde-maps") : EXIT_OK;
	if (m.o.dump >= 0)
		return dump_tables(m.o.socket, (uint32_t)m.o.dump, &e) ? err_report(&e, "sonde-maps") : EXIT_OK;
	if (open_all(&m, &e)) {
		close_all(&m);
		return err_report(&e, "sonde-maps");
	}
	if (m.o.check) {
		rc = check(&m);
	} else {
		feed_seed(m.feed);
		m.good_ns = m.cpus_ns = feed_read(m.feed);
		publish_tick(m.publish, m.good_ns);
		hub_open(m.hub);
		loop(&m);
	}
	log_debug("%llu records came after their watermark", (unsigned long long)feed_late(m.feed));
	close_all(&m);
	return rc;
}
