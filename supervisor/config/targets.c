/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/config/targets.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/proc/containernames.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/image/image.h"
#include "loaders/lib/host/names/rules.h"
#include "supervisor/control/log_lines.h"

#define TICK_NS   (NSEC_PER_SEC * 2 / 5) /* with each of sonded's turns, but no more often */
#define PATHS_MAX 256
/* so long a process is looked at in each turn: its executable is being read */
#define YOUNG_NS (10 * NSEC_PER_SEC)
/* then this often if nothing changes: it may have loaded a library */
#define AGAIN_NS (5 * NSEC_PER_SEC)

struct key {
	uint64_t start_ns;
	uint32_t tgid, exec_id;
};

struct given {
	struct key key;
	uint64_t seen; /* the turn that found it to be a target still */
	UT_hash_handle hh;
};

/* What was found of a process at the last look; its hostmaps_process.user. */
struct looked {
	int64_t next_ns;
	uint64_t found;  /* a bit for each loader: it wants and may have it */
	uint32_t serial; /* of what was known of it */
	uint32_t round;  /* of targets */
};

/* One loader: its pipe, and what it has been given. */
struct feed {
	int fd; /* ours, -1: none */
	struct given *all;
};

struct targets {
	struct hostmaps *hm; /* NULL: no loader wants processes, or sonde-maps is not there */
	struct feed feed[FAMILIES_MAX];
	const struct service *service[FAMILIES_MAX];
	size_t n;
	int64_t next_ns;
	uint64_t turn;
	uint32_t round;               /* grows when all processes have to be checked again */
	char rules[2][CONF_TEXT_MAX]; /* that round's */
	uint64_t wanting;             /* a bit for each loader */
	int64_t now_ns;
	const struct conf *conf; /* of this turn, as the next */
	const struct service *loaders;
	size_t n_loaders;
};

struct targets *targets_new(void)
{
	struct targets *t = mem_alloc(sizeof(*t));

	for (size_t i = 0; i < FAMILIES_MAX; i++)
		t->feed[i].fd = -1;
	return t;
}

static void feed_clear(struct feed *f)
{
	struct given *g, *next;

	HASH_ITER (hh, f->all, g, next) {
		HASH_DEL(f->all, g);
		free(g);
	}
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

void targets_free(struct targets *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++)
		feed_clear(&t->feed[i]);
	hostmaps_close(t->hm);
	free(t);
}

static struct feed *feed_of(struct targets *t, const struct service *s)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->service[i] == s)
			return &t->feed[i];
	return NULL;
}

int targets_begin(struct targets *t, const struct service *s)
{
	struct feed *f = feed_of(t, s);
	int fds[2];

	if (!f && t->n == FAMILIES_MAX)
		return -1;
	if (!f) {
		f = &t->feed[t->n];
		t->service[t->n++] = s;
	}
	feed_clear(f);
	if (pipe2(fds, O_CLOEXEC) < 0) {
		log_line(LOG_LEVEL_WARN, s->program, "cannot send it targets: %s", strerror(errno));
		return -1;
	}
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	f->fd = fds[1];
	return fds[0];
}

bool targets_step(struct targets *t, const struct service *s, unsigned int step)
{
	const struct feed *f = feed_of(t, s);
	char line[16];
	int n = snprintf(line, sizeof(line), "=%u\n", step);

	return f && f->fd >= 0 && write(f->fd, line, (size_t)n) == n;
}

size_t targets_given(const struct targets *t, const struct service *s)
{
	const struct feed *f = feed_of((struct targets *)t, s);

	return f ? HASH_COUNT(f->all) : 0;
}

static bool wants(const struct targets *t, size_t i)
{
	return t->loaders[i].pid && *t->loaders[i].wants;
}

/* --- what a process is --- */

static bool is_go(struct hostmaps *hm, const struct hostmaps_process *p)
{
	uint64_t start, end, offset;
	const struct hostmaps_image *exe = hostmaps_exe(hm, p, &start, &end, &offset);

	return exe && exe->index && image_ident(exe->index)->go;
}

static bool has_libssl(const struct hostmaps_process *p)
{
	const struct hostmaps_image *exe;
	const char *paths[PATHS_MAX];
	size_t n = hostmaps_files(p, paths, PATHS_MAX, &exe);

	for (size_t i = 0; i < n; i++) {
		const char *slash = strrchr(paths[i], '/');

		if (!strncmp(slash ? slash + 1 : paths[i], "libssl.so", 9))
			return true;
	}
	return false;
}

static bool is_wanted(struct hostmaps *hm, const struct hostmaps_process *p, const char *want)
{
	if (!strcmp(want, "all"))
		return *p->exe;
	if (!strcmp(want, "go"))
		return is_go(hm, p);
	return !strcmp(want, "libssl") && has_libssl(p);
}

static bool is_allowed(const struct targets *t, const struct hostmaps_process *p)
{
	const char *include = t->conf->value[CONF_INCLUDE].text,
		   *exclude = t->conf->value[CONF_EXCLUDE].text;
	struct container_names names = {0};
	const struct container_names *told;
	struct rule_process r = {.comm = p->comm, .exe = p->exe, .uid = p->uid};
	struct container_ref ref = {0};
	bool allowed;

	if (!*include && !*exclude)
		return true;
	if (container_parse(p->cgroup, strlen(p->cgroup), &ref)) {
		told = hostmaps_container(t->hm, ref.id);
		if (told)
			container_names_copy(&names, told);
		else
			containernames_find(containernames_docker_root(), "", &ref, &names);
	}
	rules_place(&r, *p->cgroup ? &ref : NULL, &names);
	allowed = rules_allow(include, exclude, &r);
	container_names_release(&names);
	return allowed;
}

/* --- giving --- */

/* One line, whole or not at all: it is shorter than PIPE_BUF. */
static bool tell(const struct feed *f, char sign, const struct key *k)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%c%" PRIu32 " %" PRIu64 " %" PRIu32 "\n", sign,
			 k->tgid, k->start_ns, k->exec_id);

	return write(f->fd, line, (size_t)n) == n;
}

/* What was wanted once is wanted for as long as it runs. */
static uint64_t find(const struct targets *t, const struct hostmaps_process *p, uint64_t before)
{
	uint64_t found = 0;

	for (size_t i = 0; i < t->n_loaders; i++)
		if (wants(t, i) && (before >> i & 1 || is_wanted(t->hm, p, t->loaders[i].wants)))
			found |= 1ull << i;
	return found && is_allowed(t, p) ? found : 0;
}

/* What is found stays so for a while. */

static uint64_t find_or_remember(const struct targets *t, struct hostmaps_process *p)
{
	struct looked *l = p->user;

	if (l && l->serial == p->serial && l->round == t->round && t->now_ns < l->next_ns)
		return l->found;
	if (!l)
		p->user = l = mem_alloc(sizeof(*l));
	l->serial = p->serial;
	l->round = t->round;
	l->next_ns = t->now_ns - (int64_t)p->from_ns < YOUNG_NS ? t->now_ns : t->now_ns + AGAIN_NS;
	l->found = find(t, p, l->found);
	return l->found;
}

static void give(struct targets *t, struct feed *f, const struct hostmaps_process *p)
{
	struct key key = {.start_ns = p->start_ns, .tgid = p->tgid, .exec_id = p->exec_id};
	struct given *g;

	HASH_FIND(hh, f->all, &key, sizeof(key), g);
	if (!g) {
		if (!tell(f, '+', &key))
			return; /* its pipe is full: at the next turn */
		g = mem_alloc(sizeof(*g));
		g->key = key;
		HASH_ADD(hh, f->all, key, sizeof(g->key), g);
	}
	g->seen = t->turn;
}

static void look_at(void *ctx, struct hostmaps_process *p)
{
	struct targets *t = ctx;
	uint64_t found = find_or_remember(t, p);

	for (size_t i = 0; found >> i; i++) {
		struct feed *f = found >> i & 1 ? feed_of(t, &t->loaders[i]) : NULL;

		if (f && f->fd >= 0)
			give(t, f, p);
	}
}

/* Other rules, or another loader that wants something: what was found is no longer so. */
static void begin_round(struct targets *t)
{
	static const enum conf_key keys[] = {CONF_INCLUDE, CONF_EXCLUDE};
	uint64_t wanting = 0;

	for (size_t i = 0; i < t->n_loaders; i++)
		wanting |= (uint64_t)wants(t, i) << i;
	t->round += wanting != t->wanting;
	t->wanting = wanting;
	for (size_t i = 0; i < 2; i++) {
		if (!strcmp(t->rules[i], t->conf->value[keys[i]].text))
			continue;
		memcpy(t->rules[i], t->conf->value[keys[i]].text, CONF_TEXT_MAX);
		t->round++;
	}
}

static void take_back(struct targets *t, struct feed *f)
{
	struct given *g, *next;

	HASH_ITER (hh, f->all, g, next) {
		if (g->seen == t->turn || !tell(f, '-', &g->key))
			continue;
		HASH_DEL(f->all, g);
		free(g);
	}
}

/* Listens to sonde-maps while any loader wants processes. */
static bool listen_to_maps(struct targets *t, const char *store, const char *socket)
{
	struct hostmaps_opts o = {.store_dir = store, .socket_path = socket};
	struct err e = {0};
	bool wanted = false;

	for (size_t i = 0; i < t->n_loaders; i++)
		wanted |= wants(t, i);
	if (!wanted) {
		hostmaps_close(t->hm);
		t->hm = NULL;
	} else if (!t->hm && hostmaps_open(&o, &t->hm, &e)) {
		t->hm = NULL; /* it is being started: at the next turn */
	}
	return t->hm && !hostmaps_read(t->hm) && hostmaps_seeded(t->hm);
}

void targets_tick(struct targets *t, const struct conf *c, const char *store, const char *socket,
		  const struct service *loaders, size_t n)
{
	int64_t now = clock_boot_ns();

	if (now < t->next_ns)
		return;
	t->next_ns = now + TICK_NS;
	t->conf = c;
	t->loaders = loaders;
	t->n_loaders = n;
	if (!listen_to_maps(t, store, socket))
		return;
	t->turn++;
	t->now_ns = now;
	begin_round(t);
	hostmaps_each(t->hm, look_at, t);
	for (size_t i = 0; i < t->n; i++)
		if (t->feed[i].fd >= 0)
			take_back(t, &t->feed[i]);
}
