/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/waits/waitcells.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/units.h"
#include "tools/print/estimate.h"
#include "tools/print/json.h"
#include "tools/print/row.h"
#include "tools/print/term.h"
#include "tools/print/wrap.h"

#define ID_DIGITS 64 /* of a container's id */
#define ID_SHOWN  12

void waitcell_duration(struct table *t, uint64_t ns, bool known)
{
	char buf[24];

	table_cell(t, known ? units_ns((int64_t)ns, buf, sizeof(buf)) : "-");
}

void waitcell_addname(struct strbuf *out, const char *name)
{
	while (*name) {
		size_t hex = strspn(name, "0123456789abcdef"), n = hex ? hex : 1;

		strbuf_add(out, name, hex == ID_DIGITS ? ID_SHOWN : n);
		name += n;
	}
}

void waitcell_name(struct table *t, const char *name)
{
	struct strbuf shown cleanup_strbuf = STRBUF_INIT;

	waitcell_addname(&shown, name && *name ? name : "-");
	table_cell(t, strbuf_str(&shown));
}

const char *waitcell_pid_text(uint32_t pid, size_t n_processes, char *buf, size_t size)
{
	char count[UNITS_MAX];

	if (pid)
		snprintf(buf, size, "%u", pid);
	else if (n_processes > 1)
		snprintf(buf, size, "%s procs", units_count(n_processes, count, sizeof(count)));
	else
		snprintf(buf, size, "-");
	return buf;
}

void waitcell_pid(struct table *t, uint32_t pid, size_t n_processes)
{
	char buf[UNITS_MAX + 8];

	table_cell(t, waitcell_pid_text(pid, n_processes, buf, sizeof(buf)));
}

void waitcell_percent(struct table *t, uint64_t part, uint64_t whole)
{
	char buf[UNITS_MAX];

	table_cell(t, units_share((double)part, (double)whole, buf, sizeof(buf)));
}

int waitcell_by(const char *word, enum waitsum_by *by, struct err *e)
{
	static const char *const names[] = {[WAITSUM_BY_PROCESS] = "process",
					    [WAITSUM_BY_THREAD] = "thread",
					    [WAITSUM_BY_COMMAND] = "command",
					    [WAITSUM_BY_CONTAINER] = "container"};

	*by = WAITSUM_BY_PROCESS;
	for (size_t i = 0; word && i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], word)) {
			*by = (enum waitsum_by)i;
			return 0;
		}
	if (!word)
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE, "--by '%.40s': it is command, process, thread or container",
		word);
	err_fix(e, "--by command");
	return -EINVAL;
}

void waitcell_print(struct table *t, const struct strbuf *brief, const struct verb_call *call)
{
	const char *container;

	table_omit_empty(t);
	container = table_omit_equal(t, "CONTAINER");
	if (!call->quiet) {
		struct strbuf clean cleanup_strbuf = STRBUF_INIT;

		strbuf_addshown(&clean, strbuf_str(brief), strlen(strbuf_str(brief)));
		if (strbuf_str(&clean)[0])
			wrap_print(stdout, strbuf_str(&clean), 2);
		if (container)
			term_printf(stdout, "all of container %s\n", container);
	}
	table_print(t, stdout, call->wide ? 0 : term_width(stdout));
}

bool waitcell_is_timed(const struct waitsum_row *r)
{
	return r->timer_ns * 2 > r->total_ns;
}

static void row_reason(struct row *o, const struct waitsum_row *r)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	const bool purpose = r->purpose_ns * 2 > r->total_ns;

	strbuf_addf(&text, "%s%s%s%s%s%s", r->reason, waitcell_is_timed(r) ? ", timed" : "",
		    purpose ? ": " : "", purpose ? r->purpose : "", r->idle ? ", idle" : "",
		    r->partial ? ", not over" : "");
	row_cell(o, "WAITED FOR", TABLE_LEFT, strbuf_str(&text));
	row_word(o, NULL, TABLE_LEFT, "reason", r->reason);
	row_text(o, NULL, TABLE_LEFT, "purpose", r->purpose);
	row_ns(o, NULL, TABLE_LEFT, "purpose_ns", (int64_t)r->purpose_ns, r->purpose != NULL);
}

/* How often, and how long in total: "~" where a sum is divided in proportion to sampled stacks. */
static void row_sums(struct row *o, const struct waitsum_row *r)
{
	const char *about = r->exact ? "" : "~";
	char number[UNITS_MAX], error[ESTIMATE_MAX], text[UNITS_MAX + sizeof(error) + 2];

	snprintf(text, sizeof(text), "%s%llu", about, (unsigned long long)r->n);
	row_cell(o, "TIMES", TABLE_RIGHT, text);
	row_json(o, "count", json_integer((json_int_t)r->n));
	row_json(o, "count_error", json_integer((json_int_t)estimate_error(r->n_variance)));
	estimate_text(r->total_ns, r->total_variance, error, sizeof(error));
	snprintf(text, sizeof(text), "%s%s%s%s", about,
		 units_ns((int64_t)r->total_ns, number, sizeof(number)), *error ? " " : "", error);
	row_cell(o, "TOTAL", TABLE_RIGHT, text);
	row_json(o, "total_ns", json_integer((json_int_t)r->total_ns));
	row_json(o, "total_error_ns", json_integer((json_int_t)estimate_error(r->total_variance)));
}

static void row_object(struct row *o, const struct waitsum_row *r)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;

	if (r->object && r->by && !strcmp(r->reason, "lock"))
		strbuf_addf(&text, "%s, ended by %s %u", r->object, r->by, r->by_tid);
	else if (r->object && r->peer)
		strbuf_addf(&text, "%s (%s)", r->object, r->peer);
	else if (r->object)
		strbuf_addstr(&text, r->object);
	row_text(o, "MOST ON", TABLE_SPARE, NULL, strbuf_str(&text));
	row_text(o, NULL, TABLE_LEFT, "object", r->object);
	row_text(o, NULL, TABLE_LEFT, "peer", r->peer);
	row_text(o, NULL, TABLE_LEFT, "by_thread", r->by);
	row_number(o, NULL, TABLE_LEFT, "by_tid", r->by_tid, r->by != NULL);
}

/* In the table only of waits that are over. No quantile is above the longest wait, which is known
 * better than the bounds of a slot. */
static void row_quantile(struct row *o, const char *title, const char *key,
			 const struct waitsum_row *r, double q)
{
	const bool known = r->hist && (o->json || !r->partial);
	uint64_t ns = r->hist ? (uint64_t)hist_quantile(r->hist, q) : 0;

	if (r->max_ns && ns > r->max_ns)
		ns = r->max_ns;
	row_ns(o, title, TABLE_SPARE_RIGHT, key, (int64_t)ns, known);
}

void waitcell_row(struct row *o, const struct waitsum_row *r)
{
	struct strbuf container cleanup_strbuf = STRBUF_INIT;
	char pid[UNITS_MAX + 8];

	waitcell_addname(&container, r->container ? r->container : "");
	row_cell(o, "PID", TABLE_RIGHT,
		 waitcell_pid_text(r->pid ? r->pid : r->one_pid, r->n_processes, pid, sizeof(pid)));
	row_number(o, NULL, TABLE_RIGHT, "pid", r->pid, r->pid != 0);
	row_number(o, NULL, TABLE_RIGHT, "processes", (int64_t)r->n_processes, true);
	row_text(o, "NAME", TABLE_MIDDLE, NULL, r->thread ? r->thread : r->comm);
	row_text(o, NULL, TABLE_LEFT, "comm", r->comm);
	row_text(o, NULL, TABLE_LEFT, "thread", r->thread);
	row_text(o, "CONTAINER", TABLE_MIDDLE, NULL, strbuf_str(&container));
	row_text(o, NULL, TABLE_LEFT, "container", r->container);
	row_reason(o, r);
	row_json(o, "idle", json_boolean(r->idle));
	row_json(o, "timer_ns", json_integer((json_int_t)r->timer_ns));
	row_json(o, "background", json_boolean(r->background));
	row_json(o, "partial", json_boolean(r->partial));
	row_json(o, "exact", json_boolean(r->exact));
	row_sums(o, r);
	row_ns(o, "LONGEST", TABLE_RIGHT, "max_ns", (int64_t)r->max_ns, r->max_ns != 0);
	row_text(o, "MOST IN", TABLE_SPARE, "function", r->function);
	row_object(o, r);
	row_quantile(o, "P50", "p50_ns", r, 0.5);
	row_quantile(o, "P95", "p95_ns", r, 0.95);
	row_quantile(o, "P99", "p99_ns", r, 0.99);
	row_end(o);
}

json_t *waitcell_held(const struct waitheld *h)
{
	json_t *list = json_array();

	for (size_t i = 0; i < h->n; i++) {
		json_t *o = json_object();

		json_object_set_new(o, "cgroup", json_text(h->rows[i].cgroup));
		json_object_set_new(o, "container", json_text_or_null(h->rows[i].container));
		json_object_set_new(o, "periods", json_integer((json_int_t)h->rows[i].periods));
		json_object_set_new(o, "throttled", json_integer((json_int_t)h->rows[i].throttled));
		json_object_set_new(o, "throttled_ns",
				    json_integer((json_int_t)h->rows[i].throttled_ns));
		json_array_append_new(list, o);
	}
	return list;
}
