/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/beam/beamname.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define ELIXIR   "Elixir."
#define PROLOGUE "-CodeInfoPrologue"

static bool begins(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

/* Needs an atom no quotes? Not of UTF-8's letters, which are left as they are. */
static bool is_plain(const char *atom)
{
	if (*atom < 'a' || *atom > 'z')
		return false;
	for (const unsigned char *c = (const unsigned char *)atom; *c; c++)
		if (!(*c >= 0x80 || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
		      (*c >= '0' && *c <= '9') || *c == '_' || *c == '@'))
			return false;
	return true;
}

static void add_atom(struct strbuf *s, const char *atom)
{
	const char *quote = is_plain(atom) ? "" : "'";

	strbuf_addf(s, "%s%s%s", quote, atom, quote);
}

/* "-total/2-fun-0-": how long "total/2" is. 0: not such a name. */
static size_t inside_of(const char *function)
{
	const char *end = *function == '-' ? strstr(function + 1, "-fun-") : NULL;

	return end ? (size_t)(end - function - 1) : 0;
}

/* "-map/2-lists^map/1-0-": a function that the compiler made, which Elixir quotes. */
static bool is_made(const char *function)
{
	return *function == '-' &&
	       ((function[1] >= 'a' && function[1] <= 'z') || function[1] == '_');
}

char *beamname_make(const char *module, const char *function, uint32_t arity)
{
	struct strbuf s = STRBUF_INIT;
	size_t inside = inside_of(function);

	if (!*module)
		return NULL;
	if (!begins(module, ELIXIR)) {
		add_atom(&s, module);
		strbuf_addstr(&s, ":");
		add_atom(&s, function);
		strbuf_addf(&s, "/%u", arity);
		return strbuf_take(&s);
	}
	module += strlen(ELIXIR);
	if (inside)
		strbuf_addf(&s, "anonymous fn/%u in %s.%.*s", arity, module, (int)inside,
			    function + 1);
	else
		strbuf_addf(&s, "%s.%s%s%s/%u", module, is_made(function) ? "\"" : "", function,
			    is_made(function) ? "\"" : "", arity);
	return strbuf_take(&s);
}

/* The text of an atom at *at, with or without quotes, which ends before `end`. NULL: none. */
static char *atom_take(const char **at, char end)
{
	bool quoted = **at == '\'';
	const char *from = *at + quoted;
	const char *to = strchr(from, quoted ? '\'' : end);

	if (!to || to == from || (quoted && to[1] != end))
		return NULL;
	*at = to + quoted + 1;
	return mem_strndup(from, (size_t)(to - from));
}

char *beamname_of_perf(const char *name)
{
	cleanup_free char *module = NULL;
	cleanup_free char *function = NULL;
	char *rest = NULL;
	unsigned long arity;

	if (*name++ != '$' || begins(name, "global::"))
		return NULL;
	module = atom_take(&name, ':');
	function = module ? atom_take(&name, '/') : NULL;
	if (!function || *name < '0' || *name > '9')
		return NULL;
	arity = strtoul(name, &rest, 10);
	if (arity > 255 || (*rest && strcmp(rest, PROLOGUE) != 0))
		return NULL;
	return beamname_make(module, function, (uint32_t)arity);
}
