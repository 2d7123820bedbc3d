/* SPDX-License-Identifier: Apache-2.0 */
/*
 * makepage FILE [NODES [ROWS]]: the page of tests/unit/tools/fold/fold_sample.h, twice (as CPU time
 * and as allocations), or of a made-up tree of NODES nodes over a minute (the same at each call),
 * for the tests that drive a browser. ROWS: a file for what the page was made of, as JSON, for
 * tests that compute the same by themselves:
 *   {"frames": [[name, module, origin, inlined, file, line]...],
 *    "rows": [[[frame...], pid, comm, tid, thread, container, slot, samples]...]}
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "tests/unit/tools/fold/fold_sample.h"
#include "tools/page/flame_html.h"

#define MADE_SLICES  60
#define MADE_THREADS 12
#define SECOND       1000000000ll

static uint32_t dice(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((*state >> 33) % below);
}

/* Few functions in a small tree, so that they recur and have several lines. */
static void make_frames(struct fold *f, uint32_t n)
{
	static const char *const modules[] = {"app",      "libc.so.6", "libcrypto.so.3",
					      "[kernel]", "server",    "server"};
	static const char *const names[] = {"handle_request_%u",
					    "std::vector<item%u>::push_back(item const&)",
					    "EVP_step_%u",
					    "tcp_v4_rcv_%u",
					    "net/http.(*conn).serve%u",
					    "runtime.gcDrain%u"};

	f->n_frames = n;
	f->frames = mem_array(n, sizeof(*f->frames));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t kind = i % 6;
		char name[64];

		snprintf(name, sizeof(name), names[kind], i / 18);
		f->frames[i] = (struct fold_frame){.name = mem_strdup(name),
						   .module = modules[kind],
						   .module_path = "",
						   .build_id = "",
						   .file = kind >= 4 ? "server.go" :
							   kind == 0 ? "src/app.c" :
								       "",
						   .line = kind >= 4 || kind == 0 ? i + 1 : 0,
						   .named = true,
						   .inlined = kind == 0 && i % 9 == 0,
						   .origin = kind == 3 ? FOLD_KERNEL :
							     kind >= 4 ? FOLD_GO :
									 FOLD_NATIVE};
	}
}

static void make_processes(struct fold *f)
{
	static struct fold_process made[] = {
		{.pid = 1, .comm = "init", .container = "", .container_id = ""},
		{.pid = 200, .comm = "server", .container = "web", .container_id = "c0ffee"},
		{.pid = 201, .comm = "server", .container = "web", .container_id = "c0ffee"},
		{.pid = 300, .comm = "<b>&db", .container = "", .container_id = "badc0de"},
	};

	f->processes = made;
	f->n_processes = ARRAY_SIZE(made);
}

static void add_row(struct fold *f, uint64_t *state, uint32_t node, uint64_t samples)
{
	static const char *const threads[MADE_THREADS] = {"main", "w1", "w2", "w3", "w4", "w5",
							  "w6",   "w7", "w8", "w9", "io", "gc"};
	uint32_t thread = dice(state, MADE_THREADS);

	f->leaves[f->n_leaves++] = (struct fold_leaf){.node = node,
						      .process = thread % (uint32_t)f->n_processes,
						      .thread = threads[thread],
						      .tid = 1000 + thread,
						      .slice = dice(state, MADE_SLICES),
						      .samples = samples,
						      .ns = samples * SAMPLE_NS};
	f->nodes[node].self_samples += samples;
	f->nodes[node].self_ns += samples * SAMPLE_NS;
}

static void make_nodes(struct fold *f, size_t n)
{
	uint64_t state = 1;

	f->n_nodes = n;
	f->nodes = mem_array(n, sizeof(*f->nodes));
	f->leaves = mem_array(2 * n, sizeof(*f->leaves));
	f->n_leaves = 0;
	for (size_t i = 1; i < n; i++) {
		uint32_t span = i < 40 ? (uint32_t)i : 40,
			 parent = (uint32_t)i - 1 - dice(&state, span);

		if (dice(&state, 50) == 0)
			parent = dice(&state, (uint32_t)i);
		f->nodes[i].parent = parent;
		f->nodes[i].frame = dice(&state, (uint32_t)f->n_frames);
		add_row(f, &state, (uint32_t)i, 1 + dice(&state, 20));
		if (dice(&state, 2))
			add_row(f, &state, (uint32_t)i, 1 + dice(&state, 20));
	}
	for (size_t i = n; i-- > 0;) {
		f->nodes[i].total_samples += f->nodes[i].self_samples;
		f->nodes[i].total_ns += f->nodes[i].self_ns;
		if (i) {
			f->nodes[f->nodes[i].parent].total_samples += f->nodes[i].total_samples;
			f->nodes[f->nodes[i].parent].total_ns += f->nodes[i].total_ns;
		}
	}
}

static void make_slices(struct fold *f)
{
	static struct fold_slice slices[MADE_SLICES];

	f->to_ns = f->from_ns + MADE_SLICES * SECOND;
	for (int64_t i = 0; i < MADE_SLICES; i++)
		slices[i] = (struct fold_slice){f->from_ns + i * SECOND,
						f->from_ns + (i + 1) * SECOND, SECOND};
	f->slices = slices;
	f->n_slices = MADE_SLICES;
	f->slice_ns = SECOND;
}

static json_t *path_of(const struct fold *f, uint32_t node)
{
	json_t *path = json_array();

	for (; node; node = f->nodes[node].parent)
		json_array_insert_new(path, 0, json_integer(f->nodes[node].frame));
	return path;
}

static int rows_write(const struct fold *f, const char *file)
{
	json_t *frames = json_array(), *rows = json_array();
	int ret;

	for (size_t i = 0; i < f->n_frames; i++) {
		const struct fold_frame *fr = &f->frames[i];

		json_array_append_new(frames, json_pack("[s,s,i,b,s,i]", fr->name, fr->module,
							(int)fr->origin, (int)fr->inlined, fr->file,
							(int)fr->line));
	}
	for (size_t i = 0; i < f->n_leaves; i++) {
		const struct fold_leaf *l = &f->leaves[i];
		const struct fold_process *p = &f->processes[l->process];

		json_array_append_new(rows,
				      json_pack("[o,i,s,i,s,s,i,i]", path_of(f, l->node),
						(int)p->pid, p->comm, (int)l->tid, l->thread,
						*p->container ? p->container : p->container_id,
						(int)l->slice, (int)l->samples));
	}
	frames = json_pack("{s:o,s:o}", "frames", frames, "rows", rows);
	ret = json_dump_file(frames, file, JSON_COMPACT);
	json_decref(frames);
	return ret;
}

int main(int argc, char **argv)
{
	struct fold f = fold_sample(), alloc = f, inuse = f;
	const struct fold *const folds[] = {&f, &alloc, &inuse};
	struct flame_page page = {.folds = folds,
				  .n_folds = argc > 2 ? 1 : 3,
				  .what = "",
				  .range = "rec 1",
				  .filters = "",
				  .group = "none",
				  .source_url = "https://src.example/{file}#L{line}"};
	FILE *out = argc > 1 ? fopen(argv[1], "w") : NULL;

	if (!out)
		return 2;
	alloc.kind = store_kind_info(STORE_KIND_ALLOC);
	inuse.kind = store_kind_info(STORE_KIND_INUSE);
	alloc.unit = inuse.unit = STORE_BYTES;
	if (argc > 2) {
		size_t n = strtoul(argv[2], NULL, 10);

		make_frames(&f, n > 20000 ? 6000 : 180);
		make_processes(&f);
		make_nodes(&f, n);
		make_slices(&f);
	}
	if (argc > 3 && rows_write(&f, argv[3]))
		return 1;
	return flame_html_write(&page, out, NULL) || fclose(out) ? 1 : 0;
}
