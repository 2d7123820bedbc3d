/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/host/events/container_events.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/host/events/container_life.h"
#include "loaders/host/events/oomlog.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/run/events.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/proc/containernames.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/facts/host.h"
#include "schema/store/write/writer.h"

struct container_events_end {
	struct container_life_event e;
	struct container_ref ref;
	char path[512];
};

struct container_events_oom {
	struct container_life_leader who;
	int64_t boot_ns;
};

#define NOTED_MAX  4096 /* ends not yet stored */
#define ASKED_NS   (30 * NSEC_PER_SEC)
#define ASLEEP_NS  (NSEC_PER_SEC)
#define LOG_MAX    (1 << 20) /* bytes of the kernel's log, its newest */
#define LOG_READ   3         /* SYSLOG_ACTION_READ_ALL */
#define TASKS_TOLD 32

static void on_life(void *ctx, const struct container_life_event *e);

void container_events_init(struct container_events *x)
{
	*x = (struct container_events){.life = {.tell = on_life, .ctx = x}};
}

void container_events_release(struct container_events *x)
{
	container_life_release(&x->life);
	dockerfiles_release(&x->docker);
	podmanlog_release(&x->podman);
	loglines_release(&x->lines);
	free(x->ends);
	free(x->ooms);
}

/* ---- noted ---- */

/* One process, whatever it executed. */
static bool is_same(const struct container_life_leader *a, const struct container_life_leader *b)
{
	return a->tgid == b->tgid && a->start_ns == b->start_ns;
}

static void on_life(void *ctx, const struct container_life_event *e)
{
	struct container_events *x = ctx;
	struct container_events_end *n;

	if (x->n_ends >= NOTED_MAX) {
		x->dropped++;
		return;
	}
	mem_grow(x->ends, x->n_ends, x->cap_ends);
	n = &x->ends[x->n_ends++];
	*n = (struct container_events_end){.e = *e, .ref = *e->ref};
	snprintf(n->path, sizeof(n->path), "%s", e->path);
	loglines_meet(&x->lines, &x->docker, e->ref, e->boot_ns);
	/* its start waits yet: it is named by what it became */
	for (size_t i = 0; e->stopped && i + 1 < x->n_ends; i++)
		if (is_same(&x->ends[i].e.leader, &e->leader))
			x->ends[i].e.leader = e->leader;
}

void container_events_ended(struct container_events *x, const struct hostmaps_process *p)
{
	container_life_ended(&x->life, p);
	if (p->end != HOSTMAPS_OOM)
		return;
	if (x->n_ooms >= NOTED_MAX) {
		x->dropped++;
		return;
	}
	mem_grow(x->ooms, x->n_ooms, x->cap_ooms);
	x->ooms[x->n_ooms] = (struct container_events_oom){
		.who = {.tgid = p->tgid, .exec_id = p->exec_id, .start_ns = p->start_ns},
		.boot_ns = (int64_t)p->to_ns};
	snprintf(x->ooms[x->n_ooms++].who.comm, sizeof(x->ooms->who.comm), "%s", p->comm);
}

void container_events_meet(struct container_events *x, const struct hostmaps_process *p)
{
	struct container_ref ref;

	container_life_meet(&x->life, p);
	if (x->lines.on && *p->cgroup && container_parse(p->cgroup, strlen(p->cgroup), &ref))
		loglines_meet(&x->lines, &x->docker, &ref, clock_boot_ns());
}

/* ---- containers ---- */

static struct hostmaps_process *process_of(const struct container_events *x,
					   const struct container_life_leader *l)
{
	return hostmaps_process(x->h->maps, l->tgid, l->start_ns, l->exec_id);
}

/* A runtime starts a container's first process, which then executes the program: the leader has the
 * name of the program that runs now. */
static void leader_now(const struct container_events *x, struct container_life_leader *l)
{
	struct hostmaps_process *p = hostmaps_running(x->h->maps, l->tgid);

	if (p && p->start_ns == l->start_ns)
		*l = container_life_leader_of(p);
}

static int64_t utc_of(const struct container_events *x, int64_t boot_ns)
{
	return boot_ns + x->h->offset_ns;
}

void container_events_container_name(const struct family_host *h, const struct dockerfiles *docker,
				     const struct container_ref *ref, char *out, size_t size)
{
	const struct container_state *s = dockerfiles_state(docker, ref->id);
	const struct container_names *told =
		s && s->name[0] ? NULL : hostmaps_container(h->maps, ref->id);
	struct container_names n = {0};

	if (s && s->name[0])
		snprintf(out, size, "%s", s->name);
	else if (told && told->name)
		snprintf(out, size, "%s", told->name);
	else if (!container_named_by_path(ref) &&
		 !containernames_find(containernames_docker_root(), "", ref, &n) && n.name)
		snprintf(out, size, "%s", n.name);
	else
		snprintf(out, size, container_named_by_path(ref) ? "%s" : "%.12s", ref->id);
	container_names_release(&n);
}

/* What the runtime reports of a container. */
struct told {
	bool ended, oom_killed;
	int exit_code;
	uint32_t restarts;
};

static struct told told_of(const struct container_events *x, const char *id)
{
	const struct container_state *d = dockerfiles_state(&x->docker, id);
	const struct podmanlog_state *p = d ? NULL : podmanlog_state(&x->podman, id);

	if (d)
		return (struct told){.ended = !d->runs,
				     .oom_killed = d->oom_killed,
				     .exit_code = d->exit_code,
				     .restarts = d->restarts};
	if (p)
		return (struct told){
			.ended = p->has_ended, .exit_code = p->exit_code, .restarts = p->restarts};
	return (struct told){0};
}

static void name_of(const struct container_events *x, const struct container_ref *ref, char *out,
		    size_t size)
{
	const struct podmanlog_state *p = podmanlog_state(&x->podman, ref->id);

	if (p && p->name[0])
		snprintf(out, size, "%s", p->name);
	else
		container_events_container_name(x->h, &x->docker, ref, out, size);
}

static void sender_say(struct container_events *x, const struct container_life_event *e, char *out,
		       size_t size)
{
	const char *name = e->signal ? sigabbrev_np((int)e->signal) : NULL;
	struct hostmaps_process *by = name ? hostmaps_running(x->h->maps, e->from_tgid) : NULL;

	out[0] = 0;
	if (!name || e->end == HOSTMAPS_OOM || (uint64_t)e->boot_ns > e->signal_ns + ASKED_NS)
		return;
	if (by && by->start_ns > e->signal_ns)
		by = NULL;
	if (naming_excludes(x->h->naming, by))
		snprintf(out, size, "SIG%s from %s", name, NAMING_EXCLUDED);
	else
		snprintf(out, size, "SIG%s from %s (%u)", name, e->from_comm, e->from_tgid);
}

static void ending_say(const struct container_life_event *e, const struct told *s, char *out,
		       size_t size)
{
	const char *name = WIFSIGNALED(e->status) ? sigabbrev_np(WTERMSIG(e->status)) : NULL;

	if (e->end == HOSTMAPS_GONE && s->ended)
		snprintf(out, size, "exit %d", s->exit_code); /* only the runtime saw its end */
	else if (e->end == HOSTMAPS_GONE)
		out[0] = 0;
	else if (e->end == HOSTMAPS_OOM)
		snprintf(out, size, "out of memory");
	else if (WIFSIGNALED(e->status))
		snprintf(out, size, "signal %d%s%s%s", WTERMSIG(e->status), name ? " (" : "",
			 name ? name : "", name ? ")" : "");
	else
		snprintf(out, size, "exit %d", WEXITSTATUS(e->status));
	if (s->ended && s->oom_killed && e->end != HOSTMAPS_OOM)
		snprintf(out + strlen(out), size - strlen(out), "%sout of memory, says docker",
			 out[0] ? ", " : "");
}

/* Not one that ended as it was asked to. */
static bool is_bad_end(const struct container_life_event *e, const struct told *s)
{
	int code = WIFSIGNALED(e->status) ? 128 + WTERMSIG(e->status) : WEXITSTATUS(e->status);

	if (e->end == HOSTMAPS_OOM)
		return true;
	if (e->end == HOSTMAPS_GONE)
		code = s->ended ? s->exit_code : 0;
	return code && code != 128 + SIGTERM && code != 128 + SIGINT;
}

/* Time of its next start, if that is still noted; later lines of its log are not from this life. */
static int64_t next_start(const struct container_events *x, const struct container_events_end *n)
{
	for (size_t i = 0; i < x->n_ends; i++)
		if (!x->ends[i].e.stopped && x->ends[i].e.boot_ns > n->e.boot_ns &&
		    !strcmp(x->ends[i].path, n->path))
			return utc_of(x, x->ends[i].e.boot_ns);
	return INT64_MAX;
}

struct lines {
	struct container_events *x;
	const struct event *v;
	uint64_t nth;
};

static void line_put(void *ctx, const char *line, bool cut)
{
	struct lines *l = ctx;
	struct fact_row row = {0};

	fact_put_text(&row, EVENT_LOG_WHICH, l->v->which);
	fact_put(&row, EVENT_LOG_AT, (uint64_t)(l->v->utc_ns / 1000));
	fact_put(&row, EVENT_LOG_NTH, ++l->nth);
	fact_put_text(&row, EVENT_LOG_LINE, line);
	fact_put(&row, EVENT_LOG_CUT, cut);
	event_row_put(l->x->h, l->v->utc_ns, &EVENT_LOG_FACT, &row, -1, NULL);
}

static void life_tell(struct container_events *x, const struct container_events_end *n)
{
	const struct told s = told_of(x, n->ref.id);
	bool again = n->e.starts > 1 || s.restarts;
	char name[300], detail[160] = "", by[80] = "";
	struct event v = {.subject = "container",
			  .name = name,
			  .detail = detail,
			  .which = *n->ref.id ? n->ref.id : n->path,
			  .by = by,
			  .process = process_of(x, &n->e.leader),
			  .utc_ns = utc_of(x, n->e.boot_ns)};

	if (naming_excludes_cgroup(x->h->naming, n->path) ||
	    (v.process && naming_excludes(x->h->naming, v.process)))
		return;
	name_of(x, &n->ref, name, sizeof(name));
	v.kind = n->e.stopped ? "stopped" : again ? "restarted" : "started";
	if (n->e.stopped) {
		ending_say(&n->e, &s, detail, sizeof(detail));
		sender_say(x, &n->e, by, sizeof(by));
		v.cause = is_bad_end(&n->e, &s) ? "container end" : NULL;
	}
	event_put(x->h, &v);
	if (n->e.stopped && is_bad_end(&n->e, &s))
		loglines_read(&x->lines, &x->docker, &n->ref, next_start(x, n), clock_boot_ns(),
			      line_put, &(struct lines){x, &v, 0});
	if (*by && v.process) /* its row may be one that the capture has not made */
		store_process_note(x->h->store, x->h->run, naming_row(x->h->naming, v.process),
				   "signal_by", by);
}

static void container_life_tell(struct container_events *x, int64_t now_ns, bool all)
{
	size_t kept = 0;

	for (size_t i = 0; i < x->n_ends; i++) {
		struct container_life_event *e = &x->ends[i].e;

		if (!all && now_ns - e->boot_ns < CONTAINER_EVENTS_SETTLE_NS) {
			x->ends[kept++] = x->ends[i];
			continue;
		}
		if (!e->stopped)
			leader_now(x, &e->leader);
		life_tell(x, &x->ends[i]);
	}
	x->n_ends = kept;
}

static bool is_health(const char *s)
{
	return !strcmp(s, "healthy") || !strcmp(s, "unhealthy");
}

static void image_tell(struct container_events *x, const struct dockerfile *f)
{
	char detail[540];
	struct event v = {.kind = "image changed",
			  .subject = "container",
			  .name = f->state->name,
			  .detail = detail,
			  .which = f->id,
			  .utc_ns = clock_utc_ns()};

	snprintf(detail, sizeof(detail), "%s, was %s", f->state->image, f->old_image);
	event_put(x->h, &v);
}

static void on_docker(void *ctx, const struct dockerfile *f)
{
	struct container_events *x = ctx;
	char path[100], short_id[13], detail[280] = "";
	struct event v = {.subject = "container",
			  .name = f->state->name[0] ? f->state->name : short_id,
			  .detail = detail,
			  .which = f->id,
			  .utc_ns = clock_utc_ns()};
	int64_t created;

	snprintf(short_id, sizeof(short_id), "%.12s", f->id);
	snprintf(path, sizeof(path), "/docker/%.64s", f->id);
	if (naming_excludes_cgroup(x->h->naming, path))
		return;
	if (f->old_image)
		image_tell(x, f);
	if (f->gone) {
		v.kind = "removed";
	} else if (!f->was) {
		if (!containerfile_time(f->state->created, &created) || created < f->since_ns)
			return; /* it has been there, but its folder has not */
		v.kind = "created";
		v.utc_ns = created;
		snprintf(detail, sizeof(detail), "image %s", f->state->image);
	} else if (is_health(f->state->health) && strcmp(f->state->health, f->was->health) != 0) {
		v.kind = f->state->health;
		snprintf(detail, sizeof(detail), "%s", f->state->said);
	} else {
		return;
	}
	event_put(x->h, &v);
}

static void on_podman(void *ctx, const struct container_happened *p, const char *was)
{
	struct container_events *x = ctx;
	char path[100], detail[280] = "";
	struct event v = {.subject = "container",
			  .name = p->name,
			  .detail = detail,
			  .which = p->id,
			  .utc_ns = p->at_ns};

	snprintf(path, sizeof(path), "/libpod_parent/libpod-%.64s", p->id);
	if (naming_excludes_cgroup(x->h->naming, path))
		return;
	if (!strcmp(p->status, "create")) {
		v.kind = "created";
		if (p->image[0])
			snprintf(detail, sizeof(detail), "image %s", p->image);
	} else if (!strcmp(p->status, "remove")) {
		v.kind = "removed";
	} else if (!strcmp(p->status, "health_status") && is_health(p->health) &&
		   strcmp(p->health, was) != 0) {
		v.kind = p->health;
	} else {
		return;
	}
	event_put(x->h, &v);
}

/* ---- out-of-memory kills ---- */

/* The newest of the kernel's log; "": it may not be read. The caller's. */
static char *log_read(size_t *len)
{
	char *text = mem_alloc(LOG_MAX + 1);
	int n = klogctl(LOG_READ, text, LOG_MAX);

	*len = n > 0 ? (size_t)n : 0;
	text[*len] = 0;
	return text;
}

/* One that is left out, or of which it is not known: with all others of those, in one row. */
static void tasks_put(struct container_events *x, const struct oomlog *o, int64_t utc_ns,
		      struct hostmaps_process *victim)
{
	struct oomlog_task out = {.comm = NAMING_EXCLUDED};
	size_t told = 0;

	for (size_t i = 0; i <= o->n_tasks && told < TASKS_TOLD; i++) {
		const struct oomlog_task *t = i < o->n_tasks ? &o->tasks[i] : &out;
		struct fact_row row = {0};
		char holder[40];

		if (i == o->n_tasks && !out.rss_bytes)
			break;
		if (i < o->n_tasks &&
		    naming_excludes(x->h->naming, t->pid == o->pid ?
							  victim :
							  hostmaps_running(x->h->maps, t->pid))) {
			out.rss_bytes += t->rss_bytes;
			out.swap_bytes += t->swap_bytes;
			continue;
		}
		snprintf(holder, sizeof(holder), "%s %u", t->comm, t->pid);
		fact_put_text(&row, OOM_TASK_HOLDER, holder);
		fact_put_text(&row, OOM_TASK_COMM, t->comm);
		fact_put(&row, OOM_TASK_PID, t->pid);
		fact_put(&row, OOM_TASK_RSS, t->rss_bytes);
		fact_put(&row, OOM_TASK_SWAP, t->swap_bytes);
		event_row_put(x->h, utc_ns, &OOM_TASK_FACT, &row, OOM_TASK_VICTIM, victim);
		told++;
	}
}

static void kill_put(struct container_events *x, const struct oomlog *o, int64_t utc_ns,
		     struct hostmaps_process *victim)
{
	struct fact_row row = {0};

	fact_put_text(&row, OOM_CGROUP, o->cgroup);
	fact_put_text(&row, OOM_OF, o->victim_cgroup);
	fact_put_text(&row, OOM_ASKED, o->asked_by);
	if (o->has_limit) {
		fact_put(&row, OOM_LIMIT, o->limit_bytes);
		fact_put(&row, OOM_USAGE, o->usage_bytes);
	}
	if (o->has_sizes) {
		fact_put(&row, OOM_ANON, o->anon_bytes);
		fact_put(&row, OOM_FILE, o->file_bytes);
		fact_put(&row, OOM_SHMEM, o->shmem_bytes);
	}
	fact_put(&row, OOM_AT, (uint64_t)(utc_ns / 1000));
	event_row_put(x->h, utc_ns, &OOM_FACT, &row, OOM_VICTIM, victim);
	tasks_put(x, o, utc_ns, victim);
}

/* `own`: the container's cgroup, whose limit needs no name; NULL: of no container. */
static void limit_say(const struct oomlog *o, const char *own, char *out, size_t size)
{
	size_t len;

	if (!o->cgroup[0]) {
		snprintf(out, size, "the host had no memory left");
		return;
	}
	if (own && !strcmp(o->cgroup, own))
		snprintf(out, size, "met its limit");
	else
		snprintf(out, size, "met the limit of %.400s", o->cgroup);
	len = strlen(out);
	if (o->has_limit)
		snprintf(out + len, size - len, ", %.4g MiB", (double)o->limit_bytes / (1 << 20));
}

static void oom_tell(struct container_events *x, const struct container_events_oom *v,
		     const char *log, size_t len, struct oomlog *o)
{
	struct hostmaps_process *p = process_of(x, &v->who);
	bool told = oomlog_find(log, len, v->who.tgid, (uint32_t)sysconf(_SC_PAGESIZE), o);
	char name[300] = "", detail[480] = "";
	struct event e = {.kind = "oom kill",
			  .subject = "process",
			  .name = name,
			  .detail = detail,
			  .process = p,
			  .utc_ns = utc_of(x, v->boot_ns)};
	struct container_ref ref;

	if (!p || naming_excludes(x->h->naming, p))
		return; /* its end is on record, as far as it may be */
	snprintf(name, sizeof(name), "%s", p->comm);
	if (*p->cgroup && container_parse(p->cgroup, strlen(p->cgroup), &ref) && ref.end) {
		name_of(x, &ref, name, sizeof(name));
		e.subject = "container";
		e.which = *ref.id ? ref.id : p->cgroup;
	}
	if (told) {
		limit_say(o, e.which ? p->cgroup : NULL, detail, sizeof(detail));
		kill_put(x, o, e.utc_ns, p);
	}
	event_put(x->h, &e);
}

static void ooms_put(struct container_events *x)
{
	cleanup_free char *log = NULL;
	struct oomlog *o;
	size_t len;

	if (!x->n_ooms)
		return;
	log = log_read(&len);
	o = mem_alloc(sizeof(*o));
	for (size_t i = 0; i < x->n_ooms; i++)
		oom_tell(x, &x->ooms[i], log, len, o);
	free(o);
	x->n_ooms = 0;
}

/* ---- the host ---- */

static void asleep_look(struct container_events *x, int64_t now_ns)
{
	char detail[40];
	int64_t asleep = clock_boot_ns() - clock_mono_ns();

	if (x->asleep_ns && asleep - x->asleep_ns > ASLEEP_NS) {
		struct event e = {.kind = "suspended",
				  .subject = "host",
				  .name = "",
				  .detail = detail,
				  .utc_ns = utc_of(x, now_ns)};

		snprintf(detail, sizeof(detail), "%.0f s", 1e-9 * (double)(asleep - x->asleep_ns));
		event_put(x->h, &e);
	}
	x->asleep_ns = asleep ? asleep : 1;
}

void container_events_round(struct container_events *x, struct family_host *h, int64_t now_ns)
{
	x->h = h;
	dockerfiles_look(&x->docker, now_ns, on_docker, x);
	podmanlog_look(&x->podman, PODMANLOG_PATH, on_podman, x);
	container_life_round(&x->life, (uint64_t)now_ns);
	loglines_round(&x->lines, now_ns);
}

void container_events_poll(struct container_events *x, struct family_host *h, int64_t now_ns,
			   bool all)
{
	x->h = h;
	h->refused += x->dropped;
	x->dropped = 0;
	asleep_look(x, now_ns);
	if (x->n_ends && (all || now_ns - x->ends[0].e.boot_ns >= CONTAINER_EVENTS_SETTLE_NS)) {
		dockerfiles_look(&x->docker, now_ns, on_docker, x);
		podmanlog_look(&x->podman, PODMANLOG_PATH, on_podman, x);
		container_life_tell(x, now_ns, all);
	}
	ooms_put(x);
}
