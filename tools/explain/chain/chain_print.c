/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/explain/chain/chain_print.h"

#include <math.h>

#include "schema/base/units.h"
#include "tools/print/json.h"
#include "tools/print/wrap.h"

/* " [likely: 42 % of the added time]" */
static void add_sure(struct strbuf *out, const struct chain_link *l)
{
	char share[UNITS_MAX];

	strbuf_addf(out, " [%s", chain_sure_name(l->sure));
	if (l->share >= 0)
		strbuf_addf(out, ": %s of the added time",
			    units_share(l->share, 1, share, sizeof(share)));
	strbuf_addstr(out, "]");
}

static void print_nothing_felt(const struct chain *c, FILE *out)
{
	struct strbuf line cleanup_strbuf = STRBUF_INIT;
	char n[UNITS_MAX];

	if (!c->requests_known)
		strbuf_addstr(
			&line,
			"requests were not recorded in at least one of the two windows: whether users felt anything is not known (sudo sonde up l7)");
	else if (!c->answered)
		strbuf_addstr(&line, "no requests were seen in this range");
	else
		strbuf_addf(
			&line,
			"nothing was felt: none of %s requests took longer than before, or failed more often",
			units_count(c->answered, n, sizeof(n)));
	wrap_print(out, strbuf_str(&line), 2);
}

static void print_notes(const struct chain *c, FILE *out)
{
	struct strbuf line cleanup_strbuf = STRBUF_INIT;

	if (c->others.len) {
		strbuf_addf(&line, "also slower, or failing more: %s", strbuf_str(&c->others));
		wrap_print(out, strbuf_str(&line), 2);
		strbuf_reset(&line);
	}
	if (!c->n || !c->missing.len)
		return;
	strbuf_addf(&line, "not recorded, and could tell more: %s; sudo sonde up FAMILY",
		    strbuf_str(&c->missing));
	wrap_print(out, strbuf_str(&line), 2);
}

void chain_print(const struct chain *c, FILE *out)
{
	if (!c->n)
		print_nothing_felt(c, out);
	for (size_t i = 0; i < c->n; i++) {
		const struct chain_link *l = &c->links[i];
		struct strbuf line cleanup_strbuf = STRBUF_INIT;

		strbuf_addf(&line, "%zu. %s", i + 1, l->text);
		if (i)
			add_sure(&line, l);
		wrap_print(out, strbuf_str(&line), 3);
		fprintf(out, "    %s\n", l->command);
	}
	print_notes(c, out);
}

static json_t *link_json(const struct chain_link *l)
{
	json_t *o = json_object();

	json_object_set_new(o, "what", json_string(l->what));
	json_object_set_new(o, "who", json_text(l->who));
	json_object_set_new(o, "container", json_boolean(l->container));
	json_object_set_new(o, "text", json_text(l->text));
	json_object_set_new(o, "before",
			    l->unit && !isnan(l->before) ? json_real(l->before) : json_null());
	json_object_set_new(o, "after", l->unit ? json_real(l->after) : json_null());
	json_object_set_new(o, "unit", l->unit ? json_string(l->unit) : json_null());
	json_object_set_new(o, "share", l->share >= 0 ? json_real(l->share) : json_null());
	json_object_set_new(o, "sure", json_string(chain_sure_name(l->sure)));
	json_object_set_new(o, "command", json_text(l->command));
	return o;
}

json_t *chain_json(const struct chain *c)
{
	json_t *o = json_object(), *links = json_array();

	for (size_t i = 0; i < c->n; i++)
		json_array_append_new(links, link_json(&c->links[i]));
	json_object_set_new(o, "felt", json_boolean(c->n > 0));
	json_object_set_new(o, "requests_known", json_boolean(c->requests_known));
	json_object_set_new(o, "requests", json_integer((json_int_t)c->answered));
	json_object_set_new(o, "links", links);
	json_object_set_new(o, "others", json_text(strbuf_str(&c->others)));
	json_object_set_new(o, "not_recorded", json_text(strbuf_str(&c->missing)));
	return o;
}
