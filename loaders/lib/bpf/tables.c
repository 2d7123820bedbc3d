// SPDX-License-Identifier: Apache-2.0
#include "loaders/lib/bpf/tables.h"

#include <bpf/libbpf.h>
#include <string.h>

#include "loaders/lib/host/mapsproto.h"

static const char *const names[MP_TABLES_N] = {
	[MP_TABLES_ROWS] = "rows",
	[MP_TABLES_MAPPINGS] = "mappings",
	[MP_TABLES_IMAGES] = "images",
	[MP_TABLES_PROCESSES] = "processes",
	[MP_TABLES_STATE] = "tables_state",
	[MP_TABLES_WANTED] = "wanted",
	[MP_TABLES_RUNTIMES] = "runtimes",
	[MP_TABLES_INFLIGHT] = "inflight",
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
