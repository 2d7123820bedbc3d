/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/waits/waitstack.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tools/print/framename.h"

static const struct store_frame_row *frame_at(const struct store_dict *d, uint32_t stack)
{
	uint32_t frame = d->stack_frame[stack];

	return &d->frames[frame < d->n_frames ? frame : 0];
}

/* Of a script whose interpreter waits in this frame: the script's function that it is at, NULL: it
 * is no interpreter's. */
static const char *script_of(const struct store_dict *d, uint32_t stack)
{
	uint32_t image = frame_at(d, stack)->image;

	for (; stack && stack < d->n_stacks; stack = d->stack_parent[stack]) {
		const struct store_frame_row *f = frame_at(d, stack);
		const struct store_image_row *is =
			f->image < d->n_images ? &d->images[f->image] : NULL;

		if (is && is->kind >= STORE_IMAGE_SCRIPT)
			return image < d->n_images && is->interpreter && d->images[image].path &&
					       !strcmp(is->interpreter, d->images[image].path) ?
				       f->name :
				       NULL;
		if (f->image != image)
			break;
	}
	return NULL;
}

const char *waitstack_own(const struct store_dict *d, uint32_t stack)
{
	const char *last = NULL;

	for (; stack && stack < d->n_stacks; stack = d->stack_parent[stack]) {
		const struct store_frame_row *f = frame_at(d, stack);
		const char *image =
			f->image && f->image < d->n_images ? d->images[f->image].name : "";

		if (!last)
			last = f->name;
		if (!f->inlined && image[0] != '[' && strncmp(image, "libc.so", 7) &&
		    strncmp(image, "ld-linux", 8)) {
			const char *script = script_of(d, stack);

			return script ? script : f->name;
		}
	}
	return last;
}

uint32_t *waitstack_named(const struct store_dict *d)
{
	uint32_t *named = mem_array(d->n_stacks + 1, sizeof(*named));
	cleanup_free uint8_t *is_named = mem_array(d->n_frames + 1, 1);

	for (size_t i = 0; i < d->n_frames; i++)
		is_named[i] = d->frames[i].name && waitrule_names(d->frames[i].name);
	for (size_t i = 1; i < d->n_stacks; i++) {
		const uint32_t frame = d->stack_frame[i];

		named[i] = is_named[frame < d->n_frames ? frame : 0] ? (uint32_t)i :
								       named[d->stack_parent[i]];
	}
	return named;
}

/* The first one to look at. */
static uint32_t from(const struct store_dict *d, const uint32_t *named, uint32_t stack)
{
	return !named || stack >= d->n_stacks ? stack : named[stack];
}

const struct waitrule *waitstack_rule(const struct store_dict *d, const uint32_t *named,
				      uint32_t stack, const char *class)
{
	const struct waitrule *weak = NULL;

	for (stack = from(d, named, stack); stack && stack < d->n_stacks;
	     stack = from(d, named, d->stack_parent[stack])) {
		const char *name = frame_at(d, stack)->name;
		const struct waitrule *rule = waitrule_of(class, name);

		if (rule)
			return rule;
		weak = weak ? weak : waitrule_weak_of(class, name);
	}
	return weak;
}

const char *waitstack_purpose(const struct store_dict *d, const uint32_t *named, uint32_t stack)
{
	const char *purpose = NULL;

	for (stack = from(d, named, stack); !purpose && stack && stack < d->n_stacks;
	     stack = from(d, named, d->stack_parent[stack]))
		purpose = waitrule_purpose(frame_at(d, stack)->name);
	return purpose;
}

char *waitstack_path(const struct store_dict *d, uint32_t stack)
{
	struct strbuf path cleanup_strbuf = STRBUF_INIT;
	uint32_t *nodes = NULL;
	size_t n = 0, cap = 0;

	for (; stack && stack < d->n_stacks; stack = d->stack_parent[stack]) {
		mem_grow(nodes, n, cap);
		nodes[n++] = stack;
	}
	for (size_t i = n; i-- > 0;) {
		framename_add(&path, frame_at(d, nodes[i])->name);
		if (i)
			strbuf_addstr(&path, ";");
	}
	free(nodes);
	return strbuf_take(&path);
}
