/* SPDX-License-Identifier: Apache-2.0 */
/*
 * makepage FILE [NODES]: the page of tests/unit/tools/fold_sample.h, or of a made-up tree of so many nodes (the same at
 * each call), for the tests that drive a browser: `makepage x.html 100000`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "tests/unit/tools/fold_sample.h"
#include "tools/flame_html.h"

#define MADE_FRAMES 6000

static uint32_t dice(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((*state >> 33) % below);
}

static void make_frames(struct fold *f)
{
	static const char *const modules[] = {"app", "libc.so.6", "libcrypto.so.3", "[kernel]", "server"};
	static const char *const names[] = {"handle_request_%u", "std::vector<item%u>::push_back(item const&)",
					    "EVP_step_%u", "tcp_v4_rcv_%u", "net/http.(*conn).serve%u"};

	f->n_frames = MADE_FRAMES;
	f->frames = mem_array(f->n_frames, sizeof(*f->frames));
	for (uint32_t i = 0; i < f->n_frames; i++) {
		uint32_t kind = i % 5;
		char name[64];

		snprintf(name, sizeof(name), names[kind], i / 5);
		f->frames[i] = (struct fold_frame){
			.name = mem_strdup(name), .module = modules[kind], .module_path = "", .build_id = "",
			.file = kind == 4 ? "server.go" : "", .line = i, .named = true,
			.origin = kind == 3 ? FOLD_KERNEL : kind == 4 ? FOLD_GO : FOLD_NATIVE};
	}
}

static void make_nodes(struct fold *f, size_t n)
{
	uint64_t state = 1;

	f->n_nodes = n;
	f->nodes = mem_array(n, sizeof(*f->nodes));
	for (size_t i = 1; i < n; i++) {
		uint32_t span = i < 40 ? (uint32_t)i : 40, parent = (uint32_t)i - 1 - dice(&state, span);

		if (dice(&state, 50) == 0)
			parent = dice(&state, (uint32_t)i);
		f->nodes[i].parent = parent;
		f->nodes[i].frame = dice(&state, MADE_FRAMES);
		f->nodes[i].self_samples = 1 + dice(&state, 20);
		f->nodes[i].self_ns = f->nodes[i].self_samples * SAMPLE_NS;
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

int main(int argc, char **argv)
{
	struct fold f = fold_sample();
	struct flame_page page = {.f = &f, .what = "", .range = "rec 1", .filters = "", .group = ""};
	FILE *out = argc > 1 ? fopen(argv[1], "w") : NULL;

	if (!out)
		return 2;
	if (argc > 2) {
		make_frames(&f);
		make_nodes(&f, strtoul(argv[2], NULL, 10));
	}
	return flame_html_write(&page, out, NULL) || fclose(out) ? 1 : 0;
}
