/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phpcode: what PHP's functions say of themselves: name, class, file. Their memory is a stranger's:
 * a string says that it is one (its GC head) and ends with 0, lengths have bounds, and what cannot
 * be told is left out.
 *
 * Names: "f", "Class::f", "{main}", "{include}" and "{eval}" for code of a file or a text outside
 * of functions. A function of C has no file.
 */
#ifndef SONDE_RUNTIMES_PHPCODE_H
#define SONDE_RUNTIMES_PHPCODE_H

#include "loaders/lib/runtimes/script.h"
#include "probes/runtimes/php_layout.h"

struct phpcode {
	const struct runtime_memory *m;
	const struct php_layout *l;
};

/* `type`: enum php_function. `outermost`: its frame returns to none. false: it is no function. The
 * line stays as it is. */
bool phpcode_read(const struct phpcode *c, uint64_t func, uint32_t type, bool outermost,
		  struct script_place *out);
/* 0: not known, or a function of C. */
uint32_t phpcode_first_line(const struct phpcode *c, uint64_t func, uint32_t type);

#endif
