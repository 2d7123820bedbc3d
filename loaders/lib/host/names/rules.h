/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules: whom [targets] includes or excludes: words, with commas or blanks between, each
 * KIND:PATTERN. Kinds: container (name, or the beginning of its id, at least 6 digits), image,
 * command (its name, its executable's path or last part), user (name or number), unit. A pattern is
 * that of a shell: container:web-*, unit:*.service.
 *
 * What is not known of a process fits no `include` and every `exclude`: of a container whose name
 * no file tells (yet), or of a process that was gone before its cgroup could be found, nobody can
 * say that it is none of those that are to be left out.
 */
#ifndef SONDE_HOST_RULES_H
#define SONDE_HOST_RULES_H

#include <stdbool.h>
#include <stdint.h>

struct rule_process { /* "": it has none. NULL: that is not known */
	const char *container, *container_id, *image, *comm, *exe, *unit;
	uint32_t uid;
	bool no_uid; /* not known either */
};
struct container_ref;
struct container_names;
/* What its cgroup's path tells, and its container's runtime. `ref` NULL: nothing is known of that;
 * `names` may be empty. The rest stays. Borrows from all. */
void rules_place(struct rule_process *p, const struct container_ref *ref,
		 const struct container_names *names);

/* 0, or -EINVAL: a word that is no rule, or a user that there is not. */
int rules_check(const char *text);
/* Does one of them fit? Words that are none fit nobody. `unknown`: whether what is not known counts
 * as fitting. */
bool rules_fit(const char *text, const struct rule_process *p, bool unknown);
/* By [targets]: without `include` everybody is; `exclude` is stronger. */
bool rules_allow(const char *include, const char *exclude, const struct rule_process *p);

#endif
