/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/mcp/mcptools.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cli/suggest.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define ROWS_MOST 200
#define TEXT_MOST 65536 /* bytes of an argument: half of what a word of a command line may have */

static const char *const NO_SOCKETS[] = {"segs_out",   "segs_in", "rtt_sum_us", "rtt_n",
					 "connect_us", "life_us", "attempts",   NULL};
static const char *const NO_PARTS[] = {"before_from",   "before_to",      "first_byte", "queue",
				       "request_bytes", "response_bytes", "pid",        NULL};
static const char *const NO_ENDED[] = {
	"ended", "cpu_charged_ns", "container_id", "top_pid",     "parent_comm",
	"uid",   "cpu_used_ns",    "mem_bytes",    "ended_total", NULL};
static const char *const NO_COSTS[] = {
	"self_private_bytes", "self_map_bytes", "self_edges_cpu_ns", "period_ns",      "options",
	"cut_short",          "user_samples",   "complete_share",    "bucket_seconds", NULL};
static const char *const NO_UNREAD[] = {"unread_tls", "queue",         "running",          "since",
					"time",       "running_total", "unread_tls_total", NULL};
static const char *const NO_TESTS[] = {"amount",
				       "amount_before",
				       "amount_after",
				       "query_before",
				       "query_after",
				       "value",
				       "seconds",
				       "detectable",
				       "p",
				       "q",
				       "tested",
				       "difference",
				       "alpha",
				       "test",
				       "slices",
				       "slice_s",
				       "change",
				       "opened",
				       "open_now",
				       "tx_bytes",
				       "rx_bytes",
				       "rtt_us",
				       "attempts",
				       "refused",
				       "timed_out",
				       "unreachable",
				       "given_up",
				       "failed",
				       "closed",
				       "reset_in",
				       "reset_out",
				       "broken",
				       "segs_out",
				       "segs_in",
				       "retrans",
				       "lost",
				       "rtt_n",
				       "rtt_sum_us",
				       "connect_us",
				       "life_us",
				       "path",
				       NULL};
/* The whole id of a container, whose name the row has too. */
static const char *const NO_IDS[] = {"which", NULL};
static const char *const NO_CURVE[] = {"memory", "cgroup", NULL};
static const char *const NO_CURVES[] = {"by_column",
					"columns",
					"cpu_by_column_ns",
					"by_column_ns",
					"recorded_ns",
					"top_cpu_ns",
					"deviation_cores",
					"excess_core_seconds",
					"allocated_by_column_bytes",
					"inuse_by_column_bytes",
					NULL};
static const char *const NO_CHECKS[] = {"evidence", "for_minutes", NULL};

/* clang-format off */
#define STACKS(kind) {"functions", "stacks", {"--type", kind}, "rwn", 12, {0}}

const struct mcp_tool MCP_TOOLS[] = {
	{"overview", "What this host is doing",
	 "Begin here. Load, memory and disks, the containers and commands that matter and how they changed, which health checks fail, the slowest and the failing operations, requests that hang, the busiest processes, and what is recorded and was lost; default: the newest 15 minutes.",
	 "ran", "explain for what changed, timeline for when; then containers, processes, requests or cpu_stacks with what=NAME",
	 {{NULL, {{"host", "overview", {0}, "rn", 10, {.drop = NO_PARTS}},
		  {"processes", "ps", {0}, "rn", 5, {.drop = NO_ENDED}},
		  {"recordings", "status", {0}, "", 6, {.drop = NO_COSTS}}}}}},
	{"investigate", "What happened at a time",
	 "One page of facts about a time or a range: what changed compared with the time before, events, failing checks, hottest functions, waits and requests. "
	 "For 'why was it slow at 03:10': at=03:10.",
	 "rawc", "follow the service or function that explain names: requests, waits or cpu_stacks with what=NAME",
	 {{NULL, {{"changes", "explain", {0}, "rw", 6, {.drop = NO_TESTS}},
		  {"events", "events", {0}, "rw", 8, {.drop = NO_IDS}},
		  {"checks", "check", {0}, "a", 6, {.drop = NO_CHECKS, .failing = true}},
		  {"functions", "stacks", {0}, "rw", 6, {0}},
		  {"waits", "waits", {"--by", "command"}, "rw", 6, {0}},
		  {"requests", "requests", {0}, "rw", 6, {.drop = NO_UNREAD}}}}}},
	{"timeline", "Spikes over time", "When was there a spike, who caused it, and what happened then. of: cpu (default), mem, io, net, pressure, disk, requests, errors, latency.",
	 "rawcno", "investigate with from and to of a spike",
	 {{NULL, {{"spikes", "timeline", {0}, "rwno", 8, {.drop = NO_CURVES}}}}}},
	{"explain", "What changed", "What differs between the asked range and the time before it, most important first, with amounts. before: how much time before to compare with, such as 1h.",
	 "rawcnb", "cpu_stacks, waits or requests with what=NAME of a statement",
	 {{NULL, {{"changes", "explain", {0}, "rwnb", 8, {.drop = NO_TESTS}}}}}},
	{"events", "Events", "Containers that start, stop and restart, kills, limits that were reached, full disks, clock changes. view=oom: out-of-memory kills, with who held the memory.",
	 "rawcnkv", "investigate with at=TIME of an event",
	 {{"events", {{"events", "events", {0}, "rwnk", 20, {.drop = NO_IDS}}}},
	  {"oom", {{"kills", "oom", {0}, "rwn", 3, {.drop = NO_CURVE}}}}}},
	{"containers", "Containers", "Each container of the range: CPU, memory, disk and network use, restarts, hottest function. sort: cpu, mem, io, net, restarts, oom, throttled.",
	 "rawcns", "processes or requests with container=NAME",
	 {{NULL, {{"containers", "containers", {0}, "rwns", 15, {.drop = NO_ENDED}}}}}},
	{"processes", "Processes", "Each process of the range: CPU, memory, disk and network use, command line. sort: cpu, mem, io, net, start.",
	 "rawcns", "cpu_stacks with what=PID or NAME",
	 {{NULL, {{"processes", "ps", {0}, "rwns", 12, {.drop = NO_ENDED}}}}}},
	{"cpu_stacks", "Where the time goes, by function and line",
	 "The hottest functions. view=offcpu: by time waited; callers or callees: paths to or from a function (function=NAME); lines: source lines of a function (function=NAME).",
	 "rawcnfv", "view=callers with function=NAME, view=lines with function=NAME",
	 {{"functions", {STACKS("cpu")}},
	  {"offcpu", {STACKS("offcpu")}},
	  {"callers", {{"callers", "stacks", {0}, "rwnC", 12, {0}}}},
	  {"callees", {{"callees", "stacks", {0}, "rwnE", 12, {0}}}},
	  {"lines", {{"lines", "lines", {0}, "rnf", 3, {0}}}}}},
	{"waits", "What threads waited for", "What threads waited for, how often and how long. view=wakers: who ended the waits; neighbours: who had the CPU meanwhile.",
	 "rawcnv", "cpu_stacks with view=offcpu and what=NAME",
	 {{"waits", {{"waits", "waits", {"--by", "command"}, "rwn", 12, {0}}}},
	  {"wakers", {{"wakers", "wakers", {0}, "rwn", 12, {0}}}},
	  {"neighbours", {{"neighbours", "neighbours", {0}, "rwn", 12, {0}}}}}},
	{"requests", "Requests between programs", "HTTP, SQL, Redis, gRPC, Kafka and others, by operation: how many, latency, errors. side: client as the caller saw it, server as the answerer did; the same requests may be in both. view=slowest: single requests; running: not answered yet; failed: operations with errors.",
	 "rawcnv", "trace for the requests that a slow one caused; waits with what=NAME",
	 {{"operations", {{"operations", "requests", {0}, "rwn", 12, {.drop = NO_UNREAD}}}},
	  {"slowest", {{"requests", "requests", {"--slowest"}, "rwn", 12, {.drop = NO_UNREAD}}}},
	  {"running", {{"requests", "requests", {"--running"}, "rwn", 12, {.drop = NO_UNREAD}}}},
	  {"failed", {{"operations", "requests", {"--failed"}, "rwn", 12, {.drop = NO_UNREAD}}}}}},
	{"trace", "One request and what it caused", "The slowest request and the requests that it caused, as a tree; or the one with id=ID.",
	 "racni", "requests with what=NAME of the slow part",
	 {{NULL, {{"traces", "trace", {0}, "rcni", 2, {0}, .each = 20}}}}},
	{"network", "Who talks to whom", "Connections between containers, commands and addresses: bytes, round-trip times, retransmissions. view=failed: those that failed; listen: listening sockets; map: by service.",
	 "rawcnv", "requests with what=NAME",
	 {{"connections", {{"connections", "net", {0}, "rwn", 12, {.drop = NO_SOCKETS}}}},
	  {"failed", {{"connections", "net", {"--failed"}, "rwn", 12, {.drop = NO_SOCKETS}}}},
	  {"listen", {{"sockets", "net", {"--listen"}, "rwn", 20, {.drop = NO_SOCKETS}}}},
	  {"map", {{"map", "map", {0}, "rwn", 20, {.drop = NO_SOCKETS}}}}}},
	{"memory", "Who holds memory", "Memory by container and process, and out-of-memory kills. view=heap: by line of any program; growth: the same by growth; pages: all pages of the host by use, if they were recorded.",
	 "rawcnv", "events with view=oom; processes with sort=mem",
	 {{"use", {{"containers", "containers", {"--sort", "mem"}, "rwn", 8, {.drop = NO_ENDED}},
		   {"processes", "ps", {"--sort", "mem"}, "rwn", 8, {.drop = NO_ENDED}},
		   {"kills", "oom", {0}, "rw", 2, {.drop = NO_CURVE}}}},
	  {"heap", {{"functions", "heap", {0}, "rwn", 12, {0}}}},
	  {"growth", {{"functions", "heap", {"--growth"}, "rwn", 12, {0}}}},
	  {"pages", {{"functions", "heap", {"--pages"}, "rwn", 12, {0}}}}}},
	{"disk", "Who uses and fills the disks", "Reads and writes by container and process, disks that fill up, and checks of disks.",
	 "rawcn", "sql with query=@fills or @disks",
	 {{NULL, {{"containers", "containers", {"--sort", "io"}, "rwn", 8, {.drop = NO_ENDED}},
		  {"processes", "ps", {"--sort", "io"}, "rwn", 8, {.drop = NO_ENDED}},
		  {"filling", "events", {"--kind", "fills"}, "r", 8, {.drop = NO_IDS}},
		  {"full", "sql", {"@full"}, "", 10, {.raw = true}}}}}},
	{"diff", "Compare two times", "Functions that use more or less time than in the same range earlier. baseline: how much earlier, such as 1h or 1d.",
	 "rawcnB", "cpu_stacks with view=callers and function=NAME",
	 {{NULL, {{"functions", "diff", {0}, "rwnB", 12, {.drop = NO_TESTS}}}}}},
	{"sql", "Ask in SQL", "One SELECT over the views of the store (SQLite; query=.views lists them, PRAGMA table_info(VIEW) columns; resource sonde://schema has both), or a saved query: @NAME (sonde://queries). Range and filters narrow the views win_NAME and saved queries.",
	 "racnq", "",
	 {{NULL, {{"rows", "sql", {0}, "rcnq", 50, {.raw = true}}}}}},
	{0},
};

struct param {
	char letter;
	const char *name, *about;
	bool number, needed;
};

static const struct param PARAMS[] = {
	{'r', "last", "the newest 15m, 2h or 1d", false, false},
	{'r', "from", "begin: 2026-11-20T03:10:00+01:00, '03:10' (the most recent one, this host's time), -2h", false, false},
	{'r', "to", "end, as from; default now", false, false},
	{'r', "at", "half a minute before and after this time, as from", false, false},
	{'w', "what", "a container, unit or command (or a part of its name), or a pid", false, false},
	{'c', "container", "only this container", false, false},
	{'c', "command", "only this command", false, false},
	{'n', "limit", "how many rows at most", true, false},
	{'o', "of", "what to look at: cpu, mem, io, net, pressure, disk, gpu, requests, errors, latency", false, false},
	{'b', "before", "compare with this much time before: 1h", false, false},
	{'B', "baseline", "compare with the same range this much earlier: 1h, 1d", false, false},
	{'k', "kind", "only this kind: started, stopped, restarted, 'oom kill', full, throttled", false, false},
	{'s', "sort", "sort by this", false, false},
	{'f', "function", "name of a function, or a regular expression", false, false},
	{'i', "id", "id of a trace or span", false, false},
	{'q', "query", "a SELECT, or @NAME", false, true},
	{'v', "view", "which of the tool's views", false, false},
};
/* clang-format on */
#define N_PARAMS (sizeof(PARAMS) / sizeof(PARAMS[0]))

const struct mcp_tool *mcp_tool_find(const char *name)
{
	for (const struct mcp_tool *t = MCP_TOOLS; t->name; t++)
		if (!strcmp(t->name, name))
			return t;
	return NULL;
}

static bool has(const char *letters, char letter)
{
	return strchr(letters, letter) != NULL;
}

static json_t *views_of(const struct mcp_tool *t)
{
	json_t *out = json_array();

	for (size_t i = 0; i < sizeof(t->views) / sizeof(t->views[0]) && t->views[i].name; i++)
		json_array_append_new(out, json_string(t->views[i].name));
	return out;
}

static json_t *schema_of(const struct mcp_tool *t)
{
	json_t *properties = json_object(), *needed = json_array(), *out;

	for (size_t i = 0; i < N_PARAMS; i++) {
		const struct param *p = &PARAMS[i];
		json_t *type;

		if (!has(t->params, p->letter))
			continue;
		type = json_pack("{s:s, s:s}", "type", p->number ? "integer" : "string",
				 "description", p->about);
		if (p->letter == 'v')
			json_object_set_new(type, "enum", views_of(t));
		if (p->number) {
			json_object_set_new(type, "minimum", json_integer(1));
			json_object_set_new(type, "maximum", json_integer(ROWS_MOST));
		}
		json_object_set_new(properties, p->name, type);
		if (p->needed)
			json_array_append_new(needed, json_string(p->name));
	}
	out = json_pack("{s:s, s:o, s:b}", "type", "object", "properties", properties,
			"additionalProperties", 0);
	if (json_array_size(needed))
		json_object_set(out, "required", needed);
	json_decref(needed);
	return out;
}

json_t *mcp_tools_list(void)
{
	json_t *list = json_array();

	for (const struct mcp_tool *t = MCP_TOOLS; t->name; t++)
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:o, s:{s:s}, s:{s:b, s:b}}",
						"name", t->name, "title", t->title, "description",
						t->about, "inputSchema", schema_of(t),
						"outputSchema", "type", "object", "annotations",
						"readOnlyHint", 1, "openWorldHint", 0));
	return list;
}

static const struct param *param_of(const struct mcp_tool *t, const char *name)
{
	for (size_t i = 0; i < N_PARAMS; i++)
		if (has(t->params, PARAMS[i].letter) && !strcmp(PARAMS[i].name, name))
			return &PARAMS[i];
	return NULL;
}

static int unknown_param(const struct mcp_tool *t, const char *name, struct err *e)
{
	struct strbuf known = STRBUF_INIT;
	struct suggest near;

	suggest_init(&near, name);
	for (size_t i = 0; i < N_PARAMS; i++)
		if (has(t->params, PARAMS[i].letter)) {
			suggest_add(&near, PARAMS[i].name);
			strbuf_addf(&known, "%s%s", known.len ? ", " : "", PARAMS[i].name);
		}
	err_set(e, -EINVAL, EXIT_USAGE, "%s has no argument '%.60s'%s%s; it takes %s", t->name,
		name, near.n ? "; did you mean " : "", near.n ? near.best[0] : "",
		strbuf_str(&known));
	strbuf_release(&known);
	return -EINVAL;
}

/* A whole number, which some clients send as a text; 0: not a number. */
static json_int_t rows_asked(const json_t *v)
{
	const double x =
		json_is_string(v) ? strtod(json_string_value(v), NULL) : json_number_value(v);

	return x >= 1 && x <= 1e9 && x == (double)(json_int_t)x ? (json_int_t)x : 0;
}

static int check_value(const struct param *p, const json_t *v, struct err *e)
{
	const char *text = json_string_value(v);

	if (p->number && rows_asked(v) >= 1)
		return 0;
	if (p->number)
		return err_set(e, -EINVAL, EXIT_USAGE, "%s is a whole number from 1 to %d", p->name,
			       ROWS_MOST);
	if (!text || strlen(text) != json_string_length(v))
		return err_set(e, -EINVAL, EXIT_USAGE, "%s is a text without NUL", p->name);
	if (!*text)
		return err_set(e, -EINVAL, EXIT_USAGE, "%s is empty: leave it out, or say what",
			       p->name);
	if (strlen(text) > TEXT_MOST)
		return err_set(e, -EINVAL, EXIT_USAGE, "%s is longer than %d bytes", p->name,
			       TEXT_MOST);
	if (p->letter == 'q' && strcmp(text, ".views") != 0 && (*text == '.' || !strcmp(text, "@")))
		return err_set(
			e, -EINVAL, EXIT_USAGE,
			"query is one SELECT or @NAME; .views lists the views, PRAGMA table_info(VIEW) the columns of one, the resource sonde://queries the names");
	if (*text == '-' && (p->letter == 'f' || !strcmp(p->name, "what")))
		return err_set(e, -EINVAL, EXIT_USAGE, "%s may not begin with '-'", p->name);
	return 0;
}

int mcp_view_of(const struct mcp_tool *t, const json_t *args, const struct mcp_view **view,
		struct err *e)
{
	const char *wanted = json_string_value(json_object_get(args, "view")), *key;
	json_t *v;

	json_object_foreach ((json_t *)(uintptr_t)args, key, v) {
		const struct param *p = param_of(t, key);
		int rc = p ? check_value(p, v, e) : unknown_param(t, key, e);

		if (rc)
			return rc;
	}
	for (size_t i = 0; i < N_PARAMS; i++)
		if (PARAMS[i].needed && has(t->params, PARAMS[i].letter) &&
		    !json_object_get(args, PARAMS[i].name))
			return err_set(e, -EINVAL, EXIT_USAGE, "%s needs the argument %s", t->name,
				       PARAMS[i].name);
	*view = &t->views[0];
	for (size_t i = 0; wanted && i < sizeof(t->views) / sizeof(t->views[0]); i++) {
		if (!t->views[i].steps[0].name)
			break;
		*view = &t->views[i];
		if (!strcmp(t->views[i].name, wanted))
			break;
	}
	if (wanted && strcmp((*view)->name, wanted) != 0)
		return err_set(e, -EINVAL, EXIT_USAGE, "%s has no view '%.60s'", t->name, wanted);
	if (has((*view)->steps[0].takes, 'f') || has((*view)->steps[0].takes, 'E') ||
	    has((*view)->steps[0].takes, 'C'))
		return json_object_get(args, "function") ?
			       0 :
			       err_set(e, -EINVAL, EXIT_USAGE,
				       "view=%s needs the argument function", (*view)->name);
	return 0;
}

static void word(struct mcp_words *w, const char *text)
{
	if (w->n + 1 < MCP_WORDS)
		w->argv[w->n++] = text;
}

static void made(struct mcp_words *w, char *text)
{
	if (w->n + 1 >= MCP_WORDS) {
		free(text);
		return;
	}
	w->made[w->n_made++] = text;
	w->argv[w->n++] = text;
}

static void option(struct mcp_words *w, const char *name, const json_t *args, const char *key)
{
	const char *value = json_string_value(json_object_get(args, key));
	struct strbuf text = STRBUF_INIT;

	if (!value)
		return;
	strbuf_addf(&text, "--%s=%s", name, value);
	made(w, strbuf_take(&text));
}

static void number_of_rows(const struct mcp_step *step, const json_t *args, struct mcp_words *w)
{
	const json_int_t asked = rows_asked(json_object_get(args, "limit"));
	char text[24];

	w->each = step->each ? step->each : 1;
	w->rows = asked > ROWS_MOST ? ROWS_MOST : asked > 0 ? (size_t)asked : step->most;
	if (!has(step->takes, 'n') && asked > (json_int_t)step->most)
		w->rows = step->most;
	if (!has(step->takes, 'n'))
		return;
	snprintf(text, sizeof(text), "%zu", w->rows);
	word(w, "-n");
	made(w, mem_strdup(text));
}

static void range_of(const struct mcp_step *step, const json_t *args, struct mcp_words *w)
{
	if (has(step->takes, 'r')) {
		option(w, "last", args, "last");
		option(w, "from", args, "from");
		option(w, "to", args, "to");
		option(w, "at", args, "at");
	} else if (has(step->takes, 'a')) {
		option(w, "at", args, json_object_get(args, "at") ? "at" : "to");
	}
}

void mcp_words(const struct mcp_step *step, const json_t *args, const char *sonde,
	       const char *store, struct mcp_words *w)
{
	const char *what = json_string_value(json_object_get(args, "what")),
		   *function = json_string_value(json_object_get(args, "function")),
		   *query = json_string_value(json_object_get(args, "query"));

	*w = (struct mcp_words){0};
	word(w, sonde);
	word(w, step->verb);
	for (size_t i = 0; i < 4 && step->args[i]; i++)
		word(w, step->args[i]);
	word(w, "--json");
	if (store) {
		word(w, "--store");
		word(w, store);
	}
	range_of(step, args, w);
	number_of_rows(step, args, w);
	if (has(step->takes, 'w') || has(step->takes, 'c')) {
		option(w, "container", args, "container");
		option(w, "comm", args, "command");
	}
	if (has(step->takes, 'o'))
		option(w, "of", args, "of");
	if (has(step->takes, 'b'))
		option(w, "before", args, "before");
	if (has(step->takes, 'B'))
		option(w, "baseline", args, "baseline");
	if (has(step->takes, 'k'))
		option(w, "kind", args, "kind");
	if (has(step->takes, 's'))
		option(w, "sort", args, "sort");
	if (has(step->takes, 'i'))
		option(w, "id", args, "id");
	if (has(step->takes, 'C'))
		option(w, "callers", args, "function");
	if (has(step->takes, 'E'))
		option(w, "callees", args, "function");
	if (has(step->takes, 'f') && function)
		word(w, function);
	if (has(step->takes, 'w') && what && !has(step->takes, 'q'))
		word(w, what);
	if (has(step->takes, 'q') && query) {
		word(w, "--");
		word(w, query);
	}
}

void mcp_words_release(struct mcp_words *w)
{
	for (size_t i = 0; i < w->n_made; i++)
		free(w->made[i]);
	*w = (struct mcp_words){0};
}
