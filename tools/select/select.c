/* SPDX-License-Identifier: Apache-2.0 */
/* select: the range and the filters of a verb, resolved against a store. */
#include "tools/select/select.h"

#include <ctype.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cli/quantity.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/base/units.h"
#include "schema/store/read/days.h"
#include "schema/store/read/unreadable.h"
#include "tools/print/term.h"
#include "tools/print/when.h"
#include "tools/select/called.h"
#include "tools/select/filter.h"
#include "tools/select/word.h"

#define DEFAULT_NS (15ll * 60 * NSEC_PER_SEC)
#define AT_NS      (30ll * NSEC_PER_SEC)
#define SET_BACK_NS                                                                               \
	(60ll * NSEC_PER_SEC) /* what was recorded so far in the future, an earlier clock stamped \
			       */

#define ARG(field) OPTION_AT(struct select_args, field)

const struct option SELECT_RANGE_OPTIONS[] = {
	{"last", 0, OPTION_DURATION, "TIME", NULL, ARG(last_ns)},
	{"from", 0, OPTION_STRING, "T", NULL, ARG(from)},
	{"to", 0, OPTION_STRING, "T", NULL, ARG(to)},
	{"at", 0, OPTION_STRING, "T", NULL, ARG(at)},
	{"rec", 0, OPTION_STRING, "ID", NULL, ARG(rec)},
	{0},
};

#define FILTER_OPTION(name, letter, value) {#name, letter, OPTION_LIST, value, NULL, ARG(name)},

const struct option SELECT_FILTER_OPTIONS[] = {
	SELECT_FILTERS(FILTER_OPTION){"self", 0, OPTION_FLAG, NULL, NULL, ARG(self)},
	{0},
};

bool select_has_range(const struct select_args *a)
{
	return a->last_ns || a->from || a->to || a->at || a->rec;
}

bool select_has_filters(const struct select_args *a)
{
#define HAS_FILTER(name, letter, value) || a->name.n
	return false SELECT_FILTERS(HAS_FILTER);
}

void select_filters_replace(struct select_args *to, const struct select_args *from)
{
#define REPLACE_FILTER(name, letter, value) \
	if (from->name.n)                   \
		to->name = from->name;
	SELECT_FILTERS(REPLACE_FILTER)
}

/* --- the segments that it holds open --- */

#define SELECT_HELD  48 /* open; a question goes over its segments more than once */
#define SELECT_AWAKE 2  /* with what was read: a window of minutes is in one segment, or in two */

struct select_open {
	struct held {
		char *path; /* NULL: free */
		struct store_segment *segment;
	} held[SELECT_HELD]; /* the one used last is first */
	unsigned users;      /* selections */
};

/* What select_parts found, for the range that was asked for. */
struct select_days {
	struct store_part *v; /* NULL: not asked yet */
	size_t n;
	int64_t from_ns, to_ns;
};

static struct select_open *open_new(void)
{
	struct select_open *o = mem_alloc(sizeof(*o));

	o->users = 1;
	return o;
}

static void held_release(struct held *h)
{
	free(h->path);
	store_segment_close(h->segment);
	*h = (struct held){0};
}

static void release_all(struct select_open *o)
{
	for (int i = 0; o && i < SELECT_HELD; i++)
		held_release(&o->held[i]);
}

static void open_free(struct select_open *o)
{
	if (!o || --o->users)
		return;
	release_all(o);
	free(o);
}

void select_share(struct selection *s, const struct selection *of)
{
	if (s->open == of->open)
		return;
	open_free(s->open);
	s->open = of->open;
	s->open->users++;
}

void select_segments_close(const struct selection *s)
{
	release_all(s->open);
}

static void move_to_front(struct select_open *o, int i)
{
	struct held h = o->held[i];

	if (i >= SELECT_AWAKE && o->held[SELECT_AWAKE - 1].segment)
		store_segment_rest(o->held[SELECT_AWAKE - 1].segment);
	memmove(&o->held[1], &o->held[0], (size_t)i * sizeof(h));
	o->held[0] = h;
}

/* A segment that was opened to look at it: it is held from here on. */
static void open_take(struct select_open *o, const char *path, struct store_segment *segment)
{
	held_release(&o->held[SELECT_HELD - 1]);
	o->held[SELECT_HELD - 1] = (struct held){mem_strdup(path), segment};
	move_to_front(o, SELECT_HELD - 1);
}

int select_segment(const struct selection *s, const char *path, struct store_segment **out,
		   struct err *e)
{
	struct select_open *o = s->open;
	struct store_segment *new;
	int rc;

	for (int i = 0; i < SELECT_HELD; i++) {
		if (!o->held[i].path || strcmp(o->held[i].path, path))
			continue;
		move_to_front(o, i);
		*out = o->held[0].segment;
		return 0;
	}
	rc = store_segment_open(path, &new, e);
	if (rc)
		return rc;
	open_take(o, path, new);
	*out = new;
	return 0;
}

size_t select_parts(const struct selection *s, const struct store_part **out)
{
	const bool may = !s->rec && !store_names_hosts() && !strchr(s->store, STORE_LIST);
	struct select_days *d = s->days;

	if (d->v && (d->from_ns != s->from_ns || d->to_ns != s->to_ns)) {
		free(d->v);
		*d = (struct select_days){0};
	}
	if (!d->v)
		store_days(s->segments, s->n_segments, may ? s->from_ns : INT64_MAX,
			   may ? s->to_ns : 0, &d->v, &d->n);
	d->from_ns = s->from_ns;
	d->to_ns = s->to_ns;
	*out = d->v;
	return d->n;
}

/* --- the range --- */

static int parse_time(const char *option, const char *text, int64_t now, int64_t *out,
		      struct err *e)
{
	if (!when_parse(text, now, out))
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE, "--%s: '%.100s' is not a time", option, text);
	if (*text == '-' && quantity_lacks_unit(text + 1))
		err_fix(e, "--%s %.100ss or --%s %.100sm", option, text, option, text);
	else
		err_fix(e,
			"sonde help range    for example --%s 03:10, --%s 'yesterday 03:10', --%s -2h",
			option, option, option);
	return -EINVAL;
}

static int check_one_range(const struct select_args *a, struct err *e)
{
	int given = (a->last_ns != 0) + (a->from || a->to) + (a->at != NULL) + (a->rec != NULL);

	if (given <= 1)
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE,
		"only one of --last, --from/--to, --at and --rec can be given");
	err_fix(e, "sonde help range");
	return -EINVAL;
}

/* "04:00" that is still to come today: at 03:30, of a range that began at 03:00, it is not
 * yesterday's. */
static bool is_to_come(const char *text, int64_t now)
{
	char today[64];
	int64_t t;

	return *text >= '0' && *text <= '9' &&
	       snprintf(today, sizeof(today), "today %s", text) < (int)sizeof(today) &&
	       !when_parse(today, now, &t) && t > now;
}

static int range_from_to(struct selection *s, const struct select_args *a, int64_t now,
			 struct err *e)
{
	int rc = 0;

	s->to_ns = now;
	if (a->to)
		rc = parse_time("to", a->to, now, &s->to_ns, e);
	s->from_ns = s->to_ns - DEFAULT_NS;
	if (!rc && a->from)
		rc = parse_time("from", a->from, now, &s->from_ns, e);
	if (!rc && a->to && s->from_ns >= s->to_ns && is_to_come(a->to, now))
		s->to_ns = now;
	if (rc || s->from_ns < s->to_ns)
		return rc;
	err_set(e, -EINVAL, EXIT_USAGE, "the range is empty: --from is not before %s",
		a->to ? "--to" : "now");
	err_fix(e, "sonde help range");
	return -EINVAL;
}

static int range_at(struct selection *s, const struct select_args *a, int64_t now, struct err *e)
{
	int64_t t;
	int rc = parse_time("at", a->at, now, &t, e);

	if (rc)
		return rc;
	s->from_ns = t > AT_NS ? t - AT_NS : 0;
	s->to_ns = t + AT_NS;
	return 0;
}

/* "17", "last", "last~2" -> index into n recordings */
static int parse_rec(const char *text, size_t n, size_t *index, struct err *e)
{
	const bool last = !strncmp(text, "last", 4);
	const char *digits = last ? text + 4 + (text[4] == '~') : text;
	unsigned long v = strtoul(digits, NULL, 10);
	bool good = digits[strspn(digits, "0123456789")] == '\0' && strlen(digits) <= 9;

	if (last)
		good = good && (text[4] == '\0' || (text[4] == '~' && digits[0]));
	else
		good = good && digits[0];
	if (!good) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"--rec takes a number, last or last~N, not '%.100s'", text);
		err_fix(e, "sonde status");
		return -EINVAL;
	}
	if (last ? v >= n : v < 1 || v > n) {
		err_set(e, -ENOENT, EXIT_USAGE, "there is no recording %.30s: the store has %zu",
			text, n);
		err_fix(e, "sonde status");
		return -ENOENT;
	}
	*index = last ? n - 1 - v : v - 1;
	return 0;
}

/* All of it when named, else its last 15 minutes. A bucket begins before what it holds. */
static void range_recording(struct selection *s, struct select_recording *r, bool whole)
{
	int64_t took_ns;

	s->rec = r->number;
	snprintf(s->families, sizeof(s->families), "%s", r->family);
	s->from_ns = r->from_ns - r->bucket_s * NSEC_PER_SEC;
	s->to_ns = r->to_ns > r->from_ns ? r->to_ns : r->from_ns + 1;
	s->gap_from_ns = r->gap_from_ns;
	s->gap_to_ns = r->gap_to_ns;
	took_ns = s->to_ns - s->from_ns - (r->gap_to_ns - r->gap_from_ns);
	if (!whole && took_ns > DEFAULT_NS)
		s->from_ns = s->to_ns - DEFAULT_NS;
	s->runs = take_ptr(r->runs);
	s->n_runs = r->n_runs;
	r->n_runs = 0;
}

/* What goes on has its last rows now. Rows of later times are of before the clock was set back. */
static bool goes_on_before(const struct select_recording *r, int64_t now)
{
	return r->always && !r->state && r->from_ns < now && r->to_ns > now + SET_BACK_NS;
}

/* Each family begins and ends by itself, and again after each restart. Of what records always the
 * last 15 minutes, of what was imported all. */
static void range_always(struct selection *s, const struct select_recording *list, size_t n,
			 int64_t now)
{
	int64_t from_ns = INT64_MAX, last_ns;
	bool set_back = false;

	for (size_t i = 0; i < n; i++) {
		if (list[i].always && list[i].to_ns > s->to_ns)
			s->to_ns = list[i].to_ns;
		set_back = set_back || goes_on_before(&list[i], now);
	}
	if (set_back)
		s->to_ns = now;
	last_ns = s->to_ns - DEFAULT_NS;
	for (size_t i = 0; i < n; i++) {
		int64_t begin_ns = list[i].from_ns - list[i].bucket_s * NSEC_PER_SEC;

		if (!list[i].always || list[i].to_ns <= last_ns)
			continue;
		if (begin_ns < last_ns && strcmp(list[i].family, "import"))
			begin_ns = last_ns;
		if (begin_ns < from_ns)
			from_ns = begin_ns;
	}
	s->from_ns = from_ns < INT64_MAX ? from_ns : last_ns;
}

static int range_of_recording(struct selection *s, const char *rec, int64_t now, struct err *e)
{
	struct select_recording *list = NULL;
	size_t n = 0, index = 0;
	int rc = select_recordings(s->store, &list, &n, e);

	if (!rc && !n) {
		rc = err_set(e, -ENODATA, EXIT_NOTHING, "the store %s has no recording yet",
			     s->store);
		err_fix(e, "sudo sonde record -d 10s");
	}
	if (!rc)
		rc = parse_rec(rec ? rec : "last", n, &index, e);
	while (!rc && !rec && index && list[index].kept) /* only where --rec names it */
		index--;
	if (!rc && !rec && list[index].always)
		range_always(s, list, n, now);
	else if (!rc)
		range_recording(s, &list[index], rec != NULL);
	select_recordings_free(list, n);
	return rc;
}

/* Of several stores: a recording is of one of them, so it is the last 15 minutes that any has
 * something of. */
static int range_of_hosts(struct selection *s, struct err *e)
{
	struct store_segment_info *all = NULL;
	size_t n = 0;
	int rc = store_segments(s->store, 0, INT64_MAX, &all, &n, e);

	for (size_t i = 0; !rc && i < n; i++)
		if (all[i].to_ns > s->to_ns)
			s->to_ns = all[i].to_ns;
	free(all);
	if (!rc && !s->to_ns)
		rc = err_set(e, -ENODATA, EXIT_NOTHING, "these stores are empty");
	s->from_ns = s->to_ns - DEFAULT_NS;
	return rc;
}

static int resolve_range(struct selection *s, const struct select_args *a, int64_t now,
			 struct err *e)
{
	int rc = check_one_range(a, e);

	if (rc)
		return rc;
	s->range_given = a->last_ns || a->from || a->to || a->at || a->rec;
	if (a->last_ns) {
		s->to_ns = now;
		s->from_ns = a->last_ns < now ? now - a->last_ns : 0;
		return 0;
	}
	if (a->from || a->to)
		return range_from_to(s, a, now, e);
	if (a->at)
		return range_at(s, a, now, e);
	return !a->rec && store_names_hosts() ? range_of_hosts(s, e) :
						range_of_recording(s, a->rec, now, e);
}

static void describe_range(struct selection *s, int64_t now)
{
	char from[32], to[32], length[32], rec[32] = "";

	if (s->rec)
		snprintf(rec, sizeof(rec), "rec %lld, ", (long long)s->rec);
	snprintf(s->range, sizeof(s->range), "%s%s to %s (%s)", rec,
		 when_local(s->from_ns, now, from, sizeof(from)),
		 when_local(s->to_ns, now, to, sizeof(to)),
		 units_ns(s->to_ns - s->from_ns, length, sizeof(length)));
}

/* --- filters and words --- */

static int add_list(struct filters *f, enum filter_kind kind, const struct option_list *l,
		    struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < l->n && !rc; i++)
		rc = filters_add(f, kind, l->items[i], e);
	return rc;
}

static bool is_measure(const char *word)
{
	static const char *const words[] = {"samples", "events", "objects", "time", "bytes"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(word, words[i]))
			return true;
	return false;
}

/* Units of systemd, and the unit of measure. */
static int add_units(struct selection *s, const struct option_list *l, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < l->n && !rc; i++)
		if (is_measure(l->items[i]))
			s->measure = l->items[i];
		else
			rc = filters_add(s->filters, FILTER_UNIT, l->items[i], e);
	return rc;
}

static int add_filters(struct selection *s, const struct select_args *a, struct err *e)
{
	/* clang-format off */
	const struct option_list *const lists[FILTER_N] = {
		[FILTER_CONTAINER] = &a->container, [FILTER_IMAGE] = &a->image, [FILTER_PID] = &a->pid,
		[FILTER_TID] = &a->tid,		    [FILTER_COMM] = &a->comm,	[FILTER_EXE] = &a->exe,
		[FILTER_USER] = &a->user,	    [FILTER_CGROUP] = &a->cgroup,
		[FILTER_LANG] = &a->lang,	    [FILTER_HOST] = &a->host,
		[FILTER_LABEL] = &a->label,
	};
	/* clang-format on */
	int rc = add_units(s, &a->unit, e);

	for (int k = 0; k < FILTER_N && !rc; k++)
		if (k != FILTER_UNIT)
			rc = add_list(s->filters, (enum filter_kind)k, lists[k], e);
	return rc;
}

static int read_names(struct names *l, const struct store_segment_info *segments, size_t n,
		      struct err *e)
{
	int rc = 0;

	for (size_t i = n; i-- > 0 && !rc;)
		rc = names_read(l, segments[i].path, e);
	return rc;
}

/* Names of the range first, then those of the whole store: what was there at another time is no
 * typing error. */
static int resolve_word(struct selection *s, const char *word, bool quiet, struct err *e)
{
	struct store_segment_info *all = NULL;
	struct names l = {0};
	size_t index = 0, n = 0;
	int rc = read_names(&l, s->segments, s->n_segments, e);

	if (!rc)
		rc = word_resolve(&l, word, &index, e);
	if (rc == -ENOENT) {
		rc = store_segments(s->store, 0, INT64_MAX, &all, &n, e);
		if (!rc)
			rc = read_names(&l, all, n, e);
		if (!rc)
			rc = word_resolve(&l, word, &index, e);
		if (rc == -ENOENT)
			rc = word_unknown(&l, word, e);
	}
	if (!rc) {
		const struct name *name = &l.items[index];

		if (!quiet && strcmp(name->text, word))
			term_printf(stderr, "%s: %s %s\n", word, filter_kind_name(name->kind),
				    name->text);
		rc = filters_add(s->filters, name->kind, name->text, e);
	}
	names_release(&l);
	free(all);
	return rc;
}

static int resolve_words(struct selection *s, char *const *words, size_t n, bool quiet,
			 struct err *e)
{
	if (n <= 1)
		return n ? resolve_word(s, words[0], quiet, e) : 0;
	err_set(e, -EINVAL, EXIT_USAGE,
		"only one word can be searched for, not %zu: '%.60s', '%.60s'", n, words[0],
		words[1]);
	err_fix(e,
		"--container, --comm, --unit and --pid can be given again and again; sonde help filters");
	return -EINVAL;
}

static bool segment_knows(const char *path, const char *sql)
{
	struct store_segment *s = NULL;
	sqlite3_stmt *st = NULL;
	bool known;

	if (store_segment_open(path, &s, NULL))
		return true;
	known = store_segment_prepare(s, sql, &st) != SQLITE_OK || sqlite3_step(st) == SQLITE_ROW;
	sqlite3_finalize(st);
	store_segment_close(s);
	return known;
}

/* Not every store can answer every filter: then it matches nothing, and that is said. */
static void say_unknown(const struct selection *s)
{
	static const struct {
		enum filter_kind kind;
		const char *sql;
	} checks[] = {
		{FILTER_CONTAINER, "SELECT 1 FROM processes WHERE container <> '' LIMIT 1"},
		{FILTER_IMAGE, "SELECT 1 FROM containers WHERE image <> '' LIMIT 1"},
		{FILTER_UNIT, "SELECT 1 FROM processes WHERE unit <> '' LIMIT 1"},
		{FILTER_LANG, "SELECT 1 FROM processes WHERE lang <> '' LIMIT 1"},
	};

	/* a verb may ask about several ranges: it is said of the first */
	static bool told[ARRAY_SIZE(checks)];

	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		bool known = told[i] || !s->n_segments || !filters_have(s->filters, checks[i].kind);

		for (size_t k = 0; k < s->n_segments && !known; k++)
			known = segment_knows(s->segments[k].path, checks[i].sql);
		if (known)
			continue;
		told[i] = true;
		log_warn("--%s matches nothing: no process in this range has this recorded",
			 filter_kind_name(checks[i].kind));
	}
}

static void describe_filters(struct selection *s)
{
	struct strbuf text = STRBUF_INIT;
	struct strbuf what cleanup_strbuf = STRBUF_INIT;

	filters_text(s->filters, &text);
	filters_what(s->filters, &what);
	snprintf(s->what, sizeof(s->what), "%s", strbuf_str(&what));
	if (what.len >= sizeof(s->what)) { /* not in the middle of a character */
		size_t len = sizeof(s->what) - 1;

		while (len && ((unsigned char)strbuf_str(&what)[len] & 0xc0) == 0x80)
			len--;
		s->what[len] = '\0';
	}
	s->filter_text = strbuf_take(&text);
}

static int check_hosts(const struct selection *s, struct err *e)
{
	if (!filters_have(s->filters, FILTER_HOST) || store_names_hosts())
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE,
		"--host selects among several stores, and this is only one");
	err_fix(e, "--store DIR --store DIR --host NAME");
	return -EINVAL;
}

static void leave_hosts_out(struct selection *s)
{
	size_t n = 0;

	for (size_t i = 0; filters_have(s->filters, FILTER_HOST) && i < s->n_segments; i++) {
		if (filters_want_host(s->filters, s->segments[i].host))
			s->segments[n++] = s->segments[i];
		else
			store_segment_close(s->segments[i].open);
	}
	if (filters_have(s->filters, FILTER_HOST))
		s->n_segments = n;
}

/* What was opened to look at it is read soon: it stays so. */
static int find_segments(struct selection *s, struct err *e)
{
	int rc = check_hosts(s, e);

	if (!rc)
		rc = store_segments_open(s->store, s->from_ns, s->to_ns, SELECT_AWAKE, &s->segments,
					 &s->n_segments, e);
	if (!rc)
		leave_hosts_out(s);

	for (size_t i = 0; !rc && i < s->n_segments; i++) {
		struct store_segment_info *info = &s->segments[i];

		if (info->open)
			open_take(s->open, info->path, info->open);
		info->open = NULL;
	}
	return rc;
}

/* A question that is asked again without a damaged file (tools/verbs/retry.h) says what it asks
 * once. */
static void say_selection(const struct selection *s)
{
	static struct strbuf said = STRBUF_INIT;
	struct strbuf line cleanup_strbuf = STRBUF_INIT;

	strbuf_addf(&line, "%s%s%s%s%s\n", term_on(stderr, TERM_DIM), s->range,
		    s->filter_text[0] ? "   " : "", s->filter_text, term_off(stderr));
	if (unreadable_path(0) && strstr(strbuf_str(&said), strbuf_str(&line)))
		return;
	strbuf_addstr(&said, strbuf_str(&line));
	fputs(strbuf_str(&line), stderr);
}

static int resolve(struct selection *s, const struct select_args *a, char *const *words,
		   size_t n_words, bool quiet, struct err *e)
{
	int64_t now = clock_utc_ns();
	int rc = add_filters(s, a, e);

	if (!rc)
		rc = resolve_range(s, a, now, e);
	if (!rc)
		rc = find_segments(s, e);
	if (!rc)
		rc = resolve_words(s, words, n_words, quiet, e);
	if (!rc)
		rc = called_find(s, s->filters, e);
	if (rc)
		return rc;
	say_unknown(s);
	describe_range(s, now);
	describe_filters(s);
	if (!quiet)
		say_selection(s);
	return 0;
}

int select_new(const struct select_args *a, const char *store, char *const *words, size_t n_words,
	       bool quiet, struct selection **out, struct err *e)
{
	struct selection *s = mem_alloc(sizeof(*s));
	int rc;

	s->store = store;
	s->self = a->self;
	s->filters = filters_new();
	s->open = open_new();
	s->days = mem_alloc(sizeof(*s->days));
	rc = resolve(s, a, words, n_words, quiet, e);
	if (rc) {
		select_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

void select_free(struct selection *s)
{
	if (!s)
		return;
	open_free(s->open);
	if (s->days)
		free(s->days->v);
	free(s->days);
	filters_free(s->filters);
	free(s->runs);
	free(s->segments);
	free(s->filter_text);
	free(s);
}

struct store_process_row select_process_row(const char *comm, const char *container,
					    const char *container_id)
{
	return (struct store_process_row){.comm = comm,
					  .exe = "",
					  .args = "",
					  .cgroup = "",
					  .unit = "",
					  .container = container,
					  .container_id = container_id,
					  .container_image = "",
					  .runtime = "",
					  .project = "",
					  .service = "",
					  .lang = "",
					  .lang_runtime = "",
					  .present = true};
}

bool select_is_kernel(const struct store_process_row *p)
{
	return (p->pid == 2 || p->ppid == 2) && !*p->exe && !*p->args && !*p->container_id;
}

bool select_wants_process(const struct selection *s, const struct store_process_row *p)
{
	if (p->self && !s->self && !filters_name_process(s->filters, p))
		return false;
	return filters_want_process(s->filters, p);
}

bool select_wants_thread(const struct selection *s, uint32_t tid)
{
	return filters_want_thread(s->filters, tid);
}

bool select_wants(const struct selection *s, const struct store_process_row *p, uint32_t tid)
{
	return select_wants_process(s, p) && select_wants_thread(s, tid) &&
	       select_wants_labels(s, "");
}

bool select_wants_labels(const struct selection *s, const char *labels)
{
	return filters_want_labels(s->filters, labels);
}

bool select_is_narrow(const struct selection *s)
{
	return !filters_empty(s->filters);
}

int64_t select_run_in(const struct selection *s, const char *segment_path, size_t nth)
{
	if (!s->rec)
		return nth ? -1 : 0;
	for (size_t i = 0; i < s->n_runs; i++)
		if (!strcmp(s->runs[i].segment, segment_path) && !nth--)
			return s->runs[i].run;
	return -1;
}

int select_nothing(const struct selection *sel, const char *family, const char *things,
		   const char *what, const char *next, struct err *e)
{
	if (family) {
		err_set(e, -ENOENT, EXIT_NOTHING,
			"no %s were recorded in %s: family %s was not recorded", things, sel->range,
			family);
		err_fix(e, "sudo sonde record --families %s", family);
	} else {
		err_set(e, -ENOENT, EXIT_NOTHING, "%s in %s%s%s", what, sel->range,
			*sel->what ? " of " : "", sel->what);
		err_fix(e, "%s", next);
	}
	return -ENOENT;
}
