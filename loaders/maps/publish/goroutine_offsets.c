/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/publish/goroutine_offsets.h"

#include <stdbool.h>
#include <string.h>

#include "probes/lib/tables.h"
#include "schema/image/go.h"

#define WORD      8
#define SCHED     56 /* gobuf's place in g */
#define SYSCALLBP 23 /* since Go 1.23 there is one */
/* words of a gobuf that has ret, as all up to Go 1.24, and of one that has not */
#define GOBUF_RET 7
#define GOBUF     6
/* words up to goid: syscallsp, syscallpc, stktopsp, param, atomicstatus and stackLock */
#define BEHIND_GOBUF 5
#define TLS_MOST     0xffff
#define WORDS_MOST   0x3f

/* The extension that tells how to come from a thread to its goroutine. false: no row has one. */
static bool goroutine_find(const struct unwind_section *s, struct row_ext *out)
{
	const uint64_t *at = s->elements + s->page_count + s->rule_count;

	for (uint32_t i = 0; s->elements && i < s->ext_count; i++) {
		memcpy(out, at + (size_t)i * (sizeof(*out) / WORD), sizeof(*out));
		if (out->kind == ROW_EXT_GO_SCHED || out->kind == ROW_EXT_GO_STACK)
			return true;
	}
	return false;
}

/* In words; 0: not known. `bp`: gobuf.bp, from gobuf's beginning. */
static unsigned goid_place(unsigned minor, int32_t bp)
{
	unsigned gobuf = bp == (GOBUF - 1) * WORD     ? GOBUF :
			 bp == (GOBUF_RET - 1) * WORD ? GOBUF_RET :
							0;

	if (!gobuf || (gobuf == GOBUF_RET && !minor))
		return 0;
	return SCHED / WORD + gobuf + BEHIND_GOBUF + (gobuf == GOBUF || minor >= SYSCALLBP);
}

uint32_t goroutine_offsets_flags(const struct unwind_section *rows, const char *version)
{
	struct row_ext x;
	unsigned goid;

	if (!rows || !goroutine_find(rows, &x))
		return TABLES_PROCESS_GO;
	goid = goid_place(image_go_minor(version), x.bp_offset);
	if (!goid || x.a >= 0 || x.a % WORD || x.a < -TLS_MOST * WORD || x.b <= 0 || x.b % WORD ||
	    x.b > WORDS_MOST * WORD)
		return TABLES_PROCESS_GO;
	return TABLES_GO_MAKE(-x.a / WORD, goid, x.b / WORD);
}

uint32_t goroutine_offsets_join(uint32_t a, uint32_t b)
{
	if (a & b & TABLES_PROCESS_GO && (a ^ b) & TABLES_GO_HOW)
		return (a | b) & ~TABLES_GO_HOW;
	return a | b;
}
