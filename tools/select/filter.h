/* SPDX-License-Identifier: Apache-2.0 */
/* filter: the values of --container, --comm, ... and whether a process has them. select.h has the
 * grammar. */
#ifndef SONDE_TOOLS_FILTER_H
#define SONDE_TOOLS_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"
#include "schema/store/read/reader.h"

enum filter_kind {
	FILTER_CONTAINER = 0,
	FILTER_IMAGE,
	FILTER_PID,
	FILTER_TID,
	FILTER_COMM,
	FILTER_EXE,
	FILTER_USER,
	FILTER_UNIT,
	FILTER_CGROUP,
	FILTER_LANG,
	FILTER_LABEL, /* of imported samples: KEY, KEY=VALUE */
	FILTER_HOST,  /* of several (schema/store/read/reader.h): of files, not of processes */
	FILTER_N
};

struct filters; /* opaque */

struct filters *filters_new(void);
void filters_free(struct filters *f);
/* Parse one value and add it. EXIT_USAGE for an empty value, a bad expression, a pid that is no
 * number. */
int filters_add(struct filters *f, enum filter_kind kind, const char *value, struct err *e);
const char *filter_kind_name(enum filter_kind kind); /* "container" */

bool filters_empty(const struct filters *f);
bool filters_have(const struct filters *f, enum filter_kind kind);
/* The i-th value of a kind that is a plain name, no `!`, no `~`; NULL past the last. Borrowed. */
const char *filters_plain(const struct filters *f, enum filter_kind kind, size_t i);
/* The i-th value of --container that is no regular expression, with or without `!`; NULL past the
 * last. Borrowed. */
const char *filters_container(const struct filters *f, size_t i);
/* That value means this container, too (called.h). `id` and `name` may be "". */
void filters_container_is(struct filters *f, size_t i, const char *id, const char *name);
/* All kinds but the thread's, the labels' and the host's; the host's; the thread's; the labels'. */
bool filters_want_process(const struct filters *f, const struct store_process_row *p);
bool filters_want_host(const struct filters *f, const char *host);
bool filters_want_thread(const struct filters *f, uint32_t tid);
/* `labels`: a JSON object, or "". */
bool filters_want_labels(const struct filters *f, const char *labels);
/* Is the process named, by a value that is no NOT, by its pid or comm? */
bool filters_name_process(const struct filters *f, const struct store_process_row *p);

/* Is there a value that means this very name? */
bool filter_can_say(const char *name);
/* A word as a shell takes it: quoted where it must be. And an option with it, after a space unless
 * it is the first. */
void filter_word(const char *text, struct strbuf *out);
/* " --store A --store B", of one store or several; nothing for NULL. */
void stores_options(const char *store, struct strbuf *out);
void filter_option(enum filter_kind kind, const char *value, struct strbuf *out);
/* "--container 'immich-ml' --pid 812": ready for a shell. "" when empty. */
void filters_text(const struct filters *f, struct strbuf *out);
/* "immich-ml", "pid 812": for headlines. */
void filters_what(const struct filters *f, struct strbuf *out);

#endif
