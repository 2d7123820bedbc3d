/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logs_fuzz: whatever the lines of a log are, each counts once, its messages and patterns add up,
 * and texts are within their bounds. The first byte chooses the form.
 *
 * covers: loaders/logs/jsonpull.c loaders/logs/forms.c loaders/logs/level.c loaders/logs/words.c
 * loaders/logs/messages.c loaders/logs/counts.c schema/base/tables/alike.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/logs/counts.h"
#include "schema/base/clock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define NOW (1795975200ll * NSEC_PER_SEC)

struct all {
	struct counts counts;
	struct counts_rules rules;
	struct messages stream[2];
	uint64_t lines, messages;
};

static void take(void *ctx, const struct message *m)
{
	struct all *a = ctx;

	if (m->len > MESSAGES_BYTES || m->head > m->len || m->last > m->len)
		abort();
	a->messages++;
	a->lines += m->lines;
	counts_message(&a->counts, &a->rules, m, NOW);
}

static void check(const struct all *a, uint64_t lines)
{
	uint64_t n = 0, bad = 0, hits = 0, counted = 0;

	for (uint32_t i = 0; i < a->counts.n_sums; i++) {
		n += a->counts.sums[i].messages;
		counted += a->counts.sums[i].lines;
		bad += a->counts.sums[i].level >= LEVEL_WARNING ? a->counts.sums[i].messages : 0;
	}
	for (uint32_t i = 0; i < a->counts.n_hits; i++)
		hits += a->counts.hits[i].messages;
	if (n != a->messages || hits < bad || counted != a->lines || counted != lines)
		abort();
	for (uint32_t i = 0; i < a->counts.n_patterns; i++)
		if (strlen(a->counts.patterns[i].text) > WORDS_BYTES)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct forms forms;
	struct all a = {.rules = {.bucket_s = 10, .text = true}};
	enum log_form form = len ? (enum log_form)(data[0] % LOG_JOURNAL) : LOG_PLAIN;
	const char *at = (const char *)data + (len > 0), *end = (const char *)data + len, *newline;
	struct log_record r;
	uint64_t lines = 0;
	long n;

	if (form == LOG_LOCAL) {
		while ((n = forms_local((const uint8_t *)at, (size_t)(end - at), &r)) > 0) {
			lines += !r.piece;
			messages_record(&a.stream[r.err], &r, 0, -1, take, &a);
			at += n;
		}
	} else {
		for (; (newline = memchr(at, '\n', (size_t)(end - at))); at = newline + 1) {
			if (!forms_line(&forms, form, at, (size_t)(newline - at), &r))
				continue;
			lines += !r.piece;
			messages_record(&a.stream[r.err], &r, 0, -1, take, &a);
		}
	}
	for (int i = 0; i < 2; i++) {
		lines += a.stream[i].has_piece;
		messages_end(&a.stream[i], true, take, &a);
		messages_release(&a.stream[i]);
	}
	check(&a, lines);
	counts_release(&a.counts, &a.rules);
	return a.rules.patterns != 0;
}
