/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/logs/tracked.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/logs/counts.h"
#include "loaders/logs/packed/packed.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define OLD_MOST_NS (120 * NSEC_PER_SEC) /* an old file that still grows is read so long */
#define ROTATED     9                    /* renamed files that are looked for */
#define FAST_BYTES  (256 << 10)          /* of a round: rotation may be near */
#define ENDED_MOST  2
/* longer than the reader takes to say what it counted, or to forget patterns (reading.c) */
#define UNUSED_NS     (600 * NSEC_PER_SEC)
#define OWN_UNUSED_NS (2 * 3600 * NSEC_PER_SEC)

/* ---- sources ---- */

static void patterns_drop(struct tracked_source *s)
{
	for (uint32_t i = 0; i < s->n_patterns; i++) {
		free(s->patterns[i].text);
		free(s->patterns[i].sample);
	}
	free(s->patterns);
	s->patterns = NULL;
	s->n_patterns = 0;
}

static void source_drop(struct tracked *t, struct tracked_source *s)
{
	HASH_DEL(t->sources, s);
	patterns_drop(s);
	free(s->name);
	free(s->cgroup);
	free(s);
}

struct tracked_source *tracked_source(struct tracked *t, uint32_t id)
{
	struct tracked_source *s;

	HASH_FIND_INT(t->sources, &id, s);
	return s;
}

static struct tracked_source *source_new(struct tracked *t, uint32_t id, const char *kind,
					 const char *name, const char *container)
{
	struct tracked_source *s = mem_alloc(sizeof(*s));

	s->id = id;
	s->kind = kind;
	s->name = mem_strdup(name);
	snprintf(s->container, sizeof(s->container), "%.71s", container);
	HASH_ADD_INT(t->sources, id, s);
	return s;
}

struct tracked_source *tracked_own(struct tracked *t, uint32_t id, const char *name,
				   const char *container)
{
	struct tracked_source *s = tracked_source(t, id);

	if (*container)
		name = "";
	if (s && !strcmp(s->name, name) && !strncmp(s->container, container, 71))
		return s;
	if (s) /* the reader has given its number to another one */
		source_drop(t, s);
	return source_new(t, id, "journal", name, container);
}

/* The same container writes into several files, one after the other, and into one of each start. */
static struct tracked_source *source_of(struct tracked *t, const struct place *x)
{
	struct tracked_source *s, *next;
	char id[72];

	HASH_ITER (hh, t->sources, s, next)
		if (s->kind == x->kind && s->uid == x->uid && s->id < WIRE_OWN &&
		    (*x->id ? !strcmp(s->container, x->id) : !strcmp(s->name, x->name)))
			return s;
	if (strcmp(x->kind, "cri") != 0) {
		s = source_new(t, ++t->last_source, x->kind, x->name, x->id);
		s->uid = x->uid;
		return s;
	}
	places_pod_container(x->path, id);
	return source_new(t, ++t->last_source, x->kind, x->name, id);
}

void tracked_pattern(struct tracked_source *s, uint32_t n, const char *text, const char *sample)
{
	if (n >= COUNTS_PATTERNS)
		return;
	if (n >= s->n_patterns) {
		s->patterns = mem_realloc(s->patterns, (n + 1) * sizeof(*s->patterns));
		memset(s->patterns + s->n_patterns, 0,
		       (n + 1 - s->n_patterns) * sizeof(*s->patterns));
		s->n_patterns = n + 1;
	}
	free(s->patterns[n].text);
	s->patterns[n].text = mem_strdup(text);
	if (!*sample && s->patterns[n].sample)
		return; /* it became more general: the sample is of it, too */
	free(s->patterns[n].sample);
	s->patterns[n].sample = mem_strdup(sample);
}

/* ---- files ---- */

static void file_drop(struct tracked *t, struct tracked_file *f)
{
	HASH_DEL(t->files, f);
	close(f->fd);
	free(f->path);
	free(f);
}

void tracked_release(struct tracked *t)
{
	struct tracked_file *f, *next;
	struct tracked_source *s, *next_source;

	HASH_ITER (hh, t->files, f, next)
		file_drop(t, f);
	HASH_ITER (hh, t->sources, s, next_source)
		source_drop(t, s);
}

/* A link leads where its owner may read anyhow: root's, or to a file of the same owner. */
static bool is_honest(const char *path, const struct stat *st)
{
	struct stat at;

	if (lstat(path, &at))
		return false;
	if (!S_ISLNK(at.st_mode))
		return at.st_dev == st->st_dev && at.st_ino == st->st_ino;
	return !at.st_uid || at.st_uid == geteuid() || at.st_uid == st->st_uid;
}

/* `uid`: 0, or of the only user whose files may be there. */
static int log_open(const char *path, bool follows_links, uint32_t uid)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY |
				    (follows_links ? 0 : O_NOFOLLOW));
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode) || (uid && st.st_uid != uid) ||
			(follows_links && !is_honest(path, &st)))) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool file_ask(const struct tracked *t, const struct tracked_file *f)
{
	const struct wire_ask q = {.what = WIRE_OPEN,
				   .file = f->id,
				   .source = f->source,
				   .form = f->form,
				   .offset = f->offset,
				   .index = f->index,
				   .to_end = f->from_end,
				   .packed = f->packed};

	return f->ended >= ENDED_MOST || reader_ask(t->reader, &q, f->fd);
}

static struct tracked_file *file_add(struct tracked *t, const char *path, uint32_t source,
				     enum log_form form, bool follows_links, bool packed,
				     bool to_end)
{
	const struct tracked_source *s;
	cleanup_fd int fd = -1;
	struct tracked_file *f;
	struct stat st;

	if (HASH_COUNT(t->files) >= TRACKED_FILES) {
		if (!t->told_full)
			log_warn("more than %d log files: the others are not read", TRACKED_FILES);
		t->told_full = true;
		return NULL;
	}
	s = tracked_source(t, source);
	fd = log_open(path, follows_links, s ? s->uid : 0);
	if (fd < 0 || fstat(fd, &st))
		return NULL;
	f = mem_alloc(sizeof(*f));
	*f = (struct tracked_file){.id = ++t->last_file,
				   .source = source,
				   .form = form,
				   .fd = take_fd(&fd),
				   .dev = st.st_dev,
				   .ino = st.st_ino,
				   .listed = true,
				   .follows_links = follows_links,
				   .packed = packed,
				   .from_end = to_end,
				   .size = to_end ? st.st_size : 0};
	HASH_ADD_INT(t->files, id, f);
	file_ask(t, f);
	return f;
}

static void become_old(struct tracked_file *f, int64_t now_ns)
{
	free(f->path);
	f->path = NULL;
	f->old_ns = f->grew_ns = now_ns;
}

static struct tracked_file *file_by_inode(const struct tracked *t, const struct stat *st)
{
	struct tracked_file *f, *next;

	HASH_ITER (hh, t->files, f, next)
		if (f->dev == st->st_dev && f->ino == st->st_ino)
			return f;
	return NULL;
}

static struct tracked_file *file_by_path(const struct tracked *t, const char *path)
{
	struct tracked_file *f, *next;

	HASH_ITER (hh, t->files, f, next)
		if (f->path && !strcmp(f->path, path))
			return f;
	return NULL;
}

/* When it was made; where the file system does not say, when it was written last. */
static int64_t made_ns(const char *path, const struct stat *st)
{
	struct statx x;

	if (!statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &x) &&
	    x.stx_mask & STATX_BTIME)
		return x.stx_btime.tv_sec * NSEC_PER_SEC + x.stx_btime.tv_nsec;
	return st->st_mtim.tv_sec * NSEC_PER_SEC + st->st_mtim.tv_nsec;
}

/* Of a file that was renamed n times: PATH.n, or that compressed. */
static void renamed_path(const char *path, int n, bool packed, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%.4000s.%d%s", path, n, packed ? ".gz" : "");
}

/* What a compressed file says of the one that it was made of. */
struct gone {
	uint32_t size;
	int64_t written_s;
};

/* The clock of headers has seconds. */
static bool is_packed_since(const char *path, bool links, int64_t since_ns, struct gone *g)
{
	cleanup_fd int fd = log_open(path, links, 0);

	return fd >= 0 && packed_look(fd, &g->written_s, &g->size) &&
	       g->written_s >= since_ns / NSEC_PER_SEC;
}

static bool is_made_of(const struct gone *g, const struct stat *st)
{
	return (uint32_t)st->st_size == g->size && st->st_mtim.tv_sec == g->written_s;
}

/* A file of this source that is read is what this one was made of: it has no name any more, and is
 * as large; and was written last at the same time, unless Docker compressed it, which notes the
 * time of the last record. Each counts once. */
static bool was_read(const struct tracked *t, uint32_t source, enum log_form form,
		     const struct gone *g, uint32_t used[ROTATED], int *n_used)
{
	struct tracked_file *f, *next;
	struct stat st;
	bool is_used;

	HASH_ITER (hh, t->files, f, next) {
		if (f->source != source || f->packed || fstat(f->fd, &st) || st.st_nlink)
			continue;
		if (form == LOG_PLAIN ? !is_made_of(g, &st) : (uint32_t)st.st_size != g->size)
			continue;
		is_used = false;
		for (int i = 0; i < *n_used; i++)
			is_used = is_used || used[i] == f->id;
		if (is_used)
			continue;
		used[(*n_used)++] = f->id;
		return true;
	}
	return false;
}

struct between {
	int n;                /* the files are PATH.1 to PATH.n */
	bool packed[ROTATED]; /* PATH.n.gz */
	bool has_read;        /* the one that was read is behind them, compressed */
};

/* Files that were made since the look before and renamed since. The kernel's clock of files is a
 * tick behind. */
static struct between between_find(const struct tracked *t, uint32_t source, const char *path,
				   enum log_form form, bool links)
{
	const int64_t since_ns = t->before_ns - NSEC_PER_SEC / 50;
	struct between b = {0};
	char renamed[PATH_MAX];
	struct gone gone[ROTATED] = {0};
	uint32_t used[ROTATED];
	struct stat st;
	int n_used = 0;

	for (; b.n < ROTATED; b.n++) {
		renamed_path(path, b.n + 1, false, renamed);
		if (!lstat(renamed, &st)) {
			if (!S_ISREG(st.st_mode) || file_by_inode(t, &st) ||
			    made_ns(renamed, &st) < since_ns)
				break;
			continue;
		}
		renamed_path(path, b.n + 1, true, renamed);
		if (lstat(renamed, &st) || !S_ISREG(st.st_mode) || file_by_inode(t, &st) ||
		    !is_packed_since(renamed, links, since_ns, &gone[b.n]))
			break;
		b.packed[b.n] = true;
	}
	/* the oldest were read, the newer ones not */
	while (b.n && b.packed[b.n - 1] &&
	       was_read(t, source, form, &gone[b.n - 1], used, &n_used)) {
		b.has_read = true;
		b.n--;
	}
	return b;
}

/* They are of the source that has `path` now. */
static struct between between_add(struct tracked *t, uint32_t source, enum log_form form,
				  bool links, const char *path)
{
	const struct between b = between_find(t, source, path, form, links);
	char renamed[PATH_MAX];

	for (int n = b.n; n; n--) {
		struct tracked_file *f;

		renamed_path(path, n, b.packed[n - 1], renamed);
		f = file_add(t, renamed, source, form, links, b.packed[n - 1], false);
		if (f)
			become_old(f, clock_boot_ns());
	}
	return b;
}

void tracked_begin(struct tracked *t)
{
	struct tracked_file *f, *next;

	t->before_ns = t->look_ns;
	t->look_ns = clock_utc_ns();
	HASH_ITER (hh, t->files, f, next)
		f->listed = false;
}

/* Files were rotated so fast that the one that was read has been removed: those between it and the
 * oldest that is left are gone, too. */
static void cut_note(struct tracked *t, uint32_t source)
{
	struct tracked_source *s = tracked_source(t, source);

	if (s)
		s->cuts++;
}

/* It was renamed to what is a log, too. */
static void found_as(struct tracked_file *f, const char *path)
{
	if (f->listed)
		return;
	free(f->path);
	f->path = mem_strdup(path);
	f->old_ns = 0;
	f->listed = true;
}

/* True: it is read, under this path or another one. */
static bool is_read(struct tracked *t, const struct place *x, const struct stat *st, int64_t now_ns)
{
	struct tracked_file *f = file_by_path(t, x->path), *same;

	if (f && f->dev == st->st_dev && f->ino == st->st_ino) {
		f->listed = true;
		return true;
	}
	same = file_by_inode(t, st);
	if (same) {
		found_as(same, x->path);
		return true;
	}
	if (f) {
		struct tracked_file *now;
		struct stat was;

		struct between b;

		become_old(f, now_ns);
		b = between_add(t, f->source, x->form, f->follows_links, x->path);
		if (b.n && !b.has_read && !fstat(f->fd, &was) && !was.st_nlink)
			cut_note(t, f->source);
		now = file_add(t, x->path, f->source, x->form, f->follows_links, false, false);
		if (now)
			now->path = mem_strdup(x->path);
		return true;
	}
	return false;
}

/* Rule 5. */
static bool is_of_another(const struct tracked *t, const struct place *x)
{
	struct tracked_source *s, *next;

	HASH_ITER (hh, t->sources, s, next)
		if (x->uid && s->uid != x->uid && !strcmp(s->container, x->id))
			return true;
	return false;
}

void tracked_found(struct tracked *t, const struct place *x, int64_t now_ns,
		   bool (*wanted)(void *ctx, struct tracked_source *s), void *ctx)
{
	bool links = x->form == LOG_PLAIN;
	struct tracked_source *s = NULL;
	struct tracked_file *f;
	struct stat st;

	if ((links ? stat(x->path, &st) : lstat(x->path, &st)) || !S_ISREG(st.st_mode) ||
	    (x->uid && (st.st_uid != x->uid || is_of_another(t, x))) || is_read(t, x, &st, now_ns))
		return;
	if (x->form != LOG_JOURNAL) {
		s = source_of(t, x);
		if (!wanted(ctx, s))
			return;
	}
	if (t->begun)
		between_add(t, s ? s->id : 0, x->form, links, x->path);
	f = file_add(t, x->path, s ? s->id : 0, x->form, links, false, !t->begun);
	if (f)
		f->path = mem_strdup(x->path);
}

/* An old file is closed when nothing more came for a while: what is left of it is a line. */
static void old_close(struct tracked *t, struct tracked_file *f, int64_t now_ns)
{
	bool quiet = now_ns - f->grew_ns > TRACKED_OLD_NS && now_ns - f->old_ns > TRACKED_OLD_NS;

	if (!quiet && now_ns - f->old_ns < OLD_MOST_NS)
		return;
	reader_ask(t->reader, &(struct wire_ask){.what = WIRE_CLOSE, .file = f->id}, -1);
	file_drop(t, f);
}

/* Sources that have no file any more go; of those of a journal, the patterns. */
static void sources_tidy(struct tracked *t, int64_t now_ns)
{
	struct tracked_source *s, *next;

	HASH_ITER (hh, t->sources, s, next) {
		if (!s->used_ns)
			s->used_ns = now_ns;
		else if (s->id >= WIRE_OWN && now_ns - s->used_ns > OWN_UNUSED_NS)
			patterns_drop(s);
		else if (s->id < WIRE_OWN && now_ns - s->used_ns > UNUSED_NS)
			source_drop(t, s);
	}
}

void tracked_end(struct tracked *t, int64_t now_ns)
{
	struct tracked_file *f, *next;
	struct tracked_source *s;
	struct stat st;

	t->grows = false;
	HASH_ITER (hh, t->files, f, next) {
		s = tracked_source(t, f->source);
		if (s)
			s->used_ns = now_ns;
		if (!fstat(f->fd, &st)) {
			t->grows = t->grows || st.st_size - f->size > FAST_BYTES;
			f->grew_ns = st.st_size != f->size ? now_ns : f->grew_ns;
			f->size = st.st_size;
		}
		if (f->path && !f->listed)
			become_old(f, now_ns);
		if (f->old_ns)
			old_close(t, f, now_ns);
	}
	sources_tidy(t, now_ns);
	t->begun = true;
}

/* ---- the reader ---- */

void tracked_open_all(struct tracked *t)
{
	struct tracked_source *s, *next_source;
	struct tracked_file *f, *next;

	HASH_ITER (hh, t->sources, s, next_source) {
		if (s->id >= WIRE_OWN)
			source_drop(t, s);
		else
			patterns_drop(s);
	}
	HASH_ITER (hh, t->files, f, next)
		file_ask(t, f);
}

void tracked_ended(struct tracked *t, uint32_t file)
{
	struct tracked_file *f;

	HASH_FIND_INT(t->files, &file, f);
	if (!f)
		return;
	f->ended++;
	log_warn("the reader of logs ended while it read %s%s",
		 f->path ? f->path : "a rotated file",
		 f->ended >= ENDED_MOST ? ": it is not read any more" : "");
}

void tracked_place(struct tracked *t, const struct wire_said *x)
{
	struct tracked_file *f;

	HASH_FIND_INT(t->files, &x->file, f);
	if (!f)
		return;
	f->from_end = false;
	f->offset = x->offset;
	f->index = x->index;
}
