/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gotest: programs built by each Go that this machine has, for the tests that compare Go's tables
 * with other witnesses.
 *
 * Which: `go` on the path, and Debian's own, /usr/lib/go-1.*; or, where SONDE_GO is set
 * (gomatrix.py), the go programs it names, separated by colons.
 */
#ifndef TESTS_INDEX_GOTEST_H
#define TESTS_INDEX_GOTEST_H

#include "tests/unit/loaders/index/testing.h"
#include "tests/unit/missing.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <unistd.h>

#include "loaders/index/go/gotable.h"
#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define GOTEST_MAX 16

struct gotest {
	char dir[64];
	char *go[GOTEST_MAX];
	size_t count;
};

static inline int gotest_shell(const char *command)
{
	return system(command);
}

/* The words that a command with this Go begins with: its own root, nothing of the user's settings,
 * no network. */
static inline void gotest_env(struct strbuf *cmd, const char *program, bool cgo)
{
	const char *bin = strstr(program, "/bin/go");

	strbuf_addf(
		cmd,
		"env -u GOROOT GOFLAGS= GOENV=off GOTOOLCHAIN=local GOPROXY=off CGO_ENABLED=%d ",
		cgo);
	if (bin)
		strbuf_addf(cmd, "GOROOT='%.*s' ", (int)(bin - program), program);
}

static inline void gotest_add(struct gotest *g, const char *program)
{
	cleanup_strbuf struct strbuf cmd = STRBUF_INIT;

	gotest_env(&cmd, program, false);
	strbuf_addf(&cmd, "'%s' version >/dev/null 2>&1", program);
	if (g->count < GOTEST_MAX && !gotest_shell(strbuf_str(&cmd)))
		g->go[g->count++] = mem_strdup(program);
}

static inline void gotest_find(struct gotest *g)
{
	const char *named = getenv("SONDE_GO");
	glob_t found = {0};

	if (named) {
		char *all = mem_strdup(named), *save = NULL;

		for (char *p = strtok_r(all, ":", &save); p; p = strtok_r(NULL, ":", &save))
			gotest_add(g, p);
		free(all);
		return;
	}
	gotest_add(g, "go");
	if (!glob("/usr/lib/go-1.*/bin/go", 0, NULL, &found))
		for (size_t i = 0; i < found.gl_pathc; i++)
			gotest_add(g, found.gl_pathv[i]);
	globfree(&found);
}

static inline void gotest_write(const struct gotest *g, const char *name, const char *text)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	cleanup_file FILE *f = NULL;

	strbuf_addf(&path, "%s/%s", g->dir, name);
	f = fopen(strbuf_str(&path), "w");
	assert_non_null(f);
	fputs(text, f);
}

/* A folder with a module whose program is `source`. false: there is no Go here. */
static inline bool gotest_open(struct gotest *g, const char *source)
{
	*g = (struct gotest){.dir = "/tmp/sonde-gotest-XXXXXX"};
	gotest_find(g);
	if (!g->count)
		return false;
	assert_non_null(mkdtemp(g->dir));
	gotest_write(g, "main.go", source);
	gotest_write(g, "go.mod", "module example.org/gotest\n\ngo 1.15\n");
	return true;
}

static inline void gotest_close(struct gotest *g)
{
	cleanup_strbuf struct strbuf cmd = STRBUF_INIT;

	strbuf_addf(&cmd, "rm -rf '%s'", g->dir);
	assert_int_equal(gotest_shell(strbuf_str(&cmd)), 0);
	for (size_t i = 0; i < g->count; i++)
		free(g->go[i]);
}

/* Builds with the i-th Go; the program's path (free it), NULL where it does not build (cgo without
 * a C compiler, ...). */
static inline char *gotest_build(const struct gotest *g, size_t i, const char *flags, bool cgo)
{
	cleanup_strbuf struct strbuf cmd = STRBUF_INIT;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	static unsigned number;

	strbuf_addf(&out, "%s/program%u", g->dir, number++);
	strbuf_addf(&cmd, "cd '%s' && ", g->dir);
	gotest_env(&cmd, g->go[i], cgo);
	strbuf_addf(&cmd, "'%s' build %s -o '%s' . 2>build.log", g->go[i], flags, strbuf_str(&out));
	if (gotest_shell(strbuf_str(&cmd)))
		return NULL;
	return mem_strdup(strbuf_str(&out));
}

/* An opened file with its Go table. */
struct gofile {
	int fd;
	uint64_t hash, left;
	struct elf_file elf;
	struct go_table table;
};

static inline void gofile_open(struct gofile *f, const char *path)
{
	struct source src;

	*f = (struct gofile){
		.fd = open(path, O_RDONLY | O_CLOEXEC), .hash = HASH_SEED, .left = SOURCE_BUDGET};
	assert_true(f->fd >= 0);
	assert_int_equal(source_init_fd(&src, f->fd, &f->hash, &f->left), 0);
	assert_int_equal(elf_open(&f->elf, &src, NULL), 0);
	assert_int_equal(go_table_find(&f->elf, &(struct go_symbols){0}, &f->table), 0);
}

static inline void gofile_close(struct gofile *f)
{
	go_table_release(&f->table);
	elf_release(&f->elf);
	close(f->fd);
}

#endif
