/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/logs/counts.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/secrets/secrets.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/tables/alike.h"

#define OLD_NS   (3600 * NSEC_PER_SEC) /* a pattern that may make room */
#define LATE_NS  (3600 * NSEC_PER_SEC) /* a time that is further off is not believed */
#define SOON_NS  (60 * NSEC_PER_SEC)
#define USUAL_S  600.0
#define SETTLE_S 60 /* before a source's usual rate is known */

void counts_forget(struct counts *c, struct counts_rules *r)
{
	for (uint32_t i = 0; i < c->n_patterns; i++)
		free(c->patterns[i].sample);
	r->patterns -= c->n_patterns;
	free(c->patterns);
	free(c->hits);
	free(c->cache);
	c->patterns = NULL;
	c->hits = NULL;
	c->cache = NULL;
	c->n_patterns = c->cap_patterns = c->n_hits = c->cap_hits = 0;
}

void counts_release(struct counts *c, struct counts_rules *r)
{
	counts_forget(c, r);
	free(c->sums);
	*c = (struct counts){0};
}

void counts_clear(struct counts *c)
{
	c->n_sums = c->n_hits = 0;
}

/* ---- bursts ---- */

static uint64_t in_window(const struct counts *c)
{
	uint64_t n = 0;

	for (int i = 0; i < BURST_S; i++)
		n += c->window[i];
	return n;
}

/* A second is over, then some in which nothing came. */
static void second_end(struct counts *c, int64_t now)
{
	int64_t passed = c->second ? now - c->second : 1;

	passed = passed < 0 ? 1 : passed > 3600 ? 3600 : passed;
	for (int64_t i = 0; i < passed; i++) {
		uint64_t n = i ? 0 : c->in_second;
		double weight = c->seconds < USUAL_S ? 1.0 / (c->seconds + 1) : 1.0 / USUAL_S;

		c->window[c->seconds % BURST_S] = n;
		if (!c->bursts)
			c->usual += ((double)n - c->usual) * weight;
		c->seconds++;
		c->bursts = c->seconds > SETTLE_S && in_window(c) >= BURST_LEAST &&
			    (double)in_window(c) >= BURST_TIMES * BURST_S * c->usual;
	}
	c->second = now;
	c->in_second = 0;
}

static void pace(struct counts *c, uint64_t lines, int64_t second)
{
	if (second > c->second)
		second_end(c, second);
	c->in_second += lines;
	/* a burst is known when it begins, not a second later */
	if (!c->bursts && c->seconds > SETTLE_S && c->in_second >= BURST_LEAST &&
	    (double)c->in_second >= BURST_TIMES * BURST_S * c->usual)
		c->bursts = true;
}

/* ---- sums ---- */

static void sum_add(struct counts *c, int64_t bucket, enum line_level level,
		    const struct message *m)
{
	struct counts_sum *s = NULL;

	for (uint32_t i = c->n_sums; !s && i; i--)
		if (c->sums[i - 1].bucket == bucket && c->sums[i - 1].level == level)
			s = &c->sums[i - 1];
	if (!s) {
		mem_grow(c->sums, c->n_sums, c->cap_sums);
		s = &c->sums[c->n_sums++];
		*s = (struct counts_sum){.bucket = bucket, .level = level};
	}
	s->lines += m->lines;
	s->messages++;
	s->bytes += m->bytes;
	s->burst = s->burst || c->bursts;
}

static void hit_add(struct counts *c, uint32_t pattern, int64_t bucket, enum line_level level,
		    const struct message *m, int64_t utc_ns)
{
	struct counts_pattern *p = &c->patterns[pattern];
	struct counts_hit *h = p->hit < c->n_hits ? &c->hits[p->hit] : NULL;

	if (!h || h->pattern != pattern || h->bucket != bucket || h->level != level) {
		mem_grow(c->hits, c->n_hits, c->cap_hits);
		p->hit = c->n_hits;
		h = &c->hits[c->n_hits++];
		*h = (struct counts_hit){
			.bucket = bucket, .level = level, .pattern = pattern, .first_ns = utc_ns};
	}
	h->messages++;
	h->first_ns = utc_ns < h->first_ns ? utc_ns : h->first_ns;
	h->last_ns = utc_ns > h->last_ns ? utc_ns : h->last_ns;
	h->pid = m->pid;
	p->last_ns = utc_ns;
}

/* ---- patterns ---- */

static void patterns_begin(struct counts *c, struct counts_rules *r)
{
	if (c->n_patterns)
		return;
	mem_grow(c->patterns, c->n_patterns, c->cap_patterns);
	c->patterns[0] = (struct counts_pattern){.fresh = true};
	memcpy(c->patterns[0].text, COUNTS_OTHER, sizeof(COUNTS_OTHER));
	c->n_patterns = 1;
	r->patterns++;
	c->cache = mem_array(COUNTS_CACHE, sizeof(*c->cache));
}

/* The line that its pattern is made of: the first, or what a trace of Python ends with. */
static void key_line(const struct message *m, const char **s, size_t *len)
{
	*s = m->text;
	*len = m->head;
	if (!m->trace || !m->last || m->last >= m->len || memcmp(m->text, "Traceback", 9) != 0)
		return;
	*s = m->text + m->last;
	*len = m->len - m->last;
}

static void sample_make(struct counts_pattern *p, const struct message *m)
{
	struct strbuf masked cleanup_strbuf = STRBUF_INIT, plain cleanup_strbuf = STRBUF_INIT;
	size_t n;

	secrets_mask_text(m->text, m->len, &masked);
	n = masked.len < COUNTS_SAMPLE ? masked.len : COUNTS_SAMPLE;
	while (n && n < masked.len && ((unsigned char)masked.buf[n] & 0xc0) == 0x80)
		n--;
	for (size_t i = 0, from = 0; i <= n; i++) {
		if (i < n && masked.buf[i] != '\n')
			continue;
		strbuf_addutf8(&plain, strbuf_str(&masked) + from, i - from);
		if (i < n)
			strbuf_addstr(&plain, COUNTS_LINE_END);
		from = i + 1;
	}
	if (n < masked.len || m->len >= MESSAGES_BYTES)
		strbuf_addstr(&plain, "...");
	p->sample = strbuf_take(&plain);
}

static void words_masked(const struct message *m, struct words *out)
{
	struct strbuf masked cleanup_strbuf = STRBUF_INIT, valid cleanup_strbuf = STRBUF_INIT;
	const char *s;
	size_t len;

	key_line(m, &s, &len);
	secrets_mask_text(s, len, &masked);
	strbuf_addutf8(&valid, strbuf_str(&masked), masked.len);
	words_of(strbuf_str(&valid), valid.len, out);
}

/* Room for one more; 0: none. */
static uint32_t slot(struct counts *c, struct counts_rules *r, int64_t now_ns)
{
	uint32_t oldest = 0;

	if (c->n_patterns < COUNTS_PATTERNS && r->patterns < COUNTS_ALL) {
		mem_grow(c->patterns, c->n_patterns, c->cap_patterns);
		c->patterns[c->n_patterns] = (struct counts_pattern){0};
		r->patterns++;
		return c->n_patterns++;
	}
	for (uint32_t i = 1; i < c->n_patterns; i++)
		if (!oldest || c->patterns[i].last_ns < c->patterns[oldest].last_ns)
			oldest = i;
	/* what it counted has to be sent before its number means another one */
	if (!oldest || now_ns - c->patterns[oldest].last_ns < OLD_NS)
		return 0;
	for (uint32_t i = 0; i < COUNTS_CACHE; i++)
		if (c->cache[i].pattern == oldest)
			c->cache[i] = (struct counts_known){0};
	free(c->patterns[oldest].sample);
	c->patterns[oldest] = (struct counts_pattern){0};
	return oldest;
}

/* The pattern that a text has, or that covers it; 0: none. */
static uint32_t known_as(const struct counts *c, const char *text)
{
	for (uint32_t i = 1; i < c->n_patterns; i++)
		if (!strcmp(c->patterns[i].text, text))
			return i;
	for (uint32_t i = 1; i < c->n_patterns; i++)
		if (alike(c->patterns[i].text, text, 0, NULL, 0))
			return i;
	return 0;
}

/* Two patterns differ from the text in the same word: that is a name, and the first of them becomes
 * the pattern of all. 0: no such two. */
static uint32_t third_of(struct counts *c, const char *text)
{
	char general[WORDS_BYTES + 1], other[WORDS_BYTES + 1];

	for (uint32_t i = 1; i < c->n_patterns; i++) {
		if (!alike(c->patterns[i].text, text, 1, general, sizeof(general)))
			continue;
		for (uint32_t k = i + 1; k < c->n_patterns; k++) {
			if (!alike(c->patterns[k].text, text, 1, other, sizeof(other)) ||
			    strcmp(general, other) != 0)
				continue;
			memcpy(c->patterns[i].text, general, sizeof(general));
			c->patterns[i].fresh = true;
			return i;
		}
	}
	return 0;
}

static uint32_t pattern_new(struct counts *c, struct counts_rules *r, const struct message *m,
			    int64_t now_ns)
{
	struct words w;
	uint32_t i;

	words_masked(m, &w);
	i = known_as(c, w.text);
	if (!i)
		i = third_of(c, w.text);
	if (i)
		return i;
	i = slot(c, r, now_ns);
	if (!i)
		return 0;
	memcpy(c->patterns[i].text, w.text, sizeof(w.text));
	c->patterns[i].fresh = true;
	sample_make(&c->patterns[i], m);
	return i;
}

static bool budget_take(struct counts_rules *r, int64_t now_ns, uint32_t n)
{
	int64_t second = now_ns / NSEC_PER_SEC;

	if (second != r->second) {
		r->second = second;
		r->budget = COUNTS_A_SECOND;
	}
	if (r->budget < n)
		return false;
	r->budget -= n;
	return true;
}

/* Masking costs some twenty times as much as finding a text that is known. */
#define NEW_COSTS 20

static uint32_t pattern_of(struct counts *c, struct counts_rules *r, const struct message *m,
			   int64_t now_ns)
{
	struct counts_known *known;
	struct words raw;
	const char *s;
	uint64_t hash;
	size_t len;

	if (!budget_take(r, now_ns, 1))
		return 0;
	key_line(m, &s, &len);
	words_of(s, len, &raw);
	hash = words_hash(&raw) | 1;
	known = &c->cache[hash >> 1 & (COUNTS_CACHE - 1)];
	if (known->hash == hash)
		return known->pattern;
	if (!budget_take(r, now_ns, NEW_COSTS))
		return 0;
	known->pattern = pattern_new(c, r, m, now_ns);
	known->hash = known->pattern ? hash : 0;
	return known->pattern;
}

/* ---- a message ---- */

static int64_t believed(int64_t utc_ns, int64_t now_ns)
{
	return utc_ns > now_ns - LATE_NS && utc_ns < now_ns + SOON_NS ? utc_ns : now_ns;
}

/* systemd gives what a program prints the level info: its text may know better. */
static enum line_level level_for(const struct message *m)
{
	enum line_level said;

	if (m->level >= 0 && m->level != LEVEL_INFO)
		return (enum line_level)m->level;
	said = level_of(m->text, m->head);
	return said != LEVEL_UNKNOWN || m->level < 0 ? said : (enum line_level)m->level;
}

void counts_message(struct counts *c, struct counts_rules *r, const struct message *m,
		    int64_t now_ns)
{
	int64_t utc_ns = believed(m->utc_ns, now_ns), second = utc_ns / NSEC_PER_SEC;
	int64_t bucket = second - second % r->bucket_s;
	enum line_level level = level_for(m);

	pace(c, m->lines, second);
	sum_add(c, bucket, level, m);
	if (!r->text || (level < LEVEL_WARNING && !c->bursts))
		return;
	patterns_begin(c, r);
	hit_add(c, pattern_of(c, r, m, now_ns), bucket, level, m, utc_ns);
}
