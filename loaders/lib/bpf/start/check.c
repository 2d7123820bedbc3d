/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/start/check.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>

#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

static const char *const state_names[] = {
	[CHECK_OK] = "ok", [CHECK_WARN] = "warn", [CHECK_FAIL] = "fail", [CHECK_OFF] = "off"};

void check_release(struct check *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->items[i].name);
		free(c->items[i].text);
		free(c->items[i].fix);
	}
	free(c->items);
	*c = (struct check){0};
}

void check_add(struct check *c, const char *name, enum check_state state, const char *fix,
	       const char *fmt, ...)
{
	struct strbuf text = STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	mem_grow(c->items, c->n, c->cap);
	c->items[c->n++] = (struct check_item){.name = mem_strdup(name),
					       .text = strbuf_take(&text),
					       .fix = mem_strdup(fix ? fix : ""),
					       .state = state};
	if (state == CHECK_FAIL && c->exit == EXIT_OK)
		c->exit = EXIT_RUNTIME;
}

void check_add_err(struct check *c, const char *name, const struct err *e)
{
	if (c->exit == EXIT_OK)
		c->exit = e->exit ? (enum sonde_exit)e->exit : EXIT_RUNTIME;
	check_add(c, name, CHECK_FAIL, e->fix, "%s", e->what);
}

void check_print(const struct check *c, FILE *out)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct check_item *it = &c->items[i];

		fprintf(out, " %-5s %-18s %s\n", state_names[it->state], it->name, it->text);
		if (*it->fix)
			fprintf(out, "         fix: %s\n", it->fix);
	}
}

void check_print_json(const struct check *c, const char *family, FILE *out)
{
	json_t *items = json_array();
	json_t *root;

	for (size_t i = 0; i < c->n; i++) {
		const struct check_item *it = &c->items[i];
		json_t *fix = *it->fix ? json_string(it->fix) : json_null();

		json_array_append_new(items, json_pack("{s:s, s:s, s:s, s:o}", "name", it->name,
						       "state", state_names[it->state], "text",
						       it->text, "fix", fix));
	}
	root = json_pack("{s:s, s:s, s:b, s:b, s:o}", "schema", "sonde.check/1", "family", family,
			 "ok", c->exit == EXIT_OK, "absent", c->absent, "items", items);
	json_dumpf(root, out, JSON_INDENT(1));
	fputc('\n', out);
	json_decref(root);
}
