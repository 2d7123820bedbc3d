/* SPDX-License-Identifier: Apache-2.0 */
/*
 * knowncode: unwind rows for the few pieces of hand-written code that every stack passes and that
 * come without (sound) call-frame information, recognised by their bytes. Pure over (bytes, len).
 * x86-64.
 *
 * 1. Return from a signal handler, mov $15, %rax (or %eax); syscall: the kernel's frame lies at
 *    RSP.
 * 2. musl's __clone (src/thread/x86_64/clone.s): in the new thread, from `xor %ebp, %ebp` to `hlt`,
 *    nothing called it.
 * 3. The first code of a process, by form: musl's (xor %rbp, %rbp; mov %rsp, %rdi; lea; and $-16,
 *    %rsp; call) and that of glibc's dynamic linker (mov %rsp, %rdi; call ... jmp *%r12).
 * 4. PLT sections, entry by entry: what is pushed when. Forms: GNU ld's and LLVM lld's, lazy and
 *    not, with IBT and BND, and the short ones of a static program.
 * 5. glibc's __start_context, which a makecontext function returns to: older ones do not say that
 *    nothing called it.
 * 6. The C runtime's .init and .fini: sub $8, %rsp; ... add $8, %rsp; ret.
 */
#ifndef SONDE_INDEX_KNOWNCODE_H
#define SONDE_INDEX_KNOWNCODE_H

#include <stddef.h>
#include <stdint.h>

#include "loaders/index/unwind/rows.h"

/* Code at `vaddr`: finds 1 and 2 anywhere in it. Returns how many. */
size_t knowncode_scan(const uint8_t *code, size_t len, uint64_t vaddr, struct rows *r);
/* The bytes at the entry point: 3. */
void knowncode_entry(const uint8_t *code, size_t len, uint64_t vaddr, struct rows *r);
/* A PLT section: 4. */
void knowncode_plt(const uint8_t *code, size_t len, uint64_t vaddr, struct rows *r);

/* All code of a C library: 5. */
void knowncode_contexts(const uint8_t *code, size_t len, uint64_t vaddr, struct rows *r);
/* The section .init or .fini: 6. */
void knowncode_crt(const uint8_t *code, size_t len, uint64_t vaddr, struct rows *r);

#define KNOWNCODE_ENTRY_MAX 128u /* bytes that knowncode_entry looks at */

#endif
