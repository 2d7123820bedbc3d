/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-maps: tells its clients which processes run, what is mapped where in each, and the index of
 * each file.
 *
 * The loop reads the kernel's events, sends clients what happened, then the watermark: every 100 ms
 * while anything happens, else every 500 ms (loaders/lib/host/budget/pace.h). The first exec after
 * a quiet time makes it read at once; a probe that wants a process's tables, and a client in a
 * hurry, as soon as their moment can be read: once for all who want something by then.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "loaders/lib/bpf/load/leftout.h"
#include "loaders/lib/bpf/start/check.h"
#include "loaders/lib/host/budget/pace.h"
#include "loaders/lib/host/budget/selfmem.h"
#include "loaders/lib/host/maps/cache.h"
#include "loaders/lib/host/proc/proc.h"
#include "loaders/lib/sandbox/confine.h"
#include "loaders/maps/cmdline.h"
#include "loaders/maps/dump.h"
#include "loaders/maps/dotnet/dotnetask.h"
#include "loaders/maps/explain.h"
#include "loaders/maps/hub/hub.h"
#include "loaders/maps/indexing/indexer.h"
#include "loaders/maps/print.h"
#include "loaders/maps/publish/publish.h"
#include "loaders/maps/publish/tablemaps.h"
#include "loaders/maps/publish/wanted.h"
#include "loaders/maps/world/cgroups.h"
#include "loaders/maps/world/containers.h"
#include "loaders/maps/world/exec_race.h"
#include "loaders/maps/world/side_band_feed.h"
#include "loaders/maps/world/world.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "loaders/lib/host/budget/weight.h"

struct cache;
struct exec_race;
struct side_band_feed;
struct hub;
struct indexer;
struct publish;
struct wanted;

/* When each periodic task is due. */
struct due {
	int64_t reconcile_ns, act_ns, sweep_ns, cpus_ns, ask_ns, cost_ns, memory_ns, store_ns;
};

struct maps {
	int64_t soon_ns; /* read again then; 0: not before the next tick */
	bool tell_soon;  /* and send what was read */
	struct pace pace;
	struct due due;
	struct cmdline o;
	int epoll_fd, signal_fd, listen_fd;
	struct world world;
	struct side_band_feed *feed;
	struct hub *hub;
	struct cache *cache;
	struct indexer *indexer;
	struct exec_race *early;
	struct wanted *wanted;
	struct tablemaps tables;
	struct publish *publish;
	struct dotnetask *dotnet; /* NULL: nothing is asked */
	uint64_t good_ns;         /* the last T at which nothing was lost */
	uint64_t cpus_ns; /* the last T at which the events of all CPUs were known to work */
	uint64_t rss, private, tables_bytes;
	bool stop;
	char lacks[256]; /* why it has no program; "": it has */
};

#define QUICK_NS (NSEC_PER_SEC / 10)
#define SLOW_NS  (NSEC_PER_SEC / 2) /* well below TABLES_STALE_NS: it is the heartbeat too */
/* quick from the start: rows are being published, loaders wait for them */
#define BEGIN_NS (5 * NSEC_PER_SEC)
#define SOON_NS  ((int64_t)SIDE_BAND_MARGIN_NS + 1000000)
/* look; act ACT_NS later, when the events that the look saw have arrived */
#define RECONCILE_NS (5 * NSEC_PER_SEC)
#define ACT_NS       (3 * NSEC_PER_SEC / 10)
#define SWEEP_NS     (15 * NSEC_PER_SEC)
#define CPUS_NS      NSEC_PER_SEC
#define CPUS_ASK_NS  (5 * NSEC_PER_SEC) /* costs each CPU an interrupt */
#define COST_NS      NSEC_PER_SEC
#define COST_REST_NS (5 * NSEC_PER_SEC) /* where nothing happens */
#define MEMORY_NS    (10 * NSEC_PER_SEC)
#define STORE_NS     (2 * NSEC_PER_SEC)

/* ---- ticks ---- */

static uint64_t cpu_of(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NSEC_PER_SEC +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

/* Is it due? Then it is due again `every_ns` from now. */
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
	struct side_band_feed_cost c;
	struct mp_cost out;

	if (is_due(&m->due.memory_ns, MEMORY_NS))
		selfmem_read(&m->rss, &m->private);
	side_band_feed_cost(m->feed, &c);
	out = (struct mp_cost){.cpu_ns = cpu_of(RUSAGE_SELF),
			       .index_cpu_ns = cpu_of(RUSAGE_CHILDREN) + indexer_cpu_ns(m->indexer),
			       .bpf_ns = c.bpf_ns,
			       .bpf_runs = c.bpf_runs,
			       .rss_bytes = m->rss,
			       .private_bytes = m->private,
			       .map_bytes = c.map_bytes + m->tables_bytes};
	publish_cost(m->publish, &out);
	hub_emit_cost(m->hub, &out);
}

/* Records were lost since then (`lost` 0: an unknown number): read /proc again, send the whole
 * state again. */
static void recover(struct maps *m, uint64_t since_ns, uint64_t lost)
{
	hub_mute(m->hub, true);
	side_band_feed_seed(m->feed);
	hub_mute(m->hub, false);
	hub_reseed_all(m->hub, since_ns, lost);
}

/* Updates the world and the tables; clients get the changes at the next tick. */
static void read_and_publish(struct maps *m)
{
	uint64_t until = side_band_feed_read(m->feed), since = m->good_ns,
		 lost = side_band_feed_lost(m->feed, &since);

	if (lost) {
		log_warn("%llu side-band records were lost: reading /proc again",
			 (unsigned long long)lost);
		recover(m, since, lost);
	}
	m->good_ns = until;
	publish_tick(m->publish, until);
	if (side_band_feed_is_busy(m->feed))
		pace_busy(&m->pace, clock_boot_ns());
}

static void read_and_tell(struct maps *m)
{
	struct mp_watermark w;

	read_and_publish(m);
	w = (struct mp_watermark){.time_ns = m->good_ns, .ends = m->world.ends};
	hub_emit(m->hub, MP_WATERMARK, &w, NULL);
}

/* A new CPU had no event until now. */
static void follow_cpus(struct maps *m)
{
	bool ask = is_due(&m->due.ask_ns, CPUS_ASK_NS);

	if (side_band_feed_follow_cpus(m->feed, ask)) {
		log_debug("CPUs came: reading /proc again");
		recover(m, m->cpus_ns, 0);
	}
	if (ask)
		m->cpus_ns = m->good_ns;
}

static void reconcile(struct maps *m)
{
	if (is_due(&m->due.reconcile_ns, RECONCILE_NS)) {
		side_band_feed_reconcile_look(m->feed);
		m->due.act_ns = clock_boot_ns() + ACT_NS;
	} else if (is_due(&m->due.act_ns, RECONCILE_NS)) {
		side_band_feed_reconcile_act(m->feed);
	}
}

/* Loaders look once a second, right after our tick. */
static bool is_heard(int64_t now)
{
	return now / SLOW_NS % (NSEC_PER_SEC / SLOW_NS) == 0;
}

static void tick(struct maps *m)
{
	bool slow = pace_is_slow(&m->pace, clock_boot_ns());

	if (slow)
		side_band_feed_sleep(m->feed); /* before the read: later execs wake us */
	if (is_due(&m->due.cpus_ns, CPUS_NS))
		follow_cpus(m);
	if (slow && !is_heard(clock_boot_ns()))
		read_and_publish(m);
	else
		read_and_tell(m);
	reconcile(m);
	if (is_due(&m->due.sweep_ns, SWEEP_NS))
		world_sweep(&m->world, (uint64_t)clock_boot_ns());
	lateargs_tick(&m->world.lateargs, (uint64_t)clock_boot_ns());
	if (clock_boot_ns() - m->due.cost_ns >= (slow ? COST_REST_NS : COST_NS)) {
		m->due.cost_ns = clock_boot_ns();
		tell_cost(m);
	}
	if (is_due(&m->due.store_ns, STORE_NS))
		cache_look(m->cache);
	indexer_tick(m->indexer, (uint64_t)clock_boot_ns());
	dotnetask_tick(m->dotnet);
	if (indexer_busy(m->indexer))
		pace_busy(&m->pace, clock_boot_ns());
	hub_flush(m->hub);
	if (m->o.print)
		fflush(stdout);
	pace_ticked(&m->pace, clock_boot_ns());
}

/* SOON_NS after a request: now what was then younger than the margin can be read. */
static void soon(struct maps *m)
{
	m->soon_ns = 0;
	if (!m->tell_soon) {
		read_and_publish(m);
		return;
	}
	m->tell_soon = false;
	tell_cost(m); /* before the watermark, which implies that it has arrived */
	read_and_tell(m);
	hub_flush(m->hub);
}

/* ---- the loop ---- */

/* A client waits for everything that has happened up to now. */
static void maps_hurry(void *ctx)
{
	struct maps *m = ctx;

	m->tell_soon = true;
	m->soon_ns = clock_boot_ns() + SOON_NS;
}

static void dispatch(struct maps *m, const struct epoll_event *ev)
{
	void *ptr = ev->data.ptr;
	struct signalfd_siginfo si;

	if (ptr == m->feed) {
		read_and_tell(m);
		hub_flush(m->hub);
	} else if (ptr == m->wanted) {
		wanted_take(m->wanted);
		if (!m->soon_ns) /* its newest mappings are younger than the margin: not yet */
			m->soon_ns = clock_boot_ns() + SOON_NS;
	} else if (ptr == &m->listen_fd) {
		hub_accept(m->hub);
	} else if (ptr == &m->signal_fd) {
		if (read(m->signal_fd, &si, sizeof(si)) == sizeof(si))
			m->stop = true;
	} else if (indexer_ready(m->indexer, ptr)) {
		publish_news(m->publish);
		publish_tick(m->publish, m->good_ns); /* at once, if rows have arrived */
	} else {
		hub_ready(m->hub, ptr, ev->events);
	}
}

/* Runs until a signal, or until the owner disconnects. */
static void maps_loop(struct maps *m)
{
	int64_t now = clock_boot_ns();

	m->pace = (struct pace){.quick_ns = QUICK_NS,
				.slow_ns = SLOW_NS,
				.next_ns = now,
				.busy_until_ns = now + BEGIN_NS};
	m->due = (struct due){.reconcile_ns = now + RECONCILE_NS,
			      .act_ns = INT64_MAX,
			      .sweep_ns = now + SWEEP_NS,
			      .cost_ns = now,
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

/* ---- what the hub asks ---- */

static void dump(void *ctx)
{
	struct maps *m = ctx;

	world_tell_all(&m->world);
	containers_tell(m->world.containers, m->hub, true);
	for (struct mimage *img = m->world.by_id; img; img = img->hh_id.next)
		indexer_tell(m->indexer, img);
}

static void want(void *ctx, const struct mp_want *want)
{
	struct maps *m = ctx;
	struct mimage *img = world_image(&m->world, want->id);

	if (!img)
		return;
	img->awaited |= !!(want->flags & MP_WANT_NOW);
	if (want->uses > img->uses)
		img->uses = want->uses;
	indexer_want(m->indexer, img, want->flags & MP_WANT_DAMAGED);
}

static void want_args(void *ctx, const struct mp_want_args *want)
{
	world_tell_args(&((struct maps *)ctx)->world, want);
}

/* The process must be the one that we know: by its number and start. */
static void want_names(void *ctx, const struct mp_want_names *want)
{
	const struct maps *m = ctx;
	const struct proc *p =
		m->dotnet ? world_proc(&((struct maps *)ctx)->world, want->tgid) : NULL;

	if (p && p->start_ns == want->start_ns)
		dotnetask_want(m->dotnet, p->tgid, p->start_ns / proc_ticks_ns(1));
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

static uint64_t born(void *ctx, const struct proc *p, const char *path, const struct file_id *f,
		     uint64_t time_ns)
{
	return indexer_born(((struct maps *)ctx)->indexer, p, path, f, time_ns);
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

/* Ctrl-C goes to the whole group; a sonde-maps that a loader started ends when the loader closes
 * its socket. */
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

/* The maps of a predecessor, from --tables-fd on. */
static void inherited(const struct cmdline *o, int from[MP_TABLES_N])
{
	for (int i = 0; i < MP_TABLES_N; i++) {
		from[i] = o->tables_fd < 0 ? -1 : o->tables_fd + i;
		if (from[i] >= 0)
			fcntl(from[i], F_SETFD, FD_CLOEXEC);
	}
}

/* Only with the program that follows forks and execs: without it the tables would be wrong too
 * often. */
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
 * The owner loads its program with our maps: it gets them before we load ours. (Clients of the
 * socket connect when everything is ready.)
 */
static void start_hub(struct maps *m)
{
	struct hub_ops ops = {.ctx = m,
			      .dump = dump,
			      .want = want,
			      .want_args = want_args,
			      .want_names = want_names,
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
	int rc;

	if (args_policy_parse(m->o.args, &m->world.args_policy)) {
		err_set(e, -EINVAL, EXIT_USAGE, "--args is full, masked or none, not '%s'",
			m->o.args);
		return -EINVAL;
	}
	if (m->o.dotnet) {
		m->dotnet = dotnetask_open();
		if (!m->dotnet)
			log_warn("no program of .NET is asked for names: cannot start a process");
	}
	m->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	catch_signals(m);
	world_init(&m->world);
	m->world.args_at_once = m->o.print;
	m->world.cgroups = cgroups_new();
	m->world.containers = containers_new();
	open_tables(m);
	start_hub(m);
	/* a check makes no folder */
	m->cache = cache_open(m->o.check ? NULL : m->o.store, (uint64_t)m->o.images_mb << 20);
	rc = side_band_feed_open(&m->world, m->tables.fd[MP_TABLES_PROCESSES], m->o.store, &m->feed,
				 m->lacks, sizeof(m->lacks), e);
	if (rc)
		return rc;
	if (!m->world.bpf && !m->o.check)
		log_warn("no BPF program (%s): short processes will lack their arguments",
			 m->lacks);
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
	dotnetask_close(m->dotnet);
}

#define CHECK_SIDE_BAND "processes are found in /proc, once a second"

static void check_items(struct maps *m, const char *why, struct check *c)
{
	const struct world *w = &m->world;
	size_t maps = 0;

	if (side_band_feed_has_perf(m->feed))
		check_add(c, "side-band", CHECK_OK, NULL, "the kernel's records of mappings");
	else
		check_add(c, "side-band", CHECK_WARN, "sudo sonde doctor",
			  "missing: " CHECK_SIDE_BAND);
	if (w->bpf)
		check_add(c, "mapping programs", CHECK_OK, NULL,
			  "loaded (exec, fork, exit, tasks)");
	else
		check_add(
			c, "mapping programs", CHECK_WARN,
			"a kernel, and a security policy on it, that allow them; -v shows what libbpf says",
			"missing%s%s (%s): stacks are found by frame pointers alone, short processes lack their arguments",
			*leftout_last() ? ", at the program " : "", leftout_last(), why);
	leftout_check(c);
	side_band_feed_seed(m->feed);
	for (struct proc *p = w->procs; p; p = p->hh.next)
		maps += p->maps.n_now;
	check_add(c, "seed", CHECK_OK, NULL, "%llu processes, %zu executable mappings, %llu files",
		  (unsigned long long)w->stats.procs, maps, (unsigned long long)w->stats.images);
}

static int check(struct maps *m)
{
	struct check c = {0};
	int code;

	check_items(m, m->lacks, &c);
	if (m->o.json)
		check_print_json(&c, "maps", stdout);
	else
		check_print(&c, stdout);
	code = c.exit;
	check_release(&c);
	return code;
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
	weight_raise(WEIGHT_RECORD); /* if sonde record began a session for it */
	if (open_all(&m, &e)) {
		close_all(&m);
		return err_report(&e, "sonde-maps");
	}
	if (m.o.check) {
		rc = check(&m);
	} else {
		leftout_tell("maps");
		side_band_feed_seed(m.feed);
		m.good_ns = m.cpus_ns = side_band_feed_read(m.feed);
		publish_tick(m.publish, m.good_ns);
		hub_open(m.hub);
		/* it goes on without: the recording matters more */
		if (confine(CONFINE_EXECS | CONFINE_HANDLES, &e))
			log_warn("%s", e.what);
		maps_loop(&m);
	}
	log_debug("%llu records came after their watermark",
		  (unsigned long long)side_band_feed_late(m.feed));
	close_all(&m);
	return rc;
}
