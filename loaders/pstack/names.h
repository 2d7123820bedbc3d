/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names: frames as people read them: function, module, file and line; inlined functions as separate
 * frames. Same indexes and rules as the names that the families store
 * (loaders/lib/host/names/naming.h), but stored nowhere.
 */
#ifndef SONDE_PSTACK_NAMES_H
#define SONDE_PSTACK_NAMES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/pstack/walk.h"

struct names;

struct named_frame {
	char *function;      /* NULL: not known */
	char *module, *file; /* of file NULL: not known */
	uint32_t line;       /* 0: not known */
	uint64_t offset;     /* within the module, of a frame without a name; else 0 */
	bool inlined, kernel;
	const char *runtime; /* static: "python" or as runtimes.h has it, of a script's frame; NULL:
				native */
};

struct named_stack { /* leaf first; kernel frames before user frames */
	struct named_frame *frames;
	size_t n, cap;
};

/* The kernel's symbols are those kept in the store's folder (kallsyms.h); all are read if one
 * is not among them. NULL: read. no_lines: of script frames functions alone, as native ones have it
 * then. */
struct names *names_open(const char *store_dir, bool no_lines);
void names_close(struct names *n);
/* Both append. The kernel's leaf is a return address, too: none of these threads runs. */
void names_kernel(struct names *n, const __u64 *frames, size_t count, struct named_stack *out);
/* Script frames come in place of the native frame that runs them. */
void names_user(struct names *n, struct hostmaps *hm, struct hostmaps_process *p,
		const struct walk *walk, uint64_t time_ns, struct named_stack *out);
void named_stack_release(struct named_stack *s);

#endif
