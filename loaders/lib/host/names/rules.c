/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/names/rules.h"

#include <errno.h>
#include <fnmatch.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/proc/containernames.h"
#include "schema/base/array.h"

#define WORD_MAX 256
#define ID_MIN   6
#define BETWEEN  ", \t"

/* `value` NULL: unknown. */
static bool fits(const char *pattern, const char *value, bool unknown)
{
	return value ? *value && !fnmatch(pattern, value, 0) : unknown;
}

static bool fits_container(const char *pattern, const struct rule_process *p, bool unknown)
{
	size_t n = strlen(pattern);

	if (p->container_id && (fits(pattern, p->container_id, false) ||
				(n >= ID_MIN && !strncmp(p->container_id, pattern, n))))
		return true;
	return fits(pattern, p->container, unknown);
}

static bool fits_image(const char *pattern, const struct rule_process *p, bool unknown)
{
	return fits(pattern, p->image, unknown);
}

static bool fits_command(const char *pattern, const struct rule_process *p, bool unknown)
{
	const char *slash = p->exe ? strrchr(p->exe, '/') : NULL;

	return fits(pattern, p->comm, unknown) || fits(pattern, p->exe, unknown) ||
	       (slash && fits(pattern, slash + 1, unknown));
}

static bool fits_unit(const char *pattern, const struct rule_process *p, bool unknown)
{
	return fits(pattern, p->unit, unknown);
}

/* A user id, from a number or a name. */
static bool user_of(const char *text, uint32_t *uid)
{
	struct passwd pw, *found = NULL;
	char buf[4096], *end;
	unsigned long n = strtoul(text, &end, 10);

	if (!*end && *text >= '0' && *text <= '9' && n <= UINT32_MAX)
		*uid = (uint32_t)n;
	else if (getpwnam_r(text, &pw, buf, sizeof(buf), &found) || !found)
		return false;
	else
		*uid = found->pw_uid;
	return true;
}

static bool fits_user(const char *pattern, const struct rule_process *p, bool unknown)
{
	uint32_t uid;

	if (p->no_uid)
		return unknown;
	return user_of(pattern, &uid) && uid == p->uid;
}

static const struct kind {
	const char *name;
	bool (*fits)(const char *pattern, const struct rule_process *p, bool unknown);
} KINDS[] = {{"container", fits_container},
	     {"image", fits_image},
	     {"command", fits_command},
	     {"user", fits_user},
	     {"unit", fits_unit}};

/* The next word of *at, split in two; NULL: no more. *pattern NULL: it is not a rule. */
static const struct kind *next_rule(const char **at, char word[WORD_MAX], const char **pattern,
				    bool *end)
{
	const char *from = *at + strspn(*at, BETWEEN);
	size_t n = strcspn(from, BETWEEN);
	char *colon;

	*at = from + n;
	*end = !n;
	*pattern = NULL;
	if (!n || n >= WORD_MAX)
		return NULL;
	memcpy(word, from, n);
	word[n] = '\0';
	colon = strchr(word, ':');
	if (!colon || !colon[1])
		return NULL;
	*colon = '\0';
	*pattern = colon + 1;
	for (size_t i = 0; i < ARRAY_SIZE(KINDS); i++)
		if (!strcmp(word, KINDS[i].name))
			return &KINDS[i];
	return NULL;
}

int rules_check(const char *text)
{
	char word[WORD_MAX];
	const char *pattern;
	uint32_t uid;
	bool end;

	for (;;) {
		const struct kind *k = next_rule(&text, word, &pattern, &end);

		if (end)
			return 0;
		if (!k || (k->fits == fits_user && !user_of(pattern, &uid)))
			return -EINVAL;
	}
}

bool rules_fit(const char *text, const struct rule_process *p, bool unknown)
{
	char word[WORD_MAX];
	const char *pattern;
	bool end = false;

	while (!end) {
		const struct kind *k = next_rule(&text, word, &pattern, &end);

		if (k && k->fits(pattern, p, unknown))
			return true;
	}
	return false;
}

void rules_place(struct rule_process *p, const struct container_ref *ref,
		 const struct container_names *names)
{
	bool known = ref && (!*ref->runtime || container_named_by_path(ref));

	p->unit = ref ? ref->unit : NULL;
	p->container_id = ref ? ref->id : NULL;
	p->container = names->name ? names->name : known ? ref->id : NULL;
	p->image = names->image ? names->image : known ? "" : NULL;
}

bool rules_allow(const char *include, const char *exclude, const struct rule_process *p)
{
	return (!include[strspn(include, BETWEEN)] || rules_fit(include, p, false)) &&
	       !rules_fit(exclude, p, true);
}
