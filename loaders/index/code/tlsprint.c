/* SPDX-License-Identifier: Apache-2.0 */
/* tlsprint: see the header. */
#include "loaders/index/code/tlsprint.h"

#include <inttypes.h>

static const char *const REGISTERS[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
static const char *const LIBRARIES[] = {"?", "openssl", "gnutls", "go", "rustls"};
static const char *const ROLES[] = {"blind", "entry", "result", "forget"};
static const char *const CONDITIONS[] = {"o", "no", "b", "ae", "e", "ne", "be", "a",
					 "s", "ns", "p", "np", "l", "ge", "le", "g"};

static void print_entry(FILE *to, const struct image_tls_site *s)
{
	fprintf(to, " connection %s buffer %s size %s", REGISTERS[s->args[0]],
		REGISTERS[s->args[1]], REGISTERS[s->args[2]]);
	if (s->args[3] < 16)
		fprintf(to, " count-at %s", REGISTERS[s->args[3]]);
	for (unsigned i = 0; i < 2; i++)
		if (s->check_reg[i] < 16)
			fprintf(to, " if %s = %u", REGISTERS[s->check_reg[i]], s->check_value[i]);
}

static void print_value(FILE *to, const struct image_tls_value *v)
{
	if (v->place == IMAGE_TLS_REGISTER)
		fprintf(to, "%s:%u", REGISTERS[v->reg], v->bytes);
	else if (v->place == IMAGE_TLS_STACK)
		fprintf(to, "%" PRId32 "(rsp):%u", v->at, v->bytes);
	else
		fprintf(to, "%" PRId32, v->at);
}

static void print_result(FILE *to, const struct image_tls_site *s)
{
	fputc(' ', to);
	fputs(s->result == IMAGE_TLS_LENGTH  ? "length " :
	      s->result == IMAGE_TLS_POINTER ? "well " :
					       "pair ",
	      to);
	print_value(to, &s->value[0]);
	if (s->value[1].place != IMAGE_TLS_NOWHERE) {
		fputs(s->result == IMAGE_TLS_PAIR ? ", " : " + ", to);
		print_value(to, &s->value[1]);
	}
	if (s->when != IMAGE_TLS_ALWAYS)
		fprintf(to, " if %s%s", s->when == IMAGE_TLS_TAKEN ? "" : "not ",
			CONDITIONS[s->condition]);
}

void tlsprint_sites(FILE *to, const struct image_tls_site *sites, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct image_tls_site *s = &sites[i];

		fprintf(to, "%" PRIx64 " %u %s %s %s", s->offset, s->length,
			s->library < 5 ? LIBRARIES[s->library] : LIBRARIES[0],
			s->operation == IMAGE_TLS_READ ? "read" : "write",
			ROLES[s->role < 4 ? s->role : 0]);
		if (s->role == IMAGE_TLS_FORGET)
			fprintf(to, " connection %s", REGISTERS[s->args[0]]);
		if (s->role == IMAGE_TLS_ENTRY)
			print_entry(to, s);
		if (s->role == IMAGE_TLS_RESULT)
			print_result(to, s);
		fputs(s->slow ? " slow\n" : "\n", to);
	}
}
