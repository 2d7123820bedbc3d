/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/load/maproom.h"

#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdio.h>
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

/* Rule 2: probes/runtimes/script.bpf.h, probes/mem.bpf.c at a switch, and probes/disk.bpf.c. */
static bool is_kept(const char *name)
{
	static const char *const kept[] = {"objects", "script_threads", "sleeps", "slowest"};

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (!strcmp(name, kept[i]))
			return true;
	return false;
}

void maproom_on_demand(struct bpf_object *obj)
{
	struct bpf_map *map;

	if (!maproom_grows())
		return;
	bpf_object__for_each_map (map, obj)
		if (bpf_map__type(map) == BPF_MAP_TYPE_HASH && !is_kept(bpf_map__name(map)))
			bpf_map__set_map_flags(map, bpf_map__map_flags(map) | BPF_F_NO_PREALLOC);
}

uint32_t maproom_ring(uint32_t cpus, uint32_t each, uint32_t least, uint32_t most)
{
	uint64_t want = (uint64_t)cpus * each;
	uint32_t size = least;

	while (size < want && size < most)
		size *= 2;
	return size;
}
