/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_scripts: which frames are an interpreter's own. A stack that has frames of scripts
 * (STORE_IMAGE_SCRIPT) has native ones of the file that interprets them: between them, below what
 * they call, and from where the program began to where its first script did. Who looks for a
 * script's time wants none of these; what libraries and the kernel do for the script stays.
 *
 * What the JIT of PHP or Ruby made of a script's functions is such a frame, too: memory without a
 * file and without a name, below a frame of theirs.
 *
 * Stacks are a tree: a frame counts that has one of a script above it or below it. Where some stack
 * below has none, it loses the interpreter's frames that it has in common with those that have.
 */
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/runtimes.h"
#include "tools/fold/fold_parts.h"

static bool is_script(const struct store_dict *d, uint32_t stack)
{
	uint32_t image = d->frames[d->stack_frame[stack]].image;

	return image < d->n_images && d->images[image].kind >= STORE_IMAGE_SCRIPT;
}

/* Frames of these run in machine code that has no name, which their runtime made of them. */
static bool makes_code(const struct store_dict *d, uint32_t stack)
{
	uint32_t image = d->frames[d->stack_frame[stack]].image;
	const char *name =
		is_script(d, stack) ? runtime_name(d->images[image].kind - STORE_IMAGE_SCRIPT) : "";

	return !strcmp(name, "php") || !strcmp(name, "ruby");
}

static bool is_made(const struct store_dict *d, uint32_t stack)
{
	const struct store_frame_row *frame = &d->frames[d->stack_frame[stack]];

	return !frame->function && frame->image < d->n_images &&
	       !strcmp(d->images[frame->image].name, "[anon]");
}

/* By image: is it some script's interpreter? NULL: there are no scripts. */
static uint8_t *interpreters_of(const struct store_dict *d)
{
	cleanup_free uint8_t *is = mem_array(d->n_images + 1, 1);
	size_t scripts = 0;

	for (size_t i = 1; i < d->n_images; i++) {
		const struct store_image_row *script = &d->images[i];

		if (script->kind < STORE_IMAGE_SCRIPT)
			continue;
		scripts++;
		for (size_t k = 1; k < d->n_images && script->interpreter && *script->interpreter;
		     k++)
			is[k] |= d->images[k].kind == STORE_IMAGE_ELF && d->images[k].path &&
				 !strcmp(d->images[k].path, script->interpreter);
	}
	return scripts ? take_ptr(is) : NULL;
}

#define SCRIPT_ABOVE 1u
#define SCRIPT_BELOW 2u
#define MAKER_ABOVE  4u

uint8_t *fold_hide_interpreters(const struct store_dict *d)
{
	cleanup_free uint8_t *interpreter = interpreters_of(d);
	uint8_t *at;

	if (!interpreter)
		return NULL;
	at = mem_array(d->n_stacks + 1, 1);
	for (size_t i = 1; i < d->n_stacks; i++) {
		if ((at[d->stack_parent[i]] & SCRIPT_ABOVE) || is_script(d, (uint32_t)i))
			at[i] |= SCRIPT_ABOVE;
		if ((at[d->stack_parent[i]] & MAKER_ABOVE) || makes_code(d, (uint32_t)i))
			at[i] |= MAKER_ABOVE;
	}
	for (size_t i = d->n_stacks; i-- > 1;)
		if ((at[i] & SCRIPT_BELOW) || is_script(d, (uint32_t)i))
			at[d->stack_parent[i]] |= SCRIPT_BELOW;
	for (size_t i = 1; i < d->n_stacks; i++) {
		uint32_t image = d->frames[d->stack_frame[i]].image;

		at[i] = (at[i] && image < d->n_images && interpreter[image]) ||
			((at[i] & MAKER_ABOVE) && is_made(d, (uint32_t)i));
	}
	at[0] = 0;
	return at;
}
