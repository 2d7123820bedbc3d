/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/import/line.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define BUCKET_MAX 86400
#define TIME_MAX   (4102444800ll * NSEC_PER_SEC) /* the year 2100 */

struct fields {
	const json_t *o;
	const char *wrong; /* key of the first that is not as it must be */
};

static const char *text(struct fields *f, const char *key)
{
	const json_t *v = json_object_get(f->o, key);

	if (v && !json_is_string(v))
		f->wrong = key;
	return json_is_string(v) ? json_string_value(v) : "";
}

static uint64_t number(struct fields *f, const char *key, uint64_t most)
{
	const json_t *v = json_object_get(f->o, key);
	json_int_t n = json_is_integer(v) ? json_integer_value(v) : 0;

	if ((v && !json_is_integer(v)) || n < 0 || (uint64_t)n > most) {
		f->wrong = key;
		return 0;
	}
	return (uint64_t)n;
}

static bool flag(struct fields *f, const char *key)
{
	const json_t *v = json_object_get(f->o, key);

	if (v && !json_is_boolean(v))
		f->wrong = key;
	return json_is_true(v);
}

static void read_run(struct fields *f, struct line *l)
{
	l->from_ns = (int64_t)number(f, "from_ns", TIME_MAX);
	l->to_ns = (int64_t)number(f, "to_ns", TIME_MAX);
	l->bucket_s = (uint32_t)number(f, "bucket_s", BUCKET_MAX);
	l->period_ns = number(f, "period_ns", INT64_MAX);
	if (!l->bucket_s)
		f->wrong = "bucket_s";
	else if (l->to_ns <= l->from_ns)
		f->wrong = "to_ns";
}

static void read_frame(struct fields *f, struct line *l)
{
	l->module = text(f, "module");
	l->path = text(f, "path");
	l->build_id = text(f, "build_id");
	l->file = text(f, "file");
	l->line = (uint32_t)number(f, "line", UINT32_MAX);
	l->offset = number(f, "offset", INT64_MAX);
	l->kernel = flag(f, "kernel");
	l->jit = flag(f, "jit");
	l->inlined = flag(f, "inlined");
	l->unnamed = flag(f, "unnamed");
}

static void read_process(struct fields *f, struct line *l)
{
	l->pid = (uint32_t)number(f, "pid", UINT32_MAX);
	l->ppid = (uint32_t)number(f, "ppid", UINT32_MAX);
	l->uid = (uint32_t)number(f, "uid", UINT32_MAX);
	l->start_ns = (int64_t)number(f, "start_ns", TIME_MAX);
	l->exe = text(f, "exe");
	l->args = text(f, "args");
	l->unit = text(f, "unit");
	l->container = text(f, "container");
	l->container_id = text(f, "container_id");
	l->image = text(f, "image");
}

static uint64_t element(struct fields *f, const json_t *list, size_t i, uint64_t most)
{
	const json_t *v = json_array_get(list, i);

	if (!json_is_integer(v) || json_integer_value(v) < 0 ||
	    (uint64_t)json_integer_value(v) > most) {
		f->wrong = "times";
		return 0;
	}
	return (uint64_t)json_integer_value(v);
}

static void read_times(struct fields *f, struct line *l)
{
	const json_t *list = json_object_get(f->o, "times");
	size_t n = json_array_size(list) / 3;

	if (!json_is_array(list) || json_array_size(list) != 3 * n) {
		f->wrong = "times";
		return;
	}
	l->times = mem_array(n + 1, sizeof(*l->times));
	for (; l->n_times < n && !f->wrong; l->n_times++)
		l->times[l->n_times] = (struct line_time){
			.at_ns = (int64_t)element(f, list, 3 * l->n_times, TIME_MAX),
			.n = element(f, list, 3 * l->n_times + 1, INT64_MAX),
			.value = element(f, list, 3 * l->n_times + 2, INT64_MAX)};
}

static void read_add(struct fields *f, struct line *l)
{
	const json_t *stack = json_object_get(f->o, "stack");
	const struct store_kind_info *kind = store_kind_named(l->name);

	l->kind = kind ? kind->kind : 0;
	l->process = (uint32_t)number(f, "process", UINT32_MAX);
	l->thread = text(f, "thread");
	l->labels = text(f, "labels");
	l->tid = (uint32_t)number(f, "tid", UINT32_MAX);
	l->label = (uint32_t)number(f, "label", UINT32_MAX);
	if (!kind)
		f->wrong = "add";
	if (stack && (!json_is_array(stack) || json_array_size(stack) > LINE_STACK_MAX))
		f->wrong = "stack";
	if (!f->wrong)
		l->stack = mem_array(json_array_size(stack) + 1, sizeof(*l->stack));
	for (size_t i = 0; !f->wrong && i < json_array_size(stack); i++) {
		const json_t *v = json_array_get(stack, i);

		if (!json_is_integer(v) || json_integer_value(v) < 0 ||
		    json_integer_value(v) > UINT32_MAX)
			f->wrong = "stack";
		else
			l->stack[l->n_stack++] = (uint32_t)json_integer_value(v);
	}
	if (!f->wrong)
		read_times(f, l);
}

int line_parse(const char *bytes, size_t len, struct line *out, struct err *e)
{
	static const struct {
		const char *key;
		void (*read)(struct fields *f, struct line *l);
	} kinds[] = {[LINE_RUN] = {"run", read_run},
		     [LINE_FRAME] = {"frame", read_frame},
		     [LINE_PROCESS] = {"process", read_process},
		     [LINE_ADD] = {"add", read_add}};
	struct fields f = {0};
	json_error_t why;
	int what = LINE_ADD;

	memset(out, 0, sizeof(*out));
	if (len > LINE_MAX_BYTES)
		return err_set(e, -EBADMSG, EXIT_RUNTIME, "a line is longer than %u bytes",
			       LINE_MAX_BYTES);
	out->json = json_loadb(bytes, len, 0, &why);
	if (!json_is_object(out->json))
		return err_set(e, -EBADMSG, EXIT_RUNTIME, "a line is not a JSON object: %.100s",
			       out->json ? "another value" : why.text);
	f.o = out->json;
	/* "add" has a process too, a number */
	while (what >= 0 && !json_is_string(json_object_get(f.o, kinds[what].key)))
		what--;
	if (what < 0)
		return err_set(e, -EBADMSG, EXIT_RUNTIME,
			       "unknown record type (expected run, frame, process or add)");
	out->what = (enum line_what)what;
	out->name = text(&f, kinds[what].key);
	kinds[what].read(&f, out);
	if (f.wrong)
		return err_set(e, -EBADMSG, EXIT_RUNTIME, "a line of %s has an invalid '%s'",
			       kinds[what].key, f.wrong);
	return 0;
}

void line_release(struct line *l)
{
	json_decref(l->json);
	free(l->stack);
	free(l->times);
	l->stack = NULL;
	l->times = NULL;
	l->json = NULL;
}
