/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/run/scripts.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define GONE_NS (60 * NSEC_PER_SEC) /* by then every frame with this id has been named */

static int map_fd(const struct bpf_object *obj, const char *name)
{
	const struct bpf_map *map = obj ? bpf_object__find_map_by_name(obj, name) : NULL;

	return map ? bpf_map__fd(map) : -1;
}

void scripts_open(struct scripts *s, const struct bpf_object *obj)
{
	const struct bpf_map *objects = obj ? bpf_object__find_map_by_name(obj, "objects") : NULL;

	*s = (struct scripts){.objects_fd = map_fd(obj, "objects"),
			      .erlang_fd = map_fd(obj, "erlang"),
			      .names_fd = map_fd(obj, "names"),
			      .walks_fd = map_fd(obj, "scripts"),
			      .max = objects ? bpf_map__max_entries(objects) : 0};
}

void scripts_release(struct scripts *s)
{
	free(s->given);
	*s = (struct scripts){.objects_fd = -1, .names_fd = -1, .walks_fd = -1, .erlang_fd = -1};
}

void scripts_erlang(void *ctx, uint32_t tgid, uint32_t tid, const struct stack_erlang *erlang)
{
	const struct scripts *s = ctx;
	const uint64_t key = (uint64_t)tgid << 32 | tid;

	if (s->erlang_fd < 0)
		return;
	if (erlang)
		bpf_map_update_elem(s->erlang_fd, &key, erlang, BPF_ANY);
	else
		bpf_map_delete_elem(s->erlang_fd, &key);
}

#define KINDS(k) (1u << (k))
const uint32_t SCRIPTS_KINDS[SCRIPTS_TRIES] = {
	KINDS(RUNTIME_PYTHON) | KINDS(RUNTIME_PHP) | KINDS(RUNTIME_RUBY) | KINDS(RUNTIME_PERL),
	KINDS(RUNTIME_PYTHON),
	0,
};

void scripts_configure(struct bpf_object *obj, uint32_t kinds)
{
	static const char *const large[] = {"objects", "script_threads"};
	struct bpf_map *objects = bpf_object__find_map_by_name(obj, large[0]),
		       *names = bpf_object__find_map_by_name(obj, "names");

	for (size_t i = 0; !kinds && i < ARRAY_SIZE(large); i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(obj, large[i]);

		if (map)
			bpf_map__set_max_entries(map, 1);
	}
	if (objects && kinds == SCRIPTS_KINDS[1])
		bpf_map__set_max_entries(objects, SCRIPT_OBJECTS / 2);
	if (names && !kinds)
		bpf_map__set_max_entries(names, 4096);
}

bool scripts_refused(int err)
{
	return err && err != -ENOMEM; /* a verifier may also say EACCES */
}

bool scripts_configured(const struct bpf_object *obj, uint32_t *kinds)
{
	const struct bpf_map *objects = obj ? bpf_object__find_map_by_name(obj, "objects") : NULL;
	uint32_t room = objects ? bpf_map__max_entries(objects) : 0;

	if (!objects)
		return false;
	*kinds = SCRIPTS_KINDS[room == SCRIPT_OBJECTS ? 0 : room > 1 ? 1 : 2];
	return true;
}

void scripts_took(struct scripts *s, const struct script_key *key, uint32_t id)
{
	mem_grow(s->given, s->n, s->cap);
	s->given[s->n++] = (struct script_given){.key = *key, .id = id};
}

/* Removes the oldest objects from the map. If another CPU gave the object a second id, the map has
 * one of the two. */
static void make_room(struct scripts *s, int64_t now_ns)
{
	size_t until = s->gone + s->max / 4;

	for (; s->gone < until && s->gone < s->n; s->gone++) {
		bpf_map_delete_elem(s->objects_fd, &s->given[s->gone].key);
		s->given[s->gone].gone_ns = now_ns;
	}
}

void scripts_tick(struct scripts *s, int64_t now_ns, void (*drop)(void *ctx, uint32_t id),
		  void *ctx)
{
	size_t n = 0;

	if (s->max && s->n - s->gone > s->max / 4 * 3)
		make_room(s, now_ns);
	while (n < s->gone && now_ns - s->given[n].gone_ns > GONE_NS)
		drop(ctx, s->given[n++].id);
	if (!n)
		return;
	memmove(s->given, s->given + n, (s->n - n) * sizeof(*s->given));
	s->n -= n;
	s->gone -= n;
}

bool scripts_tally(const struct scripts *s, struct script_tally *out)
{
	int cpus = libbpf_num_possible_cpus();
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info), zero = 0;
	uint64_t *sum = (uint64_t *)out;
	uint8_t *values;
	size_t stride;

	if (s->walks_fd < 0 || cpus <= 0 || bpf_obj_get_info_by_fd(s->walks_fd, &info, &len) ||
	    info.value_size < sizeof(*out))
		return false;
	stride = (info.value_size + 7) & ~(size_t)7;
	values = mem_array((size_t)cpus, stride);
	*out = (struct script_tally){0};
	if (!bpf_map_lookup_elem(s->walks_fd, &zero, values))
		for (int i = 0; i < cpus; i++) {
			const uint64_t *of =
				(const uint64_t *)(const void *)(values + (size_t)i * stride +
								 info.value_size - sizeof(*out));

			for (size_t k = 0; k < sizeof(*out) / sizeof(*of); k++)
				sum[k] += of[k];
		}
	free(values);
	return true;
}
