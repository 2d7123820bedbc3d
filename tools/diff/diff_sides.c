/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/diff/diff_sides.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/worker.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tools/fold/fold_kind.h"
#include "tools/fold/fold_pair.h"
#include "tools/formats/import.h"
#include "tools/print/outfile.h"
#include "tools/print/reading.h"

struct instant {
	char text[40];
};

struct side_folding { /* of a store; sel is NULL for a file */
	const struct selection *sel;
	struct fold_opts opts;
	struct fold *fold;
	int rc;
	struct err e;
};

struct making {
	const struct diff_side_args *a;
	struct diff_sides *out;
	const char *source[2]; /* NULL: the store of the command line */
	char *words[1];        /* to search for */
	size_t n_words;
	struct instant from, to; /* of "before", where it is reckoned */
	struct side_folding folding[2];
};

static bool is_store(const char *source)
{
	return outfile_ends_with(source, ".db") || !import_is_file(source);
}

/* A word that cannot be a container's or command's name. */
static bool names_a_file(const char *word)
{
	return strchr(word, '/') || outfile_ends_with(word, ".db") || import_knows(word);
}

static int take_words(struct making *m, struct err *e)
{
	for (size_t i = 0; i < m->a->n_words; i++) {
		char *word = m->a->words[i];

		if (!names_a_file(word)) {
			if (m->n_words)
				return err_set(
					e, -EINVAL, EXIT_USAGE,
					"only one word can be searched for, not '%.60s' and '%.60s'",
					m->words[0], word);
			m->words[m->n_words++] = word;
		} else if (!m->source[DIFF_BEFORE]) {
			m->source[DIFF_BEFORE] = word;
		} else if (!m->source[DIFF_AFTER]) {
			m->source[DIFF_AFTER] = word;
		} else {
			err_set(e, -EINVAL, EXIT_USAGE,
				"two files or stores can be compared, not three: '%.100s'", word);
			err_fix(e, "sonde diff BEFORE AFTER");
			return -EINVAL;
		}
	}
	return 0;
}

/* --- the ranges --- */

static void instant_set(struct instant *t, int64_t ns)
{
	if (ns < 0)
		ns = 0;
	snprintf(t->text, sizeof(t->text), "%lld.%09lld", (long long)(ns / NSEC_PER_SEC),
		 (long long)(ns % NSEC_PER_SEC));
}

static void clear_range(struct select_args *a)
{
	a->last_ns = 0;
	a->from = a->to = a->at = a->rec = NULL;
}

static void set_span(struct making *m, struct select_args *a, int64_t from_ns, int64_t to_ns)
{
	clear_range(a);
	instant_set(&m->from, from_ns);
	instant_set(&m->to, to_ns);
	a->from = m->from.text;
	a->to = m->to.text;
}

/* The newest recording of the same family that had ended when this one began. */
static int set_recording_before(struct making *m, struct select_args *a,
				const struct selection *after, struct err *e)
{
	struct select_recording *list = NULL;
	const struct select_recording *best = NULL, *this = NULL;
	size_t n = 0;
	int rc = select_recordings(after->store, &list, &n, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < n; i++)
		if (list[i].number == after->rec)
			this = &list[i];
	for (size_t i = 0; this && i < n; i++)
		if (list[i].to_ns <= this->from_ns && !strcmp(list[i].family, this->family))
			best = &list[i];
	if (best) {
		clear_range(a);
		snprintf(m->from.text, sizeof(m->from.text), "%lld", (long long)best->number);
		a->rec = m->from.text;
	} else {
		rc = err_set(e, -ENODATA, EXIT_NOTHING,
			     "there is no recording before rec %lld to compare it with",
			     (long long)after->rec);
		err_fix(e,
			"sudo sonde record -d 10s (then there are two)    sonde diff --last 10m (with the ten minutes before)    sonde status");
	}
	select_recordings_free(list, n);
	return rc;
}

static void copy_range(struct select_args *to, const struct select_args *from)
{
	to->last_ns = from->last_ns;
	to->from = from->from;
	to->to = from->to;
	to->at = from->at;
	to->rec = from->rec;
}

static int before_range(struct making *m, struct select_args *a, struct err *e)
{
	const struct diff_side_args *in = m->a;
	const struct selection *after = m->out->sel[DIFF_AFTER];

	if (in->slow)
		return 0;
	if (select_has_range(&in->vs)) {
		copy_range(a, &in->vs);
		return 0;
	}
	if (m->source[DIFF_BEFORE]) {
		if (!select_has_range(in->select))
			a->rec = "last";
		return 0;
	}
	if (!after) {
		if (!select_has_range(a))
			a->rec = "last";
		return 0;
	}
	if (in->baseline_ns)
		set_span(m, a, after->from_ns - in->baseline_ns, after->to_ns - in->baseline_ns);
	else if (select_has_filters(&in->vs) && after->rec)
		return 0;
	else if (select_has_filters(&in->vs))
		set_span(m, a, after->from_ns, after->to_ns);
	else if (after->rec)
		return set_recording_before(m, a, after, e);
	else
		set_span(m, a, 2 * after->from_ns - after->to_ns, after->from_ns);
	return 0;
}

/* --- a side --- */

static int say_which(int side, struct err *e, int rc)
{
	char what[sizeof(e->what)];

	if (!rc || !e)
		return rc;
	snprintf(what, sizeof(what), "%s: %.700s", side == DIFF_BEFORE ? "before" : "after",
		 e->what);
	snprintf(e->what, sizeof(e->what), "%s", what);
	return rc;
}

static int side_from_file(struct making *m, int side, struct err *e)
{
	const struct store_kind_info *kind = m->a->type ? store_kind_named(m->a->type) : NULL;
	struct fold_opts opts = m->a->opts;

	opts.kind = kind ? kind->kind : 0;
	m->out->label[side] = mem_strdup(m->source[side]);
	return import_file(m->source[side], &opts, &m->out->fold[side], e);
}

static int side_select(struct making *m, int side, const struct select_args *args, struct err *e)
{
	const char *store = m->source[side] ? m->source[side] : m->a->store;
	/* words on the command line are for "after"; they apply to "before" unless that has its own
	 * filter */
	size_t n_words = side == DIFF_BEFORE && select_has_filters(&m->a->vs) ? 0 : m->n_words;
	struct strbuf label = STRBUF_INIT;
	int rc = select_new(args, store, m->words, n_words, true, &m->out->sel[side], e);

	if (rc)
		return rc;
	if (m->source[side])
		strbuf_addf(&label, "%s, ", m->source[side]);
	strbuf_addstr(&label, m->out->sel[side]->range);
	if (m->out->sel[side]->filter_text[0])
		strbuf_addf(&label, "  %s", m->out->sel[side]->filter_text);
	m->out->label[side] = strbuf_take(&label);
	return 0;
}

#define SLOWER "p95" /* of --slow, where nothing is said */

/* The requests that a side is about. "After" is chosen first, and says what "before" is less than.
 */
static int side_requests(struct making *m, int side, struct err *e)
{
	const struct diff_side_args *a = m->a;
	struct reqtags *tags = &m->out->tags[side];
	struct strbuf label = STRBUF_INIT;
	char *text;
	int rc;

	if (!a->request)
		return 0;
	if (a->slow && side == DIFF_BEFORE)
		rc = reqtags_others(m->out->sel[side], a->request, &m->out->tags[DIFF_AFTER], tags,
				    e);
	else
		rc = reqtags_find(m->out->sel[side], a->request,
				  a->slower ? a->slower :
				  a->slow   ? SLOWER :
					      NULL,
				  tags, e);
	if (rc)
		return rc;
	text = reqtags_text(tags, a->request);
	strbuf_addf(&label, "%s: %s", m->out->label[side], text);
	free(text);
	free(m->out->label[side]);
	m->out->label[side] = strbuf_take(&label);
	m->folding[side].opts.tags = &tags->tags;
	return 0;
}

/* Its fold if it is a file, else which part of which store. */
static int side_find(struct making *m, int side, struct err *e)
{
	struct select_args args = *m->a->select;
	int rc = 0;

	if (m->source[side] && !is_store(m->source[side]))
		return say_which(side, e, side_from_file(m, side, e));
	if (side == DIFF_BEFORE) {
		select_filters_replace(&args, &m->a->vs);
		rc = before_range(m, &args, e);
		if (rc) /* it says which */
			return rc;
	} else if (m->source[side] && !select_has_range(&args)) {
		args.rec = "last";
	}
	if (!rc)
		rc = side_select(m, side, &args, e);
	if (!rc) {
		m->folding[side] =
			(struct side_folding){.sel = m->out->sel[side], .opts = m->a->opts};
		rc = fold_kind_of(m->a->type, m->out->sel[side], &m->folding[side].opts, e);
	}
	if (!rc)
		rc = side_requests(m, side, e);
	return say_which(side, e, rc);
}

/* --- their folds --- */

static void side_fold(void *ctx)
{
	struct side_folding *x = ctx;

	x->rc = fold_make(x->sel, &x->opts, &x->fold, &x->e);
	select_segments_close(x->sel);
}

static int side_take(struct making *m, int side, struct err *e)
{
	struct side_folding *x = &m->folding[side];

	if (x->rc && e)
		*e = x->e;
	m->out->fold[side] = x->fold;
	return say_which(side, e, x->rc);
}

/* What was taken to be CPU time is of the other side's kind. */
static int fold_again(struct making *m, enum store_kind kind, struct err *e)
{
	struct side_folding *x = &m->folding[DIFF_BEFORE];

	fold_free(x->fold);
	x->fold = NULL;
	x->e = (struct err){0};
	x->opts.kind = kind;
	side_fold(x);
	return side_take(m, DIFF_BEFORE, e);
}

/* As one tree, where they are windows of one archive. */
static bool fold_archive(struct making *m)
{
	struct side_folding *before = &m->folding[DIFF_BEFORE], *after = &m->folding[DIFF_AFTER];
	const struct selection *const sel[2] = {before->sel, after->sel};
	const struct fold_opts *const opts[2] = {&before->opts, &before->opts};
	struct fold *fold[2];

	if (!before->sel || !after->sel || before->opts.tags || !fold_pair_make(sel, opts, fold))
		return false;
	before->fold = fold[0];
	after->fold = fold[1];
	select_segments_close(after->sel);
	select_segments_close(before->sel);
	return true;
}

/* Both at once, each with its own files. */
static void fold_stores(struct making *m, bool flat)
{
	struct side_folding *before = &m->folding[DIFF_BEFORE], *after = &m->folding[DIFF_AFTER];
	struct worker other;

	if (fold_archive(m))
		return;
	before->opts.flat = after->opts.flat = before->opts.calls = after->opts.calls = flat;
	reading_begin(1);
	if (before->sel)
		worker_start(&other, side_fold, before);
	if (after->sel)
		side_fold(after);
	if (before->sel)
		worker_join(&other);
	reading_end();
}

/* Then names alone are compared, and what flat sums tell apart is one. */
static bool is_half_named(const struct making *m)
{
	const struct fold *const before = m->folding[DIFF_BEFORE].fold,
				 *const after = m->folding[DIFF_AFTER].fold;

	return before && after && fold_has_modules(before) != fold_has_modules(after);
}

static void sides_forget(struct making *m)
{
	for (int side = 0; side < 2; side++) {
		fold_free(m->folding[side].fold);
		m->folding[side].fold = NULL;
	}
}

/* Where no kind was asked for, it is that of what comes after, which is mostly CPU time. */
static int sides_fold(struct making *m, struct err *e)
{
	struct side_folding *before = &m->folding[DIFF_BEFORE];
	const struct fold *known = m->out->fold[DIFF_AFTER];
	const enum store_kind kind = known ? known->kind->kind : STORE_KIND_CPU;
	const bool asked = before->opts.kind,
		   flat = m->a->no_tree && before->sel && m->folding[DIFF_AFTER].sel;
	int rc = 0;

	if (!asked)
		before->opts.kind = kind;
	fold_stores(m, flat);
	if (flat && is_half_named(m)) {
		sides_forget(m);
		fold_stores(m, false);
	}
	if (!known)
		rc = side_take(m, DIFF_AFTER, e);
	if (!before->sel)
		return rc;
	if (rc) {
		fold_free(before->fold);
		return rc;
	}
	known = m->out->fold[DIFF_AFTER];
	return asked || known->kind->kind == kind ? side_take(m, DIFF_BEFORE, e) :
						    fold_again(m, known->kind->kind, e);
}

static int check_one_baseline(const struct diff_side_args *a, struct err *e)
{
	if (!a->baseline_ns || (!select_has_range(&a->vs) && !a->before))
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE, "--baseline and %s both select what to compare with",
		a->before ? "--before" : "--vs-...");
	err_fix(e, "sonde diff --help");
	return -EINVAL;
}

static int check_requests(const struct diff_side_args *a, struct err *e)
{
	if (!a->request)
		return a->slow ? err_set(e, -EINVAL, EXIT_USAGE, "--slow needs --request") : 0;
	if (a->before || a->after)
		return err_set(e, -EINVAL, EXIT_USAGE,
			       "--request needs a store; profile files contain no requests");
	if (!a->slow || !(a->baseline_ns || select_has_range(&a->vs) || select_has_filters(&a->vs)))
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE,
		"--slow compares with the other requests of the same range; it cannot be combined with --baseline or --vs-...");
	err_fix(e, "sonde diff --request 'GET /checkout' --slow");
	return -EINVAL;
}

int diff_sides_make(const struct diff_side_args *a, struct diff_sides *out, struct err *e)
{
	struct making m = {.a = a, .out = out, .source = {a->before, a->after}};
	int rc = check_one_baseline(a, e);

	if (!rc)
		rc = check_requests(a, e);

	*out = (struct diff_sides){0};
	if (!rc)
		rc = take_words(&m, e);
	if (!rc && a->request && m.source[DIFF_BEFORE])
		rc = err_set(e, -EINVAL, EXIT_USAGE,
			     "--request needs a store; profile files contain no requests");
	if (!rc)
		rc = side_find(&m, DIFF_AFTER, e);
	if (!rc)
		rc = side_find(&m, DIFF_BEFORE, e);
	if (!rc)
		rc = sides_fold(&m, e);
	if (rc)
		diff_sides_release(out);
	return rc;
}

void diff_sides_release(struct diff_sides *s)
{
	for (int i = 0; i < 2; i++) {
		fold_free(s->fold[i]);
		select_free(s->sel[i]);
		free(s->label[i]);
		reqtags_release(&s->tags[i]);
	}
	*s = (struct diff_sides){0};
}
