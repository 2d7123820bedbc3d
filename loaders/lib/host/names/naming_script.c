/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naming_script: script frames (probes/runtimes/runtime.h), by what the program copied from the
 * process when it first met them. An object is forgotten some time after its id was removed from
 * the program's map: by then no frame with that id is on its way.
 *
 * In the store the text of a script is an image of kind STORE_IMAGE_SCRIPT + runtime, so that
 * functions with the same name in two files are two. A frame is a line of a function: the
 * instruction is not known.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/names/private.h"
#include "loaders/lib/runtimes/scriptobject.h"
#include "schema/base/mem.h"
#include "schema/base/runtimes.h"

struct script_note {
	uint32_t id; /* key */
	struct scriptobject object;
	UT_hash_handle hh;
};

/* Texts with an id from naming_script_word: equal texts share one. */
#define WORDS_MAX 16384u
/* programs put the number of their CPU into the low ten bits of an id; it is less than this */
#define WORDS_CPU 1023u
#define WORDS_IDS (1u << 22)

struct script_text {
	char *key; /* own: function, 0, file, 0, image; key_len bytes */
	size_t key_len;
	uint32_t id;
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

static void texts_forget(struct naming *n)
{
	struct script_text *t, *next;

	HASH_ITER (hh, n->script_texts, t, next) {
		naming_script_drop(n, t->id);
		HASH_DELETE(hh, n->script_texts, t);
		free(t->key);
		free(t);
	}
}

static struct script_text *text_add(struct naming *n, char *key, size_t len, uint32_t kind,
				    uint32_t image)
{
	struct script_text *t = mem_alloc(sizeof(*t));
	struct script_note *note = mem_alloc(sizeof(*note));
	const char *file = key + strlen(key) + 1;

	*t = (struct script_text){
		.key = key, .key_len = len, .id = ++n->script_words << 10 | WORDS_CPU};
	*note = (struct script_note){.id = t->id,
				     .object = {.id = t->id, .kind = kind, .image = image}};
	note->object.place.function = mem_strdup(key);
	note->object.place.file = *file ? mem_strdup(file) : NULL;
	HASH_ADD_KEYPTR(hh, n->script_texts, t->key, t->key_len, t);
	HASH_ADD(hh, n->script_notes, id, sizeof(note->id), note);
	return t;
}

uint64_t naming_script_word(struct naming *n, uint32_t kind, uint32_t image, const char *function,
			    const char *file, uint32_t line)
{
	size_t at = strlen(function) + 1, len = at + strlen(file) + 1;
	uint64_t word = FRAME_SCRIPT | (uint64_t)kind << SCRIPT_KIND_SHIFT |
			(line <= SCRIPT_POSITION_MAX ? line : 0);
	char *key = mem_alloc(len + sizeof(image));
	struct script_text *t;

	memcpy(key, function, at);
	memcpy(key + at, file, len - at);
	memcpy(key + len, &image, sizeof(image));
	HASH_FIND(hh, n->script_texts, key, len + sizeof(image), t);
	if (t || n->script_words >= WORDS_IDS - 1)
		free(key);
	else
		t = text_add(n, key, len + sizeof(image), kind, image);
	return t ? word | (uint64_t)t->id << SCRIPT_POSITION_BITS : word;
}

void naming_script_tick(struct naming *n)
{
	if (HASH_COUNT(n->script_texts) > WORDS_MAX)
		texts_forget(n);
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

	texts_forget(n);
	HASH_ITER (hh, n->script_notes, note, next)
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

/* "folder/file.py": distinguishes one `__init__.py` from another. */
static const char *short_name(const char *path)
{
	const char *at = path + strlen(path);
	int slashes = 0;

	while (at > path && slashes < 2)
		slashes += *--at == '/';
	return slashes == 2 ? at + 1 : at;
}

/* The path of its interpreter's file. */
static const char *interpreter_of(struct naming *n, struct hostmaps_process *p,
				  const struct script_note *note)
{
	struct hostmaps_image *image = p ? hostmaps_image(n->hm, note->object.image) : NULL;

	return image ? image->path : "";
}

static uint32_t image_of(struct naming *n, uint32_t kind, const char *file, const char *interpreter)
{
	char name[32];

	snprintf(name, sizeof(name), "[%s]", kind ? runtime_name(kind) : "script");
	return store_image(n->w, &(struct store_image){.kind = STORE_IMAGE_SCRIPT + kind,
						       .name = file ? short_name(file) : name,
						       .path = file ? file : "",
						       .build_id = "",
						       .key = interpreter});
}

static struct frame_name frame_make(struct naming *n, struct hostmaps_process *p, uint64_t word)
{
	uint32_t kind = SCRIPT_KIND(word) < RUNTIME_N ? SCRIPT_KIND(word) : RUNTIME_NONE,
		 id = SCRIPT_ID(word);
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
		f.function = store_function(
			n->w,
			&(struct store_function){.name = function,
						 .image = f.image,
						 .file = file ? file : "",
						 .line = scriptobject_first_line(&note->object)});
		f.line = scriptobject_line(&note->object, SCRIPT_POSITION(word));
	}
	return (struct frame_name){.frame = store_frame(n->w, &f),
				   .why = f.function ? WHY_NAMED : WHY_SYMBOL,
				   .slot = SLOT_NONE};
}

struct frame_name naming_script(struct naming *n, struct hostmaps_process *p, uint64_t word)
{
	uint64_t cached;
	struct frame_name a;

	if (idmap_get(&n->script_frames, word, &cached))
		return frame_name_unpack(cached);
	a = frame_make(n, p, word);
	if (n->script_frames.n >= n->o.max_cached)
		idmap_clear(&n->script_frames);
	if (a.why == WHY_NAMED)
		idmap_set(&n->script_frames, word, frame_name_pack(a));
	return a;
}
