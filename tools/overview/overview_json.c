/* SPDX-License-Identifier: Apache-2.0 */
/* overview_json: the overview for machines. What is not known is null. */
#include "schema/base/strbuf.h"
#include "tools/overview/overview.h"
#include "tools/print/json.h"
#include "tools/requests/reqprint.h"
#include "tools/requests/runprint.h"

#define OPS 5

/* was: whether what it is of was recorded before. */
static void set_was(json_t *o, const char *key, const double v[2], bool known, bool was)
{
	json_object_set_new(
		o, key,
		json_pack("{s:o, s:o}", "now",
			  known && v[OVERVIEW_NOW] >= 0 ? json_real(v[OVERVIEW_NOW]) : json_null(),
			  "before",
			  known && was && v[OVERVIEW_BEFORE] >= 0 ? json_real(v[OVERVIEW_BEFORE]) :
								    json_null()));
}

static void set_pair(json_t *o, const char *key, const double v[2], bool known)
{
	set_was(o, key, v, known, true);
}

/* `has`: that it was read, in each window; `there`: that there was something to read; `was`: that
 * it was recorded before. */
static void set_read(json_t *o, const char *key, const double v[2], const bool has[2],
		     const bool there[2], bool was)
{
	const bool now = has[OVERVIEW_NOW],
		   before = was && (has[OVERVIEW_BEFORE] || (now && !there[OVERVIEW_BEFORE]));

	json_object_set_new(o, key,
			    json_pack("{s:o, s:o}", "now",
				      now ? json_real(v[OVERVIEW_NOW]) : json_null(), "before",
				      before ? json_real(v[OVERVIEW_BEFORE]) : json_null()));
}

static json_t *host_json(const struct overview_host *h)
{
	json_t *o = json_object();

	set_pair(o, "cores", h->cores, true);
	json_object_set_new(o, "cpus", h->cpus >= 0 ? json_real(h->cpus) : json_null());
	set_pair(o, "load1", h->load, true);
	set_pair(o, "waited_cpu", h->waited_cpu, true);
	set_pair(o, "waited_memory", h->waited_mem, true);
	set_pair(o, "waited_io", h->waited_io, true);
	set_pair(o, "memory_used", h->mem_used, true);
	json_object_set_new(o, "memory_total",
			    h->mem_total >= 0 ? json_real(h->mem_total) : json_null());
	set_pair(o, "swapped_pages", h->swapped, true);
	json_object_set_new(o, "busiest_disk", json_text_or_null(h->disk));
	set_pair(o, "disk_busy", h->disk_busy, true);
	set_pair(o, "fsync_us", h->fsync_us, true);
	set_pair(o, "fsyncs", h->fsyncs, true);
	set_pair(o, "disk_errors", h->disk_errors, true);
	return o;
}

static json_t *row_json(const struct overview *all, const struct overview_row *r)
{
	const bool *was = all->known[OVERVIEW_BEFORE], host = was[OVERVIEW_HOST];
	const double restarts[2] = {(double)r->restarts[0], (double)r->restarts[1]},
		     oom[2] = {(double)r->oom[0], (double)r->oom[1]};
	json_t *o = json_object();

	json_object_set_new(o, "name", json_text(r->name));
	json_object_set_new(o, "container", json_boolean(r->container));
	set_was(o, "cores", r->cpu, r->has_cpu, host || was[OVERVIEW_CPU]);
	set_read(o, "memory", r->mem, r->has_mem, r->alive, host);
	set_read(o, "disk_bytes_per_s", r->io, r->has_io, r->there, host);
	set_read(o, "net_bytes_per_s", r->net, r->has_net, r->there, host || was[OVERVIEW_NET]);
	set_was(o, "requests", r->requests, true, was[OVERVIEW_L7]);
	set_was(o, "failed", r->failed, true, was[OVERVIEW_L7]);
	set_was(o, "restarts", restarts, true, host || was[OVERVIEW_CPU]);
	set_was(o, "oom", oom, true, host || was[OVERVIEW_CPU]);
	return o;
}

static void checks_add(const struct check_results *c, enum check_state state, bool critical,
		       json_t *list)
{
	for (size_t i = 0; i < c->n; i++) {
		struct strbuf text cleanup_strbuf = STRBUF_INIT, next cleanup_strbuf = STRBUF_INIT;
		const struct check_result *r = &c->rows[i];

		if (r->state != state || r->check->critical != critical)
			continue;
		check_say(r, &text);
		check_next(r, &next);
		json_array_append_new(list, json_pack("{s:o, s:s, s:o, s:o, s:o}", "check",
						      json_text(r->check->name), "level",
						      r->check->critical ? "critical" : "warning",
						      "subject", json_text(r->subject), "text",
						      json_text(strbuf_str(&text)), "command",
						      json_text_or_null(strbuf_str(&next))));
	}
}

/* Critical ones first. */
static json_t *checks_json(const struct check_results *c, enum check_state state)
{
	json_t *list = json_array();

	checks_add(c, state, true, list);
	checks_add(c, state, false, list);
	return list;
}

static json_t *ops_json(const struct overview *o,
			size_t (*find)(const struct overview *o, struct overview_op *out,
				       size_t most))
{
	struct overview_op ops[OPS];
	const size_t n = find(o, ops, OPS);
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(
			list,
			json_pack("{s:o, s:o, s:b}", "now",
				  reqprint_row_json(&o->ops[OVERVIEW_NOW], ops[i].now), "before",
				  ops[i].before ? reqprint_row_json(&o->ops[OVERVIEW_BEFORE],
								    ops[i].before) :
						  json_null(),
				  "slower", overview_is_slower(&ops[i])));
	return list;
}

int overview_json(const struct overview *o, size_t rows)
{
	const struct selection *now = o->sel[OVERVIEW_NOW], *before = o->sel[OVERVIEW_BEFORE];
	json_t *j = json_envelope("overview", now->from_ns, now->to_ns);
	json_t *missing = json_array(), *running = json_array();

	json_set_time(j, "before_from", before->from_ns);
	json_set_time(j, "before_to", before->to_ns);
	json_object_set_new(j, "recording", json_boolean(!o->ended));
	json_object_set_new(j, "host", host_json(&o->host));
	for (size_t i = 0; i < o->n && i < rows; i++)
		json_array_append_new(json_rows(j), row_json(o, &o->rows[i]));
	json_bound(j, o->n);
	json_object_set_new(j, "checks", json_integer((json_int_t)o->checks.n_checks));
	json_cut_list(j, "wrong", checks_json(&o->checks, CHECK_BAD), rows);
	json_cut_list(j, "pending", checks_json(&o->checks, CHECK_PENDING), rows);
	json_object_set_new(j, "slowest", ops_json(o, overview_slowest));
	json_object_set_new(j, "failing", ops_json(o, overview_failing));
	for (size_t i = 0; i < o->running.n && i < OPS; i++)
		json_array_append_new(running, runprint_row_json(&o->running.rows[i]));
	json_bound_list(j, "running", running, o->running.n);
	for (int f = 0; f < OVERVIEW_FAMILIES; f++)
		if (!o->known[OVERVIEW_NOW][f])
			json_array_append_new(missing, json_string(OVERVIEW_FAMILY_NAMES[f]));
	json_object_set_new(j, "not_recorded", missing);
	return json_print(j, stdout, 1);
}
