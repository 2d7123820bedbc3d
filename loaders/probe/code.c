/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/probe/code.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/probe/asked.h"
#include "loaders/probe/insn.h"
#include "loaders/probe/plan.h"
#include "loaders/probe/regs.h"
#include "loaders/probe/usdt.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/limits/child.h"
#include "schema/base/log.h"
#include "schema/base/sibling.h"
#include "schema/base/strbuf.h"

#define SECONDS 20
#define MEMORY  (1ull << 30)
#define ANSWER  (8ull << 20)
#define LAYOUTS 8 /* of one USDT probe in one file */

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

int code_places(const char *path, const char *how, const char *word, bool calls, struct strbuf *out,
		struct err *e)
{
	const struct child_limits limits = {
		.seconds = SECONDS, .memory_bytes = MEMORY, .answer_bytes = ANSWER};
	char program[PATH_MAX];
	const char *argv[] = {program, path, how, word, calls ? "--calls" : NULL, NULL};
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
	p->args = line; /* of 'u' and 'c' */
	return true;
}

/* ---- choosing ---- */

struct choice {
	struct asked_probe *p;
	const struct probespec_where *w;
	struct asked_hook *k;
	const char *args; /* of a USDT probe */
	struct { /* of a USDT probe, whose places may have their arguments elsewhere each */
		const char *args;
		uint64_t semaphore;
	} layouts[LAYOUTS];
	uint32_t n_layouts;
	uint64_t price_ns;
	uint64_t unseen; /* ways out of the function that no site sees */
	bool calls;      /* sites are those of the function's calls */
};

static int none(const struct choice *c, struct err *e)
{
	const struct probespec *s = &c->p->spec;
	const struct probespec_where *w = c->w;

	if (w->offset) {
		err_set(e, -ENOENT, EXIT_USAGE,
			c->calls ?
				"probe %s: no function that %s has a symbol or .eh_frame for begins at 0x%llx" :
				"probe %s: no function that %s has a symbol or .eh_frame for has an instruction that begins at 0x%llx: a probe within an instruction would break the program",
			s->name, w->group, (unsigned long long)w->offset);
		err_fix(e, "sonde probes %s    lists its functions", w->group);
		return -ENOENT;
	}
	err_set(e, -ENOENT, EXIT_USAGE, "probe %s: %s has no %s%s%s%s", s->name, w->group,
		w->kind == PROBESPEC_USDT ? "USDT probe " :
		w->kind == PROBESPEC_GO   ? "function of Go " :
					    "function ",
		w->provider, *w->provider ? ":" : "", w->target);
	err_fix(e, "sonde probes %s %.8s    lists some", w->group, w->target);
	return -ENOENT;
}

static int several(const struct choice *c, const struct place *x, struct err *e)
{
	const struct probespec *s = &c->p->spec;
	const struct probespec_where *w = c->w;

	if (w->kind == PROBESPEC_USDT) {
		err_set(e, -EINVAL, EXIT_USAGE, "probe %s: %s has it in more than %d places, or %s",
			s->name, w->group, ASKED_SITES,
			s->latency ?
				"in several that have their arguments elsewhere each, and a pair needs one" :
				"in too many that have their arguments elsewhere each");
		err_fix(e, "probe the function that holds it instead: sonde probes %s", w->group);
	} else {
		err_set(e, -EINVAL, EXIT_USAGE, "probe %s: several functions of %s are called %s",
			s->name, w->group, w->target);
		err_fix(e, "func:%s:0x%llx, or another of: sonde probes %s %s", w->group,
			(unsigned long long)x->offset, w->group, w->target);
	}
	return -EINVAL;
}

static void price_raise(struct choice *c, const char *bytes)
{
	const uint64_t price = insn_price(bytes);

	c->price_ns = price > c->price_ns ? price : c->price_ns;
}

static void site_add(struct choice *c, const struct place *x)
{
	uint64_t skipped = x->kind == 'f' ? insn_entry(x->bytes) : 0;

	c->k->offset[c->k->n_sites++] = x->offset + skipped;
	price_raise(c, x->bytes + 2 * skipped);
	if (x->kind == 'u')
		c->k->semaphore = x->more;
}

/* ---- places of a USDT probe ---- */

/* Word `n` of a note's arguments, from 1 on; "" past the end. */
static size_t argument(const char *args, uint32_t n, const char **out)
{
	args += strspn(args, " ");
	while (--n && *args) {
		args += strcspn(args, " ");
		args += strspn(args, " ");
	}
	*out = args;
	return strcspn(args, " ");
}

static bool is_alike(const char *a, const char *b, const struct probespec_arg *arg)
{
	const char *x, *y;
	size_t n;

	if (!arg->number)
		return true;
	n = argument(a, arg->number, &x);
	return n == argument(b, arg->number, &y) && !memcmp(x, y, n);
}

/* Are those that are read at the same places? */
static bool args_alike(const struct choice *c, const char *a, const char *b)
{
	const struct probespec *s = &c->p->spec;
	bool alike = true;

	if (!s->at.chosen && !s->latency)
		return !strcmp(a, b);
	for (uint32_t i = 0; i < s->n_args; i++)
		alike = alike && is_alike(a, b, &s->args[i]);
	for (uint32_t i = 0; i < s->n_key; i++)
		alike = alike && is_alike(a, b, &s->key[i].last);
	return alike;
}

/* Which layout of arguments a place has; -1: another one, and there is no room for it. */
static int layout_of(struct choice *c, const struct place *x)
{
	for (uint32_t i = 0; i < c->n_layouts; i++)
		if (args_alike(c, c->layouts[i].args, x->args) &&
		    c->layouts[i].semaphore == x->more)
			return (int)i;
	if (c->n_layouts == (c->p->spec.latency ? 1 : LAYOUTS))
		return -1;
	c->layouts[c->n_layouts].args = x->args;
	c->layouts[c->n_layouts].semaphore = x->more;
	return (int)c->n_layouts++;
}

static int usdt_add(struct choice *c, const struct place *x, struct err *e)
{
	const int layout = layout_of(c, x);

	if (layout < 0 || c->k->n_sites == ASKED_SITES)
		return several(c, x, e);
	if ((uint32_t)layout != c->p->layout)
		return 0;
	c->args = x->args;
	site_add(c, x);
	return 0;
}

/* ---- calls of a function ---- */

/* By the processor's number, as places.h has it -> in struct pt_regs. */
static __u16 place_of(unsigned int reg)
{
	static const char *const names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					    "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

	return (__u16)regs_named(names[reg & 15]);
}

static bool call_site_read(const char *text, struct probe_site *out)
{
	unsigned int begins, others, base, when, condition, kind[2], reg[2], bytes[2];
	int frame, at[2];

	if (sscanf(text, "%u %u %u %d %u %u %u %u %u %d %u %u %u %d", &begins, &others, &base,
		   &frame, &when, &condition, &kind[0], &reg[0], &bytes[0], &at[0], &kind[1],
		   &reg[1], &bytes[1], &at[1]) != 14)
		return false;
	*out = (struct probe_site){.begins = begins != 0,
				   .others = others != 0,
				   .base = place_of(base),
				   .frame = frame,
				   .when = (__u8)when,
				   .condition = condition & 15};
	for (int i = 0; i < 2; i++)
		out->value[i] = (struct probe_value){.place = (__u8)kind[i],
						     .bytes = (__u8)bytes[i],
						     .reg = place_of(reg[i]),
						     .at = at[i]};
	return when <= PROBE_NOT_TAKEN && kind[0] <= PROBE_KNOWN && kind[1] <= PROBE_KNOWN;
}

/* A begin alone needs no site where it is seen at each hit. */
static void call_site_add(struct choice *c, const struct place *x)
{
	struct asked_probe *p = c->p;
	struct probe_site site;

	if (!call_site_read(x->args, &site) || c->k->n_sites == ASKED_SITES ||
	    (!p->spec.returns && !site.begins))
		return;
	p->sites[c->k->n_sites] = site;
	c->k->offset[c->k->n_sites++] = x->offset;
	p->n_frames = p->spec.returns || site.when ? c->k->n_sites : 0;
	price_raise(c, x->bytes);
}

static int ways_check(const struct choice *c, struct err *e)
{
	const struct probespec *s = &c->p->spec;

	if (!s->returns || c->k->n_sites > 1) {
		if (s->returns && c->unseen)
			log_warn(
				"probe %s: %llu of the ways out of %s are jumps into code that is not known: calls that end so are no hits, and among `unpaired` of view probes",
				s->name, (unsigned long long)c->unseen, c->w->target);
		return 0;
	}
	err_set(e, -ENOENT, EXIT_USAGE,
		"probe %s: no way out of %s is known: it ends by a jump elsewhere, or its code cannot be followed",
		s->name, c->w->target);
	err_fix(e, "sonde probes %s %.8s    lists others; or probe its begin, without %%return",
		c->w->group, c->w->target);
	return -ENOENT;
}

/* ---- the whole ---- */

static bool is_wanted(const struct choice *c, const struct place *x)
{
	const struct probespec_where *w = c->w;

	if (w->kind == PROBESPEC_USDT)
		return x->kind == 'u' && (!*w->provider || !strcmp(w->provider, x->provider));
	return w->kind == PROBESPEC_GO && !w->offset ? x->kind == 'g' : x->kind != 'u';
}

static int choose(struct choice *c, char *text, struct err *e)
{
	uint64_t function = 0; /* which of two tables name it */
	bool mine = false;
	struct place x;
	int rc;

	while (place_next(&text, &x)) {
		if (x.kind == 'c' || x.kind == 'x') {
			if (mine && x.kind == 'c')
				call_site_add(c, &x);
			c->unseen = mine && x.kind == 'x' ? x.more : c->unseen;
			continue;
		}
		mine = is_wanted(c, &x) && (!function || x.offset != function);
		if (!mine)
			continue;
		if (x.kind == 'u') {
			rc = usdt_add(c, &x, e);
			if (rc)
				return rc;
		} else if (function) {
			return several(c, &x, e);
		}
		function = x.offset;
		if (x.kind != 'u' && !c->calls)
			site_add(c, &x);
	}
	if (!function)
		return none(c, e);
	return c->calls ? ways_check(c, e) : 0;
}

/* Before it is read: what is read then is of this file, or the file has changed by then. */
static void file_note(struct asked_hook *k)
{
	struct stat st;

	if (stat(k->path, &st))
		return; /* it cannot be read, either */
	k->dev = st.st_dev;
	k->ino = st.st_ino;
	k->size = (uint64_t)st.st_size;
	k->written_ns = st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec;
}

int code_find(struct asked_probe *p, const struct probespec_where *w, struct asked_hook *k,
	      struct plan_notes *notes, uint64_t *price_ns, struct err *e)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	struct choice c = {.p = p,
			   .w = w,
			   .k = k,
			   .args = "",
			   .calls = p->spec.returns ||
				    (w->kind == PROBESPEC_GO && !p->spec.latency)};
	char hex[24];
	int rc;

	snprintf(k->path, sizeof(k->path), "%s", w->group);
	file_note(k);
	snprintf(hex, sizeof(hex), "%llx", (unsigned long long)w->offset);
	rc = code_places(k->path, w->offset ? "--place-at" : "--place", w->offset ? hex : w->target,
			 c.calls, &text, e);
	if (!rc)
		rc = text.len ? choose(&c, text.buf, e) : none(&c, e);
	if (rc)
		return rc;
	*price_ns = c.price_ns;
	p->layouts = c.n_layouts > p->layouts ? c.n_layouts : p->layouts;
	usdt_args(c.args, notes);
	return 0;
}
