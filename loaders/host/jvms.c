/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/host/jvms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

#include "loaders/host/jvmfile.h"
#include "loaders/host/textfile.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/lib/host/proc/openin.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/facts/jvm.h"

#define YOUNG_NS   (60 * NSEC_PER_SEC)
#define LASTS_NS   (9 * NSEC_PER_SEC) /* less than between two readings */
#define LOOK_NS    (60 * NSEC_PER_SEC)
#define PATH_BYTES 512

struct jvms_known {
	uint32_t tgid, exec_id;
	uint64_t start_ns, round, ino;
	int64_t look_ns;        /* when it is looked at again */
	int64_t bad_ns;         /* since when it cannot be read; 0: it can */
	bool told, missed, had; /* missed: it was looked at and had none; had: it was read */
	char *path;             /* NULL: it has none, as far as is known */
	UT_hash_handle hh;
};

void jvms_init(struct jvms *j, int64_t idle_ns)
{
	*j = (struct jvms){.meter = {.fact = &JVM_FACT, .idle_ns = idle_ns}};
}

static void forget(struct jvms *j, uint64_t but)
{
	struct jvms_known *k, *next;

	HASH_ITER (hh, j->known, k, next) {
		if (k->round == but)
			continue;
		HASH_DEL(j->known, k);
		free(k->path);
		free(k);
	}
}

void jvms_release(struct jvms *j)
{
	forget(j, UINT64_MAX);
	meter_release(&j->meter);
	strbuf_release(&j->text);
}

void jvms_end(struct jvms *j)
{
	meter_end(&j->meter);
	forget(j, j->round++);
}

static void path_set(struct jvms_known *k, const char *path)
{
	free(k->path);
	k->path = path ? mem_strdup(path) : NULL;
}

static struct jvms_known *known_of(struct jvms *j, const struct hostmaps_process *p)
{
	struct jvms_known *k;

	HASH_FIND(hh, j->known, &p->tgid, sizeof(p->tgid), k);
	if (!k) {
		k = mem_alloc(sizeof(*k));
		k->tgid = p->tgid;
		HASH_ADD(hh, j->known, tgid, sizeof(k->tgid), k);
	}
	if (k->start_ns != p->start_ns || k->exec_id != p->exec_id) {
		k->look_ns = 0;
		path_set(k, NULL);
		k->told = k->missed = k->had = false;
		k->bad_ns = 0;
		k->start_ns = p->start_ns;
		k->exec_id = p->exec_id;
	}
	k->round = j->round;
	return k;
}

/* ---- which file ---- */

static void look(struct jvms *j, struct jvms_known *k, const struct hostmaps_process *p,
		 int64_t now_ns)
{
	char file[64], path[PATH_BYTES];

	k->look_ns = now_ns - (int64_t)p->start_ns < YOUNG_NS ? now_ns : now_ns + LOOK_NS;
	if (!hostmaps_has_file(p, "libjvm.so"))
		return;
	snprintf(file, sizeof(file), "/proc/%u/maps", p->tgid);
	if (!textfile_read(AT_FDCWD, file, &j->text) &&
	    jvmfile_mapped(strbuf_str(&j->text), j->text.len, path, sizeof(path), &k->ino))
		path_set(k, path);
}

/* Its path may be that of another root than the process's (it is in a chroot): then the usual
 * place. */
static int file_open(const struct jvms_known *k, struct stat *st)
{
	cleanup_fd int root = openin_root(k->tgid);
	const char *dir = strstr(k->path, "/hsperfdata_");
	char usual[PATH_BYTES + 8];
	int fd;

	if (root < 0)
		return root;
	fd = openin(root, k->path, JVMFILE_MAX, st);
	if (fd < 0 || st->st_ino != k->ino) {
		if (fd >= 0)
			close(fd);
		snprintf(usual, sizeof(usual), "/tmp%s", dir ? dir : "");
		fd = openin(root, usual, JVMFILE_MAX, st);
	}
	if (fd >= 0 && st->st_ino != k->ino) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

/* ---- a reading ---- */

struct jvm_names {
	struct family_host *h;
	struct hostmaps_process *p;
	const struct jvmfile *file;
};

static bool names(void *ctx, struct fact_row *row)
{
	const struct jvm_names *n = ctx;

	if (naming_excludes(n->h->naming, n->p))
		return false;
	fact_put(row, JVM_PROCESS, naming_row(n->h->naming, n->p));
	fact_put_text(row, JVM_COLLECTOR, n->file->collector);
	fact_put_text(row, JVM_VERSION, n->file->version);
	return true;
}

static void tell(struct jvms_known *k, const char *why)
{
	if (!k->told)
		log_warn("the heap of java %u is not recorded: %s: %s", k->tgid, k->path, why);
	k->told = true;
}

/* A JVM removes its file as it ends, and goes on for some moments: a fault is said if it
 * is so at the next reading, too. */
static bool lasts(struct jvms_known *k, int64_t now_ns)
{
	if (!k->bad_ns)
		k->bad_ns = now_ns;
	return now_ns - k->bad_ns >= LASTS_NS;
}

static bool file_parse(struct jvms_known *k, int64_t now_ns, struct jvmfile *out)
{
	struct stat st;
	cleanup_fd int fd = file_open(k, &st);
	cleanup_free char *data = NULL;
	size_t len;

	if (fd < 0 || openin_read(fd, (size_t)st.st_size, &data, &len)) {
		if (!lasts(k, now_ns))
			return false;
		tell(k, fd < 0 ? openin_reason(fd) : "cannot read");
		path_set(k, NULL);
		k->look_ns = now_ns + LOOK_NS;
		return false;
	}
	if (!jvmfile_parse(data, len, out)) {
		/* else it is not written yet */
		if (lasts(k, now_ns) && (k->had || now_ns - (int64_t)k->start_ns > YOUNG_NS))
			tell(k, "it is damaged");
		return false;
	}
	k->told = false;
	k->bad_ns = 0;
	return true;
}

void jvms_read(struct jvms *j, const struct meter_round *r, struct hostmaps_process *p,
	       int64_t since_ns)
{
	struct jvms_known *k = known_of(j, p);
	struct jvm_names n = {r->h, p, NULL};
	struct meter_reading x = {.identity = p->start_ns,
				  .young = (int64_t)p->start_ns >= since_ns};
	struct jvmfile file;
	char key[24];

	if (!k->path && r->now_ns >= k->look_ns)
		look(j, k, p, r->now_ns);
	if (!k->path || !file_parse(k, r->now_ns, &file)) {
		k->missed = true;
		return;
	}
	x.young |= k->missed && !k->had; /* the machine began since then */
	k->had = true;
	snprintf(key, sizeof(key), "%u.%u", p->tgid, p->exec_id);
	x.key = key;
	x.row = file.row;
	n.file = &file;
	meter_take(&j->meter, r, &x, names, &n);
}
