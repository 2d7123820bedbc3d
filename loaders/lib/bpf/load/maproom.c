/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/load/maproom.h"

#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "schema/base/array.h"

bool maproom_grows(void)
{
	unsigned int major, minor;
	struct utsname u;

	return !uname(&u) && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 1));
}

/* Rule 2: probes/runtimes/script.bpf.h, probes/mem.bpf.c at a switch, and probes/disk.bpf.c; waits
 * for memory (stalls) begin where an entry may get no memory. */
static bool is_kept(const char *name)
{
	static const char *const kept[] = {"objects", "script_threads", "sleeps", "slowest",
					   "stalls"};

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (!strcmp(name, kept[i]))
			return true;
	return false;
}

void maproom_on_demand(struct bpf_object *obj)
{
	struct bpf_map *map;

	maproom_fixed(obj);
	if (!maproom_grows())
		return;
	bpf_object__for_each_map (map, obj)
		if (bpf_map__type(map) == BPF_MAP_TYPE_HASH && !is_kept(bpf_map__name(map)))
			bpf_map__set_map_flags(map, bpf_map__map_flags(map) | BPF_F_NO_PREALLOC);
}

void maproom_fixed(struct bpf_object *obj)
{
	const char *at = getenv("SONDE_MAP_ENTRIES");
	struct bpf_map *map;
	char name[32];
	uint32_t n;

	for (; at && sscanf(at, "%31[a-z_]=%u", name, &n) == 2; at = at ? at + 1 : NULL) {
		map = bpf_object__find_map_by_name(obj, name);
		if (map)
			bpf_map__set_max_entries(map, n);
		at = strchr(at, ',');
	}
}

uint32_t maproom_ring(uint32_t cpus, uint32_t each, uint32_t least, uint32_t most)
{
	uint64_t want = (uint64_t)cpus * each;
	uint32_t size = least;

	while (size < want && size < most)
		size *= 2;
	return size;
}
