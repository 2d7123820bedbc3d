/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/load/tables.h"

#include <bpf/libbpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loaders/lib/host/maps/mapsproto.h"
#include "probes/lib/tables.h"

static const char *const names[MP_TABLES_N] = {
	[MP_TABLES_ROWS] = "rows",          [MP_TABLES_MAPPINGS] = "mappings",
	[MP_TABLES_IMAGES] = "images",      [MP_TABLES_PROCESSES] = "processes",
	[MP_TABLES_STATE] = "tables_state", [MP_TABLES_WANTED] = "wanted",
	[MP_TABLES_RUNTIMES] = "runtimes",  [MP_TABLES_INFLIGHT] = "inflight",
};

int tables_reuse(struct bpf_object *obj, const int *fds)
{
	for (int i = 0; fds && i < MP_TABLES_N; i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(obj, names[i]);
		int err = map ? bpf_map__reuse_fd(map, fds[i]) : 0;

		if (err)
			return err;
	}
	return 0;
}

bool tables_is_one(const struct bpf_map *map)
{
	for (int i = 0; i < MP_TABLES_N; i++)
		if (!strcmp(bpf_map__name(map), names[i]))
			return true;
	return false;
}

/* ---- which request a thread serves ---- */

static void *shared(int fd, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

static void inflight_clear(int fd)
{
	size_t bytes = TABLES_INFLIGHT * sizeof(struct tables_inflight);
	struct tables_inflight *all = shared(fd, bytes);

	for (size_t i = 0; all && i < TABLES_INFLIGHT; i++)
		if (all[i].tag)
			all[i].tag = 0;
	if (all)
		munmap(all, bytes);
}

void tables_inflight_open(const int *fds, struct tables_state **state)
{
	*state = NULL;
	if (!fds)
		return;
	inflight_clear(fds[MP_TABLES_INFLIGHT]);
	*state = shared(fds[MP_TABLES_STATE], (size_t)sysconf(_SC_PAGESIZE));
}

void tables_inflight_alive(struct tables_state *state, uint64_t now_ns)
{
	if (state)
		__atomic_store_n(&state->inflight_ns, now_ns, __ATOMIC_RELAXED);
}

void tables_inflight_close(struct tables_state *state)
{
	if (state)
		munmap(state, (size_t)sysconf(_SC_PAGESIZE));
}
