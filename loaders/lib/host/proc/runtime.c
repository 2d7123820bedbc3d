/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/proc/runtime.h"
#include "schema/base/array.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define VERSION "0123456789."

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool begins(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

/* --- names --- */

/* An executable's name, and the runtime's name that precedes the version. */
struct interpreter {
	const char *name, *lang, *called;
};

static const struct interpreter INTERPRETERS[] = {
	{"python", "python", "python"}, {"pypy", "python", "pypy"},
	{"node", "node", "node"},       {"nodejs", "node", "node"},
	{"ruby", "ruby", "ruby"},       {"php", "php", "php"},
	{"php-fpm", "php", "php"},      {"php-cgi", "php", "php"},
	{"perl", "perl", "perl"},       {"java", "java", "java"},
	{"dotnet", "dotnet", "dotnet"}, {"beam.smp", "erlang", "erlang"},
	{"lua", "lua", "lua"},          {"luajit", "lua", "luajit"}};

/* NAME or NAME and a version, nothing else: "python3.11", but not "python-config". */
static const struct interpreter *interpreter_of(const char *exe)
{
	const char *name = base_of(exe);

	for (size_t i = 0; i < ARRAY_SIZE(INTERPRETERS); i++) {
		const struct interpreter *x = &INTERPRETERS[i];
		size_t n = strlen(x->name);

		if (begins(name, x->name) && strspn(name + n, VERSION) == strlen(name + n))
			return x;
	}
	return NULL;
}

/* A library, and its runtime; `embedded`: other programs may contain it too. */
static const struct library {
	const char *begins, *lang, *called;
	bool embedded;
} LIBRARIES[] = {
	{"libjvm.so", "java", "java", false},  {"libcoreclr.so", "dotnet", "dotnet", false},
	{"libnode.so", "node", "node", false}, {"libpython", "python", "python", true},
	{"libruby", "ruby", "ruby", true},     {"libphp", "php", "php", true},
	{"libperl.so", "perl", "perl", true}};

static const char *const HOSTS[] = {"apache2", "httpd",     "uwsgi",   "uwsgi-core",
				    "unitd",   "passenger", "lighttpd"};

static bool is_script_host(const char *exe)
{
	const char *name = base_of(exe);

	for (size_t i = 0; i < ARRAY_SIZE(HOSTS); i++)
		if (!strcmp(name, HOSTS[i]))
			return true;
	return false;
}

/* The first library of that language (NULL: any that counts for this executable), and its path. */
static const struct library *library_of(const struct runtime_facts *f, const char *lang,
					const char **path)
{
	bool host = is_script_host(f->exe);

	for (size_t i = 0; i < ARRAY_SIZE(LIBRARIES); i++) {
		const struct library *l = &LIBRARIES[i];

		if (lang ? strcmp(lang, l->lang) != 0 : l->embedded && !host)
			continue;
		for (size_t k = 0; k < f->n_paths; k++)
			if (begins(base_of(f->paths[k]), l->begins)) {
				*path = f->paths[k];
				return l;
			}
	}
	return NULL;
}

/* --- versions --- */

/* Writes the name, then the version at `s` as far as it is one, without trailing dots. */
static void called_with(struct runtime *out, const char *called, const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && s[n] && strchr(VERSION, s[n]))
		n++;
	while (n && s[n - 1] == '.')
		n--;
	snprintf(out->version, sizeof(out->version), "%s%.*s", called, (int)(n < 16 ? n : 16), s);
}

/* What follows `mark` in the path, up to the next slash. */
static const char *folder_after(const char *path, const char *mark, size_t *len)
{
	const char *at = strstr(path, mark);

	if (!at)
		return NULL;
	at += strlen(mark);
	*len = strcspn(at, "/");
	return at;
}

/* The version in a library's name ("libruby-3.1.so.3.1", "libperl.so.5.36") or in its folder. */
static void version_of_library(struct runtime *out, const struct library *l, const char *path)
{
	const char *name = base_of(path), *at;
	size_t len = 0;

	if (!strcmp(l->lang, "dotnet") || !strcmp(l->lang, "java")) {
		at = folder_after(path, *l->lang == 'd' ? "/Microsoft.NETCore.App/" : "/jvm/java-",
				  &len);
		called_with(out, l->called, at ? at : "", len);
		return;
	}
	at = strpbrk(name, "0123456789");
	if (!strcmp(l->lang, "node") || !at) /* libnode's number is that of its interface */
		at = "";
	called_with(out, l->called, at, strlen(at));
}

/* --- the parts --- */

static void tell_interpreter(const struct runtime_facts *f, const struct interpreter *x,
			     struct runtime *out)
{
	const char *version = base_of(f->exe) + strlen(x->name), *path = f->exe;
	const struct library *l;
	size_t len;

	out->lang = x->lang;
	called_with(out, x->called, version, strlen(version));
	if (*version)
		return;
	l = library_of(f, x->lang, &path);
	if (l)
		version_of_library(out, l, path);
	else if (!strcmp(x->lang, "java") && (version = folder_after(f->exe, "/jvm/java-", &len)))
		called_with(out, x->called, version, len);
}

static bool tell_lang(const struct runtime_facts *f, struct runtime *out)
{
	const struct interpreter *x = interpreter_of(f->exe);
	const struct library *l;
	const char *path;

	if (f->go_version) {
		out->lang = "go";
		snprintf(out->version, sizeof(out->version), "%.40s",
			 *f->go_version ? f->go_version : "go");
		return true;
	}
	if (x) {
		tell_interpreter(f, x, out);
		return true;
	}
	l = library_of(f, NULL, &path);
	if (l) {
		out->lang = l->lang;
		version_of_library(out, l, path);
	}
	return l;
}

static void tell_libc(const char *name, struct runtime *out)
{
	bool musl = begins(name, "ld-musl") || begins(name, "libc.musl") ||
		    !strcmp(name, "libc.so"); /* glibc's is a text */
	bool glibc = begins(name, "ld-linux") || begins(name, "ld-2.") || begins(name, "ld64.so") ||
		     begins(name, "libc.so.6") || begins(name, "libc-2.");

	if (musl || glibc) {
		out->linking = STORE_DYNAMIC;
		out->libc = musl ? STORE_MUSL : STORE_GLIBC;
	}
}

void runtime_tell(const struct runtime_facts *f, struct runtime *out)
{
	bool exe = false, cpp = false;

	*out = (struct runtime){.lang = ""};
	for (size_t i = 0; i < f->n_paths; i++) {
		const char *name = base_of(f->paths[i]);

		exe |= *f->exe && !strcmp(f->paths[i], f->exe);
		cpp |= begins(name, "libstdc++.so") || begins(name, "libc++.so");
		tell_libc(name, out);
	}
	if (exe && !out->linking)
		out->linking = STORE_STATIC;
	if (!tell_lang(f, out) && cpp) {
		out->lang = "c++";
		snprintf(out->version, sizeof(out->version), "c++");
	}
}
