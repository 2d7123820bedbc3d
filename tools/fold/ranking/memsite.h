/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memsite: whose line made memory grow. A page is touched first by whatever code comes to it: by
 * memset, by an allocator that writes its own header, by the runtime of a language that makes an
 * object. The line that a person looks for is the nearest one above them:
 *
 *   1. the innermost frame of a script or of code that a JIT made, if the stack has one that is not
 *      the runtime's (functions of PHP and Ruby without a file, modules of Node, classes of the
 *      JDK, files of numpy, pandas, scipy and torch);
 *   2. else the innermost frame that is not the kernel's, not in a C library, a dynamic linker or
 *      an allocator, and not a function of a language's own library (std::, alloc::, runtime.);
 *   3. else the innermost frame.
 *
 * A stack of a page of the host (kind `pages`) ends in a frame that says what the page is used for;
 * the line is the one above that, by the same rules. Where there is only the kernel's code it is
 * the innermost function that does not just hand out memory.
 */
#ifndef SONDE_TOOLS_MEMSITE_H
#define SONDE_TOOLS_MEMSITE_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/fold/fold.h"

/* `node`: where a stack ends. The node of its line, 0 for the root alone. */
uint32_t memsite_node(const struct fold *f, uint32_t node);
/* The same, of a page of the host; `node` has the frame of its use. */
uint32_t memsite_page_node(const struct fold *f, uint32_t node);
/* Does this function of the kernel only hand out memory? Pure. */
bool memsite_hands_out(const char *function);
/* Is it a frame of condition 1? */
bool memsite_script(const struct fold_frame *fr);
/* Is it of condition 2? Pure. */
bool memsite_library(const char *function, const char *module);

#endif
