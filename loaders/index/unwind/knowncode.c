/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/unwind/knowncode.h"

#include <stdbool.h>
#include <string.h>

#define PLT_ENTRY 16u
#define PLT_SHORT 8u
#define CLONE_MAX 96u /* bytes from __clone's first to its new thread's */
#define CHILD_MAX 24u /* bytes from there to `hlt` */

#define KEPT(words) (ROW_MAKE_CFA(ROW_RSP, ROW_BP_SAME, 0, words) | ROW_MAKE_BX(ROW_BX_SAME, 0))

static const uint64_t at_entry = KEPT(1);
static const uint32_t root = ROW_MAKE_SPECIAL(ROW_ROOT, 0);

static bool starts(const uint8_t *code, size_t len, const char *form, size_t n)
{
	return len >= n && !memcmp(code, form, n);
}
#define STARTS(code, len, form) starts(code, len, form, sizeof(form) - 1)

static size_t find(const uint8_t *code, size_t len, const char *form, size_t n)
{
	const uint8_t *p = memmem(code, len, form, n);

	return p ? (size_t)(p - code) : len;
}
#define FIND(code, len, form) find(code, len, form, sizeof(form) - 1)

/* ---- 1 ---- */

static size_t signal_returns(const uint8_t *code, size_t len, uint64_t vaddr, const char *form,
			     size_t n, struct rows *r)
{
	size_t found = 0;

	for (size_t at = 0; (at += find(code + at, len - at, form, n)) < len; at += n, found++) {
		const uint64_t start = vaddr + at - (vaddr + at > r->base);

		rows_span(r, start, vaddr + at + n, ROWS_SURE);
		rows_add(r, start, ROW_MAKE_SPECIAL(ROW_SIGNAL, 0));
	}
	return found;
}

/* ---- 2 ---- */

static bool clone_rows(const uint8_t *code, size_t len, uint64_t vaddr, struct rows *r)
{
	size_t child = FIND(code, len < CLONE_MAX ? len : CLONE_MAX, "\x31\xed\x5f\x41\xff\xd1");
	size_t end, room = len - child < CHILD_MAX ? len - child : CHILD_MAX;

	if (child >= len || child >= CLONE_MAX)
		return false;
	end = child + FIND(code + child, room, "\xf4");
	if (end == child + room)
		return false;
	end++;
	rows_span(r, vaddr, vaddr + end + (end < len && code[end] == 0xc3), ROWS_GUESS);
	rows_add(r, vaddr, at_entry);
	rows_add(r, vaddr + child, root);
	rows_add(r, vaddr + end, at_entry);
	return true;
}

static size_t clones(const uint8_t *code, size_t len, uint64_t vaddr, struct rows *r)
{
	/* xor %eax, %eax; mov $56, %al; mov %rdi, %r11 */
	static const char head[] = "\x31\xc0\xb0\x38\x49\x89\xfb";
	size_t found = 0;

	for (size_t at = 0; (at += FIND(code + at, len - at, head)) < len; at += sizeof(head) - 1)
		found += clone_rows(code + at, len - at, vaddr + at, r);
	return found;
}

size_t knowncode_scan(const uint8_t *code, size_t len, uint64_t vaddr, struct rows *r)
{
	static const char wide[] = "\x48\xc7\xc0\x0f\0\0\0\x0f\x05",
			  narrow[] = "\xb8\x0f\0\0\0\x0f\x05";

	return signal_returns(code, len, vaddr, wide, sizeof(wide) - 1, r) +
	       signal_returns(code, len, vaddr, narrow, sizeof(narrow) - 1, r) +
	       clones(code, len, vaddr, r);
}

/* ---- 5 ---- */

void knowncode_contexts(const uint8_t *code, size_t len, uint64_t vaddr, struct rows *r)
{
	/* mov %rbx, %rsp; mov (%rsp), %rdi; test %rdi, %rdi; je; call */
	static const char head[] = "\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff\x74\x08\xe8";
	size_t at = FIND(code, len, head);

	if (at + 26 > len)
		return;
	rows_span(r, vaddr + at, vaddr + at + 26, ROWS_SURE);
	rows_add(r, vaddr + at, root); /* and the byte before: rows.h, 6 */
}

/* ---- 6 ---- */

void knowncode_crt(const uint8_t *code, size_t len, uint64_t vaddr, struct rows *r)
{
	size_t sub = STARTS(code, len, "\xf3\x0f\x1e\xfa") ? 4 : 0, add;

	if (len < sub + 4 || !STARTS(code + sub, len - sub, "\x48\x83\xec\x08"))
		return;
	add = FIND(code, len, "\x48\x83\xc4\x08\xc3");
	if (add == len)
		return;
	rows_span(r, vaddr, vaddr + add + 5, ROWS_GUESS);
	rows_add(r, vaddr, at_entry);
	rows_add(r, vaddr + sub + 4, KEPT(2));
	rows_add(r, vaddr + add + 4, at_entry);
}

/* ---- 3 ---- */

void knowncode_entry(const uint8_t *code, size_t len, uint64_t vaddr, struct rows *r)
{
	size_t n = 0;

	if (len > KNOWNCODE_ENTRY_MAX)
		len = KNOWNCODE_ENTRY_MAX;
	if (STARTS(code, len, "\x48\x31\xed\x48\x89\xe7\x48\x8d\x35") && len >= 22 &&
	    STARTS(code + 13, len - 13, "\x48\x83\xe4\xf0\xe8"))
		n = 22;
	else if (STARTS(code, len, "\x48\x89\xe7\xe8"))
		n = FIND(code, len, "\x41\xff\xe4") + 3;
	if (!n || n > len)
		return;
	rows_span(r, vaddr, vaddr + n, ROWS_GUESS);
	rows_add(r, vaddr, root);
}

/* ---- 4 ---- */

/* The `n` bytes from an entry's first on. */
static void plt_entry(const uint8_t *p, size_t n, uint64_t at, struct rows *r)
{
	/* the first: what the others pushed lies there, and it pushes one more */
	if (STARTS(p, n, "\xff\x35")) {
		rows_add(r, at, KEPT(2));
		rows_add(r, at + 6, KEPT(3));
	} else if (STARTS(p, n, "\xff\x25") && n == PLT_ENTRY && p[6] == 0x68) {
		rows_add(r, at, ROW_MAKE_SPECIAL(ROW_PLT, 11));
	} else if (STARTS(p, n, "\xf3\x0f\x1e\xfa\x68")) {
		rows_add(r, at, ROW_MAKE_SPECIAL(ROW_PLT, 9));
	} else if (STARTS(p, n, "\x68")) {
		rows_add(r, at, ROW_MAKE_SPECIAL(ROW_PLT, 5));
	} else if (STARTS(p, n, "\xff\x25") || STARTS(p, n, "\xf2\xff\x25") ||
		   STARTS(p, n, "\xf3\x0f\x1e\xfa\xff\x25") ||
		   STARTS(p, n, "\xf3\x0f\x1e\xfa\xf2\xff\x25")) {
		rows_add(r, at, at_entry);
	} else {
		rows_add(r, at, ROW_MAKE_SPECIAL(ROW_NONE, 0));
	}
}

/* Entries of eight bytes, jmp *GOT and a two-byte nop: those of a static program's IFUNCs. */
static bool plt_is_short(const uint8_t *code, size_t len)
{
	for (size_t at = 0; at < len; at += PLT_SHORT)
		if (len - at < PLT_SHORT || !STARTS(code + at, PLT_SHORT, "\xff\x25") ||
		    code[at + 6] != 0x66 || code[at + 7] != 0x90)
			return false;
	return true;
}

void knowncode_plt(const uint8_t *code, size_t len, uint64_t vaddr, struct rows *r)
{
	if (!(vaddr % PLT_SHORT) && plt_is_short(code, len)) {
		rows_span(r, vaddr, vaddr + len, ROWS_GUESS);
		rows_add(r, vaddr, at_entry);
		return;
	}
	if (vaddr % PLT_ENTRY)
		return;
	rows_span(r, vaddr, vaddr + len, ROWS_GUESS);
	for (size_t at = 0; at < len; at += PLT_ENTRY)
		plt_entry(code + at, len - at < PLT_ENTRY ? len - at : PLT_ENTRY, vaddr + at, r);
}
