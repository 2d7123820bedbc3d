// SPDX-License-Identifier: Apache-2.0
/*
 * hostmaps: see the header. Three tables: processes by (tgid, start, exec id), chained from the newest by tgid; images by
 * (generation, id); and in each process a mapset with its history.
 *
 * A loss (MP_LOST, or a sonde-maps that was started anew): every process puts its mappings aside (`before`), takes what
 * is told anew, and at SEEDED what was not confirmed ends at the time from which on nothing is sure. A mapping told again
 * as it was keeps its time. What is new holds from the time it was told for: in between nothing is claimed.
 */
#include "loaders/lib/host/hostmaps.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uthash.h>

#include "loaders/lib/host/hostmaps_packet.h"
#include "loaders/lib/host/mapset.h"
#include "loaders/lib/host/mapslink.h"
#include "loaders/lib/host/mapspack.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/image/image.h"

#define HISTORY_NS  (10 * NSEC_PER_SEC)
#define EXITED_NS   (10 * NSEC_PER_SEC)
#define UNUSED_NS   (60 * NSEC_PER_SEC) /* an image that nothing maps any more */
#define TICK_NS     (NSEC_PER_SEC / 100) /* of /proc/PID/stat */
#define SWEEP_NS    (5 * NSEC_PER_SEC)
#define BACKOFF_MAX_NS (5 * NSEC_PER_SEC)

struct process_key {
	uint64_t start_ns;
	uint32_t tgid, exec_id;
};

struct process {
	struct hostmaps_process pub; /* first: callers hold a pointer to it */
	struct process_key key;
	struct mapset maps, before;
	uint64_t unsure_ns;  /* not 0: between a loss and its SEEDED */
	bool confirmed;
	struct process *older; /* the identity before this exec */
	UT_hash_handle hh;     /* by key */
};

/* The newest identity of a tgid. */
struct newest {
	uint32_t tgid;
	struct process *p;
	UT_hash_handle hh;
};

struct image_entry {
	struct hostmaps_image pub;
	struct image *index;
	uint64_t key; /* generation << 32 | id */
	bool asked, reported, marked;
	uint64_t unused_since_ns;
	struct image_entry *next_ready;
	UT_hash_handle hh;
};

struct hostmaps {
	char *store_dir, *socket_path, *program, *args_policy;
	int fd;
	pid_t child;
	uint64_t restart_ns, backoff_ns; /* when to try again; how long to wait after the next failure */
	bool seeded, degraded;
	uint64_t generation;
	uint64_t watermark, lost;
	uint32_t pending;
	uint64_t swept_ns;
	struct process *processes;
	struct newest *newest;
	struct image_entry *images;
	struct image_entry *ready, **ready_tail;
	struct hostmaps_cost cost, cost_before; /* of this sonde-maps; of those before it */
	char packet[MP_PACKET_MAX + 1];
};

/* ---- processes ---- */

static void process_free(struct hostmaps *hm, struct process *p)
{
	HASH_DEL(hm->processes, p);
	free((char *)(uintptr_t)p->pub.comm);
	free((char *)(uintptr_t)p->pub.exe);
	free((char *)(uintptr_t)p->pub.args);
	free((char *)(uintptr_t)p->pub.cgroup);
	free(p->pub.user);
	mapset_release(&p->maps);
	mapset_release(&p->before);
	free(p);
}

static struct process *process_find(struct hostmaps *hm, uint32_t tgid, uint64_t start_ns, uint32_t exec_id)
{
	struct process_key key = {.start_ns = start_ns, .tgid = tgid, .exec_id = exec_id};
	struct process *p;

	HASH_FIND(hh, hm->processes, &key, sizeof(key), p);
	return p;
}

static struct newest *newest_of(struct hostmaps *hm, uint32_t tgid)
{
	struct newest *n;

	HASH_FIND(hh, hm->newest, &tgid, sizeof(tgid), n);
	return n;
}

/* No longer what runs under this tgid. */
static void process_close(struct process *p, uint64_t time_ns)
{
	if (p->pub.to_ns > time_ns)
		p->pub.to_ns = time_ns;
}

static struct process *process_add(struct hostmaps *hm, const struct mp_process *m)
{
	struct process *p = mem_alloc(sizeof(*p));
	struct newest *n = newest_of(hm, m->tgid);

	p->key = (struct process_key){.start_ns = m->start_ns, .tgid = m->tgid, .exec_id = m->exec_id};
	p->pub.tgid = m->tgid;
	p->pub.exec_id = m->exec_id;
	p->pub.start_ns = m->start_ns;
	p->pub.from_ns = m->time_ns;
	p->pub.to_ns = UINT64_MAX;
	HASH_ADD(hh, hm->processes, key, sizeof(p->key), p);
	if (!n) {
		n = mem_alloc(sizeof(*n));
		n->tgid = m->tgid;
		HASH_ADD(hh, hm->newest, tgid, sizeof(n->tgid), n);
	}
	if (n->p) {
		process_close(n->p, m->time_ns);
		p->older = n->p;
	}
	n->p = p;
	return p;
}

static bool text_set(const char **s, const char *value)
{
	if (*s && !strcmp(*s, value))
		return false;
	free((char *)(uintptr_t)*s);
	*s = mem_strdup(value);
	return true;
}

#define SET(field, value, changed)              \
	do {                                    \
		if ((field) != (value)) {       \
			(field) = (value);      \
			(changed) = true;       \
		}                               \
	} while (0)

static void on_process(struct hostmaps *hm, const struct mapspack_msg *msg)
{
	const struct mp_process *m = &msg->m.process;
	struct process *p = process_find(hm, m->tgid, m->start_ns, m->exec_id);
	bool changed = !p;

	if (!p)
		p = process_add(hm, m);
	SET(p->pub.ppid, m->ppid, changed);
	SET(p->pub.uid, m->uid, changed);
	SET(p->pub.nspid, m->nspid, changed);
	SET(p->pub.cgroup_id, m->cgroup_id, changed);
	changed |= text_set(&p->pub.comm, msg->str[0]);
	changed |= text_set(&p->pub.exe, msg->str[1]);
	changed |= text_set(&p->pub.args, msg->str[2]);
	changed |= text_set(&p->pub.cgroup, msg->str[3]);
	p->confirmed = true;
	p->pub.to_ns = UINT64_MAX;
	p->pub.serial += changed;
}

static void on_exit_(struct hostmaps *hm, const struct mp_exit *m)
{
	struct newest *n = newest_of(hm, m->tgid);

	for (struct process *p = n ? n->p : NULL; p; p = p->older)
		if (p->key.start_ns == m->start_ns)
			process_close(p, m->time_ns);
}

struct hostmaps_process *hostmaps_process(struct hostmaps *hm, uint32_t tgid, uint64_t start_ns, uint32_t exec_id)
{
	struct process *p = process_find(hm, tgid, start_ns, exec_id);
	struct newest *n;

	if (p)
		return &p->pub;
	/* where sonde-maps knows of it by /proc alone, it told no exec id and the start in clock ticks */
	n = newest_of(hm, tgid);
	if (!n || !n->p || n->p->key.exec_id || n->p->key.start_ns / TICK_NS != start_ns / TICK_NS)
		return NULL;
	return hm->degraded || n->p->key.start_ns % TICK_NS == 0 ? &n->p->pub : NULL;
}

/* ---- images ---- */

static struct image_entry *image_find(struct hostmaps *hm, uint32_t id)
{
	uint64_t key = hm->generation << 32 | id;
	struct image_entry *img;

	HASH_FIND(hh, hm->images, &key, sizeof(key), img);
	return img;
}

static void image_queue(struct hostmaps *hm, struct image_entry *img)
{
	if (img->reported)
		return;
	img->reported = true;
	img->next_ready = NULL;
	*hm->ready_tail = img;
	hm->ready_tail = &img->next_ready;
}

static void image_free(struct hostmaps *hm, struct image_entry *img)
{
	HASH_DEL(hm->images, img);
	image_close(img->index);
	free((char *)(uintptr_t)img->pub.path);
	free((char *)(uintptr_t)img->pub.build_id);
	free((char *)(uintptr_t)img->pub.key);
	free((char *)(uintptr_t)img->pub.reason);
	free(img->pub.user);
	free(img);
}

static char *hex(const uint8_t *bytes, size_t n)
{
	char *s = mem_alloc(2 * n + 1);

	for (size_t i = 0; i < n; i++)
		snprintf(s + 2 * i, 3, "%02x", bytes[i]);
	return s;
}

static void on_image(struct hostmaps *hm, const struct mapspack_msg *msg)
{
	const struct mp_image *m = &msg->m.image;
	struct image_entry *img = image_find(hm, m->id);
	const char *slash;

	if (img || !m->id || m->build_id_len > sizeof(m->build_id))
		return;
	img = mem_alloc(sizeof(*img));
	img->key = hm->generation << 32 | m->id;
	img->pub.id = m->id;
	img->pub.kind = m->kind;
	img->pub.path = mem_strdup(msg->str[0]);
	slash = strrchr(img->pub.path, '/');
	img->pub.name = slash && slash[1] ? slash + 1 : img->pub.path;
	img->pub.build_id = hex(m->build_id, m->build_id_len);
	img->pub.key = mem_strdup("");
	img->pub.reason = mem_strdup("");
	img->pub.generation = hm->generation;
	HASH_ADD(hh, hm->images, key, sizeof(img->key), img);
}

static void ask(struct hostmaps *hm, struct image_entry *img, uint32_t flags)
{
	struct mp_want m = {.head = {.type = MP_WANT_INDEX, .size = sizeof(m)}, .id = img->pub.id, .flags = flags};

	if (img->pub.generation == hm->generation && hm->fd >= 0)
		(void)!send(hm->fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* An index arrived: take it, or say that it cannot be read. */
static void image_ready(struct hostmaps *hm, struct image_entry *img, const char *key, int fd)
{
	const struct image_ident *id;
	struct image *index = NULL;
	struct err e = {0};

	if (fd < 0 || image_open_fd(fd, &index, &e)) {
		log_debug("the index of %s cannot be read: %s", img->pub.path, e.what);
		ask(hm, img, MP_WANT_DAMAGED);
		return;
	}
	image_close(img->index);
	img->index = index;
	img->pub.index = index;
	img->pub.state = MP_INDEX_READY;
	free((char *)(uintptr_t)img->pub.key);
	img->pub.key = mem_strdup(key);
	id = image_ident(index);
	if (!*img->pub.build_id && id->build_id_len) {
		free((char *)(uintptr_t)img->pub.build_id);
		img->pub.build_id = hex(id->build_id, id->build_id_len);
	}
}

static void on_index(struct hostmaps *hm, const struct mapspack_msg *msg, int fd)
{
	struct image_entry *img = image_find(hm, msg->m.index.id);

	if (!img || img->pub.state)
		return;
	if (msg->m.index.state == MP_INDEX_READY) {
		image_ready(hm, img, msg->str[0], fd);
		if (!img->pub.state)
			return;
	} else {
		free((char *)(uintptr_t)img->pub.reason);
		img->pub.reason = mem_strdup(msg->str[1]);
		img->pub.state = MP_INDEX_REFUSED;
	}
	if (img->asked)
		hm->pending -= hm->pending > 0;
	image_queue(hm, img);
}

struct hostmaps_image *hostmaps_next_ready(struct hostmaps *hm)
{
	struct image_entry *img = hm->ready;

	if (!img)
		return NULL;
	hm->ready = img->next_ready;
	if (!hm->ready)
		hm->ready_tail = &hm->ready;
	img->next_ready = NULL;
	return &img->pub;
}

uint32_t hostmaps_pending(const struct hostmaps *hm)
{
	return hm->pending;
}

/* ---- mappings ---- */

static bool same_file(const struct image_entry *a, const struct image_entry *b)
{
	if (a == b)
		return true;
	if (!a || !b || strcmp(a->pub.path, b->pub.path))
		return false;
	return !*a->pub.build_id || !*b->pub.build_id || !strcmp(a->pub.build_id, b->pub.build_id);
}

/* Since when the mapping told holds: while unsure, one that was there before has never ceased to be. */
static uint64_t held_since(const struct process *p, const struct mp_map *m, const struct image_entry *img)
{
	const struct mapping *old = p->unsure_ns ? mapset_find(&p->before, m->start, UINT64_MAX - 1) : NULL;

	if (old && old->start == m->start && old->end == m->end && old->offset == m->offset &&
	    same_file(old->image, img) && old->from_ns < m->time_ns)
		return old->from_ns;
	return m->time_ns;
}

static void on_map(struct hostmaps *hm, const struct mp_map *m)
{
	struct process *p = process_find(hm, m->tgid, m->start_ns, m->exec_id);
	struct image_entry *img = m->image ? image_find(hm, m->image) : NULL;

	if (p && (!m->image || img))
		mapset_put(&p->maps, m->start, m->end, m->offset, img, held_since(p, m, img), 1);
}

/* From time_ns on nothing is sure until it is told again. */
static void unsure(struct hostmaps *hm, uint64_t time_ns)
{
	for (struct process *p = hm->processes; p; p = p->hh.next) {
		if (p->pub.to_ns != UINT64_MAX || p->unsure_ns)
			continue;
		p->unsure_ns = time_ns;
		p->confirmed = false;
		mapset_release(&p->before);
		p->before.now = p->maps.now;
		p->before.n_now = p->maps.n_now;
		p->before.cap_now = p->maps.cap_now;
		p->maps.now = NULL;
		p->maps.n_now = p->maps.cap_now = 0;
	}
}

static void sure(struct process *p)
{
	uint64_t t = p->unsure_ns;

	p->unsure_ns = 0;
	for (size_t i = 0; i < p->before.n_now; i++) {
		struct mapping *m = &p->before.now[i];

		if (m->from_ns < t) { /* put and end at once: into the history */
			struct mapset one = {0};

			mapset_put(&one, m->start, m->end, m->offset, m->image, m->from_ns, 0);
			mapset_end(&one, t, 1);
			mem_grow(p->maps.old, p->maps.n_old, p->maps.cap_old);
			p->maps.old[p->maps.n_old++] = one.old[0];
			mapset_release(&one);
		}
	}
	mapset_release(&p->before);
	if (!p->confirmed)
		process_close(p, t);
}

static void on_seeded(struct hostmaps *hm)
{
	hm->seeded = true;
	for (struct process *p = hm->processes; p; p = p->hh.next)
		if (p->unsure_ns)
			sure(p);
}

/* Between the kernel's raising the exec id and the new program's first instruction, what is seen of the user side is the old
 * program's call of exec. */
static const struct process *identity_at(const struct process *p, uint64_t time_ns)
{
	while (p->older && p->older->key.start_ns == p->key.start_ns && time_ns < p->pub.from_ns)
		p = p->older;
	return p;
}

void hostmaps_frame(struct hostmaps *hm, struct hostmaps_process *pub, uint64_t addr, uint64_t time_ns,
		    struct hostmaps_frame *out)
{
	const struct process *p = identity_at((struct process *)pub, time_ns);
	const struct mapping *m = mapset_find(&p->maps, addr, time_ns);
	struct image_entry *img;

	*out = (struct hostmaps_frame){.offset = addr};
	if (!m && p->unsure_ns && time_ns < p->unsure_ns)
		m = mapset_find(&p->before, addr, time_ns);
	if (!m)
		return;
	out->mapped = true;
	img = m->image;
	if (!img)
		return;
	out->image = &img->pub;
	out->offset = addr - m->start + m->offset;
	if (!img->asked && !img->pub.state) {
		img->asked = true;
		hm->pending++;
		ask(hm, img, 0);
	}
}

/* ---- forgetting ---- */

static void mark_maps(const struct mapping *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (m[i].image)
			((struct image_entry *)m[i].image)->marked = true;
}

static void sweep_process(struct hostmaps *hm, struct process *p, uint64_t now)
{
	struct newest *n = newest_of(hm, p->key.tgid);

	mapset_forget(&p->maps, now > HISTORY_NS ? now - HISTORY_NS : 0);
	if (p->pub.to_ns < now && now - p->pub.to_ns > EXITED_NS) {
		for (struct process **q = n ? &n->p : NULL; q && *q; q = &(*q)->older)
			if (*q == p) {
				*q = p->older;
				break;
			}
		if (n && !n->p) {
			HASH_DEL(hm->newest, n);
			free(n);
		}
		process_free(hm, p);
		return;
	}
	mark_maps(p->maps.now, p->maps.n_now);
	mark_maps(p->maps.old, p->maps.n_old);
	mark_maps(p->before.now, p->before.n_now);
}

static void sweep(struct hostmaps *hm)
{
	uint64_t now = (uint64_t)clock_boot_ns();
	struct process *p, *next;
	struct image_entry *img, *next_img;

	if (now - hm->swept_ns < SWEEP_NS)
		return;
	hm->swept_ns = now;
	HASH_ITER(hh, hm->processes, p, next)
		sweep_process(hm, p, now);
	for (img = hm->ready; img; img = img->next_ready)
		img->marked = true;
	HASH_ITER(hh, hm->images, img, next_img) {
		if (img->marked) {
			img->unused_since_ns = 0;
			img->marked = false;
		} else if (!img->unused_since_ns) {
			img->unused_since_ns = now;
		} else if (now - img->unused_since_ns > UNUSED_NS &&
			   (img->pub.generation != hm->generation || now - img->unused_since_ns > 2 * UNUSED_NS)) {
			/* sonde-maps forgets its own after UNUSED_NS and tells a new id; by then this one is not used */
			hm->pending -= img->asked && !img->pub.state && hm->pending;
			image_free(hm, img);
		}
	}
}

/* ---- talk ---- */

static void on_hello(struct hostmaps *hm, const struct mp_hello *m)
{
	hm->degraded = m->flags & MP_HELLO_DEGRADED;
	hm->backoff_ns = 0;
}

static void on_cost(struct hostmaps *hm, const struct mp_cost *m)
{
	struct hostmaps_cost *c = &hm->cost;

	c->cpu_ns = m->cpu_ns;
	c->index_cpu_ns = m->index_cpu_ns;
	c->bpf_ns = m->bpf_ns;
	c->bpf_runs = m->bpf_runs;
	c->rss_bytes = m->rss_bytes;
	c->private_bytes = m->private_bytes;
	c->map_bytes = m->map_bytes;
}

static int on_message(struct hostmaps *hm, const struct mapspack_msg *msg, int fd)
{
	switch (msg->type) {
	case MP_HELLO:
		if (msg->m.hello.version != MP_VERSION)
			return -EPROTO;
		on_hello(hm, &msg->m.hello);
		break;
	case MP_SEEDED:
		on_seeded(hm);
		break;
	case MP_PROCESS:
		on_process(hm, msg);
		break;
	case MP_EXIT:
		on_exit_(hm, &msg->m.exit);
		break;
	case MP_IMAGE:
		on_image(hm, msg);
		break;
	case MP_INDEX:
		on_index(hm, msg, fd);
		break;
	case MP_MAP:
		on_map(hm, &msg->m.map);
		break;
	case MP_WATERMARK:
		if (msg->m.watermark.time_ns > hm->watermark)
			hm->watermark = msg->m.watermark.time_ns;
		break;
	case MP_LOST:
		hm->lost += msg->m.lost.records ? msg->m.lost.records : 1;
		unsure(hm, msg->m.lost.time_ns);
		break;
	case MP_COST:
		on_cost(hm, &msg->m.cost);
		break;
	default:
		break;
	}
	return 0;
}

int hostmaps_packet(struct hostmaps *hm, const void *packet, size_t len, int fd)
{
	struct mapspack_msg msg;
	size_t pos = 0;
	int rc;

	while ((rc = mapspack_next(packet, len, &pos, &msg)) == 1) {
		rc = on_message(hm, &msg, fd);
		if (rc)
			return rc;
	}
	return rc;
}

/* ---- start and restart ---- */

static int start(struct hostmaps *hm, struct err *e)
{
	hm->generation++;
	return hm->socket_path ? maps_link_connect(hm->socket_path, &hm->fd, e) :
		maps_link_start(hm->program, hm->store_dir, hm->args_policy, &hm->child, &hm->fd, e);
}

/* It is gone: what it asked of itself is void, what is known stays, unsure from its last word on. */
static void gone(struct hostmaps *hm)
{
	uint64_t now = (uint64_t)clock_boot_ns();

	close(hm->fd);
	hm->fd = -1;
	if (hm->child > 0) {
		int status = 0;

		kill(hm->child, SIGKILL);
		waitpid(hm->child, &status, 0);
		hm->child = 0;
		log_warn("sonde-maps ended (%s %d); it is started again", WIFSIGNALED(status) ? "signal" : "code",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	}
	if (hm->seeded)
		hm->lost++;
	unsure(hm, hm->watermark ? hm->watermark : now);
	for (struct image_entry *img = hm->images; img; img = img->hh.next)
		if (img->asked && !img->pub.state) { /* nobody will answer: its frames stay unnamed */
			img->pub.state = MP_INDEX_REFUSED;
			free((char *)(uintptr_t)img->pub.reason);
			img->pub.reason = mem_strdup("sonde-maps ended before its index was made");
			image_queue(hm, img);
		}
	hm->pending = 0;
	hm->seeded = false;
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

int hostmaps_read(struct hostmaps *hm)
{
	int rc;

	if (hm->fd < 0 && restart(hm))
		return -EPIPE;
	for (;;) {
		cleanup_fd int fd = -1;
		size_t len = 0;

		rc = maps_link_receive(hm->fd, hm->packet, sizeof(hm->packet), &len, &fd);
		if (rc == 1)
			rc = hostmaps_packet(hm, hm->packet, len, fd);
		else if (!rc)
			break;
		if (rc < 0) {
			gone(hm);
			return restart(hm) ? -EPIPE : 0;
		}
	}
	sweep(hm);
	return 0;
}

static char *dup_or_null(const char *s)
{
	return s ? mem_strdup(s) : NULL;
}

struct hostmaps *hostmaps_new(void)
{
	struct hostmaps *hm = mem_alloc(sizeof(*hm));

	hm->fd = -1;
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
	HASH_ITER(hh, hm->newest, n, next_n) {
		HASH_DEL(hm->newest, n);
		free(n);
	}
	HASH_ITER(hh, hm->processes, p, next)
		process_free(hm, p);
	HASH_ITER(hh, hm->images, img, next_img)
		image_free(hm, img);
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

bool hostmaps_seeded(const struct hostmaps *hm)
{
	return hm->seeded;
}

uint64_t hostmaps_watermark(const struct hostmaps *hm)
{
	return hm->watermark;
}

uint64_t hostmaps_lost(const struct hostmaps *hm)
{
	return hm->lost;
}

void hostmaps_cost(const struct hostmaps *hm, struct hostmaps_cost *c)
{
	*c = hm->cost;
	c->cpu_ns += hm->cost_before.cpu_ns;
	c->index_cpu_ns += hm->cost_before.index_cpu_ns;
	c->bpf_ns += hm->cost_before.bpf_ns;
	c->bpf_runs += hm->cost_before.bpf_runs;
}
