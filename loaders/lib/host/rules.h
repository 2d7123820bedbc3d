/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules: whom [targets] includes or excludes: words, with commas or blanks between, each KIND:PATTERN. Kinds: container (name,
 * or the beginning of its id, at least 6 digits), image, command (its name, its executable's path or last part), user (name or
 * number), unit. A pattern is that of a shell: container:web-*, unit:*.service.
 */
#ifndef SONDE_HOST_RULES_H
#define SONDE_HOST_RULES_H

#include <stdbool.h>
#include <stdint.h>

struct rule_process {           /* strings are never NULL */
	const char *container, *container_id, *image, *comm, *exe, *unit;
	uint32_t uid;
};

/* 0, or -EINVAL: a word that is no rule, or a user that there is not. */
int rules_check(const char *text);
/* Does one of them fit? Words that are none fit nobody. */
bool rules_fit(const char *text, const struct rule_process *p);
/* By [targets]: without `include` everybody is; `exclude` is stronger. */
bool rules_allow(const char *include, const char *exclude, const struct rule_process *p);

#endif
