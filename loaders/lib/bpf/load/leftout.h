/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leftout: programs that this kernel, or a policy on it, refuses, and without which a family
 * records the rest. A family lists them with what each costs. It opens, calls leftout_disable and
 * loads; while the load fails and leftout_next returns true, it does that again. `--check` and the
 * recording say what is left out. One object a process: the list is the process's.
 */
#ifndef SONDE_BPF_LEFTOUT_H
#define SONDE_BPF_LEFTOUT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct bpf_object;
struct check;

struct leftout_program { /* a list is ended by one without a name */
	const char *name;
	const char *costs; /* what is not recorded, as a sentence; NULL: nothing, the family goes
			      another way */
	const char *with;  /* a program that is of no use without it; NULL: none */
};

/* A message of libbpf, for its callback: it says which program was refused. `ap` is left as it is.
 */
void leftout_hear(const char *fmt, va_list ap);
/* The program that the last load was refused for; "": none is known. */
const char *leftout_last(void);

/* Between open and load, after autoload and programs_keep_still: what was refused is not loaded. */
void leftout_disable(struct bpf_object *obj);
/* After a load that failed with `err`: can it be tried again with one program less, which is one of
 * `list`, or the `_still` variant of any (programs.h)? */
bool leftout_next(const struct leftout_program *list, int err);
/* Also leave this one of the list out: it cannot be attached. */
void leftout_add(const struct leftout_program *list, const char *name);
bool leftout_is(const char *name);

/* Say what each costs: as a warning each, or as items of `--check`. */
void leftout_tell(const char *family);
void leftout_check(struct check *c);

#endif
