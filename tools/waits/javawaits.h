/* SPDX-License-Identifier: Apache-2.0 */
/*
 * javawaits: what threads of Java programs waited for, as family java recorded it (view
 * java_waits): the class of the monitor or lock, the thread that had it, and where the wait was.
 * Only waits of 1 ms or longer that have ended. In the scheduler's counts they are waits at a
 * futex.
 */
#ifndef SONDE_TOOLS_JAVAWAITS_H
#define SONDE_TOOLS_JAVAWAITS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"

struct selection;

struct javawait {
	char *container, *comm, *kind, *class_name, *owner, *place; /* never NULL */
	int64_t pid;
	bool idle; /* parked or waiting for work, as far as its class tells */
	uint64_t n, ns;
};

struct javawaits {
	struct javawait *rows; /* locks first, idle ones last; of each the most time first */
	size_t n, cap;
};

/* An empty one is no error. Release in any case. */
int javawaits_read(const struct selection *sel, struct javawaits *out, struct err *e);
void javawaits_release(struct javawaits *w);

/* Does waiting on this class mean that there was no work? Pure. */
bool javawaits_is_idle(const char *kind, const char *class_name);
/* At most `most` rows, without idle ones unless `idle`: as a table on standard output; as an array.
 */
void javawaits_print(const struct javawaits *w, uint64_t most, bool idle, int width);
json_t *javawaits_json(const struct javawaits *w, bool idle);
/* "threads of shop waited 5.8 s for monitor Till, which thread holds had (Shop.pay:42)"; "":
 * nothing to say. */
void javawaits_brief(struct strbuf *out, const struct javawaits *w);

#endif
