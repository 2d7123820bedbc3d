/* SPDX-License-Identifier: Apache-2.0 */
/* waitstack: how tables of waits name a stack: by one function, or by all of them. Stacks are those
 * of a segment's dictionary. */
#ifndef SONDE_TOOLS_WAITSTACK_H
#define SONDE_TOOLS_WAITSTACK_H

#include <stdint.h>

#include "schema/store/read/reader.h"
#include "tools/waits/waitrules.h"

/*
 * The innermost function that is neither the kernel's nor the C library's, else the innermost;
 * NULL: stack 0. Borrowed. Where it is of an interpreter, the script's function that it is at.
 * Inlined ones do not count: they are known once a file's lines are read, and a wait's place must
 * not change by that.
 */
const char *waitstack_own(const struct store_dict *d, uint32_t stack);
/*
 * By stack: its innermost caller, or itself, of which a rule or purpose says something; 0: none.
 * For the two below, where many stacks are asked: they look at these alone. The caller frees it.
 */
uint32_t *waitstack_named(const struct store_dict *d);
/* What its frames say of a wait of this class (waitrules.h); NULL: nothing. `named` may be NULL. */
const struct waitrule *waitstack_rule(const struct store_dict *d, const uint32_t *named,
				      uint32_t stack, const char *class);
/* What it was for (waitrule_purpose), by its innermost frame that says so; NULL. */
const char *waitstack_purpose(const struct store_dict *d, const uint32_t *named, uint32_t stack);

/* `main;handle;futex_wake`, outermost first, written as tools/formats/folded.h does; the caller
 * frees it. */
char *waitstack_path(const struct store_dict *d, uint32_t stack);

#endif
