/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_java: for which monitors and locks of Java the chosen requests waited, and which thread
 * had them (view java_wait_log, of family java).
 *
 * A wait is a request's if the thread that answered it waited between the request's first byte and
 * its answer's last, and no other kept request of that thread was open then. A thread that moves
 * the bytes of an HTTP/2 connection answers requests of other threads, too: those count for none.
 */
#ifndef SONDE_TOOLS_EXPLAIN_JAVA_H
#define SONDE_TOOLS_EXPLAIN_JAVA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/explain/explain_chosen.h"
#include "tools/select/select.h"

struct explain_java_lock {
	char *comm, *class_name, *owner, *place; /* owned; owner "": not known */
	bool monitor;                            /* else one of java.util.concurrent */
	uint64_t ns, n;
};

struct explain_java {
	struct explain_java_lock *locks; /* in no order */
	size_t n, cap;
};

/* Nothing recorded is no error. Release in any case. */
int explain_java(const struct selection *sel, const struct explain_chosen *chosen,
		 struct explain_java *out, struct err *e);
void explain_java_release(struct explain_java *j);

#endif
