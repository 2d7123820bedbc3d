/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/formats/folded.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "tools/print/framename.h"

static void add_path(struct strbuf *s, const struct flame_tree *t, uint32_t node)
{
	cleanup_free uint32_t *path = mem_array(t->nodes[node].depth + 1, sizeof(*path));
	size_t n = 0;

	for (; node; node = t->nodes[node].parent)
		path[n++] = node;
	while (n-- > 0) {
		framename_add(s, t->frames[t->nodes[path[n]].frame].name);
		if (n)
			strbuf_addch(s, ';');
	}
}

/* CPU in samples, as these files have it everywhere; all else in its unit. */
static uint64_t amount_of(const struct fold *f, const struct flame_node *n)
{
	return f->kind->kind == STORE_KIND_CPU ? n->self_samples : n->self_ns;
}

void folded_write(const struct fold *f, FILE *out)
{
	cleanup_strbuf struct strbuf line = STRBUF_INIT;
	struct flame_tree t;

	flame_tree_init(&t, f, 0, false);
	for (size_t i = 0; i < t.n_nodes && !ferror(out); i++) {
		if (!amount_of(f, &t.nodes[i]))
			continue;
		strbuf_reset(&line);
		add_path(&line, &t, (uint32_t)i);
		strbuf_addf(&line, " %llu\n", (unsigned long long)amount_of(f, &t.nodes[i]));
		fwrite(line.buf, 1, line.len, out);
	}
	flame_tree_release(&t);
}
