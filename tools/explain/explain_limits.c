/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/explain/explain_limits.h"

#include <errno.h>
#include <string.h>

#include "schema/base/typed.h"
#include "tools/diff/diff.h"
#include "tools/fold/fold.h"
#include "tools/fold/fold_kind.h"
#include "tools/print/json.h"
#include "tools/print/when.h"
#include "tools/print/wrap.h"
#include "tools/select/askrows.h"
#include "tools/select/filter.h"

/* ---- reading ---- */

static bool is_full(double cores, double cpus, double waited)
{
	if (cpus <= 0)
		return false;
	if (waited < 0)
		return cores >= EXPLAIN_LIMIT_SAMPLED * cpus;
	return cores >= EXPLAIN_LIMIT_CPU * cpus && waited >= EXPLAIN_LIMIT_WAIT;
}

/* Who used most, of those that are not part of another. */
static void who_add(const struct fold *f, struct strbuf *out)
{
	const struct fold_node *most[EXPLAIN_LIMIT_WHO];
	size_t n = 0;

	for (size_t i = 1; i < f->n_nodes; i++) {
		const struct fold_node *node = &f->nodes[i];
		size_t at = n;

		if (node->parent || f->frames[node->frame].origin != FOLD_GROUP)
			continue;
		while (at && most[at - 1]->total_ns < node->total_ns)
			at--;
		if (at == EXPLAIN_LIMIT_WHO)
			continue;
		n += n < EXPLAIN_LIMIT_WHO;
		memmove(&most[at + 1], &most[at], (n - 1 - at) * sizeof(*most));
		most[at] = node;
	}
	for (size_t i = 0; i < n; i++) {
		const char *name = f->frames[most[i]->frame].name;

		strbuf_addstr(out, i ? ", " : "");
		strbuf_addshown(out, name, strlen(name));
		strbuf_addf(out, " (%.2f cores)", fold_cores(f, most[i]->total_ns));
	}
}

static void take_known(void *ctx, sqlite3_stmt *st)
{
	(void)st;
	*(bool *)ctx = true;
}

/* Did family disk record something of the window? */
static int disk_known_read(const struct selection *sel, bool *known, struct err *e)
{
	const struct askrows_part part = {
		"SELECT 1 FROM block_stats WHERE ts BETWEEN ?1 AND ?2 LIMIT 1",
		take_known,
		known,
		{{NULL}, NULL}};

	return askrows_each(sel, NULL, &part, 1, e);
}

/* Nothing of a selection that is a part of the host. *cpus: how many there are, 0: not known. */
static int sampled_read(const struct selection *sel, double *used, double *cpus, struct strbuf *who,
			struct err *e)
{
	const struct fold_opts opts = {
		.kind = STORE_KIND_CPU, .group = FOLD_BY_WHO, .innermost = true};
	struct fold *f = NULL;
	int rc;

	*used = -1;
	rc = select_is_narrow(sel) ? -ENODATA : fold_make(sel, &opts, &f, e);
	if (rc)
		return rc == -ENODATA ? 0 : rc;
	if (fold_is_cores(f))
		*used = fold_cores(f, f->nodes[0].total_ns);
	*cpus = f->cpus;
	if (who)
		who_add(f, who);
	fold_free(f);
	return 0;
}

int explain_limits_read(struct selection *const sel[2], struct explain_limits *out, struct err *e)
{
	const struct hostload *now = &out->at[DIFF_AFTER];
	double cpus = 0;
	int rc;

	*out = (struct explain_limits){.sel = sel[DIFF_AFTER], .sampled = {-1, -1}};
	rc = hostload_read(sel[DIFF_AFTER], NULL, &out->at[DIFF_AFTER], e);
	if (!rc)
		rc = hostload_read(sel[DIFF_BEFORE], now->disk, &out->at[DIFF_BEFORE], e);
	if (!rc && now->cores < 0)
		rc = sampled_read(sel[DIFF_BEFORE], &out->sampled[DIFF_BEFORE], &cpus, NULL, e);
	if (!rc && (now->cores < 0 || is_full(now->cores, now->cpus, now->waited_cpu)))
		rc = sampled_read(sel[DIFF_AFTER], &out->sampled[DIFF_AFTER], &cpus, &out->who, e);
	if (rc)
		return rc;
	if (now->cores >= 0 ? is_full(now->cores, now->cpus, now->waited_cpu) :
			      is_full(out->sampled[DIFF_AFTER], cpus, -1))
		out->rows[out->n++] = EXPLAIN_LIMIT_IS_CPU;
	if (now->cores < 0)
		out->at[DIFF_AFTER].cpus = cpus;
	if (now->waited_mem >= EXPLAIN_LIMIT_MEMORY)
		out->rows[out->n++] = EXPLAIN_LIMIT_IS_MEMORY;
	if (now->disk_busy >= EXPLAIN_LIMIT_DISK && now->waited_io >= EXPLAIN_LIMIT_IO)
		out->rows[out->n++] = EXPLAIN_LIMIT_IS_DISK;
	return out->n && out->rows[out->n - 1] == EXPLAIN_LIMIT_IS_DISK ?
		       disk_known_read(sel[DIFF_AFTER], &out->disk_known, e) :
		       0;
}

void explain_limits_release(struct explain_limits *x)
{
	strbuf_release(&x->who);
}

/* ---- words ---- */

static void add_percent(struct strbuf *out, const char *what, const double v[2])
{
	strbuf_addf(out, "%s %.0f %% of the time", what, 100 * v[DIFF_AFTER]);
	if (v[DIFF_BEFORE] >= 0)
		strbuf_addf(out, " (before %.0f %%)", 100 * v[DIFF_BEFORE]);
}

static void say_cpu(const struct explain_limits *x, struct strbuf *out)
{
	const struct hostload *now = &x->at[DIFF_AFTER], *before = &x->at[DIFF_BEFORE];
	const bool sampled = now->cores < 0;
	const double used[2] = {sampled ? x->sampled[DIFF_BEFORE] : before->cores,
				sampled ? x->sampled[DIFF_AFTER] : now->cores};
	const double waited[2] = {before->waited_cpu, now->waited_cpu};

	strbuf_addf(out, "%.1f of %.0f CPUs were used", used[DIFF_AFTER], now->cpus);
	if (used[DIFF_BEFORE] >= 0)
		strbuf_addf(out, " (before %.1f)", used[DIFF_BEFORE]);
	if (waited[DIFF_AFTER] >= 0)
		add_percent(out, ", and threads waited for one", waited);
	else
		strbuf_addstr(
			out,
			"; whether threads waited for one was not recorded (sudo sonde up host)");
	if (x->who.len)
		strbuf_addf(out, "; most was used by %s", strbuf_str(&x->who));
}

static void say(const struct explain_limits *x, enum explain_limit what, struct strbuf *out)
{
	const struct hostload *now = &x->at[DIFF_AFTER], *before = &x->at[DIFF_BEFORE];
	const double memory[2] = {before->waited_mem, now->waited_mem},
		     disks[2] = {before->waited_io, now->waited_io},
		     busy[2] = {before->disk_busy, now->disk_busy};

	switch (what) {
	case EXPLAIN_LIMIT_IS_CPU:
		say_cpu(x, out);
		break;
	case EXPLAIN_LIMIT_IS_MEMORY:
		add_percent(out, "threads waited for memory", memory);
		break;
	case EXPLAIN_LIMIT_IS_DISK:
		strbuf_addstr(out, "disk ");
		strbuf_addshown(out, now->disk, strlen(now->disk));
		add_percent(out, " was busy", busy);
		add_percent(out, ", and threads waited for disks", disks);
		break;
	}
}

static void command(const struct explain_limits *x, enum explain_limit what, const char *hint_store,
		    struct strbuf *out)
{
	static const char *const VERBS[] = {"ps", "ps --sort mem", "ps --sort io"};
	const char *verb = x->disk_known && what == EXPLAIN_LIMIT_IS_DISK ? "disk" : VERBS[what];
	char from[40], to[40];

	strbuf_addf(out, "%s %s --from %s --to %s", typed_sonde(false), verb,
		    when_zoned(x->sel->from_ns, from, sizeof(from)),
		    when_zoned(x->sel->to_ns, to, sizeof(to)));
	if (!hint_store)
		return;
	strbuf_addstr(out, " --store ");
	filter_word(hint_store, out);
}

void explain_limits_print(const struct explain_limits *x, const char *hint_store, FILE *out)
{
	for (size_t i = 0; i < x->n; i++) {
		struct strbuf text cleanup_strbuf = STRBUF_INIT, next cleanup_strbuf = STRBUF_INIT;

		if (!i)
			fprintf(out, "the host was at its limit:\n");
		strbuf_addstr(&text, "   ");
		say(x, x->rows[i], &text);
		command(x, x->rows[i], hint_store, &next);
		wrap_print(out, strbuf_str(&text), 6);
		fprintf(out, "      %s\n", strbuf_str(&next));
	}
}

json_t *explain_limits_json(const struct explain_limits *x, const char *hint_store)
{
	static const char *const NAMES[] = {"cpu", "memory", "disk"};
	json_t *list = json_array();

	for (size_t i = 0; i < x->n; i++) {
		struct strbuf text cleanup_strbuf = STRBUF_INIT, next cleanup_strbuf = STRBUF_INIT;

		say(x, x->rows[i], &text);
		command(x, x->rows[i], hint_store, &next);
		json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "what", NAMES[x->rows[i]],
						      "text", json_text(strbuf_str(&text)),
						      "command", json_text(strbuf_str(&next))));
	}
	return list;
}
