/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phpcode: name, class and file of PHP functions. The memory is untrusted: a string must look like
 * one (its GC head) and end with 0, lengths are bounded, and what cannot be determined is left out.
 *
 * Names: "f", "Class::f", "{main}", "{include}" and "{eval}" for code of a file or a text outside
 * of functions. A C function has no file.
 */
#ifndef SONDE_RUNTIMES_PHPCODE_H
#define SONDE_RUNTIMES_PHPCODE_H

#include "loaders/lib/runtimes/script.h"
#include "probes/runtimes/php_layout.h"

struct phpcode {
	const struct runtime_memory *m;
	const struct php_layout *l;
};

/* `type`: enum php_function. `outermost`: no frame below it. false: not a function. Does not change
 * the line. */
bool phpcode_read(const struct phpcode *c, uint64_t func, uint32_t type, bool outermost,
		  struct script_place *out);
/* 0: not known, or a function of C. */
uint32_t phpcode_first_line(const struct phpcode *c, uint64_t func, uint32_t type);

#endif
