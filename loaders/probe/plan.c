/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/probe/plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "loaders/probe/regs.h"
#include "schema/base/array.h"

_Static_assert(PROBE_ARGS == PROBESPEC_ARGS && PROBE_CONDS == PROBESPEC_CONDS &&
		       PROBE_BY == PROBESPEC_BY && PROBE_COND == PROBESPEC_VALUE &&
		       PROBE_RET == PROBESPEC_RET && PROBE_NS == PROBESPEC_NS,
	       "one shape");
_Static_assert((int)PROBE_BEGINS == (int)PROBESPEC_BEGINS, "one order");

#define CALL_ARGS_AT 16 /* in the record of a system call's begin */
#define CALL_ARGS    6

struct planning { /* of one hook */
	struct probespec *s;
	const struct probespec_where *where;
	const struct format_field *fields;
	size_t n_fields;
	const struct plan_notes *notes;
	struct err *e;
};

static const struct {
	uint8_t size;
	bool is_signed;
} SHAPES[] = {[PROBESPEC_INT8] = {1, true},    [PROBESPEC_INT16] = {2, true},
	      [PROBESPEC_INT32] = {4, true},   [PROBESPEC_INT64] = {8, true},
	      [PROBESPEC_UINT8] = {1, false},  [PROBESPEC_UINT16] = {2, false},
	      [PROBESPEC_UINT32] = {4, false}, [PROBESPEC_UINT64] = {8, false},
	      [PROBESPEC_BOOL] = {1, false},   [PROBESPEC_STR] = {8, false}};

static enum probespec_type type_of(unsigned int size, bool is_signed)
{
	switch (size) {
	case 1:
		return is_signed ? PROBESPEC_INT8 : PROBESPEC_UINT8;
	case 2:
		return is_signed ? PROBESPEC_INT16 : PROBESPEC_UINT16;
	case 4:
		return is_signed ? PROBESPEC_INT32 : PROBESPEC_UINT32;
	default:
		return is_signed ? PROBESPEC_INT64 : PROBESPEC_UINT64;
	}
}

static void shape(struct probe_fetch *f, enum probespec_type t)
{
	f->size = SHAPES[t].size;
	f->is_signed = SHAPES[t].is_signed;
	if (t == PROBESPEC_STR)
		f->text = PROBE_TEXT_USER;
}

/* What there is, for a message. */
static int no_field(const struct planning *p, const struct probespec_arg *a)
{
	char known[300] = "";
	size_t len = 0;

	for (size_t i = 0; i < p->n_fields && len < sizeof(known); i++)
		len += (size_t)snprintf(known + len, sizeof(known) - len, " %s", p->fields[i].name);
	err_set(p->e, -EINVAL, EXIT_USAGE, "probe %s, column %u: there is no field %s; there is:%s",
		p->s->name, a->column, a->field, *known ? known : " none");
	err_fix(p->e, "sonde probes %s", p->where->target[0] == '*' ? "syscall" : p->where->target);
	return -EINVAL;
}

static int refuse(const struct planning *p, const struct probespec_arg *a, const char *why)
{
	err_set(p->e, -EINVAL, EXIT_USAGE, "probe %s, column %u: %s: %s", p->s->name, a->column,
		a->name, why);
	err_fix(p->e, "sonde probes %s", p->where->target[0] == '*' ? "syscall" : p->where->target);
	return -EINVAL;
}

static const struct format_field *field_named(const struct planning *p, const char *name)
{
	for (size_t i = 0; i < p->n_fields; i++)
		if (!strcmp(p->fields[i].name, name))
			return &p->fields[i];
	return NULL;
}

/* ---- tracepoints ---- */

static bool is_read(const struct format_field *f)
{
	return f->what != FORMAT_OTHER;
}

static int from_record(const struct planning *p, struct probespec_arg *a, struct probe_fetch *f)
{
	static const uint8_t texts[] = {[FORMAT_CHARS] = PROBE_TEXT_CONTEXT,
					[FORMAT_DATA_LOC] = PROBE_TEXT_DATA_LOC,
					[FORMAT_REL_LOC] = PROBE_TEXT_REL_LOC};
	const struct format_field *field;

	if (!*a->field)
		return refuse(p, a, "a tracepoint has fields, not $N or registers");
	field = field_named(p, a->field);
	if (!field)
		return no_field(p, a);
	if (!is_read(field))
		return refuse(p, a, "this field is neither a number nor a text");
	f->from = PROBE_FROM_CONTEXT;
	f->offset = field->offset;
	if (field->what == FORMAT_NUMBER || field->what == FORMAT_POINTER_TEXT) {
		a->type = type_of(field->size, field->is_signed);
		shape(f, a->type);
		return 0;
	}
	a->type = PROBESPEC_STR;
	f->text = texts[field->what];
	f->size = 4;
	f->more = field->what == FORMAT_CHARS ? field->size : 0;
	return 0;
}

/* ---- system calls ---- */

static bool is_argument(const struct format_field *f)
{
	return f->offset >= CALL_ARGS_AT && f->offset < CALL_ARGS_AT + 8 * CALL_ARGS;
}

/* Each has 8 bytes in the record; its type says how many of them count. */
static enum probespec_type type_of_c(const struct format_field *f)
{
	static const struct {
		const char *c;
		enum probespec_type type;
	} types[] = {
		{"int", PROBESPEC_INT32},       {"pid_t", PROBESPEC_INT32},
		{"clockid_t", PROBESPEC_INT32}, {"unsigned int", PROBESPEC_UINT32},
		{"unsigned", PROBESPEC_UINT32}, {"u32", PROBESPEC_UINT32},
		{"uid_t", PROBESPEC_UINT32},    {"gid_t", PROBESPEC_UINT32},
		{"umode_t", PROBESPEC_UINT16},  {"long", PROBESPEC_INT64},
		{"off_t", PROBESPEC_INT64},     {"loff_t", PROBESPEC_INT64},
	};

	if (f->what == FORMAT_POINTER_TEXT)
		return PROBESPEC_STR;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(types[i].c, f->type))
			return types[i].type;
	return PROBESPEC_UINT64;
}

static int from_call(const struct planning *p, struct probespec_arg *a, struct probe_fetch *f)
{
	const struct format_field *field = *a->field ? field_named(p, a->field) : NULL;
	bool all = *p->where->target == '*';

	if (all && !strcmp(a->field, "call")) {
		f->from = PROBE_FROM_CALL_NR;
		a->type = PROBESPEC_INT32;
		shape(f, a->type);
		return 0;
	}
	if (*a->reg)
		return refuse(p, a, "a system call has $1 to $6, not registers");
	if (*a->field && (!field || !is_argument(field)))
		return no_field(p, a);
	if (a->number > CALL_ARGS)
		return refuse(p, a, "a system call has $1 to $6");
	f->from = PROBE_FROM_CALL;
	f->offset = (uint16_t)(a->number - 1);
	if (field) {
		f->offset = (uint16_t)((field->offset - CALL_ARGS_AT) / 8);
		a->type = type_of_c(field);
	}
	shape(f, a->type);
	return 0;
}

/* ---- code ---- */

static int from_code(const struct planning *p, struct probespec_arg *a, struct probe_fetch *f)
{
	const bool go = p->where->kind == PROBESPEC_GO;
	int at;

	if (*a->field)
		return refuse(p, a, "say its type and place: int64 $1, str @rdi");
	if (p->notes && a->number) {
		if (a->number > p->notes->n)
			return refuse(p, a, "the probe has fewer arguments");
		if (p->notes->args[a->number - 1].from == PROBE_FROM_NOTHING)
			return refuse(p, a, "where this argument is cannot be read");
		*f = p->notes->args[a->number - 1];
		if (a->type == PROBESPEC_STR)
			f->text = PROBE_TEXT_USER;
		return 0;
	}
	at = !a->number ? regs_named(a->reg) : go ? regs_go(a->number) : regs_argument(a->number);
	if (at < 0)
		return refuse(p, a,
			      !a->number ? "there is no such register" :
			      go         ? "a function of Go has $1 to $9 in registers" :
					   "a function has $1 to $6 in registers");
	f->from = PROBE_FROM_CONTEXT;
	f->offset = (uint16_t)at;
	f->deref = a->deref;
	f->more = a->offset;
	shape(f, a->type);
	if (!go || a->type != PROBESPEC_STR || !a->number)
		return 0;
	if (regs_go(a->number + 1) < 0)
		return refuse(p, a, "a text of Go has two registers: its address and its length");
	f->text = PROBE_TEXT_COUNTED;
	f->more = regs_go(a->number + 1);
	return 0;
}

/* What a function returned, as a text. */
static int from_return(const struct planning *p, struct probespec_arg *a, struct probe_fetch *f)
{
	f->from = PROBE_FROM_RETURNED;
	shape(f, a->type);
	if (p->where->kind == PROBESPEC_GO)
		return refuse(p, a, "what a function of Go returns is a number here, no text");
	return 0;
}

/* ---- the whole ---- */

/* A name that is cut, or that the kernel gives two fields, is there once; ret, ns and error are
 * those of the probe. */
static bool is_free(const struct probespec *s, const char *name)
{
	for (uint32_t i = 0; i < s->n_args; i++)
		if (!strcmp(s->args[i].name, name))
			return false;
	return !(probespec_has_ret(s) && !strcmp(name, "ret")) &&
	       !(probespec_has_ns(s) && !strcmp(name, "ns")) &&
	       !(probespec_has_error(s) && !strcmp(name, "error"));
}

static void add_arg(struct probespec *s, const char *name)
{
	struct probespec_arg *a;

	if (!is_free(s, name))
		return;
	a = &s->args[s->n_args++];
	*a = (struct probespec_arg){.column = s->at.column};
	snprintf(a->name, sizeof(a->name), "%s", name);
	snprintf(a->field, sizeof(a->field), "%s", name);
}

/* A USDT probe's arguments have no names: arg1, ... */
static void add_notes(struct probespec *s, const struct plan_notes *notes)
{
	for (size_t i = 0; i < notes->n && s->n_args < PROBESPEC_ARGS; i++) {
		const struct probe_fetch *f = &notes->args[i];
		struct probespec_arg *a = &s->args[s->n_args];

		if (f->from == PROBE_FROM_NOTHING)
			continue;
		*a = (struct probespec_arg){.column = s->at.column,
					    .number = (uint32_t)i + 1,
					    .type = type_of(f->size, f->is_signed)};
		snprintf(a->name, sizeof(a->name), "arg%zu", i + 1);
		s->n_args++;
	}
}

static void defaults(const struct planning *p)
{
	struct probespec *s = p->s;

	if (s->at.chosen || s->latency)
		return;
	if (p->notes)
		add_notes(s, p->notes);
	for (size_t i = 0; i < p->n_fields && s->n_args < PROBESPEC_ARGS; i++) {
		const struct format_field *f = &p->fields[i];

		if (s->at.kind == PROBESPEC_SYSCALL ? is_argument(f) : is_read(f))
			add_arg(s, f->name);
	}
}

/* What a system call without a name is, is its first argument, unless it was asked for. */
static int all_calls(const struct planning *p)
{
	struct probespec *s = p->s;

	if (s->at.kind != PROBESPEC_SYSCALL || *s->at.target != '*')
		return 0;
	for (uint32_t i = 0; i < s->n_args; i++) {
		if (!strcmp(s->args[i].field, "call"))
			return 0;
		if (!strcmp(s->args[i].name, "call"))
			return refuse(
				p, &s->args[i],
				"this name is that of which system call it is; choose another");
	}
	if (s->n_args == PROBESPEC_ARGS)
		return refuse(p, &s->args[s->n_args - 1],
			      "syscall:* has 7 arguments at most, and call");
	memmove(s->args + 1, s->args, s->n_args * sizeof(s->args[0]));
	s->n_args++;
	s->args[0] = (struct probespec_arg){.column = s->at.column};
	strcpy(s->args[0].name, "call");
	strcpy(s->args[0].field, "call");
	return 0;
}

static int fetch_of(const struct planning *p, struct probespec_arg *a, struct probe_fetch *f)
{
	if (a->returned)
		return from_return(p, a, f);
	if (p->where->kind == PROBESPEC_TRACEPOINT)
		return from_record(p, a, f);
	return p->where->kind == PROBESPEC_SYSCALL ? from_call(p, a, f) : from_code(p, a, f);
}

static int fetches(const struct planning *from, const struct planning *at, struct probe_plan *out)
{
	struct probespec *s = at->s;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < s->n_args; i++) {
		struct probespec_arg *a = &s->args[i];
		const struct planning *p = a->first && s->latency ? from : at;

		rc = fetch_of(p, a, &out->args[i]);
		out->args[i].begun = a->first;
		if (a->first && out->args[i].text)
			out->kept++;
		if (!rc && out->kept > PROBE_KEPT)
			rc = refuse(
				p, a,
				"two texts of the first hook, or a function's begin, are kept at most");
	}
	return rc;
}

/* Both hooks of a pair have to give the same number. */
static int keys(const struct planning *from, const struct planning *at, struct probe_plan *out)
{
	struct probespec *s = at->s;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < s->n_key; i++) {
		struct probespec_key *k = &s->key[i];
		struct probe_fetch *first = &out->key[0][i], *last = &out->key[1][i];

		if (probespec_key_is_own(k->name)) {
			first->from = last->from = *k->name == 'p' ? PROBE_FROM_PID :
						   *k->name == 't' ? PROBE_FROM_TID :
								     PROBE_FROM_CPU;
			continue;
		}
		rc = fetch_of(from, &s->args[k->arg], first);
		if (!rc)
			rc = fetch_of(at, &k->last, last);
		if (!rc && (first->text || last->text))
			rc = refuse(at, &k->last, "a key is a number");
	}
	return rc;
}

static bool signed_of(const struct probe_plan *plan, uint32_t arg)
{
	if (arg < PROBE_ARGS)
		return plan->args[arg].is_signed;
	return arg == PROBE_RET && (plan->ret_signed || !plan->ret_size);
}

static void conditions(const struct probespec *s, struct probe_plan *out)
{
	for (uint32_t i = 0; i < PROBE_CONDS; i++) {
		const struct probespec_cond *d = &s->conds[i];
		struct probe_cond *c = &out->conds[i];

		c->arg = PROBE_NONE;
		if (i >= s->n_conds)
			continue;
		c->arg = (__u8)d->of.arg;
		c->op = (__u8)d->op;
		c->is_signed = signed_of(out, d->of.arg);
		c->number = d->number;
		c->length = (__u8)strlen(d->text);
		memcpy(c->text, d->text, sizeof(c->text));
	}
}

static __u8 ref(const struct probespec_ref *r)
{
	return *r->name ? (__u8)r->arg : PROBE_NONE;
}

static void kind_of(const struct probespec *s, struct probe_plan *out)
{
	const enum probespec_type t = s->ret_type;

	*out = (struct probe_plan){.rate = s->rate,
				   .stack = s->stack,
				   .ends = probespec_has_ns(s),
				   .returns = probespec_has_ret(s),
				   .errors = probespec_has_error(s),
				   .pair = s->latency ? PROBE_PAIR_KEYS :
					   s->returns ? PROBE_PAIR_RETURN :
							PROBE_ALONE,
				   .go = s->at.kind == PROBESPEC_GO,
				   .ret_size = SHAPES[t].size,
				   .ret_signed = SHAPES[t].is_signed};
}

int plan_make(struct probespec *s, const struct plan_source *from, const struct plan_source *at,
	      struct probe_plan *out, struct err *e)
{
	static const struct plan_source none;
	const struct plan_source *f = from ? from : &none;
	const struct planning first = {s, &s->from, f->fields, f->n_fields, f->notes, e};
	const struct planning p = {s, &s->at, at->fields, at->n_fields, at->notes, e};
	int rc;

	kind_of(s, out);
	defaults(&p);
	rc = all_calls(&p);
	if (!rc)
		rc = fetches(&first, &p, out);
	if (!rc)
		rc = keys(&first, &p, out);
	if (!rc)
		rc = probespec_bind(s, e);
	if (rc)
		return rc;
	conditions(s, out);
	for (uint32_t i = 0; i < PROBE_BY; i++)
		out->by[i] = i < s->n_by ? (__u8)s->by[i].arg : PROBE_NONE;
	out->sum = ref(&s->sum);
	out->hist = *s->hist.name ? ref(&s->hist) : out->ends ? PROBE_NS : PROBE_NONE;
	return 0;
}
