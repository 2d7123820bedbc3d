/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/pstack/names.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/names/kallsyms.h"
#include "loaders/lib/host/names/jitreader.h"
#include "loaders/lib/host/names/perfmap.h"
#include "loaders/lib/host/names/source_location.h"
#include "loaders/lib/runtimes/beam/beamname.h"
#include "loaders/lib/runtimes/runtimes.h"
#include "probes/lib/stack.h"
#include "schema/base/mem.h"

struct names {
	struct kallsyms *kernel;
	bool partial; /* what is kept of them: there may be more */
	bool no_lines;
	struct jitreader *reader; /* NULL: not needed so far */
	struct perfmap *jit; /* of one process: threads come in the order of their ids, processes
				mostly together */
	uint32_t jit_tgid;
	uint64_t jit_start_ns;
};

static void read_kernel(struct names *n)
{
	kallsyms_free(n->kernel);
	n->partial = false;
	if (kallsyms_load(NULL, &n->kernel))
		n->kernel = NULL;
}

struct names *names_open(const char *store_dir, bool no_lines)
{
	struct names *n = mem_alloc(sizeof(*n));

	n->no_lines = no_lines;
	n->partial = store_dir && !kallsyms_kept(store_dir, &n->kernel);
	if (!n->partial)
		read_kernel(n);
	return n;
}

void names_close(struct names *n)
{
	if (!n)
		return;
	kallsyms_free(n->kernel);
	perfmap_free(n->jit);
	jitreader_close(n->reader);
	free(n);
}

static struct named_frame *frame_add(struct named_stack *s)
{
	mem_grow(s->frames, s->n, s->cap);
	s->frames[s->n] = (struct named_frame){0};
	return &s->frames[s->n++];
}

static char *copy(const char *s)
{
	return s && *s ? mem_strdup(s) : NULL;
}

static bool find(struct names *n, uint64_t addr, struct kallsyms_symbol *sym)
{
	if (n->kernel && kallsyms_find(n->kernel, addr, sym))
		return true;
	if (!n->partial || kallsyms_is_text(n->kernel, addr))
		return false;
	read_kernel(n);
	return n->kernel && kallsyms_find(n->kernel, addr, sym);
}

void names_kernel(struct names *n, const __u64 *frames, size_t count, struct named_stack *out)
{
	struct kallsyms_symbol sym;

	for (size_t i = 0; i < count; i++) {
		struct named_frame *f = frame_add(out);
		bool known = find(n, frames[i] - 1, &sym);

		f->kernel = true;
		f->function = known ? copy(sym.name) : NULL;
		f->module = mem_strdup(known && sym.module[0] ? sym.module : "kernel");
		f->offset = known || !n->kernel ? 0 : frames[i] - kallsyms_text(n->kernel);
	}
}

static const struct perfmap *jit_of(struct names *n, const struct hostmaps_process *p)
{
	struct jitnames_told told;

	if (n->jit_tgid != p->tgid || n->jit_start_ns != p->start_ns) {
		perfmap_free(n->jit);
		n->jit = NULL;
		n->jit_tgid = p->tgid;
		n->jit_start_ns = p->start_ns;
		if (!n->reader)
			n->reader = jitreader_open();
		if (jitnames_read(n->reader, p, &n->jit, &told))
			n->jit = NULL;
	}
	return n->jit;
}

static void anonymous(struct names *n, const struct hostmaps_process *p,
		      const struct hostmaps_frame *at, uint64_t look, struct named_stack *out)
{
	const struct perfmap *jit = at->mapped ? jit_of(n, p) : NULL;
	struct named_frame *f = frame_add(out);
	struct perfmap_entry entry;

	if (jit && perfmap_find(jit, look, &entry)) {
		f->function = beamname_of_perf(entry.name);
		f->function = f->function ? f->function : copy(entry.name);
		f->module = mem_strdup("[jit]");
		f->file = copy(entry.file);
		f->line = n->no_lines ? 0 : entry.line;
	} else {
		f->module = mem_strdup(at->mapped ? "[anon]" : "[unknown]");
	}
}

/* The functions at one place, innermost first. `back`: at->offset is that of the byte before. */
static void in_file(const struct hostmaps_frame *at, bool back, struct named_stack *out)
{
	const struct hostmaps_image *image = at->image;
	struct source_location place;

	if (!image->index || !source_location_find(image->index, at->offset + back, back, &place)) {
		struct named_frame *f = frame_add(out);

		f->module = mem_strdup(image->name[0] ? image->name : "[file]");
		f->offset = at->offset;
		return;
	}
	for (size_t i = 0; i < place.n; i++) {
		const struct image_source_frame *s = &place.at[i];
		struct named_frame *f = frame_add(out);

		f->function = copy(s->function ? s->function : place.symbol.name);
		f->module = mem_strdup(image->name);
		f->file = copy(s->file);
		f->line = s->line;
		f->inlined = i + 1 < place.n;
	}
}

static void native(struct names *n, struct hostmaps *hm, struct hostmaps_process *p, uint64_t frame,
		   uint64_t time_ns, struct named_stack *out)
{
	bool back = !(frame & FRAME_EXACT);
	struct hostmaps_frame at;

	hostmaps_frame(hm, p, FRAME_ADDRESS(frame) - back, time_ns, &at);
	if (at.image)
		in_file(&at, back, out);
	else
		anonymous(n, p, &at, FRAME_ADDRESS(frame) - back, out);
}

/* The script frames that native frame `at` represents, from *next on. false: none. */
static bool script(const struct names *n, const struct script_stack *s, size_t at, size_t *next,
		   struct named_stack *out)
{
	size_t first = *next;

	for (; *next < s->n && s->frames[*next].at == at; (*next)++) {
		const struct script_place *place = &s->frames[*next].place;
		struct named_frame *f = frame_add(out);

		f->runtime = s->frames[*next].runtime->name;
		f->module = mem_strdup(s->frames[*next].runtime->module);
		f->function = copy(place->function);
		f->file = n->no_lines ? NULL : copy(place->file);
		f->line = n->no_lines ? 0 : place->line;
	}
	return *next > first;
}

void names_user(struct names *n, struct hostmaps *hm, struct hostmaps_process *p,
		const struct walk *walk, uint64_t time_ns, struct named_stack *out)
{
	size_t next = 0;

	for (size_t i = 0; i < walk->n; i++)
		if (!script(n, &walk->scripts, i, &next, out))
			native(n, hm, p, walk->frames[i], time_ns, out);
	script(n, &walk->scripts, walk->n, &next, out);
}

void named_stack_release(struct named_stack *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->frames[i].function);
		free(s->frames[i].module);
		free(s->frames[i].file);
	}
	free(s->frames);
	*s = (struct named_stack){0};
}
