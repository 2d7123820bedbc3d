/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counts: what a source's messages add up to: lines, messages and bytes by level and bucket, and
 * how often each pattern came. Pure.
 *
 *   1. Every line counts, whatever it is. The patterns of warnings and worse are always counted,
 *      those of other levels while the source writes in a burst: more than BURST_LEAST lines in
 *      BURST_S seconds, and BURST_TIMES as many as usual (of the last ten minutes).
 *   2. A source has COUNTS_PATTERNS patterns, the sources have COUNTS_ALL in sum; a message that
 * finds no room, or no budget (COUNTS_A_SECOND), counts as of "~other": the sums are those of the
 *      levels. A pattern that was not seen for an hour makes room.
 *   3. A new pattern is made of the masked text (loaders/lib/host/secrets), never of the text
 *      itself; so is its sample, COUNTS_SAMPLE bytes of its first message.
 */
#ifndef SONDE_LOGS_COUNTS_H
#define SONDE_LOGS_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/logs/level.h"
#include "loaders/logs/messages.h"
#include "loaders/logs/words.h"

#define COUNTS_PATTERNS 256
#define COUNTS_ALL      16384
#define COUNTS_A_SECOND 2000
#define COUNTS_SAMPLE   1000
#define COUNTS_OTHER    "~other"
#define COUNTS_LINE_END " \u23ce " /* in a sample, between its lines */

#define BURST_LEAST 200
#define BURST_TIMES 8
#define BURST_S     10

struct counts_sum {     /* of a bucket and level */
	int64_t bucket; /* UTC, seconds */
	enum line_level level;
	uint64_t lines, messages, bytes;
	bool burst;
};

struct counts_hit { /* the same, of a pattern */
	int64_t bucket;
	enum line_level level;
	uint32_t pattern; /* from 1 on; 0: COUNTS_OTHER */
	uint64_t messages;
	int64_t first_ns, last_ns;
	uint32_t pid; /* of the last one; 0: unknown */
};

struct counts_pattern {
	char text[WORDS_BYTES + 1];
	int64_t last_ns;
	bool fresh;   /* its text was not sent yet */
	char *sample; /* until it was sent */
	uint32_t hit; /* of counts.hits, as far as that is its own */
};

#define COUNTS_CACHE 1024
struct counts {
	struct counts_sum *sums;
	uint32_t n_sums, cap_sums;
	struct counts_hit *hits;
	uint32_t n_hits, cap_hits;
	struct counts_pattern *patterns; /* [0] is COUNTS_OTHER */
	uint32_t n_patterns, cap_patterns;
	struct counts_known { /* of the text as it came: which pattern it has */
		uint64_t hash;
		uint32_t pattern;
	} * cache;
	/* of the burst */
	int64_t second;
	uint64_t in_second, window[BURST_S];
	double usual; /* lines a second */
	uint32_t seconds;
	bool bursts;
};

struct counts_rules { /* for all sources */
	uint32_t bucket_s;
	bool text;         /* patterns are wanted */
	uint32_t patterns; /* of all sources */
	int64_t second;    /* for which there is */
	uint32_t budget;   /* still */
};

void counts_release(struct counts *c, struct counts_rules *r);
/* Its patterns alone, after its sums were sent: they make room for those of others. */
void counts_forget(struct counts *c, struct counts_rules *r);
/* now_ns: UTC, of a message without a time, and in whose second the budget is. */
void counts_message(struct counts *c, struct counts_rules *r, const struct message *m,
		    int64_t now_ns);
/* After its sums were sent. */
void counts_clear(struct counts *c);

#endif
