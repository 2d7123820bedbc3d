/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are its conditions. */
#include "loaders/l7/tls/tls.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/l7/tls/tlssite.h"
#include "loaders/l7/tls/tlssweep.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/start/target.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/proc/openin.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/idmap.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/image/tls.h"

#define LOOK_NS (NSEC_PER_SEC / 2)
/* where nothing has changed: whose files are still mapped */
#define LOOK_QUIET_NS  (3 * NSEC_PER_SEC)
#define SWEEP_NS       (2 * NSEC_PER_SEC)
#define SWEEP_QUIET_NS (10 * NSEC_PER_SEC)
#define LEFT_NS        (10 * NSEC_PER_SEC) /* detached if no process has mapped it for this long */
#define FILES_MOST     8192                /* open descriptors */
#define UNREAD_MOST    4096                /* processes */

/* 1 */
static const char *const NAMES[] = {"ssl", "tls", "crypto", "_rust"};
/* modules: of Python, of Node, with BoringSSL for Java and for gRPC */
static const char *const MODULES[] = {".cpython-", ".abi3.",    ".node",
				      "tcnative",  "conscrypt", "grpc"};
#define LARGE_BYTES (512 << 10) /* of code: no TLS library with its ciphers is smaller */
#define HUGE_BYTES  (128 << 20) /* of code: no reason to read a library of this size */

struct file {
	struct file *next;
	uint64_t id;
	dev_t dev;
	ino_t ino;
	bool go;
	int64_t seen_ns;
	struct tlssite_link *links; /* own: in order of attachment */
	size_t n;
};

enum unread { UNREAD = 1, UNREAD_PROBED /* but some file has probes */ };
enum look { UNKNOWN, WANTED, ELSE, REFUSED };
struct seen { /* hostmaps_image.user: freed by free() */
	enum look look;
	uint64_t file; /* its id; 0: none */
};

struct tls {
	struct tlssite sites;
	struct file *files;
	uint64_t ids;
	int64_t looked_ns, swept_ns;
	uint64_t changes, swept_changes; /* hostmaps_changes of then */
	bool heard;                      /* of unread TLS since */
	struct idmap unread;             /* tgid -> enum unread */
	struct bpf_object *obj;
	/* of the turn */
	struct family_host *h;
	const struct hostmaps_process *process;
	int64_t now_ns;
};

struct tls *tls_new(struct bpf_object *obj)
{
	struct rlimit l;
	struct tls *t = mem_alloc(sizeof(*t));

	t->obj = obj;
	tlssite_init(&t->sites, obj);
	if (!getrlimit(RLIMIT_NOFILE, &l) && l.rlim_cur < FILES_MOST) {
		l.rlim_cur = l.rlim_max < FILES_MOST ? l.rlim_max : FILES_MOST;
		setrlimit(RLIMIT_NOFILE, &l);
	}
	return t;
}

/* ---- files ---- */

static void file_free(struct tls *t, struct file *f, struct taps *to)
{
	for (size_t i = 0; i < f->n; i++)
		tlssite_detach(&t->sites, &f->links[i], to);
	free(f->links);
	free(f);
}

void tls_detach(struct tls *t, struct taps *to)
{
	while (t->files) {
		struct file *f = t->files;

		t->files = f->next;
		file_free(t, f, to);
	}
}

void tls_free(struct tls *t)
{
	if (t)
		idmap_release(&t->unread);
	free(t);
}

static struct file *file_by_id(const struct tls *t, uint64_t id)
{
	struct file *f = t->files;

	while (f && f->id != id)
		f = f->next;
	return f;
}

static struct file *file_by_inode(const struct tls *t, const struct stat *st)
{
	struct file *f = t->files;

	while (f && (f->dev != st->st_dev || f->ino != st->st_ino))
		f = f->next;
	return f;
}

/* 2 */
static bool bytes_are_there(int fd, const struct image_tls_site *sites, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t bytes[sizeof(sites[i].bytes)];
		size_t len = sites[i].length < sizeof(bytes) ? sites[i].length : sizeof(bytes);

		if (sites[i].role != IMAGE_TLS_BLIND &&
		    (pread(fd, bytes, len, (off_t)sites[i].offset) != (ssize_t)len ||
		     memcmp(bytes, sites[i].bytes, len)))
			return false;
	}
	return true;
}

/* 4: the sites of one role. false: one could not be attached. */
static bool role_attach(struct tls *t, struct file *f, int fd, const struct image_tls_site *sites,
			size_t n, uint8_t role)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (size_t i = 0; i < n; i++) {
		if (sites[i].role != role)
			continue;
		if (tlssite_attach(&t->sites, path, &sites[i], &f->links[f->n]))
			return false;
		f->n++;
	}
	return true;
}

static struct file *file_attach(struct tls *t, int fd, const struct stat *st,
				const struct image_tls_site *sites, size_t n)
{
	struct file *f = mem_alloc(sizeof(*f));
	struct taps none = {0};

	f->links = mem_array(n, sizeof(*f->links));
	f->id = ++t->ids;
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	f->go = sites[0].library == IMAGE_TLS_GO;
	if (!bytes_are_there(fd, sites, n) || !role_attach(t, f, fd, sites, n, IMAGE_TLS_FORGET) ||
	    !role_attach(t, f, fd, sites, n, IMAGE_TLS_RESULT) ||
	    !role_attach(t, f, fd, sites, n, IMAGE_TLS_ENTRY)) {
		file_free(t, f, &none);
		taps_end(&none);
		return NULL;
	}
	f->next = t->files;
	t->files = f;
	return f;
}

/* ---- mapped files ---- */

static struct seen *seen_of(struct hostmaps_image *image)
{
	if (!image->user)
		image->user = mem_alloc(sizeof(struct seen));
	return image->user;
}

static bool name_has(const char *name, const char *const *parts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strstr(name, parts[i]))
			return true;
	return false;
}

static bool wanted(void *ctx, const struct hostmaps_image *image, uint64_t bytes)
{
	struct tls *t = ctx;
	struct seen *s = seen_of((struct hostmaps_image *)(uintptr_t)image);
	bool large = bytes >= LARGE_BYTES;

	if (s->look == UNKNOWN)
		s->look = name_has(image->name, NAMES, ARRAY_SIZE(NAMES)) ? WANTED : ELSE;
	if (s->look == ELSE && large && name_has(image->name, MODULES, ARRAY_SIZE(MODULES)))
		s->look = WANTED;
	if (s->look == ELSE && image->path && !strcmp(image->path, t->process->exe))
		s->look = WANTED;
	if (s->look == ELSE && large && bytes < HUGE_BYTES &&
	    idmap_get(&t->unread, t->process->tgid, NULL))
		s->look = WANTED;
	return s->look == WANTED;
}

/* Where the mapping that begins at `start` ends now: the kernel maps a program as a whole first,
 * which is what its event says, and cuts its segments out of that. 0: none begins there. */
static uint64_t mapping_end(uint32_t tgid, uint64_t start)
{
	char path[32], line[512];
	unsigned long long from, to, found = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%u/maps", tgid);
	maps = fopen(path, "re");
	while (maps && !found && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%llx-%llx ", &from, &to) == 2 && from == start)
			found = to;
	if (maps)
		fclose(maps);
	return found;
}

static void file_take(struct tls *t, struct seen *s, struct hostmaps_image *image, uint64_t start,
		      uint64_t end)
{
	const struct image_tls_site *sites;
	size_t n = image_tls(image->index, &sites);
	struct stat st;
	struct file *f;
	int fd;

	s->look = n ? WANTED : REFUSED;
	if (!n)
		return;
	fd = openin_map_file(t->process->tgid, start, end, OPENIN_MAX_BYTES, &st);
	if (fd == -ENOENT) {
		end = mapping_end(t->process->tgid, start);
		fd = end ? openin_map_file(t->process->tgid, start, end, OPENIN_MAX_BYTES, &st) :
			   -ENOENT;
	}
	if (fd < 0)
		return; /* it is asked for again: another process may have it */
	f = file_by_inode(t, &st);
	if (!f)
		f = file_attach(t, fd, &st, sites, n);
	close(fd);
	s->look = f ? WANTED : REFUSED;
	s->file = f ? f->id : 0;
	if (f && f->n)
		log_info("l7: %zu probes in %s", f->n, image->path);
	if (!f)
		log_warn("l7: cannot attach probes to %s: its TLS traffic is not read",
			 image->path);
}

static void mapped(void *ctx, uint64_t start, uint64_t end, struct hostmaps_image *image)
{
	struct tls *t = ctx;
	struct seen *s = seen_of(image);
	struct file *f = file_by_id(t, s->file);
	uint64_t unread;

	if (image->state == MP_INDEX_REFUSED)
		s->look = REFUSED;
	if (!image->state && idmap_get(&t->unread, t->process->tgid, &unread) && unread == UNREAD)
		hostmaps_image_hurry(t->h->maps, image);
	if (!f && image->state == MP_INDEX_READY && image->index)
		file_take(t, s, image, start, end);
	if (!f)
		f = file_by_id(t, s->file);
	if (!f)
		return;
	f->seen_ns = t->now_ns;
	if (idmap_get(&t->unread, t->process->tgid, NULL))
		idmap_set(&t->unread, t->process->tgid, UNREAD_PROBED);
	tlssweep_process(t->obj, t->process->tgid, f->go);
}

void tls_unread(struct tls *t, uint32_t tgid)
{
	if (t->unread.n >= UNREAD_MOST)
		idmap_clear(&t->unread);
	if (idmap_get(&t->unread, tgid, NULL))
		return;
	t->heard = true;
	idmap_set(&t->unread, tgid, UNREAD);
}

static void look_at(void *ctx, struct hostmaps_process *p)
{
	struct tls *t = ctx;

	t->process = p;
	if (target_covers(t->h->target, t->h->maps, p))
		hostmaps_mappings_wanted(t->h->maps, p, wanted, mapped, t);
}

static void leave(struct tls *t)
{
	struct taps gone = {0};

	for (struct file **at = &t->files; *at;) {
		struct file *f = *at;

		if (t->now_ns - f->seen_ns < LEFT_NS) {
			at = &f->next;
			continue;
		}
		*at = f->next;
		log_info("l7: detached %zu probes from a file that no process maps any more", f->n);
		file_free(t, f, &gone);
	}
	taps_end(&gone);
}

void tls_poll(struct tls *t, struct family_host *h, int64_t now_ns)
{
	uint64_t changes = hostmaps_changes(h->maps);

	if (!hostmaps_seeded(h->maps))
		return;
	if (!t->heard && now_ns - t->looked_ns < (changes != t->changes ? LOOK_NS : LOOK_QUIET_NS))
		return;
	t->looked_ns = t->now_ns = now_ns;
	t->changes = changes;
	t->heard = false;
	t->h = h;
	hostmaps_each(h->maps, look_at, t);
	leave(t);
	if (now_ns - t->swept_ns < (changes != t->swept_changes ? SWEEP_NS : SWEEP_QUIET_NS))
		return;
	t->swept_ns = now_ns;
	t->swept_changes = changes;
	tlssweep(t->obj);
}
