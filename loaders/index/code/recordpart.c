/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's conditions. */
#include "loaders/index/code/recordpart.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/index/code/tlscode.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define FUNCTION_MAX (64u << 10)
#define DEEP         4u /* functions that jump on to each other */
#define STRAIGHT     200u
#define NONE         IMAGE_TLS_NO_REG

/* ---- 1 ---- */

static const struct row {
	const char *name;
	uint8_t operation, shape;
} OF_C[] =
	{
		{"EVP_AEAD_CTX_seal_scatter", IMAGE_TLS_WRITE, IMAGE_TLS_SEAL_SCATTER},
		{"EVP_AEAD_CTX_seal", IMAGE_TLS_WRITE, IMAGE_TLS_SEAL},
		{"EVP_AEAD_CTX_open", IMAGE_TLS_READ, IMAGE_TLS_OPEN},
		{"EVP_AEAD_CTX_open_gather", IMAGE_TLS_READ, IMAGE_TLS_OPEN_GATHER},
},
  OF_RING[] = {
	  {"12aes_gcm_seal", IMAGE_TLS_WRITE, IMAGE_TLS_RING},
	  {"12aes_gcm_open", IMAGE_TLS_READ, IMAGE_TLS_RING},
	  {"22chacha20_poly1305_seal", IMAGE_TLS_WRITE, IMAGE_TLS_RING},
	  {"22chacha20_poly1305_open", IMAGE_TLS_READ, IMAGE_TLS_RING},
};

/* What follows the last name of a path: nothing, a hash, or what the linker adds to make it unique;
 * not a name within that function. */
static bool path_ends(const char *rest)
{
	return !*rest || *rest == '.' || !strncmp(rest, "17h", 3);
}

static const struct row *row_of_ring(const char *name)
{
	const char *crate = strstr(name, "4ring4aead");

	for (size_t i = 0; crate && i < ARRAY_SIZE(OF_RING); i++) {
		const char *at = strstr(crate, OF_RING[i].name);

		if (at && path_ends(at + strlen(OF_RING[i].name)))
			return &OF_RING[i];
	}
	return NULL;
}

static const struct row *row_of_c(const char *name)
{
	const char *at = strstr(name, "EVP_AEAD_CTX_");

	for (size_t i = 0; at && i < ARRAY_SIZE(OF_C); i++)
		if (!strcmp(at, OF_C[i].name))
			return &OF_C[i];
	return NULL;
}

void record_symbols_note(struct record_symbols *t, const char *name, uint64_t addr, uint64_t size)
{
	const struct row *row = *name == '_'                 ? row_of_ring(name) :
				*name == 'a' || *name == 'E' ? row_of_c(name) :
							       NULL;

	if (!row || !addr || !size || t->count == RECORDPART_FUNCTIONS)
		return;
	for (size_t i = 0; i < t->count; i++)
		if (t->at[i].start == addr)
			return;
	t->at[t->count++] = (struct record_function){.start = addr,
						     .end = addr + size,
						     .library = *name == 'E' ? IMAGE_TLS_BORINGSSL :
									       IMAGE_TLS_RUSTLS,
						     .operation = row->operation,
						     .shape = row->shape};
}

/* ---- sites ---- */

struct work {
	const struct recordpart_host *h;
	const struct record_function *fn;
};

static bool site_put(const struct work *w, uint8_t role, const struct codeflow_insn *i,
		     const struct tlscode_site *result, int32_t arguments_at)
{
	struct image_tls_site s = {.library = w->fn->library,
				   .operation = w->fn->operation,
				   .role = role,
				   .result = IMAGE_TLS_RECORD,
				   .offset =
					   w->h->offset_of(w->h->ctx, result ? result->at : i->at),
				   .length = result ? result->len : i->x.len,
				   .slow = result ? result->slow : !i->emulated,
				   .args = {X86_RDI, X86_RSI, X86_RDX, NONE},
				   .check_reg = {NONE, NONE},
				   .check_value = {w->fn->shape, 0}};
	const uint8_t *bytes = result ? result->bytes : i->bytes;

	memcpy(s.bytes, bytes, s.length < sizeof(s.bytes) ? s.length : sizeof(s.bytes));
	if (result) {
		s.when = result->when;
		s.condition = result->condition;
		for (unsigned k = 0; k < 2; k++)
			s.value[k] = (struct image_tls_value){
				.place = result->value[k].kind,
				.reg = result->value[k].reg,
				.at = result->value[k].at,
				.bytes = result->value[k].bytes < 4 ? result->value[k].bytes : 4};
	} else if (role == IMAGE_TLS_ENTRY) {
		s.value[0] = (struct image_tls_value){
			.place = IMAGE_TLS_STACK, .bytes = 8, .at = arguments_at};
	}
	return s.offset && w->h->put(w->h->ctx, &s);
}

/* ---- 2 ---- */

static bool as_passed(const struct codeflow_insn *i)
{
	static const uint8_t given[] = {X86_RDI, X86_RSI, X86_RDX, X86_RCX, 8, 9};

	for (unsigned k = 0; k < sizeof(given); k++)
		if (i->regs[given[k]].holds != CODEFLOW_ARG || i->regs[given[k]].arg != given[k])
			return false;
	return i->regs[X86_RSP].holds == CODEFLOW_FRAME;
}

static bool entry_put(const struct work *w, const struct codeflow *f)
{
	const struct codeflow_insn *at = &f->insns[0];
	uint64_t n = 0;

	for (unsigned steps = 0; steps < STRAIGHT; steps++) {
		const struct codeflow_insn *i = &f->insns[n];

		if (!as_passed(i))
			break;
		if (i->emulated && i->at >= f->start && i->at < f->end) {
			at = i;
			break;
		}
		if ((i->effect.flow != X86_ON && i->effect.flow != X86_JMP) ||
		    !idmap_get(&f->by_address,
			       i->effect.flow == X86_JMP ? i->target : i->at + i->x.len, &n))
			break;
	}
	return site_put(w, IMAGE_TLS_ENTRY, at, NULL, 8 - at->regs[X86_RSP].number);
}

/* ---- 3 ---- */

static bool rets_put(const struct work *w, const struct codeflow *f, unsigned depth);

static bool function_rets(const struct work *w, uint64_t start, unsigned depth)
{
	cleanup_codeflow struct codeflow f = {0};
	uint64_t end = w->h->end_of(w->h->ctx, start);

	return depth && end > start && end - start <= FUNCTION_MAX &&
	       codeflow_make(&f, w->h->reader, start, end) && rets_put(w, &f, depth);
}

static bool rets_put(const struct work *w, const struct codeflow *f, unsigned depth)
{
	bool good = true;
	unsigned found = 0;

	for (size_t n = 0; n < f->insn_count && good; n++) {
		const struct codeflow_insn *i = &f->insns[n];
		uint64_t known;

		if (i->effect.flow == X86_RET) {
			good = site_put(w, IMAGE_TLS_RESULT, i, NULL, 0);
			found++;
		} else if (i->effect.flow == X86_JMP_FAR && !i->table) {
			good = false;
		} else if (i->effect.flow == X86_JMP && i->away &&
			   !idmap_get(&f->by_address, i->target, &known)) {
			good = function_rets(w, i->target, depth - 1);
			found++;
		}
	}
	return good && found;
}

/* false: not by emulated instructions. */
static bool results_put(const struct work *w, const struct codeflow *f)
{
	const struct tlscode_asked asked = {.args = {NONE, NONE, NONE, NONE}, .second = NONE};
	cleanup_free struct tlscode_found *found = mem_alloc(sizeof(*found));
	bool good;

	if (w->fn->shape == IMAGE_TLS_RING)
		return false;
	tlscode_find(f, &asked, found);
	good = !found->open && !found->too_many && found->result_count;
	for (size_t i = 0; i < found->result_count && good; i++)
		good = site_put(w, IMAGE_TLS_RESULT, NULL, &found->results[i], 0);
	return good;
}

bool recordpart_add(const struct recordpart_host *h, const struct record_function *fn)
{
	const struct work w = {h, fn};
	cleanup_codeflow struct codeflow f = {0};

	if (fn->end <= fn->start || fn->end - fn->start > FUNCTION_MAX ||
	    !codeflow_make(&f, h->reader, fn->start, fn->end))
		return false;
	if (fn->operation == IMAGE_TLS_READ && !results_put(&w, &f) && !rets_put(&w, &f, DEEP))
		return false;
	return entry_put(&w, &f);
}
