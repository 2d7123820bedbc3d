/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/mcp/resources.h"

#include <ctype.h>
#include <string.h>

#include "schema/base/strbuf.h"
#include "tools/mcp/ask.h"

#define TEXT_BYTES 24000

static const struct resource {
	const char *uri, *name, *about, *words[3];
} RESOURCES[] = {
	{"sonde://schema",
	 "views and their columns",
	 "what the tool sql may ask: each view with its columns",
	 {"sql", ".views", "--json"}},
	{"sonde://queries",
	 "saved queries",
	 "queries that the tool sql knows by name",
	 {"sql", "@"}},
};
#define N_RESOURCES (sizeof(RESOURCES) / sizeof(RESOURCES[0]))

json_t *resources_list(void)
{
	json_t *list = json_array();

	for (size_t i = 0; i < N_RESOURCES; i++)
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:s}", "uri", RESOURCES[i].uri,
						"name", RESOURCES[i].name, "description",
						RESOURCES[i].about, "mimeType", "text/plain"));
	return json_pack("{s:o}", "resources", list);
}

static const struct resource *find(const char *uri)
{
	for (size_t i = 0; i < N_RESOURCES; i++)
		if (!strcmp(RESOURCES[i].uri, uri))
			return &RESOURCES[i];
	return NULL;
}

bool resources_know(const char *uri)
{
	return find(uri) != NULL;
}

static bool is_name(const char *name)
{
	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '_')
			return false;
	return *name;
}

/* Statements that print each view's name, then its columns. */
static void columns_query(const struct asked *views, struct strbuf *query)
{
	json_t *answer = json_loadb(views->text, views->len, 0, NULL), *row;
	size_t i;

	json_array_foreach (json_object_get(answer, "rows"), i, row) {
		const char *name = json_string_value(json_object_get(row, "view"));

		if (name && is_name(name))
			strbuf_addf(query, "SELECT '%s' AS view; PRAGMA table_info(%s);\n", name,
				    name);
	}
	json_decref(answer);
}

/* "view: column, column" by line. */
static void columns_text(const struct asked *columns, struct strbuf *out)
{
	for (const char *line = columns->text; *line;) {
		const size_t len = strcspn(line, "\n");
		json_t *row = json_loadb(line, len, 0, NULL);
		const char *view = json_string_value(json_object_get(row, "view")),
			   *name = json_string_value(json_object_get(row, "name"));

		if (view)
			strbuf_addf(out, "%s%s:", out->len ? "\n" : "", view);
		else if (name)
			strbuf_addf(out, " %s", name);
		json_decref(row);
		line += len + (line[len] == '\n');
	}
}

static void run(const char *const *words, const struct mcp_options *o, int cancel_fd,
		struct asked *a)
{
	const char *argv[8] = {o->sonde};
	size_t n = 1;

	for (size_t i = 0; i < 3 && words[i]; i++)
		argv[n++] = words[i];
	if (o->store) {
		argv[n++] = "--store";
		argv[n++] = o->store;
	}
	ask(argv, o, cancel_fd, a);
}

/* With the columns of all views, which a second question gives. */
static void schema_text(struct asked *views, const struct mcp_options *o, int cancel_fd,
			struct strbuf *out)
{
	struct strbuf query = STRBUF_INIT;
	struct asked columns;

	columns_query(views, &query);
	run((const char *const[3]){"sql", strbuf_str(&query), "--ndjson"}, o, cancel_fd, &columns);
	strbuf_release(&query);
	columns_text(&columns, out);
	if (columns.how != ASKED_ANSWER)
		views->how = columns.how;
	asked_release(&columns);
}

json_t *resources_read(const char *uri, const struct mcp_options *o, int cancel_fd)
{
	const struct resource *r = find(uri);
	struct strbuf text = STRBUF_INIT;
	json_t *value;
	struct asked a;

	run(r->words, o, cancel_fd, &a);
	if (a.how != ASKED_ANSWER)
		strbuf_addstr(&text, a.why ? a.why : "");
	else if (r == &RESOURCES[0])
		schema_text(&a, o, cancel_fd, &text);
	else
		strbuf_addlines(&text, a.text);
	value = json_stringn(strbuf_str(&text), text.len < TEXT_BYTES ? text.len : TEXT_BYTES);
	strbuf_release(&text);
	if (a.how == ASKED_CANCELLED) {
		json_decref(value);
		value = NULL;
	} else if (!value) {
		value = json_string("");
	}
	asked_release(&a);
	return value ? json_pack("{s:[{s:s, s:s, s:o}]}", "contents", "uri", uri, "mimeType",
				 "text/plain", "text", value) :
		       NULL;
}
