/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that cipher one record: which names they have, and which sites; and what identifies
 * them without names. */
#include "tests/unit/test.h"

#include <string.h>

#include "loaders/index/code/nameless.h"
#include "loaders/index/code/recordpart.h"
#include "schema/base/array.h"

/* As compilers make them: one in C, which returns 1 where a call went well; one of Rust, which
 * jumps on to another; one whose first instruction is not emulated, and that jumps by a pointer. */
__asm__(".text\n"
	"rec_open: push %rbp\n mov %rsp, %rbp\n mov 0x18(%rbp), %rax\n call rec_inner\n test %eax, %eax\n"
	"rec_open_result: je 1f\n mov $1, %eax\n pop %rbp\n ret\n"
	"1: xor %eax, %eax\n pop %rbp\n ret\n"
	"rec_open_end: ud2\n"
	"rec_rust: cmpl $5, (%rsi)\n"
	"rec_rust_entry: je 2f\n jmp rec_inner\n"
	"2: ud2\n"
	"rec_rust_end: ud2\n"
	"rec_inner: sub $8, %rsp\n add $8, %rsp\n"
	"rec_inner_ret: ret\n"
	"rec_inner_end: ud2\n"
	"rec_far: mov (%rdi), %rax\n jmp *%rax\n"
	"rec_far_end: ud2\n");

#define LABEL(name_) extern const uint8_t name_[]
LABEL(rec_open);
LABEL(rec_open_result);
LABEL(rec_open_end);
LABEL(rec_rust);
LABEL(rec_rust_entry);
LABEL(rec_rust_end);
LABEL(rec_inner);
LABEL(rec_inner_ret);
LABEL(rec_inner_end);
LABEL(rec_far);
LABEL(rec_far_end);

struct sites {
	struct image_tls_site at[16];
	size_t n;
};

static size_t own_memory(void *ctx, uint64_t vaddr, uint8_t *out)
{
	(void)ctx;
	memcpy(out, (const void *)vaddr,
	       X86INSN_MAX); /* NOLINT(performance-no-int-to-ptr): the address of these functions */
	return X86INSN_MAX;
}

static uint64_t end_of(void *ctx, uint64_t start)
{
	(void)ctx;
	return start == (uint64_t)rec_inner ? (uint64_t)rec_inner_end : 0;
}

static uint64_t offset_of(void *ctx, uint64_t vaddr)
{
	(void)ctx;
	return vaddr;
}

static bool put(void *ctx, const struct image_tls_site *site)
{
	struct sites *s = ctx;

	if (s->n == ARRAY_SIZE(s->at))
		return false;
	s->at[s->n++] = *site;
	return true;
}

static bool sites_of(const uint8_t *start, const uint8_t *end, uint8_t operation, uint8_t shape,
		     struct sites *out)
{
	const struct codeflow_reader reader = {.read = own_memory};
	const struct recordpart_host h = {.ctx = out,
					  .reader = &reader,
					  .end_of = end_of,
					  .offset_of = offset_of,
					  .put = put};
	const struct record_function fn = {.start = (uint64_t)start,
					   .end = (uint64_t)end,
					   .library = IMAGE_TLS_RUSTLS,
					   .operation = operation,
					   .shape = shape};

	out->n = 0;
	return recordpart_add(&h, &fn);
}

static const struct image_tls_site *site_at(const struct sites *s, uint8_t role, const uint8_t *at)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->at[i].role == role && s->at[i].offset == (uint64_t)at)
			return &s->at[i];
	return NULL;
}

TEST(a_function_of_c_has_its_result_where_the_kernel_emulates)
{
	const struct image_tls_site *entry, *result;
	struct sites s;

	assert_true(sites_of(rec_open, rec_open_end, IMAGE_TLS_READ, IMAGE_TLS_OPEN, &s));
	entry = site_at(&s, IMAGE_TLS_ENTRY, rec_open);
	result = site_at(&s, IMAGE_TLS_RESULT, rec_open_result);
	assert_true(entry && !entry->slow && entry->check_value[0] == IMAGE_TLS_OPEN);
	assert_true(entry->value[0].place == IMAGE_TLS_STACK && entry->value[0].at == 8);
	assert_true(result && !result->slow && result->when == IMAGE_TLS_NOT_TAKEN &&
		    result->value[0].place == IMAGE_TLS_NUMBER && result->value[0].at == 1);
}

TEST(a_function_of_rust_ends_at_each_ret_also_where_it_jumps_on)
{
	const struct image_tls_site *result;
	struct sites s;

	assert_true(sites_of(rec_rust, rec_rust_end, IMAGE_TLS_READ, IMAGE_TLS_RING, &s));
	assert_non_null(site_at(&s, IMAGE_TLS_ENTRY, rec_rust_entry));
	result = site_at(&s, IMAGE_TLS_RESULT, rec_inner_ret);
	assert_true(result && result->slow && result->value[0].place == IMAGE_TLS_NOWHERE);
	assert_int_equal(s.n, 2);
	assert_true(sites_of(rec_rust, rec_rust_end, IMAGE_TLS_WRITE, IMAGE_TLS_RING, &s));
	assert_int_equal(s.n, 1);
}

TEST(a_function_whose_way_out_is_not_known_has_no_sites)
{
	struct sites s;

	assert_false(sites_of(rec_far, rec_far_end, IMAGE_TLS_READ, IMAGE_TLS_RING, &s));
}

TEST(names_of_both_kinds_are_known_and_names_within_are_not)
{
	static const struct {
		const char *name;
		int shape; /* 0: none */
		bool writes;
	} cases[] = {
		{"_ZN4ring4aead9algorithm12aes_gcm_seal17h989bcc619e30f209E", IMAGE_TLS_RING, true},
		{"_ZN4ring4aead7aes_gcm12aes_gcm_open17h989bcc619e30f209E", IMAGE_TLS_RING, false},
		{"_ZN4ring4aead9algorithm12aes_gcm_open17h989bcc619e30f209E.llvm.77",
		 IMAGE_TLS_RING, false},
		{"_RNvNtNtCs9ltgdHTiPiY_4ring4aead9algorithm22chacha20_poly1305_open",
		 IMAGE_TLS_RING, false},
		{"_RNvNtNtCs9ltgdHTiPiY_4ring4aead9algorithm22chacha20_poly1305_seal.llvm.1",
		 IMAGE_TLS_RING, true},
		{"_ZN4ring4aead7aes_gcm12aes_gcm_open28_$u7b$$u7b$closure$u7d$$u7d$17h98E", 0,
		 false},
		{"_ZN4ring4aead9algorithm16aes_gcm_init_12817h7ef9897163fbce47E", 0, false},
		{"_ZN5other4aead9algorithm12aes_gcm_seal17h989bcc619e30f209E", 0, false},
		{"EVP_AEAD_CTX_seal_scatter", IMAGE_TLS_SEAL_SCATTER, true},
		{"aws_lc_0_38_0_EVP_AEAD_CTX_open_gather", IMAGE_TLS_OPEN_GATHER, false},
		{"aws_lc_0_38_0_EVP_AEAD_CTX_open", IMAGE_TLS_OPEN, false},
		{"aws_lc_0_38_0_EVP_AEAD_CTX_seal", IMAGE_TLS_SEAL, true},
		{"EVP_AEAD_CTX_open_gather_v2", 0, false},
		{"EVP_AEAD_CTX_new", 0, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct record_symbols t = {.count = 0};

		record_symbols_note(&t, cases[i].name, 0x1000, 16);
		assert_int_equal(t.count, cases[i].shape != 0);
		if (t.count)
			assert_true(t.at[0].shape == cases[i].shape &&
				    (t.at[0].operation == IMAGE_TLS_WRITE) == cases[i].writes);
	}
}

/* ---- without names ---- */

struct loads {
	size_t at[4], target[4];
	size_t n;
};

static void load_note(void *ctx, size_t at, size_t target)
{
	struct loads *l = ctx;

	l->at[l->n] = at;
	l->target[l->n++] = target;
}

TEST(instructions_that_load_an_address_are_found)
{
	/* nop; lea 0x100(%rip), %rdx; lea 0xf9(%rip), %r9; lea 0x1(%rip), %eax (32 bits) */
	static const uint8_t code[] = {0x90, 0x48, 0x8d, 0x15, 0,    1, 0, 0, 0x4c, 0x8d, 0x0d,
				       0xf9, 0,    0,    0,    0x8d, 5, 1, 0, 0,    0,    0x90};
	const uint64_t sorted[] = {0x4108, 0x5000};
	struct loads l = {.n = 0};

	nameless_loads(code, sizeof(code), 0x4000, sorted, ARRAY_SIZE(sorted), load_note, &l);
	assert_int_equal(l.n, 2);
	assert_true(l.at[0] == 1 && l.at[1] == 8 && !l.target[0] && !l.target[1]);
	l.n = 0;
	nameless_loads(code, 6, 0x4000, sorted, ARRAY_SIZE(sorted), load_note, &l);
	assert_int_equal(l.n, 0);
}

TEST(a_function_s_errors_tell_which_one_it_is)
{
	const unsigned a = NAMELESS_ALIASES;

	assert_int_equal(nameless_by_errors(a | NAMELESS_INVALID, false), NAMELESS_SEAL_SCATTER);
	assert_int_equal(nameless_by_errors(a | NAMELESS_TOO_LARGE | NAMELESS_TOO_SMALL, false),
			 NAMELESS_SEAL);
	assert_int_equal(nameless_by_errors(a | NAMELESS_BAD_DECRYPT | NAMELESS_TOO_SMALL, false),
			 NAMELESS_OPEN);
	assert_int_equal(
		nameless_by_errors(a | NAMELESS_BAD_DECRYPT | NAMELESS_NOT_IMPLEMENTED, false),
		NAMELESS_OPEN);
	assert_int_equal(nameless_by_errors(a | NAMELESS_NOT_IMPLEMENTED, false),
			 NAMELESS_OPEN_GATHER);
	assert_int_equal(nameless_by_errors(a, false), -1);
	assert_int_equal(nameless_by_errors(NAMELESS_INVALID, false), -1);
	assert_int_equal(nameless_by_errors(a | NAMELESS_INVALID | NAMELESS_TOO_LARGE, false), -1);
	assert_int_equal(nameless_by_errors(a | NAMELESS_INVALID | NAMELESS_TWO, false),
			 NAMELESS_SEAL_SCATTER);
}

TEST(boringssl_with_vectors_is_known_by_the_number_of_its_buffers)
{
	const unsigned small = NAMELESS_TOO_SMALL;

	assert_int_equal(nameless_by_errors(small | NAMELESS_ONE, true), NAMELESS_SEAL);
	assert_int_equal(nameless_by_errors(small | NAMELESS_TWO, true), NAMELESS_SEAL_SCATTER);
	assert_int_equal(nameless_by_errors(small | NAMELESS_BAD_DECRYPT | NAMELESS_ONE, true),
			 NAMELESS_OPEN);
	/* both numbers of buffers: which one it is is not clear */
	assert_int_equal(nameless_by_errors(small | NAMELESS_ONE | NAMELESS_TWO, true), -1);
	assert_int_equal(nameless_by_errors(small, true), -1);
	/* sealv, openv, openv_detached */
	assert_int_equal(nameless_by_errors(NAMELESS_ALIASES | NAMELESS_TOO_LARGE, true), -1);
	assert_int_equal(nameless_by_errors(NAMELESS_BAD_DECRYPT | NAMELESS_ONE, true), -1);
}
