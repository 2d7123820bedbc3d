/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/publish/tablemaps.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loaders/lib/bpf/load/maproom.h"
#include "schema/base/cleanup.h"

#define BPF_F_NO_PREALLOC_ (1u << 0)  /* linux/bpf.h */
#define BPF_F_MMAPABLE_    (1u << 10) /* the same, since 5.5 */

static const struct shape {
	const char *name;
	enum bpf_map_type type;
	uint32_t value_size, max_entries; /* 0: as large as it is */
} shapes[MP_TABLES_N] = {
	[MP_TABLES_ROWS] = {"rows", BPF_MAP_TYPE_ARRAY, sizeof(uint64_t), 0},
	[MP_TABLES_MAPPINGS] = {"mappings", BPF_MAP_TYPE_ARRAY, sizeof(uint64_t), 0},
	[MP_TABLES_IMAGES] = {"images", BPF_MAP_TYPE_ARRAY, sizeof(struct tables_image),
			      TABLES_IMAGES},
	[MP_TABLES_PROCESSES] = {"processes", BPF_MAP_TYPE_HASH, sizeof(struct tables_process),
				 TABLES_PROCESSES},
	[MP_TABLES_STATE] = {"tables_state", BPF_MAP_TYPE_ARRAY, sizeof(struct tables_state), 1},
	[MP_TABLES_WANTED] = {"wanted", BPF_MAP_TYPE_RINGBUF, 0, TABLES_WANTED_BYTES},
	[MP_TABLES_RUNTIMES] = {"runtimes", BPF_MAP_TYPE_ARRAY, sizeof(struct tables_runtime),
				TABLES_RUNTIMES},
	[MP_TABLES_INFLIGHT] = {"inflight", BPF_MAP_TYPE_ARRAY, sizeof(struct tables_inflight),
				TABLES_INFLIGHT},
};

/* ---- make, or take over ---- */

static uint32_t key_size(const struct shape *sh)
{
	return sh->type == BPF_MAP_TYPE_RINGBUF ? 0 : sizeof(uint32_t);
}

static uint32_t flags_of(const struct shape *sh)
{
	if (sh->type == BPF_MAP_TYPE_ARRAY)
		return BPF_F_MMAPABLE_;
	return sh->type == BPF_MAP_TYPE_HASH && maproom_grows() ? BPF_F_NO_PREALLOC_ : 0;
}

/* By how many processes there are now. */
static uint32_t mappings_wanted(void)
{
	DIR *d = opendir("/proc");
	uint32_t wanted = 0;
	struct dirent *entry;

	while (d && wanted < TABLEMAPS_MAPPINGS_MOST && (entry = readdir(d)))
		if (*entry->d_name >= '1' && *entry->d_name <= '9')
			wanted += TABLEMAPS_MAPPINGS_EACH;
	if (d)
		closedir(d);
	return wanted < TABLEMAPS_MAPPINGS      ? TABLEMAPS_MAPPINGS :
	       wanted > TABLEMAPS_MAPPINGS_MOST ? TABLEMAPS_MAPPINGS_MOST :
						  wanted;
}

static int make(struct tablemaps *t, uint32_t rows_mb)
{
	uint32_t entries[MP_TABLES_N] = {
		[MP_TABLES_ROWS] = rows_mb << 17, [MP_TABLES_MAPPINGS] = mappings_wanted()};

	for (int i = 0; i < MP_TABLES_N; i++) {
		const struct shape *sh = &shapes[i];
		LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = flags_of(sh));

		t->fd[i] = bpf_map_create(sh->type, sh->name, key_size(sh), sh->value_size,
					  sh->max_entries ? sh->max_entries : entries[i], &opts);
		if (t->fd[i] < 0)
			return t->fd[i];
	}
	t->n_rows = entries[MP_TABLES_ROWS];
	t->n_mappings = entries[MP_TABLES_MAPPINGS];
	return 0;
}

static bool fits(const struct bpf_map_info *info, const struct shape *sh)
{
	return info->type == sh->type && info->key_size == key_size(sh) &&
	       info->value_size == sh->value_size &&
	       (!sh->max_entries || info->max_entries == sh->max_entries) &&
	       !strcmp(info->name, sh->name) &&
	       (sh->type != BPF_MAP_TYPE_ARRAY || info->map_flags & BPF_F_MMAPABLE_);
}

static int take_over(struct tablemaps *t, const int from[MP_TABLES_N])
{
	for (int i = 0; i < MP_TABLES_N; i++) {
		struct bpf_map_info info = {0};
		uint32_t len = sizeof(info);

		if (from[i] < 0 || bpf_obj_get_info_by_fd(from[i], &info, &len) ||
		    !fits(&info, &shapes[i]))
			return -EINVAL;
		t->fd[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 3);
		if (t->fd[i] < 0)
			return -errno;
		if (i == MP_TABLES_ROWS)
			t->n_rows = info.max_entries;
		else if (i == MP_TABLES_MAPPINGS)
			t->n_mappings = info.max_entries;
	}
	return 0;
}

/* ---- memory ---- */

static size_t page_up(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (n + page - 1) / page * page;
}

static void *map_all(int fd, size_t bytes)
{
	void *p = mmap(NULL, page_up(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int map_memory(struct tablemaps *t)
{
	t->mappings = map_all(t->fd[MP_TABLES_MAPPINGS], (size_t)t->n_mappings * sizeof(uint64_t));
	t->images = map_all(t->fd[MP_TABLES_IMAGES],
			    (size_t)TABLES_IMAGES * sizeof(struct tables_image));
	t->state = map_all(t->fd[MP_TABLES_STATE], sizeof(struct tables_state));
	t->runtimes = map_all(t->fd[MP_TABLES_RUNTIMES],
			      (size_t)TABLES_RUNTIMES * sizeof(struct tables_runtime));
	return t->mappings && t->images && t->state && t->runtimes ? 0 : -errno;
}

static void unmap(void *p, size_t bytes)
{
	if (p)
		munmap(p, page_up(bytes));
}

int tablemaps_window_open(const struct tablemaps *t, uint32_t first, uint32_t n,
			  struct tablemaps_window *w)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE),
	       from = (size_t)first * sizeof(uint64_t) / page * page;
	size_t bytes = page_up(((size_t)first + n) * sizeof(uint64_t)) - from;
	void *base;

	if (!n || n > t->n_rows || first > t->n_rows - n)
		return -ERANGE;
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd[MP_TABLES_ROWS],
		    (off_t)from);
	if (base == MAP_FAILED)
		return -errno;
	*w = (struct tablemaps_window){
		base, bytes,
		(uint64_t *)((char *)base + ((size_t)first * sizeof(uint64_t) - from))};
	return 0;
}

int tablemaps_window_borrow(const struct tablemaps *t, uint32_t first, uint32_t n,
			    struct tablemaps_window *w)
{
	if (!t->held || !n || n > t->n_rows || first > t->n_rows - n)
		return tablemaps_window_open(t, first, n, w);
	*w = (struct tablemaps_window){.at = t->held + first};
	return 0;
}

void tablemaps_hold(struct tablemaps *t)
{
	if (!t->held)
		t->held = map_all(t->fd[MP_TABLES_ROWS], (size_t)t->n_rows * sizeof(uint64_t));
}

void tablemaps_let_go(struct tablemaps *t)
{
	unmap(t->held, (size_t)t->n_rows * sizeof(uint64_t));
	t->held = NULL;
}

void tablemaps_window_close(struct tablemaps_window *w)
{
	if (w->base)
		munmap(w->base, w->bytes);
	*w = (struct tablemaps_window){0};
}

int tablemaps_rows_write(const struct tablemaps *t, uint32_t first, const void *data, uint32_t n)
{
	struct tablemaps_window w;
	int rc = n ? tablemaps_window_borrow(t, first, n, &w) : 0;

	if (rc || !n)
		return rc;
	memcpy(w.at, data, (size_t)n * sizeof(uint64_t));
	tablemaps_window_close(&w);
	return 0;
}

int tablemaps_rows_equal(const struct tablemaps *t, uint32_t first, const void *data, uint32_t n)
{
	struct tablemaps_window w;
	int rc = n ? tablemaps_window_borrow(t, first, n, &w) : 0;

	if (rc || !n)
		return rc ? rc : 1;
	rc = !memcmp(w.at, data, (size_t)n * sizeof(uint64_t));
	tablemaps_window_close(&w);
	return rc;
}

/* ---- open and close ---- */

int tablemaps_open(struct tablemaps *t, uint32_t rows_mb, const int from[MP_TABLES_N])
{
	int rc = from && from[0] >= 0 ? take_over(t, from) : -ENOENT;

	t->taken_over = !rc;
	if (rc) {
		tablemaps_close(t);
		rc = make(t, rows_mb);
	}
	if (!rc)
		rc = map_memory(t);
	if (rc)
		tablemaps_close(t);
	return rc;
}

void tablemaps_close(struct tablemaps *t)
{
	tablemaps_let_go(t);
	unmap(t->mappings, (size_t)t->n_mappings * sizeof(uint64_t));
	unmap(t->images, (size_t)TABLES_IMAGES * sizeof(struct tables_image));
	unmap(t->state, sizeof(struct tables_state));
	unmap(t->runtimes, (size_t)TABLES_RUNTIMES * sizeof(struct tables_runtime));
	for (int i = 0; i < MP_TABLES_N; i++)
		if (t->fd[i] >= 0)
			close(t->fd[i]);
	*t = (struct tablemaps)TABLEMAPS_NONE;
}

uint64_t tablemaps_bytes(const struct tablemaps *t)
{
	uint64_t sum = 0;

	for (int i = 0; i < MP_TABLES_N; i++) {
		char path[64], line[128];
		uint64_t bytes;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", t->fd[i]);
		cleanup_file FILE *f = t->fd[i] < 0 ? NULL : fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "memlock: %" SCNu64, &bytes) == 1)
				sum += bytes;
	}
	return sum;
}
