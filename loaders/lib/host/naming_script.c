/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naming_script: frames of scripts (probes/runtimes/runtime.h), by what the program copied of the process when it met them
 * first. What is kept of an object is forgotten when its id has been taken out of the program's map for a while: no frame that
 * is still on its way has it then.
 *
 * In the store the text of a script is an image of its own, of kind STORE_IMAGE_SCRIPT + runtime: functions of two files that are called
 * the same are two. A frame is a line of a function: which instruction of it, nobody sees.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/naming_parts.h"
#include "loaders/lib/runtimes/scriptobject.h"
#include "schema/base/mem.h"
#include "schema/base/runtimes.h"

struct script_note {
	uint32_t id; /* key */
	struct scriptobject object;
	UT_hash_handle hh;
};

int naming_script_take(struct naming *n, const void *record, size_t size, struct script_key *key)
{
	struct scriptobject o;
	struct script_note *note;
	int rc = scriptobject_read(record, size, &o);

	if (rc)
		return rc;
	*key = o.key;
	naming_script_drop(n, o.id);
	note = mem_alloc(sizeof(*note));
	note->id = o.id;
	note->object = o;
	HASH_ADD(hh, n->script_notes, id, sizeof(note->id), note);
	return 0;
}

static void note_free(struct naming *n, struct script_note *note)
{
	HASH_DELETE(hh, n->script_notes, note);
	scriptobject_release(&note->object);
	free(note);
}

void naming_script_drop(struct naming *n, uint32_t id)
{
	struct script_note *note;

	HASH_FIND(hh, n->script_notes, &id, sizeof(id), note);
	if (note)
		note_free(n, note);
}

void naming_script_forget(struct naming *n)
{
	idmap_clear(&n->script_frames);
}

void naming_script_release(struct naming *n)
{
	struct script_note *note, *next;

	HASH_ITER(hh, n->script_notes, note, next)
		note_free(n, note);
	idmap_release(&n->script_frames);
	free(n->settled);
}

const uint64_t *naming_script_settle(struct naming *n, const uint64_t *frames, size_t count)
{
	size_t trailing = count, last, to = 0;

	while (trailing && FRAME_IS_SCRIPT(frames[trailing - 1]))
		trailing--;
	for (last = trailing; last && !FRAME_IS_SCRIPT(frames[last - 1]); last--)
		;
	if (trailing == count || !last || count > STACK_USER_MAX)
		return frames;
	if (!n->settled)
		n->settled = mem_array(STACK_USER_MAX, sizeof(*n->settled));
	for (size_t i = 0; i < last; i++)
		if (!FRAME_IS_SCRIPT(frames[i]))
			n->settled[to++] = frames[i];
	for (size_t i = 0; i < count; i++)
		if (FRAME_IS_SCRIPT(frames[i]))
			n->settled[to++] = frames[i];
	for (size_t i = last; i < trailing; i++)
		n->settled[to++] = frames[i];
	return n->settled;
}

/* "folder/file.py": what tells one `__init__.py` from another. */
static const char *short_name(const char *path)
{
	const char *at = path + strlen(path);
	int slashes = 0;

	while (at > path && slashes < 2)
		slashes += *--at == '/';
	return slashes == 2 ? at + 1 : at;
}

/* The path of the file that its interpreter is. */
static const char *interpreter_of(struct naming *n, struct hostmaps_process *p, const struct script_note *note)
{
	struct hostmaps_image *image = p ? hostmaps_image(n->hm, note->object.image) : NULL;

	return image ? image->path : "";
}

static uint32_t image_of(struct naming *n, uint32_t kind, const char *file, const char *interpreter)
{
	char name[32];

	snprintf(name, sizeof(name), "[%s]", kind ? runtime_name(kind) : "script");
	return store_image(n->w, &(struct store_image){.kind = STORE_IMAGE_SCRIPT + kind, .name = file ? short_name(file) : name,
						       .path = file ? file : "", .build_id = "", .key = interpreter});
}

static struct answer frame_make(struct naming *n, struct hostmaps_process *p, uint64_t word)
{
	uint32_t kind = SCRIPT_KIND(word) < RUNTIME_N ? SCRIPT_KIND(word) : RUNTIME_NONE, id = SCRIPT_ID(word);
	struct store_frame f = {.exact = true};
	const char *function = NULL, *file = NULL, *interpreter = "";
	struct script_note *note;

	HASH_FIND(hh, n->script_notes, &id, sizeof(id), note);
	if (note) {
		function = scriptobject_function(&note->object);
		file = scriptobject_file(&note->object);
		interpreter = interpreter_of(n, p, note);
	}
	f.image = image_of(n, kind, file, interpreter);
	if (function) {
		f.function = store_function(n->w, &(struct store_function){.name = function, .image = f.image, .file = file ? file : "",
									   .line = scriptobject_first_line(&note->object)});
		f.line = scriptobject_line(&note->object, SCRIPT_POSITION(word));
	}
	return (struct answer){.frame = store_frame(n->w, &f), .why = f.function ? WHY_NAMED : WHY_SYMBOL, .slot = SLOT_NONE};
}

struct answer naming_script(struct naming *n, struct hostmaps_process *p, uint64_t word)
{
	uint64_t cached;
	struct answer a;

	if (idmap_get(&n->script_frames, word, &cached))
		return answer_unpack(cached);
	a = frame_make(n, p, word);
	if (n->script_frames.n >= n->o.max_cached)
		idmap_clear(&n->script_frames);
	if (a.why == WHY_NAMED)
		idmap_set(&n->script_frames, word, answer_pack(a));
	return a;
}
