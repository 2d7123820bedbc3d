/* SPDX-License-Identifier: Apache-2.0 */
/* Podman's event log: each event once, line by line as the file grows, and from the start when the
 * file has been replaced. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/host/logs/podmanlog.h"
#include "schema/base/array.h"
#include "tests/unit/test.h"

#define ID "e4fdbdc2239132e8dba4a5820293388d86791ea17f9cad1a7e95faeb6964c7c1"

struct told {
	char all[1000];
};

static void note(void *ctx, const struct container_happened *x, const char *was)
{
	struct told *t = ctx;
	size_t n = strlen(t->all);

	snprintf(t->all + n, sizeof(t->all) - n, "%s %s %d %s %s;", x->name, x->status,
		 x->exit_code, was, x->health);
}

static void add(const char *path, const char *mode, const char *second, const char *status,
		const char *more, const char *end)
{
	FILE *f = fopen(path, mode);

	fprintf(f,
		"{%s\"ID\":\"" ID
		"\",\"Name\":\"pw\",\"Status\":\"%s\",\"Time\":\"2026-11-25T21:16:%sZ\",\"Type\":\"container\",\"Attributes\":{}}%s",
		more, status, second, end);
	fclose(f);
}

static struct told look(struct podmanlog *p, const char *path)
{
	struct told t = {""};

	podmanlog_look(p, path, note, &t);
	return t;
}

TEST(each_line_is_told_once_and_none_of_before)
{
	char path[] = "/tmp/podmanlogXXXXXX";
	struct podmanlog p = {0};
	const struct podmanlog_state *s;
	FILE *f;

	close(mkstemp(path));
	add(path, "w", "32.5", "create", "", "\n");
	assert_string_equal(look(&p, path).all, "");
	add(path, "a", "33.1", "start", "", "\n");
	add(path, "a", "37.1", "died", "\"ContainerExitCode\":7,", "\n");
	assert_string_equal(look(&p, path).all, "pw start 0  ;pw died 7  ;");
	s = podmanlog_state(&p, ID);
	assert_true(s && s->has_ended && s->exit_code == 7 && !s->restarts &&
		    !strcmp(s->name, "pw"));
	add(path, "a", "37.2", "restart", "", "");
	assert_string_equal(look(&p, path).all, ""); /* it is being written */
	f = fopen(path, "a");
	fputs("\nnot json\n{\"Type\":\"image\",\"Status\":\"pull\",\"Time\":\"2026-11-25T21:16:38Z\"}\n",
	      f);
	fclose(f);
	assert_string_equal(look(&p, path).all, "pw restart 0  ;");
	assert_int_equal(podmanlog_state(&p, ID)->restarts, 1);
	unlink(path);
	/* a new file, which begins with the last event of the old one */
	add(path, "w", "37.2", "restart", "", "\n");
	add(path, "a", "38", "health_status", "\"health_status\":\"unhealthy\",", "\n");
	assert_string_equal(look(&p, path).all, "pw health_status 0  unhealthy;");
	add(path, "a", "39", "health_status", "\"health_status\":\"healthy\",", "\n");
	add(path, "a", "40", "remove", "", "\n");
	assert_string_equal(look(&p, path).all,
			    "pw health_status 0 unhealthy healthy;pw remove 0 healthy ;");
	assert_true(podmanlog_state(&p, ID)->removed);
	unlink(path);
	assert_string_equal(look(&p, path).all, "");
	podmanlog_release(&p);
}

TEST(a_line_that_says_what_cannot_be_is_passed_by)
{
	/* clang-format off */
	static const char *const wrong[] = {
		"", "[]", "7", "{\"Type\":\"container\"}", "{\"Type\":\"container\",\"Time\":\"now\",\"ID\":\"" ID "\",\"Status\":\"start\"}",
		"{\"Type\":\"container\",\"Time\":\"2026-11-25T21:16:38Z\",\"ID\":\"../../etc\",\"Status\":\"start\"}",
		"{\"Type\":\"container\",\"Time\":\"2026-11-25T21:16:38Z\",\"ID\":\"" ID "\",\"Status\":7}",
	};
	/* clang-format on */
	struct container_happened x = {.exit_code = 99};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_not_equal(containerfile_podman_event(wrong[i], strlen(wrong[i]), &x), 0);
		assert_int_equal(x.exit_code, 99);
	}
}
