/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/host/events/oomlog.h"

#include <stdlib.h>
#include <string.h>

/* A piece of the log; not terminated. */
struct piece {
	const char *at, *end;
};

static struct piece next_line(struct piece *rest)
{
	const char *nl = memchr(rest->at, '\n', (size_t)(rest->end - rest->at));
	struct piece line = {rest->at, nl ? nl : rest->end};

	rest->at = nl ? nl + 1 : rest->end;
	return line;
}

/* The text after the first `words` in it; at NULL: not found. */
static struct piece after(struct piece in, const char *words)
{
	const char *found = memmem(in.at, (size_t)(in.end - in.at), words, strlen(words));

	return (struct piece){found ? found + strlen(words) : NULL, in.end};
}

static bool number(struct piece in, uint64_t *out)
{
	uint64_t v = 0;
	const char *p = in.at;

	while (p && p < in.end && *p >= '0' && *p <= '9' && v < UINT64_MAX / 16)
		v = v * 10 + (uint64_t)(*p++ - '0');
	if (!p || p == in.at || (p < in.end && *p >= '0' && *p <= '9'))
		return false;
	*out = v;
	return true;
}

static bool kilobytes(struct piece line, const char *words, uint64_t *out)
{
	uint64_t kb;

	if (!number(after(line, words), &kb) || kb > UINT64_MAX >> 11)
		return false;
	*out = kb * 1024;
	return true;
}

/* Up to one of `ends`, or the line's end. */
static void text(struct piece in, const char *ends, char *out, size_t size)
{
	size_t n = 0;

	while (in.at && in.at + n < in.end && n < size - 1 && in.at[n] && !strchr(ends, in.at[n])) {
		out[n] = in.at[n];
		n++;
	}
	out[n] = 0;
}

/* "<6>[   12.345678] words", with or without either, and perhaps "[ T1234] " behind. */
static struct piece words_of(struct piece line)
{
	const char *p = line.at;

	if (p < line.end && *p == '<') {
		p = memchr(p, '>', (size_t)(line.end - p));
		p = p ? p + 1 : line.at;
	}
	for (int i = 0; i < 2 && p < line.end && *p == '['; i++) {
		const char *close = memchr(p, ']', (size_t)(line.end - p));
		bool stamp = close && (i ? memchr(p, 'T', (size_t)(close - p)) ||
						       memchr(p, 'C', (size_t)(close - p)) :
					   memchr(p, '.', (size_t)(close - p)) != NULL);

		if (!stamp)
			break;
		p = close + 1;
		while (p < line.end && *p == ' ')
			p++;
	}
	return (struct piece){p, line.end};
}

/* ---- the table ---- */

struct columns {
	int rss, swap; /* which word of a row; -1: no table */
};

static struct piece next_word(struct piece *rest)
{
	struct piece w;

	while (rest->at < rest->end && *rest->at == ' ')
		rest->at++;
	w.at = rest->at;
	while (rest->at < rest->end && *rest->at != ' ')
		rest->at++;
	w.end = rest->at;
	return w;
}

static bool is_word(struct piece w, const char *word)
{
	return (size_t)(w.end - w.at) == strlen(word) && !memcmp(w.at, word, strlen(word));
}

/* Behind "[  pid  ]". */
static void head_read(struct piece rest, struct columns *c)
{
	struct piece w;

	*c = (struct columns){-1, -1};
	if (!rest.at)
		return;
	for (int i = 0; (w = next_word(&rest)), w.at < w.end; i++) {
		if (is_word(w, "rss"))
			c->rss = i;
		else if (is_word(w, "swapents"))
			c->swap = i;
	}
}

static void task_keep(struct oomlog *out, const struct oomlog_task *t)
{
	size_t at = out->n_tasks;

	while (at && out->tasks[at - 1].rss_bytes + out->tasks[at - 1].swap_bytes <
			     t->rss_bytes + t->swap_bytes)
		at--;
	if (at == OOMLOG_TASKS)
		return;
	if (out->n_tasks < OOMLOG_TASKS)
		out->n_tasks++;
	memmove(&out->tasks[at + 1], &out->tasks[at], (out->n_tasks - 1 - at) * sizeof(*t));
	out->tasks[at] = *t;
}

/* "[   1234]     0  1234 17000 ... 0 name of it" */
static void row_read(struct piece line, const struct columns *c, uint32_t page, struct oomlog *out)
{
	const char *close = memchr(line.at, ']', (size_t)(line.end - line.at));
	struct piece rest = {close ? close + 1 : line.end, line.end}, id = {line.at + 1, line.end},
		     w;
	uint64_t pid = 0, pages[2] = {0};
	struct oomlog_task t = {0};

	w = next_word(&id);
	if (!close || !number(w, &pid) || pid > UINT32_MAX || c->rss < 0 || c->swap < 0)
		return;
	for (int i = 0; i <= c->swap + 1; i++) {
		w = next_word(&rest);
		if ((i == c->rss && !number(w, &pages[0])) ||
		    (i == c->swap && !number(w, &pages[1])))
			return;
	}
	while (rest.at < rest.end && *rest.at == ' ')
		rest.at++;
	if (pages[0] > UINT64_MAX / 4 / page || pages[1] > UINT64_MAX / 4 / page)
		return;
	t.pid = (uint32_t)pid;
	t.rss_bytes = pages[0] * page;
	t.swap_bytes = pages[1] * page;
	text(rest, "", t.comm, sizeof(t.comm));
	task_keep(out, &t);
}

/* ---- a kill ---- */

static void constraint_read(struct piece line, struct oomlog *out)
{
	struct piece own = after(line, ",oom_memcg="), victim = after(line, ",task_memcg=");

	text(own, ",", out->cgroup, sizeof(out->cgroup));
	text(victim, ",", out->victim_cgroup, sizeof(out->victim_cgroup));
	out->is_told = true;
}

/* "Killed process 1234 (name) total-vm:..."; a name may hold anything. */
static bool killed_read(struct piece line, struct oomlog *out)
{
	struct piece rest = after(line, "Killed process "), name, sizes;
	uint64_t pid;

	if (!number(rest, &pid) || pid > UINT32_MAX)
		return false;
	out->pid = (uint32_t)pid;
	name = after(rest, " (");
	sizes = after(line, ") total-vm:");
	if (name.at && sizes.at && sizes.at - strlen(") total-vm:") >= name.at)
		text((struct piece){name.at, sizes.at - strlen(") total-vm:")}, "", out->comm,
		     sizeof(out->comm));
	out->has_sizes = sizes.at && kilobytes(sizes, "anon-rss:", &out->anon_bytes) &&
			 kilobytes(sizes, "file-rss:", &out->file_bytes);
	if (out->has_sizes && !kilobytes(sizes, "shmem-rss:", &out->shmem_bytes))
		out->shmem_bytes = 0;
	return true;
}

static bool begins_with(struct piece p, const char *words)
{
	return (size_t)(p.end - p.at) >= strlen(words) && !memcmp(p.at, words, strlen(words));
}

static void line_read(struct piece words, struct columns *c, uint32_t page, struct oomlog *now)
{
	struct piece found = after(words, " invoked oom-killer:");

	if (found.at) {
		memset(now, 0, sizeof(*now));
		*c = (struct columns){-1, -1};
		text((struct piece){words.at, found.at - strlen(" invoked oom-killer:")}, "",
		     now->asked_by, sizeof(now->asked_by));
	} else if (begins_with(words, "memory: usage ")) {
		now->has_limit = kilobytes(words, "usage ", &now->usage_bytes) &&
				 kilobytes(words, ", limit ", &now->limit_bytes);
	} else if (begins_with(words, "oom-kill:constraint=")) {
		constraint_read(words, now);
	} else if (begins_with(words, "[") && after(words, " total_vm ").at) {
		head_read((struct piece){after(words, "]").at, words.end}, c);
	} else if (begins_with(words, "[") && c->rss >= 0) {
		row_read(words, c, page, now);
	}
}

bool oomlog_find(const char *log, size_t len, uint32_t pid, uint32_t page, struct oomlog *out)
{
	struct piece rest = {log, log + len};
	struct oomlog *now = calloc(1, sizeof(*now));
	struct columns c = {-1, -1};
	bool found = false;

	while (now && rest.at < rest.end) {
		struct piece words = words_of(next_line(&rest));

		line_read(words, &c, page, now);
		if (!after(words, "Killed process ").at || !killed_read(words, now))
			continue;
		if (now->pid == pid) {
			memcpy(out, now, sizeof(*out));
			found = true;
		}
		memset(now, 0, sizeof(*now));
		c = (struct columns){-1, -1};
	}
	free(now);
	return found;
}
