/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rubypart: the index's section RUBY (schema/image/format.h, condition 15) of a file that contains
 * a Ruby interpreter: libruby, or the program if it is linked statically.
 *
 * It is found by symbols that extensions need, which stripping keeps: ruby_version, a text;
 * the code of rb_thread_current, which takes the thread-local variable ruby_current_ec (by
 * __tls_get_addr of two words that the dynamic loader fills in, or from fs_base) or, in 2.7, leaves
 * it to the VM's list of threads; the code of rb_id2str, which uses ruby_global_symbols: of two
 * variables 16 bytes apart the first is how many ids there are, the second their table.
 *
 * vm_exec_core has no symbol in a stripped file. Its instructions' addresses are a table of
 * constants: the longest run of at least RUBYPART_LABELS words that all lie in one span of
 * .eh_frame. Its cold parts are found as pypart finds those of Python's loop.
 *
 * Offsets of members: 2.7, 3.1, 3.3, 3.4, by their headers (vm_core.h, iseq.h, method.h) as Debian
 * configures them. 4.0 is not run: its members are those of 3.4 except in classes, whose names are
 * left out. What is elsewhere in a later patch release fails the walker's types (no frames), and a
 * line that is outside its code's own lines is left out. tLAST_OP_ID is taken from the code of
 * rb_id2str, which compares with it.
 */
#ifndef SONDE_INDEX_RUBYPART_H
#define SONDE_INDEX_RUBYPART_H

#include "loaders/index/elf/elffile.h"
#include "loaders/index/unwind/rows.h"
#include "loaders/index/elf/runsyms.h"
#include "probes/runtimes/ruby_layout.h"

#define RUBYPART_LABELS 150u

/* "3.1.2" -> its members' places; false: a version that is not known. */
bool rubypart_layout(const char *version, struct ruby_layout *out);
/* How rb_thread_current takes the variable; false: by another way. Pure over its code. */
bool rubypart_local(const uint8_t *code, size_t len, uint64_t vaddr, struct ruby_layout *out);
/* tLAST_OP_ID, as rb_id2str compares with it; 0: it is not seen. Pure over its code. */
uint16_t rubypart_last_op(const uint8_t *code, size_t len);
#define RUBYPART_ADDRESSES 64u
/* The addresses that code uses relative to its place, behind the `n` that are there; returns how
 * many there are then. Pure. */
size_t rubypart_addresses(const uint8_t *code, size_t len, uint64_t vaddr,
			  uint64_t out[RUBYPART_ADDRESSES], size_t n);
/* The first of them that has one 16 bytes on among them; 0: none. */
uint64_t rubypart_pair(const uint64_t *addresses, size_t n);
/* The span that the longest run of addresses lies in. false: no run is long enough. Pure. */
bool rubypart_labels(const uint64_t *words, size_t n, const struct rows *rows,
		     struct elf_range *out);

/* `rows` NULL: no rows. -ENOENT: no interpreter, or an unknown one. Else as source_read. */
int rubypart_make(struct elf_file *f, const struct runsyms *syms, const struct rows *rows,
		  struct ruby_layout *out);

#endif
