/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * spec: the grammar of a probe. Words are divided by blanks; what is within () may have blanks, too.
 *
 *   SPEC   = [NAME "="] HOOK {OPTION}
 *          | [NAME "="] "latency" "from" HOOK "to" HOOK "by" KEY ["," KEY] {OPTION}
 *          | [NAME "="] PRESET [":" FILE] {OPTION}
 *   HOOK   = WHERE ["(" ARG {"," ARG} ")"]
 *   WHERE  = "tracepoint:" GROUP ":" EVENT
 *          | "syscall:" CALL                   one system call, or * for all
 *          | "func:" FILE ":" SYMBOL ["%return"]   a function of a program or library; SYMBOL may be
 *                                              0xOFFSET in the file. %return: from its begin to its end
 *          | "go:" FILE ":" SYMBOL ["%return"] a function of a Go program
 *          | "usdt:" FILE ":" [PROVIDER ":"] PROBE
 *   ARG    = NAME                              a field of that name
 *          | NAME "=" FIELD                    a field under another name
 *          | NAME "=" TYPE ["$" N | "@" REGISTER ["+" OFFSET]]
 *          | "ret" "=" TYPE                    of %return: what the function returns
 *   TYPE   = int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool str
 *   FILE   = "/" PATH                          that file
 *          | CONTAINER "/" PATH                that of a container
 *          | NAME                              what processes have mapped that is called so, or all
 *                                              of a container; * matches anything
 *   KEY    = "pid" | "tid" | "cpu" | NAME      an argument that both hooks have
 *   OPTION = ["if"] COND {"and" COND}          hits for which all hold
 *          | "by" NAME {"," NAME}              sums by these arguments, BY_MAX at most
 *          | "sum" NAME | "hist" NAME          what is summed, or has a histogram: an argument, or ns
 *          | "stack"                           stacks too
 *          | "rate" N                          single events a second, at most; the rest are in the sums alone
 *   COND   = NAME OP VALUE
 *   OP     = == != < <= > >= & (any of these bits) ~ (begins with)
 *   VALUE  = decimal, 0x hexadecimal, [-]ERRNO name, or for a string 'text' or a word
 *
 * FILE holds no colon. `ret` (what a system call or a function returned) and `ns` (how long it
 * took, or a pair) are further arguments. NAME is a letter, then letters, digits and _. Where no
 * name is given it is made from the last word of WHERE.
 *
 * Several are divided by | .
 *
 * A refusal points at the column: "column 12: ...".
 */
/* clang-format on */
#ifndef SONDE_PROBESPEC_SPEC_H
#define SONDE_PROBESPEC_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

#define PROBESPEC_TEXT_MAX  512 /* bytes of a spec */
#define PROBESPEC_NAME      32  /* with the final 0, as all below */
#define PROBESPEC_PATH      256
#define PROBESPEC_ARGS      8
#define PROBESPEC_CONDS     4
#define PROBESPEC_BY        2
#define PROBESPEC_VALUE     48 /* of a string that is compared */
#define PROBESPEC_RATE      100
#define PROBESPEC_RATE_MOST 100000

enum probespec_kind {
	PROBESPEC_TRACEPOINT,
	PROBESPEC_SYSCALL,
	PROBESPEC_FUNC,
	PROBESPEC_USDT,
	PROBESPEC_GO
};

enum probespec_type {
	PROBESPEC_AS_FOUND, /* as the field is */
	PROBESPEC_INT8,
	PROBESPEC_INT16,
	PROBESPEC_INT32,
	PROBESPEC_INT64,
	PROBESPEC_UINT8,
	PROBESPEC_UINT16,
	PROBESPEC_UINT32,
	PROBESPEC_UINT64,
	PROBESPEC_BOOL,
	PROBESPEC_STR
};

struct probespec_arg {
	char name[PROBESPEC_NAME];
	char field[PROBESPEC_NAME]; /* "": a place */
	enum probespec_type type;
	uint32_t number; /* $N, from 1 on; 0: none */
	char reg[8];     /* "rdi"; "": none */
	bool deref;      /* what lies at reg + offset */
	int32_t offset;
	bool first;      /* of a pair: at its first hook, which is a function's begin too */
	bool returned;   /* what the function returned; a text */
	uint32_t column; /* from 1 on, for messages */
};

/* Which argument: its place in `args`, or one of these. */
#define PROBESPEC_RET PROBESPEC_ARGS
#define PROBESPEC_NS  (PROBESPEC_ARGS + 1)

enum probespec_op {
	PROBESPEC_EQ,
	PROBESPEC_NE,
	PROBESPEC_LT,
	PROBESPEC_LE,
	PROBESPEC_GT,
	PROBESPEC_GE,
	PROBESPEC_BITS,
	PROBESPEC_BEGINS
};

struct probespec_ref {             /* a name that an option uses, resolved by probespec_bind */
	char name[PROBESPEC_NAME]; /* "": none */
	uint32_t arg;
	uint32_t column;
};

struct probespec_cond {
	struct probespec_ref of;
	enum probespec_op op;
	bool is_text;
	int64_t number;
	char text[PROBESPEC_VALUE];
};

struct probespec_where {
	enum probespec_kind kind;
	char group[PROBESPEC_PATH];    /* GROUP, FILE as written; "" of a system call */
	char provider[PROBESPEC_NAME]; /* of usdt; "": any */
	char target[PROBESPEC_PATH];   /* EVENT, CALL, SYMBOL, PROBE */
	uint64_t offset;               /* of 0xOFFSET; 0: a symbol */
	bool chosen;                   /* () were given */
	uint32_t column;
};

struct probespec_key {
	char name[PROBESPEC_NAME]; /* "pid", "tid", "cpu", or an argument's */
	uint32_t arg;              /* the first hook's; not of pid, tid and cpu */
	struct probespec_arg last; /* the second one's, which is not in `args` */
};

struct probespec {
	struct probespec_where at;   /* of latency: the second hook */
	struct probespec_where from; /* of latency: the first one */
	bool latency;
	bool returns;                 /* %return */
	enum probespec_type ret_type; /* of a number that it returns */
	char name[PROBESPEC_NAME];
	char text[PROBESPEC_TEXT_MAX]; /* the whole, as written, a preset's in full */
	struct probespec_key key[PROBESPEC_BY];
	uint32_t n_key;
	struct probespec_arg args[PROBESPEC_ARGS];
	uint32_t n_args;
	struct probespec_cond conds[PROBESPEC_CONDS];
	uint32_t n_conds;
	struct probespec_ref by[PROBESPEC_BY];
	uint32_t n_by;
	struct probespec_ref sum, hist;
	bool stack;
	uint32_t rate;
};

/* Does it have `ret`, `ns`; is a `ret` below 0 an error? */
static inline bool probespec_has_ret(const struct probespec *s)
{
	return !s->latency && (s->returns || s->at.kind == PROBESPEC_SYSCALL);
}
static inline bool probespec_has_ns(const struct probespec *s)
{
	return s->latency || probespec_has_ret(s);
}
static inline bool probespec_has_error(const struct probespec *s)
{
	return !s->latency && s->at.kind == PROBESPEC_SYSCALL;
}

/* Is it a key that hooks have by themselves: pid, tid, cpu? */
bool probespec_key_is_own(const char *name);

/* Of several that | divides the first one -> out, and *at behind it. 1; 0: that was the last one;
 * -EINVAL: it is too long for a spec. */
int probespec_next(const char **at, char out[PROBESPEC_TEXT_MAX]);
/* Are these specs (one or more)? EXIT_USAGE. Pure. */
int probespec_check(const char *list, struct err *e);
/* `text` of any length -> *out. EXIT_USAGE; *out is undefined then. Pure. */
int probespec_parse(const char *text, struct probespec *out, struct err *e);
/* After `args` is complete (the loader adds the fields where none were chosen): finds what the
 * options name. EXIT_USAGE. */
int probespec_bind(struct probespec *s, struct err *e);
/* "int32"; "" of PROBESPEC_AS_FOUND. */
const char *probespec_type_name(enum probespec_type t);

#endif
