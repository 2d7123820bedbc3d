/* SPDX-License-Identifier: Apache-2.0 */
/* The index's TLS section: sites in functions of this file, followed in this program's memory; and
 * in this machine's libraries, where objdump says which instruction is at each site. */
#include "schema/base/array.h"
#include "tests/unit/loaders/index/testing.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "loaders/index/code/tlscode.h"
#include "loaders/index/code/tlspart.h"
#include "schema/base/mem.h"
#include "schema/image/tls.h"
#include "tests/unit/missing.h"

/* A wrapper that checks its stack, as compilers make SSL_read; one that hands on; a switch; a sum
 * in the frame. */
__asm__(".text\n"
	"tls_wrapper: sub $0x18, %rsp\n xor %eax, %eax\n test %edx, %edx\n"
	"tls_wrapper_entry: js 2f\n mov %rsp, %rcx\n movslq %edx, %rdx\n call tls_inner\n test %eax, %eax\n cmovg (%rsp), %eax\n"
	"1: cmp %rdx, %rdx\n"
	"tls_wrapper_result: jne 3f\n add $0x18, %rsp\n ret\n"
	"2: mov $-1, %eax\n jmp 1b\n"
	"3: call tls_inner\n"
	"tls_wrapper_end: ud2\n"
	"tls_inner: push %rbx\n mov %rdi, %rbx\n mov %rdx, %r8\n mov %rsi, %rdx\n mov $23, %esi\n mov %rcx, %r9\n mov 8(%rdi), %rax\n"
	"pop %rbx\n mov 0x70(%rax), %rax\n jmp *%rax\n"
	"tls_inner_end: ud2\n"
	"tls_switch: cmp $2, %edi\n ja 9f\n lea tls_table(%rip), %rdx\n mov %edi, %edi\n movslq (%rdx,%rdi,4), %rax\n add %rdx, %rax\n jmp *%rax\n"
	"4: mov $7, %eax\n"
	"tls_switch_seven: jmp 8f\n"
	"5: mov %rsi, %rax\n"
	"tls_switch_copy: jmp 8f\n"
	"6: xor %eax, %eax\n"
	"8: ret\n"
	"9: mov $-5, %eax\n"
	"tls_switch_else: jmp 8b\n"
	"tls_switch_end: ud2\n"
	".section .rodata\n .balign 4\n tls_table: .long 4b - tls_table, 5b - tls_table, 6b - tls_table\n .text\n"
	"tls_sum: push %rbp\n mov %rsp, %rbp\n sub $0x20, %rsp\n movq $1, -8(%rbp)\n call tls_inner\n mov %rax, 8(%rsp)\n"
	"tls_sum_result: jmp 7f\n"
	"7: mov 8(%rsp), %rax\n add -8(%rbp), %rcx\n mov -8(%rbp), %rcx\n add %rcx, %rax\n leave\n ret\n"
	"tls_sum_end: ud2\n");

#define LABEL(name_) extern const uint8_t name_[]
LABEL(tls_wrapper);
LABEL(tls_wrapper_entry);
LABEL(tls_wrapper_result);
LABEL(tls_wrapper_end);
LABEL(tls_inner);
LABEL(tls_inner_end);
LABEL(tls_switch);
LABEL(tls_switch_seven);
LABEL(tls_switch_copy);
LABEL(tls_switch_else);
LABEL(tls_switch_end);
LABEL(tls_sum);
LABEL(tls_sum_result);
LABEL(tls_sum_end);

static size_t own_memory(void *ctx, uint64_t vaddr, uint8_t *out)
{
	(void)ctx;
	memcpy(out, (const void *)vaddr,
	       X86INSN_MAX); /* NOLINT(performance-no-int-to-ptr): the address of these functions */
	return X86INSN_MAX;
}

static const struct tlscode_asked three = {.args = {X86_RDI, X86_RSI, X86_RDX, 0xff},
					   .second = 0xff};

static struct tlscode_found *found_in(const uint8_t *start, const uint8_t *end,
				      const struct tlscode_asked *asked)
{
	const struct codeflow_reader r = {.read = own_memory};
	struct tlscode_found *out = mem_alloc(sizeof(*out));
	struct codeflow f = {0};

	assert_true(codeflow_make(&f, &r, (uint64_t)start, (uint64_t)end));
	tlscode_find(&f, asked, out);
	codeflow_release(&f);
	return out;
}

static const struct tlscode_site *result_at(const struct tlscode_found *f, const uint8_t *at)
{
	for (size_t i = 0; i < f->result_count; i++)
		if (f->results[i].at == (uint64_t)at)
			return &f->results[i];
	return NULL;
}

TEST(arguments_stand_at_the_first_branch_and_the_result_at_the_stack_s_check)
{
	struct tlscode_found *f = found_in(tls_wrapper, tls_wrapper_end, &three);
	const struct tlscode_site *s = result_at(f, tls_wrapper_result);

	assert_int_equal(f->entry.at, (uint64_t)tls_wrapper_entry);
	assert_true(f->entry.args[0] == X86_RDI && f->entry.args[1] == X86_RSI &&
		    f->entry.args[2] == X86_RDX && f->entry.args[3] == 0xff);
	assert_int_equal(f->open, 0);
	assert_int_equal(f->result_count, 1);
	assert_non_null(s);
	assert_int_equal(s->when, TLSCODE_NOT_TAKEN);
	assert_true(s->value[0].kind == TLSCODE_REG && s->value[0].reg == X86_RAX &&
		    s->condition == 5);
	free(f);
}

TEST(a_jump_by_a_pointer_leads_on_with_what_is_given)
{
	const struct tlscode_asked four = {.args = {X86_RDI, X86_RSI, X86_RDX, X86_RCX},
					   .second = 0xff};
	struct tlscode_found *f = found_in(tls_inner, tls_inner_end, &four);

	assert_true(f->open == 1 && f->lead_count == 1 && f->leads[0].far && !f->leads[0].changed);
	assert_int_equal(f->leads[0].displacement, 0x70);
	assert_true(f->leads[0].regs[X86_RDX].holds == CODEFLOW_ARG &&
		    f->leads[0].regs[X86_RDX].arg == X86_RSI);
	assert_true(f->leads[0].regs[8].arg == X86_RDX && f->leads[0].regs[9].arg == X86_RCX);
	assert_true(f->leads[0].regs[X86_RSI].holds == CODEFLOW_NUMBER &&
		    f->leads[0].regs[X86_RSI].number == 23);
	free(f);
}

TEST(a_switch_s_table_is_followed)
{
	struct tlscode_found *f = found_in(tls_switch, tls_switch_end, &three);
	const struct tlscode_site *seven = result_at(f, tls_switch_seven),
				  *copy = result_at(f, tls_switch_copy),
				  *other = result_at(f, tls_switch_else);

	assert_true(seven && copy && other);
	assert_true(seven->value[0].kind == TLSCODE_REG && seven->value[0].reg == X86_RAX);
	assert_true(copy->value[0].kind == TLSCODE_REG && copy->value[0].reg == X86_RAX);
	assert_true(other->when == TLSCODE_ALWAYS);
	assert_true(f->open == 1 &&
		    !f->lead_count); /* nothing but the table decides on the last case */
	assert_int_equal(f->result_count, 3);
	free(f);
}

TEST(a_sum_is_told_in_two_places)
{
	struct tlscode_found *f = found_in(tls_sum, tls_sum_end, &three);
	const struct tlscode_site *s = result_at(f, tls_sum_result);

	assert_int_equal(f->open, 0);
	assert_non_null(s);
	assert_true(s->value[1].kind == TLSCODE_STACK && s->value[1].at == 8 &&
		    s->value[1].bytes == 8);
	assert_true(s->value[0].kind == TLSCODE_STACK && s->value[0].at == 0x18);
	free(f);
}

TEST(only_what_the_kernel_emulates_is_called_so)
{
	static const struct {
		const char *code;
		size_t len;
		bool emulated;
	} cases[] = {
		{"\x55", 1, true},
		{"\x41\x54", 2, true},
		{"\x90", 1, true},
		{"\x74\x10", 2, true},
		{"\x0f\x84\0\0\0\0", 6, true},
		{"\xe8\0\0\0\0", 5, true},
		{"\xe9\0\0\0\0", 5, true},
		{"\xeb\0", 2, true},
		{"\x0f\x1f\x44\0\0", 5, false},
		{"\xf3\x0f\x1e\xfa", 4, false},
		{"\x48\x83\xec\x18", 4, false},
		{"\x5d", 1, false},
		{"\xc3", 1, false},
		{"\xff\xd0", 2, false},
		{"\xff\xe0", 2, false},
		{"\x66\x90", 2, false},
		{"\x3e\x74\x10", 3, false},
		{"\x66\xe8\0\0", 4, false},
		{"\xf2\xe9\0\0\0\0", 6, false},
		{"\x48\x55", 2, false},
		{"\x41\x90", 2, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t bytes[X86INSN_MAX + 1] = {0};
		struct x86insn x;

		memcpy(bytes, cases[i].code, cases[i].len);
		assert_true(x86insn_read(bytes, X86INSN_MAX, &x));
		assert_int_equal(x86effect_emulated(bytes, &x), cases[i].emulated);
	}
}

/* ---- the libraries here ---- */

#define LINES_MAX 64

static bool emulated_name(const char *name)
{
	return !strcmp(name, "push") || !strcmp(name, "call") || !strcmp(name, "nop") ||
	       *name == 'j';
}

/* objdump decodes from any address. If it reaches this address from the function's start, an
 * instruction begins here. */
static void objdump_agrees(const char *path, const struct made *m, const struct image_tls_site *s)
{
	char cmd[512], line[256], want[32], name[32] = "";
	struct image_symbol sym = {0};
	uint64_t vaddr;
	FILE *p;

	assert_true(image_offset_to_vaddr(m->img, s->offset, &vaddr));
	snprintf(want, sizeof(want), "%" PRIx64 ":", vaddr);
	sym.addr = image_symbol_at(m->img, vaddr, &sym) ? sym.addr : vaddr;
	snprintf(cmd, sizeof(cmd),
		 "objdump -d --no-show-raw-insn --start-address=0x%" PRIx64
		 " --stop-address=0x%" PRIx64 " '%s'",
		 sym.addr, vaddr + s->length, path);
	p = popen(cmd, "r");
	assert_non_null(p);
	while (fgets(line, sizeof(line), p)) {
		char *at = line + strspn(line, " ");

		if (!strncmp(at, want, strlen(want)))
			sscanf(at + strlen(want), " %31s", name);
	}
	pclose(p);
	if (!*name)
		fail_msg("%s: no instruction begins at %" PRIx64, path, vaddr);
	if (!s->slow && !emulated_name(name))
		fail_msg("%s: %s at %" PRIx64 " is not emulated", path, name, vaddr);
}

static unsigned count(const struct image_tls_site *s, size_t n, uint8_t library, uint8_t operation,
		      uint8_t role)
{
	unsigned c = 0;

	for (size_t i = 0; i < n; i++)
		c += s[i].library == library && s[i].operation == operation && s[i].role == role &&
		     !s[i].slow;
	return c;
}

/* false: it is not here. */
static bool file_is_readable(const char *path, uint8_t library)
{
	const struct index_finder no_lines = {.lines = INDEX_LINES_NONE};
	const struct image_tls_site *s = NULL;
	struct made m = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n;

	if (fd < 0)
		return false;
	m.rc = indexer_run_fd(fd, &no_lines, &m.r, NULL);
	close(fd);
	assert_int_equal(m.rc, 0);
	made_open(&m);
	n = image_tls(m.img, &s);
	for (uint8_t op = IMAGE_TLS_READ; op <= IMAGE_TLS_WRITE; op++)
		assert_true(count(s, n, library, op, IMAGE_TLS_ENTRY) &&
			    count(s, n, library, op, IMAGE_TLS_RESULT) &&
			    !count(s, n, library, op, IMAGE_TLS_BLIND));
	for (size_t i = 0; i < n; i++)
		objdump_agrees(path, &m, &s[i]);
	made_release(&m);
	return true;
}

TEST(debian_s_openssl_is_readable)
{
	if (!file_is_readable("/usr/lib/x86_64-linux-gnu/libssl.so.3", IMAGE_TLS_OPENSSL))
		skip_missing("libssl.so.3 (libssl3)");
}

TEST(debian_s_gnutls_is_readable)
{
	if (!file_is_readable("/usr/lib/x86_64-linux-gnu/libgnutls.so.30", IMAGE_TLS_GNUTLS))
		skip_missing("libgnutls.so.30 (libgnutls30)");
}

TEST(node_s_own_openssl_is_readable)
{
	if (!file_is_readable("/usr/bin/node", IMAGE_TLS_OPENSSL))
		skip_missing("node");
}

TEST(go_s_own_is_readable)
{
	char path[256] = "";
	FILE *p = popen("p=$(go env GOROOT 2>/dev/null)/bin/go; [ -f \"$p\" ] && echo \"$p\"", "r");

	if (p && !fgets(path, sizeof(path), p))
		*path = 0;
	if (p)
		pclose(p);
	path[strcspn(path, "\n")] = 0;
	if (!*path || !file_is_readable(path, IMAGE_TLS_GO))
		skip_missing("go");
}

TEST(a_module_of_python_node_or_java_is_known_by_what_it_exports)
{
	static const char *const names[] = {"PyInit__client",
					    "napi_register_module_v1",
					    "node_register_module_v108",
					    "JNI_OnLoad",
					    "PyErr_Clear",
					    "napi_get_version",
					    NULL};

	for (int i = 0; names[i]; i++) {
		struct tls_symbols t = {0};

		tls_symbols_note(&t, names[i], 0, 0, 0); /* asked for, not there */
		assert_false(t.module);
		tls_symbols_note(&t, names[i], 0x1000, 16, 0);
		assert_int_equal(t.module, i < 4);
	}
}
