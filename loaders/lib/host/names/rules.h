/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules: the processes that [targets] includes or excludes: words, separated by commas or blanks,
 * each KIND:PATTERN. Kinds: container (name, or the beginning of its id, at least 6 digits), image,
 * command (its name, its executable's path or last part), user (name or number), unit. Patterns are
 * those of a shell: container:web-*, unit:*.service.
 *
 * An unknown property matches no `include` and every `exclude`: if the name of a container is in no
 * file (yet), or a process was gone before its cgroup could be found, it might be one that must be
 * excluded.
 */
#ifndef SONDE_HOST_RULES_H
#define SONDE_HOST_RULES_H

#include <stdbool.h>
#include <stdint.h>

struct rule_process { /* "": it has none. NULL: unknown */
	const char *container, *container_id, *image, *comm, *exe, *unit;
	uint32_t uid;
	bool no_uid; /* unknown */
};
struct container_ref;
struct container_names;
/* Sets what its cgroup's path and its container's runtime say. `ref` NULL: unknown; `names` may be
 * empty. The other fields are unchanged. Borrows all of them. */
void rules_place(struct rule_process *p, const struct container_ref *ref,
		 const struct container_names *names);

/* 0, or -EINVAL: a word that is not a rule, or an unknown user. */
int rules_check(const char *text);
/* Does one of the rules match? Words that are not rules match nothing. `unknown`: whether unknown
 * properties match. */
bool rules_fit(const char *text, const struct rule_process *p, bool unknown);
/* By [targets]: without `include` all processes are included; `exclude` is stronger. */
bool rules_allow(const char *include, const char *exclude, const struct rule_process *p);

#endif
