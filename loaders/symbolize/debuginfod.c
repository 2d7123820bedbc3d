/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/symbolize/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define LIBRARY      "libdebuginfod.so.1"
#define SILENT_NS    (20 * NSEC_PER_SEC) /* a server that sends nothing for so long is not waited for */
#define REFUSALS_MAX 3                   /* in a row: then nobody is there */

/* The library's functions, by its manual: build_id_len 0 says that the id is text. */
typedef struct debuginfod_client client;
typedef client *begin_fn(void);
typedef void end_fn(client *);
typedef int find_fn(client *, const unsigned char *build_id, int build_id_len, char **path);
typedef void progress_fn(client *, int (*)(client *, long a, long b));
typedef void data_fn(client *, void *);
typedef void *get_fn(client *);

struct debuginfod {
	void *library;
	client *client;
	end_fn *end;
	find_fn *find_debuginfo, *find_executable;
	get_fn *get_user_data;
	int64_t moved_ns; /* when something came last */
	long seen;
	unsigned fetched, refusals;
};

static get_fn *user_data; /* the callback gets nothing but the client */

static int on_progress(client *c, long a, long b)
{
	struct debuginfod *d = user_data(c);
	int64_t now = clock_boot_ns();

	(void)b;
	if (a != d->seen) {
		d->seen = a;
		d->moved_ns = now;
	}
	return now - d->moved_ns > SILENT_NS; /* not 0: give up */
}

static bool symbol(struct debuginfod *d, const char *name, void *out)
{
	void *p = dlsym(d->library, name);

	memcpy(out, &p, sizeof(p)); /* ISO C has no cast from object to function pointer */
	return p;
}

static int load(struct debuginfod *d)
{
	begin_fn *begin;
	progress_fn *set_progress;
	data_fn *set_data;

	d->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!d->library || !symbol(d, "debuginfod_begin", &begin) || !symbol(d, "debuginfod_end", &d->end) ||
	    !symbol(d, "debuginfod_find_debuginfo", &d->find_debuginfo) ||
	    !symbol(d, "debuginfod_find_executable", &d->find_executable) ||
	    !symbol(d, "debuginfod_set_progressfn", &set_progress) || !symbol(d, "debuginfod_set_user_data", &set_data) ||
	    !symbol(d, "debuginfod_get_user_data", &d->get_user_data))
		return -ENOENT;
	d->client = begin();
	if (!d->client)
		return -ENOMEM;
	user_data = d->get_user_data;
	set_data(d->client, d);
	set_progress(d->client, on_progress);
	return 0;
}

int debuginfod_open(struct debuginfod **out, struct err *e)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct debuginfod *d;
	int rc;

	if (!urls || !*urls) {
		err_set(e, -EINVAL, EXIT_USAGE, "--debuginfod needs a server: DEBUGINFOD_URLS is not set");
		err_fix(e, "DEBUGINFOD_URLS=https://debuginfod.debian.net sonde symbolize --debuginfod");
		return -EINVAL;
	}
	d = mem_alloc(sizeof(*d));
	rc = load(d);
	if (rc) {
		err_set(e, rc, EXIT_PREREQUISITE, "--debuginfod needs elfutils' client library: %s cannot be used", LIBRARY);
		err_fix(e, "apt-get install libdebuginfod1");
		debuginfod_close(d);
		return rc;
	}
	*out = d;
	return 0;
}

void debuginfod_close(struct debuginfod *d)
{
	if (!d)
		return;
	if (d->client)
		d->end(d->client);
	if (d->library)
		dlclose(d->library);
	free(d);
}

static int ask(struct debuginfod *d, find_fn *find, const unsigned char *build_id, size_t len)
{
	int fd;

	if (d->refusals >= REFUSALS_MAX)
		return -EHOSTUNREACH;
	d->moved_ns = clock_boot_ns();
	d->seen = 0;
	fd = find(d->client, build_id, (int)len, NULL);
	if (fd >= 0) {
		d->fetched++;
		d->refusals = 0;
	} else if (fd != -ENOENT && ++d->refusals == REFUSALS_MAX) {
		log_warn("no answer from the debuginfod servers (%s): not asked any more", strerror(-fd));
	} else if (fd == -ENOENT) {
		d->refusals = 0;
	}
	return fd;
}

int debuginfod_debug(struct debuginfod *d, const uint8_t *build_id, size_t len)
{
	return ask(d, d->find_debuginfo, build_id, len);
}

int debuginfod_executable(struct debuginfod *d, const char *build_id_hex)
{
	return ask(d, d->find_executable, (const unsigned char *)build_id_hex, 0);
}

unsigned debuginfod_fetched(const struct debuginfod *d)
{
	return d->fetched;
}
