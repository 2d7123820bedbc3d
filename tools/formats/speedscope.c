/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/formats/speedscope.h"

#include <stdlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/version.h"
#include "tools/fold/flame/flame_tree.h"
#include "tools/print/json.h"

static const char *unit_of(const struct fold *f)
{
	return f->unit == STORE_TIME || f->unit == STORE_SAMPLES ? "nanoseconds" :
	       f->unit == STORE_BYTES                            ? "bytes" :
								   "none";
}

static json_t *frames_of(const struct flame_tree *t)
{
	json_t *frames = json_array();

	for (size_t i = 0; i < t->n_frames; i++) {
		const struct fold_frame *fr = &t->frames[i];
		json_t *o = json_object();

		json_object_set_new(o, "name", json_text(fr->name));
		if (fr->file && *fr->file) {
			json_object_set_new(o, "file", json_text(fr->file));
			if (fr->function_line)
				json_object_set_new(o, "line", json_integer(fr->function_line));
		}
		json_array_append_new(frames, o);
	}
	return frames;
}

static json_t *stack_of(const struct flame_tree *t, uint32_t node)
{
	cleanup_free uint32_t *path = mem_array(t->nodes[node].depth + 1, sizeof(*path));
	json_t *stack = json_array();
	size_t n = 0;

	for (; node; node = t->nodes[node].parent)
		path[n++] = t->nodes[node].frame;
	while (n-- > 0)
		json_array_append_new(stack, json_integer(path[n]));
	return stack;
}

static json_t *profile_of(const struct fold *f, const struct flame_tree *t, const char *name)
{
	json_t *profile = json_object(), *samples = json_array(), *weights = json_array();

	for (uint32_t i = 0; i < t->n_nodes; i++) {
		if (!t->nodes[i].self_ns)
			continue;
		json_array_append_new(samples, stack_of(t, i));
		json_array_append_new(weights, json_integer((json_int_t)t->nodes[i].self_ns));
	}
	json_object_set_new(profile, "type", json_string("sampled"));
	json_object_set_new(profile, "name", json_text(name));
	json_object_set_new(profile, "unit", json_string(unit_of(f)));
	json_object_set_new(profile, "startValue", json_integer(0));
	json_object_set_new(profile, "endValue", json_integer((json_int_t)t->nodes[0].total_ns));
	json_object_set_new(profile, "samples", samples);
	json_object_set_new(profile, "weights", weights);
	return profile;
}

void speedscope_write(const struct fold *f, const char *name, FILE *out)
{
	json_t *j = json_object(), *shared = json_object(), *profiles = json_array();
	struct flame_tree t;

	flame_tree_init(&t, f, 0, false);
	json_object_set_new(shared, "frames", frames_of(&t));
	json_array_append_new(profiles, profile_of(f, &t, name));
	json_object_set_new(j, "$schema",
			    json_string("https://www.speedscope.app/file-format-schema.json"));
	json_object_set_new(j, "shared", shared);
	json_object_set_new(j, "profiles", profiles);
	json_object_set_new(j, "name", json_text(name));
	json_object_set_new(j, "activeProfileIndex", json_integer(0));
	json_object_set_new(j, "exporter", json_string("sonde " SONDE_VERSION));
	json_print(j, out, 1);
	flame_tree_release(&t);
}
