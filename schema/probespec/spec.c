/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/probespec/spec.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/probespec/presets.h"

#define ERRNO_MOST 200

struct cursor {
	const char *text; /* from its first byte on */
	const char *at;
	const char
		*preset; /* the name of the preset that `text` is the spec of; NULL: it is typed */
	struct err *e;
};

static const char *const TYPES[] = {
	[PROBESPEC_AS_FOUND] = "",     [PROBESPEC_INT8] = "int8",     [PROBESPEC_INT16] = "int16",
	[PROBESPEC_INT32] = "int32",   [PROBESPEC_INT64] = "int64",   [PROBESPEC_UINT8] = "uint8",
	[PROBESPEC_UINT16] = "uint16", [PROBESPEC_UINT32] = "uint32", [PROBESPEC_UINT64] = "uint64",
	[PROBESPEC_BOOL] = "bool",     [PROBESPEC_STR] = "str"};

static const char *const KINDS[] = {[PROBESPEC_TRACEPOINT] = "tracepoint",
				    [PROBESPEC_SYSCALL] = "syscall",
				    [PROBESPEC_FUNC] = "func",
				    [PROBESPEC_USDT] = "usdt",
				    [PROBESPEC_GO] = "go"};

const char *probespec_type_name(enum probespec_type t)
{
	return (unsigned)t < ARRAY_SIZE(TYPES) ? TYPES[t] : "";
}

/* ---- refusals ---- */

static int refuse_at(const struct cursor *c, const char *at, const char *why)
{
	err_set(c->e, -EINVAL, EXIT_USAGE, "probe, column %zu: %s: %.120s%s%.120s",
		(size_t)(at - c->text) + 1, why, c->text, c->preset ? " of preset " : "",
		c->preset ? c->preset : "");
	err_fix(c->e, "sonde probes    lists what there is");
	return -EINVAL;
}

static int refuse(const struct cursor *c, const char *why)
{
	return refuse_at(c, c->at, why);
}

/* ---- words ---- */

static void blanks(struct cursor *c)
{
	while (*c->at == ' ' || *c->at == '\t' || *c->at == '\n')
		c->at++;
}

static bool take(struct cursor *c, const char *what)
{
	size_t len = strlen(what);

	blanks(c);
	if (strncmp(c->at, what, len) != 0)
		return false;
	c->at += len;
	return true;
}

static size_t name_length(const char *at)
{
	size_t n = 0;

	if (!isalpha((unsigned char)*at) && *at != '_')
		return 0;
	while (isalnum((unsigned char)at[n]) || at[n] == '_')
		n++;
	return n;
}

/* A name -> out[PROBESPEC_NAME]. */
static int take_name(struct cursor *c, char *out, const char *why)
{
	size_t n;

	blanks(c);
	n = name_length(c->at);
	if (!n)
		return refuse(c, why);
	if (n >= PROBESPEC_NAME)
		return refuse(c, "a name has 31 characters at most");
	memcpy(out, c->at, n);
	out[n] = 0;
	c->at += n;
	return 0;
}

/* A whole word of these letters, and no more of it behind. */
static bool take_word(struct cursor *c, const char *word)
{
	const char *before = c->at;

	if (take(c, word) && !name_length(c->at) && !isdigit((unsigned char)*c->at))
		return true;
	c->at = before;
	return false;
}

static uint32_t column(const struct cursor *c)
{
	return (uint32_t)(c->at - c->text) + 1;
}

static int take_unsigned(struct cursor *c, uint64_t *out, const char *why)
{
	char *end;

	blanks(c);
	if (!isdigit((unsigned char)*c->at))
		return refuse(c, why);
	errno = 0;
	*out = strtoull(c->at, &end, !strncmp(c->at, "0x", 2) ? 16 : 10);
	if (errno)
		return refuse(c, "this number does not fit into 64 bits");
	c->at = end;
	return 0;
}

/* ---- where ---- */

/* Up to a byte of `ends` -> out[size], not empty. */
static int take_until(struct cursor *c, const char *ends, char *out, size_t size, const char *why)
{
	size_t n = strcspn(c->at, ends);

	if (!n)
		return refuse(c, why);
	if (n >= size)
		return refuse(c, "this is too long");
	memcpy(out, c->at, n);
	out[n] = 0;
	c->at += n;
	return 0;
}

static int expect_colon(struct cursor *c, const char *why)
{
	if (*c->at != ':')
		return refuse(c, why);
	c->at++;
	return 0;
}

static int where_tracepoint(struct cursor *c, struct probespec_where *s)
{
	static const char like[] = "tracepoint:GROUP:EVENT is what this must be";
	int rc = take_until(c, ": \t\n(", s->group, sizeof(s->group), like);

	if (!rc)
		rc = expect_colon(c, like);
	if (!rc)
		rc = take_until(c, ": \t\n(", s->target, sizeof(s->target), like);
	if (!rc && (strchr(s->group, '/') || strchr(s->target, '/')))
		rc = refuse(c, "a tracepoint's name has no /");
	return rc;
}

static int where_syscall(struct cursor *c, struct probespec_where *s)
{
	if (*c->at == '*') {
		s->target[0] = '*';
		s->target[1] = 0;
		c->at++;
		return 0;
	}
	return take_name(c, s->target, "the name of a system call must follow, or *");
}

static int where_file(struct cursor *c, struct probespec_where *s)
{
	const char *at = c->at;
	int rc = take_until(c, ":", s->group, sizeof(s->group),
			    "a program or library must follow, by its path or its name");

	if (!rc && *s->group != '/' && strpbrk(s->group, " \t\n("))
		rc = refuse_at(c, at,
			       "the name of a program or library, or its path, has no blank here");
	return rc ? rc : expect_colon(c, "a colon and a name must follow the file");
}

/* Up to a blank, % or (; but that of a Go method, main.(*T).f, belongs to the name. */
static int take_symbol(struct cursor *c, char *out, size_t size)
{
	size_t n = 0;

	while (c->at[n] && !strchr(" \t\n%", c->at[n]) &&
	       (c->at[n] != '(' || (n && c->at[n - 1] == '.')))
		n++;
	if (!n)
		return refuse(c, "the name of a function must follow, or 0xOFFSET");
	if (n >= size)
		return refuse(c, "this is too long");
	memcpy(out, c->at, n);
	out[n] = 0;
	c->at += n;
	return 0;
}

static int where_func(struct cursor *c, struct probespec_where *s)
{
	const char *at;
	char *end;
	int rc = where_file(c, s);

	at = c->at;
	if (!rc)
		rc = take_symbol(c, s->target, sizeof(s->target));
	if (rc || strncmp(s->target, "0x", 2) != 0)
		return rc;
	s->offset = strtoull(s->target, &end, 16);
	return *end || !s->offset ? refuse_at(c, at, "this is no offset") : 0;
}

static int where_usdt(struct cursor *c, struct probespec_where *s)
{
	int rc = where_file(c, s);

	if (!rc)
		rc = take_name(c, s->target, "the name of a probe must follow");
	if (rc || *c->at != ':')
		return rc;
	c->at++;
	memcpy(s->provider, s->target, sizeof(s->provider));
	return take_name(c, s->target, "the name of a probe must follow its provider");
}

static int parse_where(struct cursor *c, struct probespec_where *s)
{
	static int (*const parse[])(struct cursor *, struct probespec_where *) = {
		[PROBESPEC_TRACEPOINT] = where_tracepoint,
		[PROBESPEC_SYSCALL] = where_syscall,
		[PROBESPEC_FUNC] = where_func,
		[PROBESPEC_USDT] = where_usdt,
		[PROBESPEC_GO] = where_func};

	s->column = column(c);
	for (size_t i = 0; i < ARRAY_SIZE(KINDS); i++) {
		size_t n = strlen(KINDS[i]);

		if (strncmp(c->at, KINDS[i], n) != 0 || c->at[n] != ':')
			continue;
		c->at += n + 1;
		s->kind = (enum probespec_kind)i;
		return parse[i](c, s);
	}
	return refuse(
		c,
		"a probe begins with tracepoint:, syscall:, func:, go: or usdt:, or is a preset");
}

/* ---- arguments ---- */

static bool type_of(const char *word, enum probespec_type *out)
{
	for (size_t i = 1; i < ARRAY_SIZE(TYPES); i++)
		if (!strcmp(TYPES[i], word)) {
			*out = (enum probespec_type)i;
			return true;
		}
	return false;
}

static int take_register(struct cursor *c, struct probespec_arg *a)
{
	uint64_t n;
	size_t len = 0;
	bool minus;

	while (isalnum((unsigned char)c->at[len]))
		len++;
	if (!len || len >= sizeof(a->reg))
		return refuse(c, "the name of a register must follow @");
	memcpy(a->reg, c->at, len);
	c->at += len;
	minus = *c->at == '-';
	if (*c->at != '+' && !minus)
		return 0;
	c->at++;
	a->deref = true;
	if (take_unsigned(c, &n, "a number must follow"))
		return -EINVAL;
	if (n > 1 << 20)
		return refuse(c, "this offset is too large");
	a->offset = minus ? -(int32_t)n : (int32_t)n;
	return 0;
}

static int take_place(struct cursor *c, struct probespec_arg *a)
{
	uint64_t n = 0;

	if (take(c, "@"))
		return take_register(c, a);
	if (!take(c, "$"))
		return refuse(c, "a place must follow the type: $1 or @rdi");
	if (take_unsigned(c, &n, "the number of an argument must follow $"))
		return -EINVAL;
	if (!n || n > 12)
		return refuse(c, "arguments are $1 to $12");
	a->number = (uint32_t)n;
	return 0;
}

/* "ret=int32": a number's type is the probe's, a text is an argument. */
static bool take_returned(const struct cursor *c, const struct probespec *s,
			  struct probespec_arg *a)
{
	if (!s->returns || strcmp(a->name, "ret") != 0 || *c->at == '$' || *c->at == '@')
		return false;
	a->returned = true;
	return true;
}

static int parse_arg(struct cursor *c, const struct probespec *s, struct probespec_arg *a)
{
	char word[PROBESPEC_NAME];
	int rc;

	blanks(c);
	a->column = column(c);
	rc = take_name(c, a->name, "the name of an argument must follow");
	if (rc)
		return rc;
	if (!take(c, "=")) {
		memcpy(a->field, a->name, sizeof(a->field));
		return 0;
	}
	rc = take_name(c, word, "a type or a field must follow =");
	if (rc)
		return rc;
	blanks(c);
	if (type_of(word, &a->type) && take_returned(c, s, a))
		return 0;
	if (a->type && (*c->at == '$' || *c->at == '@'))
		return take_place(c, a);
	a->type = PROBESPEC_AS_FOUND;
	memcpy(a->field, word, sizeof(a->field));
	return 0;
}

/* Names of a hit that are no arguments of its hook. */
static bool is_reserved(const struct probespec *s, const struct probespec_arg *a)
{
	return (probespec_has_ret(s) && !a->returned && !strcmp(a->name, "ret")) ||
	       (probespec_has_ns(s) && !strcmp(a->name, "ns")) ||
	       (probespec_has_error(s) && !strcmp(a->name, "error"));
}

static int add_arg(struct cursor *c, struct probespec *s, const struct probespec_arg *a)
{
	static const char taken[] =
		"this name is taken: each name once, and not ret, ns and error where the probe has them itself";

	if (is_reserved(s, a))
		return refuse_at(c, c->text + a->column - 1, taken);
	for (uint32_t i = 0; i < s->n_args; i++)
		if (!strcmp(s->args[i].name, a->name))
			return refuse_at(c, c->text + a->column - 1, taken);
	if (s->n_args == PROBESPEC_ARGS)
		return refuse_at(c, c->text + a->column - 1, "a probe has 8 arguments at most");
	s->args[s->n_args++] = *a;
	return 0;
}

/* The arguments of one hook -> out[PROBESPEC_ARGS]. */
static int parse_args(struct cursor *c, const struct probespec *s, struct probespec_where *w,
		      struct probespec_arg *out, uint32_t *n)
{
	*n = 0;
	if (!take(c, "("))
		return 0;
	w->chosen = true;
	if (take(c, ")"))
		return 0;
	do {
		int rc;

		if (*n == PROBESPEC_ARGS)
			return refuse(c, "a probe has 8 arguments at most");
		out[*n] = (struct probespec_arg){0};
		rc = parse_arg(c, s, &out[*n]);
		if (rc)
			return rc;
		++*n;
	} while (take(c, ","));
	return take(c, ")") ? 0 : refuse(c, ", or ) must follow");
}

/* ---- options ---- */

static int take_ref(struct cursor *c, struct probespec_ref *r, const char *why)
{
	blanks(c);
	r->column = column(c);
	return take_name(c, r->name, why);
}

static int take_op(struct cursor *c, enum probespec_op *op)
{
	static const struct {
		const char *text;
		enum probespec_op op;
	} ops[] = {{"==", PROBESPEC_EQ},  {"!=", PROBESPEC_NE},   {"<=", PROBESPEC_LE},
		   {">=", PROBESPEC_GE},  {"<", PROBESPEC_LT},    {">", PROBESPEC_GT},
		   {"&", PROBESPEC_BITS}, {"~", PROBESPEC_BEGINS}};

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		if (take(c, ops[i].text)) {
			*op = ops[i].op;
			return 0;
		}
	return refuse(c, "one of == != < <= > >= & ~ must follow");
}

static bool errno_of(const char *name, int64_t *out)
{
	for (int i = 1; i < ERRNO_MOST; i++) {
		const char *known = strerrorname_np(i);

		if (known && !strcmp(known, name)) {
			*out = i;
			return true;
		}
	}
	return false;
}

static int take_text(struct cursor *c, struct probespec_cond *d)
{
	const char *end;
	size_t n;

	if (*c->at == '\'') {
		end = strchr(c->at + 1, '\'');
		if (!end)
			return refuse(c, "the closing ' is missing");
		c->at++;
	} else {
		end = c->at + strcspn(c->at, " \t\n");
	}
	n = (size_t)(end - c->at);
	if (n >= sizeof(d->text))
		return refuse(c, "a text that is compared has 47 bytes at most");
	memcpy(d->text, c->at, n);
	d->text[n] = 0;
	d->is_text = true;
	c->at = end + (*end == '\'');
	return 0;
}

static int take_value(struct cursor *c, struct probespec_cond *d)
{
	bool minus;
	uint64_t n;
	char name[PROBESPEC_NAME];
	size_t len;

	blanks(c);
	minus = *c->at == '-';
	if (isdigit((unsigned char)c->at[minus])) {
		c->at += minus;
		if (take_unsigned(c, &n, ""))
			return -EINVAL;
		d->number = (int64_t)(minus ? 0 - n : n);
		return 0;
	}
	len = name_length(c->at + minus);
	if (len && len < sizeof(name)) {
		memcpy(name, c->at + minus, len);
		name[len] = 0;
		if (errno_of(name, &d->number)) {
			c->at += minus + len;
			d->number = minus ? -d->number : d->number;
			return 0;
		}
	}
	if (!*c->at || minus)
		return refuse(c, "a number, the name of an error or a text must follow");
	return take_text(c, d);
}

static int parse_cond(struct cursor *c, struct probespec *s)
{
	struct probespec_cond *d = &s->conds[s->n_conds];
	int rc;

	if (s->n_conds == PROBESPEC_CONDS)
		return refuse(c, "a probe has 4 conditions at most");
	*d = (struct probespec_cond){0};
	rc = take_ref(c, &d->of, "the name of an argument must follow");
	if (!rc)
		rc = take_op(c, &d->op);
	if (!rc)
		rc = take_value(c, d);
	if (!rc && d->is_text && d->op != PROBESPEC_EQ && d->op != PROBESPEC_NE &&
	    d->op != PROBESPEC_BEGINS)
		rc = refuse(c, "a text is compared with ==, != or ~");
	if (!rc && !d->is_text && d->op == PROBESPEC_BEGINS)
		rc = refuse(c, "~ compares with a text: write it within ''");
	if (!rc)
		s->n_conds++;
	return rc;
}

static int parse_by(struct cursor *c, struct probespec *s)
{
	do {
		int rc;

		if (s->n_by == PROBESPEC_BY)
			return refuse(c, "sums are by 2 arguments at most");
		rc = take_ref(c, &s->by[s->n_by], "the name of an argument must follow");
		if (rc)
			return rc;
		s->n_by++;
	} while (take(c, ","));
	return 0;
}

static int parse_rate(struct cursor *c, struct probespec *s)
{
	uint64_t n;
	int rc = take_unsigned(c, &n, "a number must follow rate");

	if (rc)
		return rc;
	if (n > PROBESPEC_RATE_MOST)
		return refuse(c, "a rate is 0 to 100000 a second");
	s->rate = (uint32_t)n;
	return 0;
}

static int parse_option(struct cursor *c, struct probespec *s)
{
	if (take_word(c, "by"))
		return parse_by(c, s);
	if (take_word(c, "sum"))
		return take_ref(c, &s->sum, "the name of an argument must follow");
	if (take_word(c, "hist"))
		return take_ref(c, &s->hist, "the name of an argument must follow");
	if (take_word(c, "rate"))
		return parse_rate(c, s);
	if (take_word(c, "stack")) {
		s->stack = true;
		return 0;
	}
	if (take_word(c, "latency"))
		return refuse(c, "latency begins a probe: latency from HOOK to HOOK by KEY");
	if (take_word(c, "if") || (s->n_conds && take_word(c, "and")))
		return parse_cond(c, s);
	return parse_cond(c, s);
}

static int parse_options(struct cursor *c, struct probespec *s)
{
	for (blanks(c); *c->at; blanks(c)) {
		int rc = parse_option(c, s);

		if (rc)
			return rc;
	}
	return 0;
}

/* ---- the whole ---- */

static int parse_hook(struct cursor *c, struct probespec *s, struct probespec_where *w,
		      struct probespec_arg *out, uint32_t *n)
{
	static const char way[] = "%return";
	const bool code = !strncmp(c->at, "func:", 5) || !strncmp(c->at, "go:", 3);
	int rc = parse_where(c, w);

	if (!rc && code && !strncmp(c->at, way, sizeof(way) - 1)) {
		if (s->latency)
			return refuse(c, "a probe of a function's return has its time by itself");
		s->returns = true;
		c->at += sizeof(way) - 1;
	}
	if (!rc && *c->at && !strchr(" \t\n(", *c->at))
		rc = refuse(c, "a blank or ( must follow");
	return rc ? rc : parse_args(c, s, w, out, n);
}

static int parse_single(struct cursor *c, struct probespec *s)
{
	struct probespec_arg args[PROBESPEC_ARGS];
	uint32_t n = 0;
	int rc = parse_hook(c, s, &s->at, args, &n);

	for (uint32_t i = 0; !rc && i < n; i++) {
		args[i].first = s->returns && !args[i].returned;
		if (args[i].returned && args[i].type != PROBESPEC_STR)
			s->ret_type = args[i].type;
		else
			rc = add_arg(c, s, &args[i]);
	}
	return rc;
}

/* ---- pairs ---- */

bool probespec_key_is_own(const char *name)
{
	return !strcmp(name, "pid") || !strcmp(name, "tid") || !strcmp(name, "cpu");
}

/* A key that names a field of a tracepoint whose arguments were not chosen chooses it. */
static struct probespec_arg *key_arg(const struct probespec_where *w, struct probespec_arg *args,
				     uint32_t *n, const char *name)
{
	struct probespec_arg *a;

	for (uint32_t i = 0; i < *n; i++)
		if (!strcmp(args[i].name, name))
			return &args[i];
	if (w->chosen || w->kind != PROBESPEC_TRACEPOINT || *n == PROBESPEC_ARGS)
		return NULL;
	a = &args[(*n)++];
	*a = (struct probespec_arg){.column = w->column};
	memcpy(a->name, name, PROBESPEC_NAME);
	memcpy(a->field, name, PROBESPEC_NAME);
	return a;
}

struct pair { /* the arguments of both hooks */
	struct probespec_arg first[PROBESPEC_ARGS], last[PROBESPEC_ARGS];
	uint32_t n_first, n_last;
	bool is_key[PROBESPEC_ARGS]; /* of the last one's */
};

static int take_key(struct cursor *c, struct probespec *s, struct pair *p)
{
	struct probespec_key *k = &s->key[s->n_key];
	struct probespec_arg *a, *b;
	const char *at;
	int rc;

	if (s->n_key == PROBESPEC_BY)
		return refuse(c, "two keys are the most");
	blanks(c);
	at = c->at;
	rc = take_name(c, k->name, "pid, tid, cpu or an argument of both hooks must follow");
	if (rc)
		return rc;
	s->n_key++;
	if (probespec_key_is_own(k->name))
		return 0;
	a = key_arg(&s->from, p->first, &p->n_first, k->name);
	b = a ? key_arg(&s->at, p->last, &p->n_last, k->name) : NULL;
	if (!a || !b)
		return refuse_at(c, at,
				 "a key is pid, tid, cpu, or an argument that both hooks have");
	k->arg = (uint32_t)(a - p->first);
	k->last = *b;
	p->is_key[b - p->last] = true;
	return 0;
}

static int parse_pair(struct cursor *c, struct probespec *s)
{
	struct pair p = {0};
	const char *at;
	int rc;

	s->latency = true;
	blanks(c);
	if (!take_word(c, "from"))
		return refuse(c, "from must follow: latency from HOOK to HOOK by KEY");
	blanks(c);
	at = c->at;
	rc = parse_hook(c, s, &s->from, p.first, &p.n_first);
	if (!rc && !take_word(c, "to"))
		rc = refuse(c, "to must follow: latency from HOOK to HOOK by KEY");
	blanks(c);
	if (!rc)
		rc = parse_hook(c, s, &s->at, p.last, &p.n_last);
	if (!rc && (s->from.kind == PROBESPEC_SYSCALL || s->at.kind == PROBESPEC_SYSCALL))
		rc = refuse_at(
			c, at,
			"a system call has two ends: tracepoint:syscalls:sys_enter_NAME or sys_exit_NAME");
	if (!rc && !take_word(c, "by"))
		rc = refuse(c, "by must follow: pid, tid, cpu or an argument of both hooks");
	if (rc)
		return rc;
	do
		rc = take_key(c, s, &p);
	while (!rc && take(c, ","));
	for (uint32_t i = 0; !rc && i < p.n_first; i++) {
		p.first[i].first = true;
		rc = add_arg(c, s, &p.first[i]);
	}
	for (uint32_t i = 0; !rc && i < p.n_last; i++)
		rc = p.is_key[i] ? 0 : add_arg(c, s, &p.last[i]);
	return rc;
}

static int parse_body(struct cursor *c, struct probespec *s)
{
	int rc = take_word(c, "latency") ? parse_pair(c, s) : parse_single(c, s);

	return rc ? rc : parse_options(c, s);
}

/* "sys_enter-x" -> "sys_enter_x" */
static void name_from(const char *target, char out[PROBESPEC_NAME])
{
	size_t n = 0;

	if (!isalpha((unsigned char)*target))
		out[n++] = 'p';
	for (; *target && n + 1 < PROBESPEC_NAME; target++)
		out[n++] = isalnum((unsigned char)*target) ? *target : '_';
	out[n] = 0;
}

static int parse_name(struct cursor *c, struct probespec *s)
{
	size_t n = name_length(c->at);

	if (!n || c->at[n] != '=')
		return 0;
	if (take_name(c, s->name, ""))
		return -EINVAL;
	c->at++;
	return 0;
}

/* A preset's spec, with its file in place of each {} -> out[PROBESPEC_TEXT_MAX]. false: too long.
 */
static bool preset_text(const struct probespec_preset *p, const char *file, size_t file_len,
			char *out)
{
	size_t n = 0;

	for (const char *at = p->spec; *at; at++) {
		const bool hole = at[0] == '{' && at[1] == '}';
		const size_t len = hole ? file_len : 1;

		if (n + len >= PROBESPEC_TEXT_MAX)
			return false;
		memcpy(out + n, hole ? file : at, len);
		n += len;
		at += hole;
	}
	out[n] = 0;
	return true;
}

/* What is behind its name: ":FILE", where it has one. */
static int preset_file(struct cursor *c, const struct probespec_preset *p, const char **file,
		       size_t *len)
{
	*file = p->file ? p->file : "";
	*len = strlen(*file);
	if (*c->at != ':')
		return p->file && !*p->file ? refuse(c, "this preset wants a file: PRESET:FILE") :
					      0;
	if (!p->file)
		return refuse(c, "this preset is not about a file");
	*file = ++c->at;
	*len = strcspn(*file, " \t\n:(|");
	c->at += *len;
	return *len ? 0 : refuse(c, "a program or library must follow, by its path or its name");
}

static int parse_preset(struct cursor *c, const struct probespec_preset *p, struct probespec *out)
{
	struct cursor of = {.text = out->text, .at = out->text, .preset = p->name, .e = c->e};
	const char *file;
	size_t len, n;
	int rc;

	c->at += strlen(p->name);
	rc = preset_file(c, p, &file, &len);
	if (rc)
		return rc;
	if (!preset_text(p, file, len, out->text))
		return refuse(c, "a probe's text has 511 bytes at most, with its preset's");
	rc = parse_body(&of, out);
	n = strlen(out->text);
	if ((size_t)snprintf(out->text + n, sizeof(out->text) - n, "%s", c->at) >=
	    sizeof(out->text) - n)
		return refuse(c, "a probe's text has 511 bytes at most, with its preset's");
	if (!*out->name)
		snprintf(out->name, sizeof(out->name), "%s", p->name);
	return rc ? rc : parse_options(c, out);
}

int probespec_parse(const char *text, struct probespec *out, struct err *e)
{
	struct cursor c = {.text = text, .at = text, .e = e};
	const struct probespec_preset *p;
	int rc;

	memset(out, 0, sizeof(*out));
	out->rate = PROBESPEC_RATE;
	if (strlen(text) >= sizeof(out->text))
		return refuse(&c, "a probe's text has 511 bytes at most");
	blanks(&c);
	rc = parse_name(&c, out);
	blanks(&c);
	p = probespec_preset(c.at, name_length(c.at));
	if (!rc && p) {
		rc = parse_preset(&c, p, out);
	} else if (!rc) {
		snprintf(out->text, sizeof(out->text), "%s", c.at);
		rc = parse_body(&c, out);
	}
	if (!rc && !*out->name)
		name_from(*out->at.target == '*' ? "syscalls" : out->at.target, out->name);
	return rc;
}

/* ---- several ---- */

/* Up to | or the end; not that of a text in ''. */
static size_t spec_length(const char *text)
{
	bool quoted = false;
	size_t n = 0;

	for (; text[n] && (quoted || text[n] != '|'); n++)
		quoted ^= text[n] == '\'';
	return n;
}

int probespec_next(const char **at, char out[PROBESPEC_TEXT_MAX])
{
	size_t n;

	*at += strspn(*at, " \t\n|");
	n = spec_length(*at);
	if (!n)
		return 0;
	if (n >= PROBESPEC_TEXT_MAX)
		return -EINVAL;
	memcpy(out, *at, n);
	while (n && strchr(" \t\n", out[n - 1]))
		n--;
	out[n] = 0;
	*at += spec_length(*at);
	return 1;
}

int probespec_check(const char *list, struct err *e)
{
	char text[PROBESPEC_TEXT_MAX];
	struct probespec s;
	int n, rc = 0;

	while (!rc && (n = probespec_next(&list, text)))
		rc = n < 0 ? err_set(e, -EINVAL, EXIT_USAGE,
				     "a probe's text has 511 bytes at most") :
			     probespec_parse(text, &s, e);
	return rc;
}
