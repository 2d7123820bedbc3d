/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pypart: the index's section PYTHON (schema/image/format.h, condition 15) of a file that contains
 * a CPython interpreter: the program if it is linked statically, else libpython.
 *
 * All of it is found by symbols that extension modules need, which stripping keeps:
 * _PyRuntime (3.7 on), Py_Version (3.11 on), the types, the loop itself. Before 3.11 the version is
 * the text that Py_GetVersion gives to PyOS_snprintf; before 3.7 the interpreters' list is the
 * variable that PyInterpreterState_Head loads.
 *
 * Code of the loop (2.7 to 3.10 need it): _PyEval_EvalFrameDefault, in 2.7 PyEval_EvalFrameEx;
 * symbols of its parts (".cold", ".part.0"); without symbols, each span of .eh_frame into whose
 * middle the loop jumps: only parts of the same function are entered there.
 */
#ifndef SONDE_INDEX_PYPART_H
#define SONDE_INDEX_PYPART_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/index/elf/elffile.h"
#include "loaders/index/unwind/rows.h"
#include "probes/runtimes/python_layout.h"

/* What the file's symbol tables say; 0: not there. */
struct py_symbols {
	uint64_t runtime, runtime_size, version;
	uint64_t code_type, frame_type, unicode_type, bytes_type, string_type;
	struct elf_range get_version, interpreter_head;
	struct elf_range loop, loop_27;
	struct elf_range parts[PYTHON_RANGES - 1]; /* of either */
	unsigned part_count;
};

/* A symbol that may be one of these. */
void py_symbols_note(struct py_symbols *py, const char *name, uint64_t addr, uint64_t size);

/* Spans of .eh_frame into whose middle the code [vaddr, vaddr + len) jumps, sorted, each once, at
 * most `max`; returns how many. Pure. */
unsigned pypart_jumps(const uint8_t *code, size_t len, uint64_t vaddr, const struct rows *rows,
		      struct elf_range *out, unsigned max);
/* The first text that begins as a version, among the addresses that code of a function takes. Pure
 * but for `text_at`, which reads a string of the file, NULL: none there. 0: none. */
uint32_t pypart_version(const uint8_t *code, size_t len, uint64_t vaddr,
			const char *(*text_at)(void *ctx, uint64_t addr), void *ctx);

/* `rows` NULL: no rows. -ENOENT: no interpreter, or an unknown one (pylayout.h). Else as
 * source_read. */
int pypart_make(struct elf_file *f, const struct py_symbols *py, const struct rows *rows,
		struct python_layout *out);

#endif
