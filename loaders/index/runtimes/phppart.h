/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phppart: the index's section PHP (schema/image/format.h, condition 15) of a file that holds PHP's
 * engine: php, php-fpm, or libphp, which servers load.
 *
 * It is found by symbols that extensions need, which stripping keeps: executor_globals, which only
 * an engine without thread safety has, and execute_ex, whose cold parts are found as pypart finds
 * those of Python's loop. The version is in the text that extensions are compared with, somewhere
 * among the constants: "API", ZEND_MODULE_API_NO, ",NTS"; it also says that this is not a debug
 * build, whose structures differ.
 *
 * Offsets of members: 7.4 to 8.6, by the headers of each (Zend/zend_compile.h, zend_globals.h,
 * zend_generators.h); those of 7.4, 8.2, 8.4, 8.5 and 8.6 are compiled by
 * tests/unit/loaders/index/runtimes/phppart_test.c where they are installed.
 */
#ifndef SONDE_INDEX_PHPPART_H
#define SONDE_INDEX_PHPPART_H

#include "loaders/index/elf/elffile.h"
#include "loaders/index/unwind/rows.h"
#include "loaders/index/elf/runsyms.h"
#include "probes/runtimes/php_layout.h"

/* The engine's interface number among these bytes (20220829); 0: none, or one of a build with
 * thread safety or for debugging. Pure. */
uint32_t phppart_interface(const uint8_t *bytes, size_t len);
/* false: a version that is not known. */
bool phppart_layout(uint32_t interface, struct php_layout *out);

/* `rows` NULL: no rows. -ENOENT: no engine, or an unknown one. Else as source_read. */
int phppart_make(struct elf_file *f, const struct runsyms *syms, const struct rows *rows,
		 struct php_layout *out);

#endif
