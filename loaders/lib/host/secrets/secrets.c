/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/secrets/secrets.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/secrets/command.h"
#include "loaders/lib/host/secrets/prose.h"
#include "loaders/lib/host/secrets/shell.h"
#include "loaders/lib/host/secrets/text.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define MASK       "***"
#define DEPTH_MAX  5 /* code in code: sh -c "ssh h 'sh -c \"...\"'" */
#define ROUNDS_MAX 8

static void shell_scan(struct hidden *h, struct view v, bool code, bool line, int depth);

static bool has_blank(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] == ' ' || v.p[i] == '\t' || v.p[i] == '\n')
			return true;
	return false;
}

/* The words of a command. `code`: in shell code; `line`: in a line of text. */
static void words_scan(struct hidden *h, const struct view *words, size_t n, bool code, bool line,
		       int depth)
{
	cleanup_free uint8_t *known = mem_alloc(n + 1);

	command_scan(h, words, known, n, code);
	command_named_options(h, words, known, n);
	for (size_t k = 0; k < n; k++) {
		bool is_code = known[k] & WORD_CODE;

		text_scan(h, words[k], line ? TEXT_LINE : is_code ? TEXT_SHELL : TEXT_WORD);
		if (depth < DEPTH_MAX && (is_code || has_blank(words[k])))
			shell_scan(h, words[k], is_code, line, depth + 1);
	}
}

/* One command of shell code, and the state that the commands before it left. */
struct pipeline {
	struct view *words; /* of this command, behind those of the echoes before it */
	size_t n, n_before;
	struct view input;   /* "<<< input" */
	struct view here;    /* "<< here" */
	bool here_is_secret; /* and what reads it reads a secret */
};

static void hide_words(struct hidden *h, const struct view *words, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (words[k].n && words[k].p[0] != '-' && !command_is_echo(words + k, 1))
			view_hide(h, words[k], 0, words[k].n);
}

static bool begins_command(const struct shell_word *w)
{
	return w->place == SHELL_FIRST || w->place == SHELL_PIPED;
}

/* Takes the words of the next command. Returns where the one after it begins. */
static size_t next_command(struct hidden *h, struct pipeline *p, const struct shell *s, size_t i)
{
	p->n = 0;
	p->input = (struct view){0};
	do {
		const struct shell_word *w = &s->words[i++];

		if (w->place == SHELL_INPUT)
			p->input = w->text;
		else if (w->place == SHELL_HERE)
			p->here = w->text;
		else if (w->place != SHELL_FILE)
			p->words[p->n_before + p->n++] = w->text;
		if (w->place == SHELL_INPUT || w->place == SHELL_FILE)
			text_scan(h, w->text, TEXT_WORD);
	} while (i < s->n && !begins_command(&s->words[i]));
	return i;
}

/* The lines up to the word that ends them: hidden if they are the input of what reads a secret. */
static size_t here_document(struct hidden *h, struct pipeline *p, const struct shell *s, size_t i)
{
	for (; i < s->n; i++) {
		struct view w = s->words[i].text;

		if (w.n == p->here.n && !memcmp(w.p, p->here.p, w.n))
			break;
		view_hide(h, w, 0, w.n);
	}
	return i;
}

static void shell_scan(struct hidden *h, struct view v, bool code, bool line, int depth)
{
	struct shell s;
	struct pipeline p = {0};

	shell_lex(&s, v);
	p.words = mem_array(s.n + 1, sizeof(*p.words));
	for (size_t i = 0; i < s.n;) {
		bool piped = s.words[i].place == SHELL_PIPED, reads, echo;
		struct view *own;

		if (p.here.n && !piped) {
			if (p.here_is_secret)
				i = here_document(h, &p, &s, i);
			p.here = (struct view){0};
			p.here_is_secret = false;
			if (i >= s.n)
				break;
		}
		i = next_command(h, &p, &s, i);
		own = p.words + p.n_before;
		reads = command_reads_secret(own, p.n);
		echo = command_is_echo(own, p.n);
		p.here_is_secret |= reads;
		if (reads)
			view_hide(h, p.input, 0, p.input.n);
		if (reads && piped)
			hide_words(h, p.words, p.n_before);
		words_scan(h, own, p.n, code, line, depth);
		p.n_before = echo ? p.n_before + p.n : 0;
	}
	free(p.words);
	shell_release(&s);
}

static void args_scan(struct hidden *h, const char *data, size_t len)
{
	cleanup_free struct view *words = NULL;
	size_t n = 0, cap = 0;

	for (size_t pos = 0; pos < len;) {
		const char *nul = memchr(data + pos, 0, len - pos);
		size_t end = nul ? (size_t)(nul - data) : len;

		mem_grow(words, n, cap);
		words[n++] = (struct view){data + pos, end - pos, pos, NULL};
		pos = end + 1;
	}
	words_scan(h, words, n, false, false, 0);
}

static void line_scan(struct hidden *h, const char *data, size_t len)
{
	struct view v = {data, len, 0, NULL};

	text_scan(h, v, TEXT_LINE);
	prose_scan(h, v);
	shell_scan(h, v, false, true, 1);
}

static void mask(void (*scan)(struct hidden *, const char *, size_t), const char *data, size_t len,
		 struct strbuf *out)
{
	cleanup_free uint8_t *at = mem_alloc(len + 1);
	struct hidden h = {at};

	scan(&h, data, len);
	strbuf_reset(out);
	for (size_t i = 0; i < len; i++) {
		if (!at[i]) {
			strbuf_addch(out, data[i]);
			continue;
		}
		strbuf_addstr(out, MASK);
		while (i + 1 < len && at[i + 1])
			i++;
	}
}

static void mask_until_still(void (*scan)(struct hidden *, const char *, size_t), const char *data,
			     size_t len, struct strbuf *out)
{
	struct strbuf now cleanup_strbuf = STRBUF_INIT, next cleanup_strbuf = STRBUF_INIT, swap;

	strbuf_add(&now, data, len);
	for (int round = 0; round < ROUNDS_MAX; round++) {
		mask(scan, strbuf_str(&now), now.len, &next);
		if (next.len == now.len && !memcmp(strbuf_str(&next), strbuf_str(&now), now.len)) {
			strbuf_add(out, strbuf_str(&now), now.len);
			return;
		}
		swap = now;
		now = next;
		next = swap;
	}
	/* no program has such a command line; nothing of it is surely harmless */
	strbuf_addstr(out, MASK);
}

void secrets_mask_args(const char *data, size_t len, struct strbuf *out)
{
	mask_until_still(args_scan, data, len, out);
}

void secrets_mask_text(const char *data, size_t len, struct strbuf *out)
{
	mask_until_still(line_scan, data, len, out);
}
