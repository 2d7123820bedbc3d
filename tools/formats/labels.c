/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/formats/labels.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tools/print/json.h"

#define KEY_MAX 64

/* --- who --- */

struct label_who label_who_none(struct fold_build *b)
{
	const char *none = fold_text(b, "");

	return (struct label_who){none, none, none, none, 0, 0};
}

static void plain_key(const char *key, char out[KEY_MAX])
{
	size_t n = 0;

	for (; key[n] && n < KEY_MAX - 1; n++)
		out[n] = strchr(" .-", key[n]) ? '_' : (char)tolower((unsigned char)key[n]);
	out[n] = '\0';
}

/* A number, or digits in a string; 0: neither. */
static uint64_t id_of(const char *text, uint64_t number)
{
	uint64_t n = 0;

	if (!text)
		return number <= UINT32_MAX ? number : 0;
	for (; *text >= '0' && *text <= '9' && n <= UINT32_MAX; text++)
		n = n * 10 + (uint64_t)(*text - '0');
	return *text || n > UINT32_MAX ? 0 : n;
}

bool label_who_take(struct fold_build *b, struct label_who *to, const char *key, const char *text,
		    uint64_t number)
{
	static const struct {
		const char *key;
		enum { PID, TID, COMM, THREAD, CONTAINER, CONTAINER_ID } is;
	} keys[] = {{"pid", PID},
		    {"process_id", PID},
		    {"process_pid", PID},
		    {"tid", TID},
		    {"thread_id", TID},
		    {"thread_native_id", TID},
		    {"comm", COMM},
		    {"process_name", COMM},
		    {"process_executable_name", COMM},
		    {"thread", THREAD},
		    {"thread_name", THREAD},
		    {"container", CONTAINER},
		    {"container_name", CONTAINER},
		    {"container_id", CONTAINER_ID}};
	const char **const texts[] = {[COMM] = &to->comm,
				      [THREAD] = &to->thread,
				      [CONTAINER] = &to->container,
				      [CONTAINER_ID] = &to->container_id};
	uint64_t *const ids[] = {[PID] = &to->pid, [TID] = &to->tid};
	char plain[KEY_MAX];

	plain_key(key, plain);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (strcmp(keys[i].key, plain) != 0)
			continue;
		if (keys[i].is > TID && (!text || **texts[keys[i].is]))
			return false; /* no name, or a second one */
		if (keys[i].is > TID) {
			*texts[keys[i].is] = fold_text(b, text);
			return true;
		}
		if (!text && !number)
			return true; /* says nothing */
		if (*ids[keys[i].is] || !id_of(text, number))
			return false;
		*ids[keys[i].is] = id_of(text, number);
		return true;
	}
	return false;
}

/* --- the others --- */

struct label_set {
	json_t *all;
};

struct label_set *label_set_new(void)
{
	struct label_set *s = mem_alloc(sizeof(*s));

	s->all = json_object();
	return s;
}

void label_set_free(struct label_set *s)
{
	if (!s)
		return;
	json_decref(s->all);
	free(s);
}

/* A second value of the same key makes a list. */
static void put(json_t *o, const char *key, json_t *value)
{
	json_t *old = json_object_get(o, key);

	if (!old) {
		json_object_set_new(o, key, value);
	} else if (json_is_array(old)) {
		json_array_append_new(old, value);
	} else {
		json_t *list = json_array();

		json_array_append(list, old);
		json_array_append_new(list, value);
		json_object_set_new(o, key, list);
	}
}

void label_set_add(struct label_set *s, const char *key, const char *text, int64_t number,
		   const char *unit)
{
	struct strbuf unit_key cleanup_strbuf = STRBUF_INIT;

	put(s->all, key, text ? json_text(text) : json_integer(number));
	if (text || !*unit)
		return;
	strbuf_addf(&unit_key, "%s_unit", key);
	json_object_set_new(s->all, strbuf_str(&unit_key), json_text(unit));
}

const char *label_set_take(struct label_set *s, struct fold_build *b)
{
	const char *out = NULL;
	char *text;

	if (!json_object_size(s->all))
		return NULL;
	text = json_dumps(s->all, JSON_COMPACT | JSON_SORT_KEYS);
	if (text && strlen(text) <= LABELS_MAX)
		out = fold_text(b, text);
	else
		fold_add_loss(b,
			      &(struct fold_loss){.reason = "labels longer than 64 KiB", .n = 1});
	free(text);
	json_object_clear(s->all);
	return out;
}

/* --- back --- */

static const char *unit_of(const json_t *all, const char *key)
{
	struct strbuf unit cleanup_strbuf = STRBUF_INIT;
	const json_t *v;

	strbuf_addf(&unit, "%s_unit", key);
	v = json_object_get(all, strbuf_str(&unit));
	return json_is_string(v) ? json_string_value(v) : "";
}

/* Is it the unit of a number? */
static bool is_unit(const json_t *all, const char *key)
{
	const size_t n = strlen(key);
	struct strbuf number cleanup_strbuf = STRBUF_INIT;
	const json_t *of;

	if (n <= 5 || strcmp(key + n - 5, "_unit") != 0)
		return false;
	strbuf_add(&number, key, n - 5);
	of = json_object_get(all, strbuf_str(&number));
	return json_is_integer(of) || json_is_array(of);
}

void labels_each(const char *labels,
		 void (*each)(void *ctx, const char *key, const char *text, int64_t number,
			      const char *unit),
		 void *ctx)
{
	json_t *all = labels && *labels ? json_loads(labels, 0, NULL) : NULL;
	const char *key;
	json_t *value;

	json_object_foreach (all, key, value) {
		const size_t n = json_is_array(value) ? json_array_size(value) : 1;

		for (size_t i = 0; i < n && !is_unit(all, key); i++) {
			const json_t *v = json_is_array(value) ? json_array_get(value, i) : value;

			if (json_is_string(v))
				each(ctx, key, json_string_value(v), 0, "");
			else if (json_is_integer(v))
				each(ctx, key, NULL, json_integer_value(v), unit_of(all, key));
		}
	}
	json_decref(all);
}
