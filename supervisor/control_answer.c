/* SPDX-License-Identifier: Apache-2.0 */
/* control_answer: answers the requests of the control socket (control.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "schema/store/files/folder.h"
#include "supervisor/sup.h"
#include "supervisor/control/log_lines.h"

#define LOGS_DEFAULT 50

static json_t *ok(void)
{
	return json_pack("{s:b}", "ok", 1);
}

static json_t *refuse(const struct err *e)
{
	json_t *o = json_pack("{s:s, s:i}", "error", e->what, "exit", e->exit);

	if (e->fix[0])
		json_object_set_new(o, "fix", json_string(e->fix));
	return o;
}

/* Adds how many processes it was given to look into; null: it finds them itself. */
static json_t *loader_json(const struct sup *s, const struct service *l)
{
	json_t *o = service_json(l);

	json_object_set_new(o, "targets",
			    *l->wants ? json_integer((json_int_t)targets_given(s->targets, l)) :
					json_null());
	return o;
}

static json_t *store_json(const struct sup *s)
{
	json_t *o = retain_json(&s->retain);

	json_object_set_new(o, "sealing", sealer_json(&s->sealer));
	json_object_set_new(o, "flight", keeper_json(&s->keeper));
	return o;
}

static json_t *status(struct sup *s)
{
	json_t *services = json_array(), *sonded;

	json_array_append_new(services, service_json(&s->maps.service));
	for (unsigned int i = 0; i < s->n_loaders; i++)
		json_array_append_new(services, loader_json(s, &s->loader[i]));
	sonded = json_pack("{s:i, s:f, s:b, s:f, s:I, s:i, s:i, s:o}", "pid", (int)getpid(),
			   "for_seconds", (double)(clock_mono_ns() - s->began_ns) / 1e9, "ready",
			   s->ready, "limit_cores", s->conf.cpu / 100, "limit_bytes",
			   (json_int_t)s->conf.memory_bytes, "step", cost_steps_held(s, SHED_CPU),
			   "memory_step", cost_steps_held(s, SHED_MEMORY), "steps",
			   cost_steps_json(s));
	json_object_update_new(sonded, cost_json(s));
	return json_pack("{s:b, s:o, s:o, s:o}", "ok", 1, "sonded", sonded, "services", services,
			 "store", store_json(s));
}

static json_t *logs(const json_t *request)
{
	json_int_t n = json_integer_value(json_object_get(request, "n"));
	json_t *lines = json_array();
	size_t have = 0;

	n = n > 0 ? n : LOGS_DEFAULT;
	while (log_line_kept(have))
		have++;
	for (size_t i = have > (size_t)n ? have - (size_t)n : 0; i < have; i++) {
		json_t *line = json_string(log_line_kept(i));

		json_array_append_new(lines,
				      line ? line : json_string("(a line that is not valid text)"));
	}
	return json_pack("{s:b, s:o}", "ok", 1, "lines", lines);
}

static void add_once(const struct probe_family **of, size_t *n, const struct probe_family *f)
{
	for (size_t i = 0; i < *n; i++)
		if (of[i] == f)
			return;
	of[(*n)++] = f;
}

/* The running families with those of the request added or removed. */
static json_t *change(struct sup *s, const json_t *request, bool up)
{
	struct strbuf list cleanup_strbuf = STRBUF_INIT;
	json_t *names = json_object_get(request, "families"), *name;
	struct conf c = s->conf;
	struct err e = {0};
	const struct probe_family *of[FAMILIES_MAX];
	size_t i, n_of = 0;

	json_array_foreach (names, i, name) {
		const char *text = json_string_value(name) ?: "";
		const struct probe_family *one[FAMILIES_MAX];
		size_t n;

		if (families_of(text, one, &n, &e))
			return refuse(&e);
		for (size_t k = 0; k < n; k++)
			add_once(of, &n_of, one[k]);
	}
	for (unsigned int k = 0; k < s->n_loaders; k++) {
		bool named = false;

		for (i = 0; i < n_of; i++)
			named |= !strcmp(of[i]->name, s->loader[k].name);
		if (s->loader[k].wanted && (up || !named))
			strbuf_addf(&list, "%s%s", list.len ? "," : "", s->loader[k].name);
	}
	for (i = 0; up && i < n_of; i++)
		strbuf_addf(&list, "%s%s", list.len ? "," : "", of[i]->name);
	if (!list.len) {
		err_set(&e, -EINVAL, EXIT_USAGE, "this would stop all families");
		err_fix(&e, "sonde down    stops all of them");
		return refuse(&e);
	}
	if (list.len >= CONF_TEXT_MAX)
		return refuse(&(struct err){.exit = EXIT_USAGE, .what = "too many families"});
	memcpy(c.value[CONF_FAMILIES].text, strbuf_str(&list), list.len + 1);
	snprintf(c.value[CONF_FAMILIES].origin, CONF_ORIGIN_MAX, "sonde %s", up ? "up" : "down");
	sup_follow(s, &c);
	return ok();
}

static json_t *reload(struct sup *s)
{
	struct err e = {0};

	return sup_reload(s, &e) ? refuse(&e) : ok();
}

static json_t *rotate(const struct sup *s)
{
	char name[SEGMENT_NAME_MAX];
	struct err e = {0};

	if (folder_turn(s->store, name, &e))
		return refuse(&e);
	log_line(LOG_LEVEL_INFO, "sonded", "%s is closed on demand", name);
	return json_pack("{s:b, s:s}", "ok", 1, "segment", name);
}

static json_t *keep(struct sup *s, const json_t *request)
{
	const char *cause = json_string_value(json_object_get(request, "cause")),
		   *why = json_string_value(json_object_get(request, "why"));
	struct err e = {0};

	if (cause && *cause) {
		if (keeper_refuses(&s->keeper, &e))
			return refuse(&e);
		keeper_happened(&s->keeper, s->retain.limits.bytes, cause, why ?: cause);
		return ok();
	}
	if (keeper_ask(&s->keeper, json_integer_value(json_object_get(request, "last_ns")), why,
		       &e))
		return refuse(&e);
	return json_pack("{s:b, s:I}", "ok", 1, "to_ns", (json_int_t)s->keeper.next.to_ns);
}

json_t *sup_answer(void *ctx, const json_t *request, bool trusted)
{
	const char *what = json_string_value(json_object_get(request, "do")) ?: "";
	struct sup *s = ctx;
	struct err e = {0};

	if (!strcmp(what, "status"))
		return status(s);
	if (!strcmp(what, "logs"))
		return logs(request);
	if (!trusted) {
		err_set(&e, -EPERM, EXIT_PERMISSION,
			"only root and the user that sonded runs as may do that");
		err_fix(&e, "run it with sudo");
		return refuse(&e);
	}
	if (!strcmp(what, "up") || !strcmp(what, "down"))
		return change(s, request, *what == 'u');
	if (!strcmp(what, "reload"))
		return reload(s);
	if (!strcmp(what, "rotate"))
		return rotate(s);
	if (!strcmp(what, "keep"))
		return keep(s, request);
	if (!strcmp(what, "prune")) {
		s->prune_now = true;
		return ok();
	}
	if (!strcmp(what, "stop")) {
		sup_stop(s);
		return ok();
	}
	err_set(&e, -EINVAL, EXIT_USAGE, "sonded does not know '%.40s'", what);
	return refuse(&e);
}
