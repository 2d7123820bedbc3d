/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/probe/code.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/probe/asked.h"
#include "loaders/probe/insn.h"
#include "loaders/probe/plan.h"
#include "loaders/probe/usdt.h"
#include "schema/base/cleanup.h"
#include "schema/base/limits/child.h"
#include "schema/base/sibling.h"
#include "schema/base/strbuf.h"

#define SECONDS 20
#define MEMORY  (1ull << 30)
#define ANSWER  (8ull << 20)

struct place { /* a line of sonde-index; what it borrows is its text, which is changed */
	char kind;
	uint64_t offset, more;
	const char *bytes, *provider, *name, *args;
};

/* ---- asking ---- */

static int read_all(int fd, uint64_t size, struct strbuf *out)
{
	char part[16384];
	ssize_t n;

	for (uint64_t at = 0; at < size; at += (uint64_t)n) {
		n = pread(fd, part, sizeof(part), (off_t)at);
		if (n <= 0)
			return n ? -errno : -EIO;
		strbuf_add(out, part, (size_t)n);
	}
	return 0;
}

int code_places(const char *path, const char *how, const char *word, struct strbuf *out,
		struct err *e)
{
	const struct child_limits limits = {
		.seconds = SECONDS, .memory_bytes = MEMORY, .answer_bytes = ANSWER};
	char program[PATH_MAX];
	const char *argv[] = {program, path, how, word, NULL};
	struct child_answer a = {.out_fd = -1};
	int rc = sibling_find("sonde-index", program, e);

	if (!rc)
		rc = child_ask(argv, &limits, -1, -1, &a, e);
	if (rc)
		return rc;
	if (a.end != CHILD_EXITED || a.exit) {
		a.said[strcspn(a.said, "\n")] = 0;
		rc = err_set(e, -EINVAL, EXIT_USAGE, "%s cannot be read: %.200s", path,
			     a.end != CHILD_EXITED ? "its reader was stopped" : a.said);
	} else if (read_all(a.out_fd, a.out_bytes, out)) {
		rc = err_set(e, -EIO, EXIT_RUNTIME, "what is in %s cannot be read", path);
	}
	close(a.out_fd);
	return rc;
}

/* Cuts a word off; "" past the end. */
static char *word_cut(char **at)
{
	char *word = *at;
	size_t n = strcspn(word, " ");

	*at = word + n + (word[n] == ' ');
	word[n] = 0;
	return word;
}

/* The next line, cut into its parts. false: that was the last one. */
static bool place_next(char **at, struct place *p)
{
	char *line = *at, *end = strchr(line, '\n');

	if (!end)
		return false;
	*end = 0;
	*at = end + 1;
	*p = (struct place){.kind = *line, .provider = "", .args = ""};
	word_cut(&line);
	p->offset = strtoull(word_cut(&line), NULL, 16);
	p->more = strtoull(word_cut(&line), NULL, 16);
	p->bytes = word_cut(&line);
	if (p->kind == 'u')
		p->provider = word_cut(&line);
	p->name = word_cut(&line);
	p->args = line;
	return true;
}

/* ---- choosing ---- */

static int none(const struct asked_probe *p, struct err *e)
{
	const struct probespec *s = &p->spec;

	if (s->offset) {
		err_set(e, -ENOENT, EXIT_USAGE,
			"probe %s: no function that %s has a symbol for has an instruction that begins at 0x%llx: a probe within an instruction would break the program",
			s->name, s->group, (unsigned long long)s->offset);
		err_fix(e, "sonde probes %s    lists its functions", s->group);
		return -ENOENT;
	}
	err_set(e, -ENOENT, EXIT_USAGE, "probe %s: %s has no %s%s%s%s", s->name, s->group,
		s->kind == PROBESPEC_USDT ? "USDT probe " : "function ", s->provider,
		*s->provider ? ":" : "", s->target);
	err_fix(e, "sonde probes %s %.8s    lists some", s->group, s->target);
	return -ENOENT;
}

static int several(const struct asked_probe *p, const struct place *x, struct err *e)
{
	const struct probespec *s = &p->spec;

	if (s->kind == PROBESPEC_USDT) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"probe %s: it is in several places of %s that have their arguments elsewhere each, or in more than %d",
			s->name, s->group, ASKED_SITES);
		err_fix(e, "probe the function that holds it instead: sonde probes %s", s->group);
	} else {
		err_set(e, -EINVAL, EXIT_USAGE, "probe %s: several functions of %s are called %s",
			s->name, s->group, s->target);
		err_fix(e, "func:%s:0x%llx, or another of: sonde probes %s %s", s->group,
			(unsigned long long)x->offset, s->group, s->target);
	}
	return -EINVAL;
}

static void site_add(struct asked_probe *p, const struct place *x)
{
	uint64_t skipped = x->kind == 'f' ? insn_entry(x->bytes) : 0;

	p->offset[p->n_sites++] = x->offset + skipped;
	p->price_ns = insn_price(x->bytes + 2 * skipped);
	if (x->kind == 'u')
		p->semaphore = x->more;
}

static bool is_wanted(const struct probespec *s, const struct place *x)
{
	if (s->kind == PROBESPEC_USDT)
		return x->kind == 'u' && (!*s->provider || !strcmp(s->provider, x->provider));
	return x->kind != 'u';
}

static int choose(struct asked_probe *p, char *text, const char **args, struct err *e)
{
	const bool usdt = p->spec.kind == PROBESPEC_USDT;
	struct place x;

	while (place_next(&text, &x)) {
		if (!is_wanted(&p->spec, &x))
			continue;
		if (p->n_sites && (!usdt || p->n_sites == ASKED_SITES || strcmp(*args, x.args) ||
				   x.more != p->semaphore))
			return several(p, &x, e);
		*args = x.args;
		site_add(p, &x);
	}
	return p->n_sites ? 0 : none(p, e);
}

int code_find(struct asked_probe *p, struct err *e)
{
	const bool usdt = p->spec.kind == PROBESPEC_USDT;
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	const char *args = "";
	struct plan_notes notes;
	char hex[24];
	int rc;

	snprintf(p->path, sizeof(p->path), "%s", p->spec.group);
	snprintf(hex, sizeof(hex), "%llx", (unsigned long long)p->spec.offset);
	rc = code_places(p->path, p->spec.offset ? "--place-at" : "--place",
			 p->spec.offset ? hex : p->spec.target, &text, e);
	if (!rc)
		rc = text.len ? choose(p, text.buf, &args, e) : none(p, e);
	if (rc)
		return rc;
	usdt_args(args, &notes);
	return plan_make(&p->spec, NULL, 0, usdt ? &notes : NULL, &p->plan, e);
}
