/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspotcode: what HotSpot's structures say of a Java frame: class and method, source file, line;
 * for compiled code also the methods inlined there. The memory is untrusted: lengths and loops are
 * bounded, a name must be a Utf8 entry of the method's own constant pool, a place must be in the
 * method's code.
 *
 * Numbers in tables (UNSIGNED5): b0, b1, ... of up to five bytes, each less X: their sum, the i-th
 * shifted left by 6 i; one below 192 is the last. X: 0 up to JDK 18, 1 from then on. Signed ones
 * have the sign in bit 0. A line table: pairs of distances, bci << 3 | line in one byte, or 0xff
 * and two signed numbers; 0 ends it. A scope: the caller's scope's place (0: none), the number of
 * the method, bci + 1. Sources: OpenJDK's src/hotspot/share/utilities/unsigned5.hpp,
 * code/{compressedStream,debugInfo,scopeDesc,pcDesc}, oops/{method,constMethod,symbol}.
 */
#ifndef SONDE_RUNTIMES_HOTSPOTCODE_H
#define SONDE_RUNTIMES_HOTSPOTCODE_H

#include "loaders/lib/runtimes/script.h"
#include "probes/runtimes/hotspot_layout.h"

/* How this JVM packs numbers. Where its version is not known, its own tables say it: line tables
 * and scopes of methods, of which most make sense in one of the two ways only. */
struct hotspot_packing {
	bool proved;
	unsigned x;
	unsigned votes[2];
};

struct hotspotcode {
	const struct runtime_memory *m;
	uint64_t n[HOTSPOT_N]; /* the numbers; for a variable its address */
	bool has[HOTSPOT_N];
	uint8_t width[HOTSPOT_N];
	struct hotspot_packing *packing;
};

struct hotspot_blob {
	uint64_t at, size;
	uint64_t code;  /* its first instruction */
	uint64_t frame; /* bytes; 0: none */
	bool compiled;  /* of a method; else a stub, an adapter, the interpreter */
	bool native;    /* it wraps a method of native code, which has no scopes */
};

#define HOTSPOT_INLINE_MAX 64

/* A member of the structure at `base` that is a number; `usual`: its bytes where the table does not
 * say so. false: not readable, or it needs more than 32 bits. */
bool hotspotcode_member(const struct hotspotcode *c, uint64_t base, enum hotspot_number which,
			size_t usual, uint32_t *value);

/* A number of a table at *at; false: cut off. Pure. */
bool hotspot_number_read(const uint8_t *bytes, size_t len, size_t *at, unsigned x, uint32_t *value);
/* 0: none. Pure. */
uint32_t hotspot_line_find(const uint8_t *table, size_t len, unsigned x, uint32_t bci);

/* Can this be the line table of a method whose code has `code_size` bytes? Pure. */
bool hotspot_lines_fit(const uint8_t *table, size_t len, unsigned x, uint32_t code_size);

/* `bci` < 0: not known. false: it is no method. */
bool hotspotcode_method(const struct hotspotcode *c, uint64_t method, int64_t bci,
			struct script_place *out);
/* Where in an interpreted method an instruction lies; -1: outside of its code. */
int64_t hotspotcode_bci(const struct hotspotcode *c, uint64_t method, uint64_t bcp);
/* Is it a method without bytecode? */
bool hotspotcode_is_native(const struct hotspotcode *c, uint64_t method);
/* The method that was compiled, without a line. false: not compiled code. */
bool hotspotcode_own(const struct hotspotcode *c, const struct hotspot_blob *b,
		     struct script_place *out);
/* The methods that compiled code runs at a return address, innermost first, appended with `at`.
 * false: none is known. */
bool hotspotcode_scopes(const struct hotspotcode *c, const struct hotspot_blob *b, uint64_t pc,
			size_t at, struct script_stack *out);

#endif
