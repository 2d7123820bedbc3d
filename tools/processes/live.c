/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/processes/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "tools/formats/flame_text.h"
#include "tools/record/recorder.h"

/* --- the window --- */

static int64_t whole(int64_t ns)
{
	return (ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC * NSEC_PER_SEC;
}

const struct select_args *live_select(const struct live *l, uint32_t pid, struct live_window *w)
{
	snprintf(w->from, sizeof(w->from), "%lld",
		 (long long)((l->to_ns - l->window_ns) / NSEC_PER_SEC));
	snprintf(w->to, sizeof(w->to), "%lld", (long long)(l->to_ns / NSEC_PER_SEC));
	snprintf(w->pid, sizeof(w->pid), "%u", pid);
	w->args = *l->asked;
	w->args.last_ns = 0;
	w->args.at = w->args.rec = NULL;
	w->args.from = w->from;
	w->args.to = w->to;
	w->pids[0] = w->pid;
	if (pid)
		w->args.pid = (struct option_list){.items = w->pids, .n = 1};
	return &w->args;
}

void live_follow(struct live *l)
{
	l->follows = true;
	l->waits = false;
	l->to_ns = clock_utc_ns() / NSEC_PER_SEC * NSEC_PER_SEC;
}

/* Does something record here? When it was recorded last, if not; 0: never. */
static int look_around(const struct live *l, bool *live, int64_t *last_ns, struct err *e)
{
	struct select_recording *r = NULL;
	size_t n = 0;
	int ret = select_recordings(l->store, &r, &n, e);

	*live = false;
	*last_ns = 0;
	for (size_t i = 0; !ret && i < n; i++) {
		*live = *live || recorder_is_live(&r[i]);
		*last_ns = r[i].to_ns > *last_ns ? r[i].to_ns : *last_ns;
	}
	if (!ret)
		select_recordings_free(r, n);
	return ret;
}

int live_init(struct live *l, struct err *e)
{
	const struct select_args *a = l->asked;
	struct selection *sel = NULL;
	int64_t last_ns;
	bool live;
	int ret = look_around(l, &live, &last_ns, e);

	if (!ret && !(a->from || a->to || a->at || a->rec)) {
		l->window_ns =
			a->last_ns ? whole(a->last_ns) : LIVE_WINDOW_S * (int64_t)NSEC_PER_SEC;
		live_follow(l);
		l->follows = live || !last_ns;
		l->waits = !l->follows;
		l->to_ns = l->follows ? l->to_ns : whole(last_ns);
		return 0;
	}
	if (!ret)
		ret = select_new(a, l->store, l->words, l->n_words, true, &sel, e);
	if (ret)
		return ret;
	l->to_ns = whole(sel->to_ns);
	l->window_ns = l->to_ns - sel->from_ns / NSEC_PER_SEC * NSEC_PER_SEC;
	select_free(sel);
	return 0;
}

static bool touches(const struct live *l, const struct select_recording *r, int64_t to_ns)
{
	return r->from_ns < to_ns && r->to_ns > to_ns - l->window_ns;
}

/* Where the window ends that has something again, from `to_ns` on in that direction; 0: nowhere. */
static int64_t next_recorded(const struct live *l, const struct select_recording *r, size_t n,
			     int64_t to_ns, bool back)
{
	int64_t best = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t to = back ? whole(r[i].to_ns) :
				    r[i].from_ns / NSEC_PER_SEC * NSEC_PER_SEC + l->window_ns;

		if (touches(l, &r[i], to_ns))
			return to_ns;
		if (back ? to <= to_ns && to > best : to >= to_ns && (!best || to < best))
			best = to;
	}
	return best;
}

/* The first or the last window that has something. */
static int64_t outermost(const struct live *l, const struct select_recording *r, size_t n,
			 bool back)
{
	int64_t best = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t to = back ? r[i].from_ns / NSEC_PER_SEC * NSEC_PER_SEC + l->window_ns :
				    whole(r[i].to_ns);

		if (!best || (back ? to < best : to > best))
			best = to;
	}
	return best;
}

bool live_step(struct live *l, int windows)
{
	struct select_recording *r = NULL;
	struct err e = {0};
	int64_t to_ns = l->to_ns + windows * l->window_ns;
	size_t n = 0;

	if (to_ns > clock_utc_ns()) {
		live_follow(l);
		return true;
	}
	if (select_recordings(l->store, &r, &n, &e))
		return false;
	to_ns = next_recorded(l, r, n, to_ns, windows < 0);
	if (!to_ns)
		to_ns = outermost(l, r, n, windows < 0);
	select_recordings_free(r, n);
	if (windows < 0 ? to_ns >= l->to_ns : to_ns <= l->to_ns)
		return false;
	if (to_ns > clock_utc_ns()) {
		live_follow(l);
		return true;
	}
	l->follows = l->waits = false;
	l->to_ns = to_ns;
	return true;
}

/* --- what was read --- */

static void forget(struct live *l)
{
	process_rows_release(&l->rows);
	procs_more_release(&l->more);
	process_usage_release(&l->used);
	reqrunning_release(&l->running);
	fold_free(l->f);
	select_free(l->sel);
	l->f = NULL;
	l->sel = NULL;
	l->n_all = 0;
	l->why = (struct err){0};
}

void live_release(struct live *l)
{
	forget(l);
}

static bool has(const char *text, const char *part)
{
	return strcasestr(text, part) != NULL;
}

static bool wanted(const struct live *l, const struct fold_process *p)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%u", p->pid);
	return has(p->comm, l->filter) || has(p->container, l->filter) || has(p->unit, l->filter) ||
	       has(p->args, l->filter) || has(p->exe, l->filter) || has(pid, l->filter);
}

void live_arrange(struct live *l)
{
	struct err e = {0};
	size_t n = 0;

	if (!l->f)
		return;
	process_rows_release(&l->rows);
	process_rows_init(&l->rows, l->f, PROCESS_ROWS_BY_PROCESS);
	if (l->more.n)
		process_rows_add(&l->rows, &l->more);
	process_rows_add_used(&l->rows, &l->used);
	process_rows_sort(&l->rows, l->sort, &e); /* what this window has nothing of: by CPU time */
	l->n_all = l->rows.n;
	for (size_t i = 0; i < l->rows.n; i++)
		if (!l->filter[0] || wanted(l, l->rows.rows[i].who))
			l->rows.rows[n++] = l->rows.rows[i];
	l->rows.n = n;
}

/* Has something begun to record, where it waits for that? */
static bool has_begun(const struct live *l)
{
	struct err e = {0};
	int64_t last_ns;
	bool live;

	return l->waits && !look_around(l, &live, &last_ns, &e) && live;
}

void live_read(struct live *l)
{
	struct live_window w;
	int ret;

	forget(l);
	if (l->follows || has_begun(l))
		live_follow(l);
	ret = select_new(live_select(l, 0, &w), l->store, l->words, l->n_words, true, &l->sel,
			 &l->why);
	if (!ret)
		ret = fold_make(l->sel, &(struct fold_opts){.kind = STORE_KIND_CPU, .leaves = true},
				&l->f, &l->why);
	if (!ret)
		ret = procs_more_make(&l->more, l->sel, &l->why);
	if (!ret)
		ret = process_usage_processes(l->sel, &l->used, &l->why);
	if (!ret)
		ret = reqrunning_at(l->asked, l->store, l->words, l->n_words, l->to_ns, &l->running,
				    &l->why);
	if (!ret)
		live_arrange(l);
}

char *live_stacks(const struct live *l, uint32_t pid, unsigned width, bool unicode, struct err *e)
{
	struct selection *sel = NULL;
	struct live_window w;
	struct fold *f = NULL;
	char *text = NULL;
	size_t len = 0;
	FILE *out;
	int ret = select_new(live_select(l, pid, &w), l->store, NULL, 0, true, &sel, e);

	if (!ret)
		ret = fold_make(sel, &(struct fold_opts){.kind = STORE_KIND_CPU}, &f, e);
	out = ret ? NULL : open_memstream(&text, &len);
	if (out) {
		flame_text_write(f, out, width, unicode);
		fclose(out);
	}
	fold_free(f);
	select_free(sel);
	return text;
}
