/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_screen: see the header. The screen, from the top: what is looked at; sort, filter and
 * notices; requests that run, if any do; the rows of `ps`, or the stacks of one process, or the
 * keys; the most used keys. Each line is cut to the screen's width, all is written at once.
 *
 * Reading takes what it takes: a store that needs long is asked less often, so that watching costs
 * at most a fifth of a CPU.
 */
#include "tools/processes/live_screen.h"

#include <langinfo.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/units.h"
#include "tools/fold/fold_kind.h"
#include "tools/print/keys.h"
#include "tools/print/term.h"
#include "tools/print/tty.h"
#include "tools/print/when.h"
#include "tools/processes/process_report.h"
#include "tools/requests/runprint.h"

#define GUTTER      2 /* columns left of a row: the mark of the chosen one */
#define FEWEST_ROWS 6
#define CALM        5 /* after a reading, pause at least this many times its length */

enum showing { SHOW_ROWS, SHOW_STACKS, SHOW_KEYS };

struct screen {
	struct live *l;
	enum showing showing;
	bool typing;      /* the filter */
	size_t at, first; /* the chosen row, the first on the screen */
	uint32_t pid;     /* chosen: stays with its process while rows move */
	char *stacks;     /* text of SHOW_STACKS; NULL: see note */
	size_t line;      /* its first line on the screen */
	char note[256];
	unsigned rows, columns;
	FILE *out; /* the screen being drawn */
	bool quit;
};

static const char *const SORTS[] = {"cpu", "pid", "name", "start"};

static const char *const KEYS[] = {
	"up, down    choose a row; PageUp, PageDown a screen; g, G first, last",
	"Enter       the stacks of the chosen process; Escape goes back",
	"left, right a window earlier, later; [ and ] ten windows",
	"Home        the first window that is recorded",
	"l, End      follow the clock",
	"Space       stop here",
	"1 2 3 4     sort by cpu, pid, name, start; 5 and on by the columns after SHARE; s the next",
	"/           filter by a part of command, container, unit, pid; Escape: none",
	"r           read again",
	"q, Ctrl-C   quit",
	NULL,
};

static size_t body_rows(const struct screen *s)
{
	const size_t others = s->l->running.n ? 5 : 4;

	return s->rows > FEWEST_ROWS ? s->rows - others : FEWEST_ROWS - 4;
}

/* --- drawing --- */

static void put_line(const struct screen *s, const char *text, const char *on)
{
	struct strbuf cut cleanup_strbuf = STRBUF_INIT;
	bool color = *on && term_has_color(stdout);

	term_add_middle(&cut, text, s->columns);
	fprintf(s->out, "%s%s%s\033[K\r\n", color ? on : "", strbuf_str(&cut),
		color ? "\033[0m" : "");
}

static void put_title(const struct screen *s)
{
	const struct live *l = s->l;
	const int64_t now = clock_utc_ns();
	char from[32], to[32], length[32], line[256];
	size_t date;

	when_local(l->to_ns - l->window_ns, now, from, sizeof(from));
	when_local(l->to_ns, now, to, sizeof(to));
	date = strcspn(to, " ");
	date = to[date] && !strncmp(from, to, date) ? date + 1 : 0; /* the same day is said once */
	snprintf(line, sizeof(line), "sonde top  %s  %s to %s (%s)",
		 l->follows ? "live" : "stopped at", from, to + date,
		 units_ns(l->window_ns, length, sizeof(length)));

	put_line(s, line, "\033[1m");
}

static void put_state(const struct screen *s)
{
	const struct live *l = s->l;
	char line[512];
	int n = 0;

	if (l->f && l->f->to_ns > l->f->from_ns)
		n = snprintf(line, sizeof(line), "%.2f of %u cores, %zu processes; ",
			     fold_cores(l->f, l->f->nodes[0].total_ns), l->f->cpus, l->n_all);
	n += snprintf(line + n, sizeof(line) - (size_t)n, "sorted by %s", l->sort);

	if (l->filter[0] || s->typing)
		n += snprintf(line + n, sizeof(line) - (size_t)n, "  filter: %s%s", l->filter,
			      s->typing ? "_" : "");
	if (s->note[0])
		snprintf(line + n, sizeof(line) - (size_t)n, "  %s", s->note);
	put_line(s, line, "");
}

/* Requests without an answer. */
static void put_running(const struct screen *s)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;

	runprint_say(&s->l->running, &text);
	if (text.len)
		put_line(s, strbuf_str(&text), "\033[33m");
}

/* The chosen row stays with its process, and on the screen. */
static void choose(struct screen *s)
{
	const struct live *l = s->l;
	size_t n = l->rows.n, body = body_rows(s);

	for (size_t i = 0; i < n && s->pid; i++)
		if (l->rows.rows[i].who->pid == s->pid) {
			s->at = i;
			break;
		}
	s->at = s->at < n ? s->at : n ? n - 1 : 0;
	if (s->first > s->at)
		s->first = s->at;
	if (s->at >= s->first + body)
		s->first = s->at - body + 1;
	if (s->first + body > n)
		s->first = n > body ? n - body : 0;
}

static void put_text(const struct screen *s, const char *text, size_t n)
{
	for (size_t i = 0; i < n && *text; i++) {
		size_t len = strcspn(text, "\n");
		cleanup_free char *line = mem_strndup(text, len);

		put_line(s, line, "");
		text += len + (text[len] == '\n');
	}
}

static void put_rows(struct screen *s)
{
	const struct live *l = s->l;
	struct process_rows page;
	cleanup_free char *text = NULL;
	struct table *t;
	size_t len = 0, n, i = 0;
	FILE *out;

	choose(s);
	n = l->rows.n - s->first < body_rows(s) ? l->rows.n - s->first : body_rows(s);
	page = l->rows; /* what is looked up stays: parents */
	page.rows += s->first;
	page.n = n;
	t = process_report_table(l->f, &page, n);
	out = open_memstream(&text, &len);
	if (out) {
		table_print_fit(t, out, s->columns > GUTTER + 20 ? s->columns - GUTTER : 20);
		fclose(out);
	}
	table_free(t);
	for (const char *line = text ? text : ""; *line; i++) {
		size_t end = strcspn(line, "\n");
		struct strbuf row cleanup_strbuf = STRBUF_INIT;
		bool chosen = i == s->at - s->first + 1;

		strbuf_addf(&row, "%s%.*s", chosen ? "> " : "  ", (int)end, line);
		put_line(s, strbuf_str(&row), !i ? "\033[1m" : chosen ? "\033[7m" : "");
		line += end + (line[end] == '\n');
	}
	if (!l->rows.n)
		put_line(s,
			 l->n_all ? "nothing passes the filter: / changes it, Escape removes it" :
				    "no CPU time was used",
			 "");
}

static const char *skip_lines(const char *text, size_t n)
{
	while (n-- && *text)
		text += strcspn(text, "\n") + (strchr(text, '\n') != NULL);
	return text;
}

static void put_body(struct screen *s)
{
	const struct live *l = s->l;

	if (s->showing == SHOW_KEYS) {
		for (const char *const *k = KEYS; *k; k++)
			put_line(s, *k, "");
	} else if (!l->f) {
		put_line(s, l->why.what, "");
		if (l->why.fix[0]) {
			struct strbuf fix cleanup_strbuf = STRBUF_INIT;

			strbuf_addf(&fix, "  fix: %s", l->why.fix);
			put_line(s, strbuf_str(&fix), "");
		}
		put_line(s, "left: the recorded time before", "");
	} else if (s->showing == SHOW_STACKS) {
		put_text(s, skip_lines(s->stacks ? s->stacks : "", s->line), body_rows(s) + 1);
	} else {
		put_rows(s);
	}
}

static void draw(struct screen *s)
{
	cleanup_free char *text = NULL;
	struct strbuf keys cleanup_strbuf = STRBUF_INIT;
	size_t len = 0;

	tty_size(&s->rows, &s->columns);
	s->out = open_memstream(&text, &len);
	if (!s->out)
		return;
	fputs("\033[H", s->out);
	put_title(s);
	put_state(s);
	put_running(s);
	put_body(s);
	term_add_middle(
		&keys,
		s->showing == SHOW_ROWS ?
			"Enter stacks  left/right time  l live  1-4 sort  / filter  ? keys  q quit" :
			"Escape back  up/down scroll  left/right time  l live  ? keys  q quit",
		s->columns);
	fprintf(s->out, "\033[J\033[%u;1H%s\033[K", s->rows, strbuf_str(&keys));
	fclose(s->out);
	tty_draw(text, len);
}

/* --- reading --- */

static uint32_t chosen_pid(const struct screen *s)
{
	const struct live *l = s->l;

	return l->f && s->at < l->rows.n ? l->rows.rows[s->at].who->pid : 0;
}

static void read_stacks(struct screen *s)
{
	struct err e = {0};

	free(s->stacks);
	s->stacks =
		live_stacks(s->l, s->pid, s->columns, !strcmp(nl_langinfo(CODESET), "UTF-8"), &e);
	snprintf(s->note, sizeof(s->note), s->stacks ? "stacks of pid %u" : "pid %u: %s", s->pid,
		 e.what);
}

static void read_again(struct screen *s)
{
	live_read(s->l);
	if (s->showing == SHOW_STACKS)
		read_stacks(s);
}

static void step(struct screen *s, int windows)
{
	if (!live_step(s->l, windows))
		snprintf(s->note, sizeof(s->note), "nothing is recorded %s",
			 windows < 0 ? "before" : "after");
	else
		read_again(s);
}

/* --- keys --- */

static void sort_by(struct screen *s, const char *key)
{
	if (!key)
		return;
	s->l->sort = key;
	live_arrange(s->l);
}

/* The i-th of all there are: those of every row, and what else was recorded in this window. NULL:
 * there are fewer. */
static const char *sort_key(const struct live *l, size_t i)
{
	static const char *const of_used[] = {"mem", "io"};
	const size_t n = ARRAY_SIZE(SORTS), n_used = l->used.known ? ARRAY_SIZE(of_used) : 0;

	if (i < n + n_used)
		return i < n ? SORTS[i] : of_used[i - n];
	return i - n - n_used < l->more.n ? l->more.fold[i - n - n_used]->kind->name : NULL;
}

static const char *next_sort(const struct live *l)
{
	const char *key;

	for (size_t i = 0; (key = sort_key(l, i)); i++)
		if (!strcmp(key, l->sort))
			return sort_key(l, i + 1) ? sort_key(l, i + 1) : SORTS[0];
	return SORTS[0];
}

/* By rows, or by lines of the stacks. */
static void move(struct screen *s, long by)
{
	size_t *at = s->showing == SHOW_STACKS ? &s->line : &s->at, n = s->l->rows.n;

	if (s->showing == SHOW_STACKS) {
		n = 1;
		for (const char *p = s->stacks; p && (p = strchr(p, '\n')); p++)
			n++;
		n = n > body_rows(s) ? n - body_rows(s) : 1;
	}
	*at = by < 0 ? (*at > (size_t)-by ? *at - (size_t)-by : 0) : *at + (size_t)by;
	*at = *at < n ? *at : n ? n - 1 : 0;
	if (s->showing == SHOW_ROWS)
		s->pid = chosen_pid(s);
}

static void type(struct screen *s, uint32_t key)
{
	char *f = s->l->filter;
	size_t len = strlen(f);

	if (key == KEY_ENTER || key == KEY_ESCAPE) {
		s->typing = false;
		if (key == KEY_ESCAPE)
			*f = '\0';
	} else if (key == KEY_BACKSPACE) {
		while (len && (f[--len] & 0xc0) == 0x80)
			;
		f[len] = '\0';
	} else if (key >= ' ' && key < KEY_UP && len + 5 < LIVE_FILTER) {
		if (key < 0x80)
			f[len++] = (char)key;
		else if (key < 0x800)
			f[len++] = (char)(0xc0 | key >> 6);
		else if (key < 0x10000)
			f[len++] = (char)(0xe0 | key >> 12);
		else
			f[len++] = (char)(0xf0 | key >> 18);
		for (int shift = key < 0x80    ? 0 :
				 key < 0x800   ? 6 :
				 key < 0x10000 ? 12 :
						 18;
		     shift; shift -= 6)
			f[len++] = (char)(0x80 | (key >> (shift - 6) & 0x3f));
		f[len] = '\0';
	}
	live_arrange(s->l);
}

static void leave_part(struct screen *s)
{
	if (s->showing == SHOW_ROWS)
		s->l->filter[0] = '\0';
	s->showing = SHOW_ROWS;
	live_arrange(s->l);
}

static void open_stacks(struct screen *s)
{
	uint32_t pid = s->showing == SHOW_ROWS ? chosen_pid(s) : 0;

	if (!pid)
		return;
	s->pid = pid;
	s->showing = SHOW_STACKS;
	s->line = 0;
	read_stacks(s);
}

static void first_recorded(struct screen *s)
{
	struct live *l = s->l;
	int64_t was = l->to_ns;

	l->to_ns = l->window_ns;
	if (live_step(l, 1))
		read_again(s);
	else
		l->to_ns = was;
}

static void press(struct screen *s, uint32_t key)
{
	const long body = (long)body_rows(s);

	s->note[0] = '\0';
	if (s->typing) {
		type(s, key);
		return;
	}
	switch (key) {
	case 'q':
		s->quit = true;
		break;
	case KEY_UP:
	case 'k':
		move(s, -1);
		break;
	case KEY_DOWN:
	case 'j':
		move(s, 1);
		break;
	case KEY_PAGE_UP:
		move(s, -body);
		break;
	case KEY_PAGE_DOWN:
		move(s, body);
		break;
	case 'g':
		move(s, -1000000);
		break;
	case 'G':
		move(s, 1000000);
		break;
	case KEY_LEFT:
		step(s, -1);
		break;
	case KEY_RIGHT:
		step(s, 1);
		break;
	case '[':
		step(s, -10);
		break;
	case ']':
		step(s, 10);
		break;
	case KEY_HOME:
		first_recorded(s);
		break;
	case KEY_END:
	case 'l':
		live_follow(s->l);
		read_again(s);
		break;
	case ' ':
		s->l->follows = s->l->waits = false;
		break;
	case 'r':
		read_again(s);
		break;
	case KEY_ENTER:
		open_stacks(s);
		break;
	case KEY_ESCAPE:
		leave_part(s);
		break;
	case '?':
		s->showing = s->showing == SHOW_KEYS ? SHOW_ROWS : SHOW_KEYS;
		break;
	case '/':
		s->typing = s->showing == SHOW_ROWS;
		break;
	case 's':
		sort_by(s, next_sort(s->l));
		break;
	case '1':
	case '2':
	case '3':
	case '4':
	case '5':
	case '6':
	case '7':
	case '8':
	case '9':
		sort_by(s, sort_key(s->l, key - '1'));
		break;
	default:
		break;
	}
	if (s->showing == SHOW_STACKS && !s->note[0])
		snprintf(s->note, sizeof(s->note), "stacks of pid %u", s->pid);
}

int live_screen(struct live *l, int64_t every_ns, struct err *e)
{
	struct screen s = {.l = l};
	int64_t next_ns = clock_boot_ns() + every_ns;
	int ret = tty_enter(e);

	while (!ret && !s.quit) {
		int64_t began = clock_boot_ns(), wait_ns;
		uint32_t key = KEY_NONE;
		enum tty_event event;

		if (began >= next_ns) {
			if (l->follows || l->waits)
				read_again(&s);
			next_ns = clock_boot_ns() + (clock_boot_ns() - began) * (CALM - 1);
			next_ns = next_ns > began + every_ns ? next_ns : began + every_ns;
		}
		draw(&s);
		wait_ns = next_ns - clock_boot_ns();
		event = tty_wait(wait_ns > 0 ? wait_ns / 1000000 + 1 : 1, &key);
		if (event == TTY_KEY)
			press(&s, key);
		s.quit = s.quit || event == TTY_GONE;
	}
	tty_leave();
	free(s.stacks);
	return ret;
}
