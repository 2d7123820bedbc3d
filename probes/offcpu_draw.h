/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * offcpu_draw: which waits are drawn, that is, have a stack and a waker taken, and for how many
 * each of them counts. Pure: compiled into the BPF program, and into a test of its statistics.
 *
 * 1. There is a level: each wait of 2^level ns or longer is drawn and counts for itself. A shorter
 *    one, of 2^k ns and more but less than 2^(k+1), is drawn with probability 1/w, w = 2^(level -
 * k), and counts for w waits. So each draw by chance represents 2^level to 2^(level+1) ns: a wait
 * is drawn in proportion to its length, to within a factor of two.
 * 2. Waits of one thread and kind are drawn from strata: each wait adds its 1/w to a sum, and in
 * each whole number of that sum one point is chosen at random; the wait that it falls into is
 * drawn. So of equal waits exactly one in w is drawn, and their total is right to within one draw,
 * and yet which one it is follows no pattern of the program's. (A wait that two points fall into
 * counts twice.)
 * 3. A stratum keeps the level that it began with, and ends with its second of 2^30 ns: neither may
 *    depend on whether its point has been met, or sums would be biased. A wait that is long for its
 *    stratum and short for the present level has a separate random number. So sums of w,
 *    and of w times a length, have no bias, whatever the lengths are (the estimator of Horvitz and
 *    Thompson). Their variance is estimated by the sum of w x (w - 1) x value^2 over what was
 * drawn; its root is the standard error. That is what it is if each wait is drawn for itself; by
 * strata it is less, the more of a stratum the sum is about.
 * 4. The level follows a limit on draws in a window of 2^27 ns (134 ms). One step more draws at
 * most half as many by chance, and none fewer of longer ones; so at a window's end the level rises
 * by the binary logarithm of draws over limit, rounded up, and falls by that of limit over draws,
 *    rounded down. Within a window it rises by one at twice the limit, and at each further limit.
 * 5. Where the least level is above 0, the first `longs` waits in each window that are at least as
 *    long as the least level says are drawn whatever the level is. Behind them each thread and kind
 *    has DRAW_CREDIT more to begin with, and one more in each second: what lasts some seconds is
 *    exact even where thousands of others wait. All of a CPU together have `behind` of those in a
 *    window, and threads that have waited little so far twice as many. This depends on lengths and
 *    time alone, and leaves the level as it is. With `longs` and `behind` 0 it never happens.
 * 6. w is at most 2^DRAW_SHIFT_MAX: what is shorter is drawn more often than 1. says.
 */
#ifndef SONDE_PROBES_OFFCPU_DRAW_H
#define SONDE_PROBES_OFFCPU_DRAW_H

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define DRAW_WINDOW_SHIFT 27
#define DRAW_SECOND_SHIFT 30
#define DRAW_SHIFT_MAX    16
#define DRAW_CREDIT       128
#define DRAW_CREDIT_YOUNG 16 /* more than that is left of it */
#define DRAW_LEVEL_MAX    34 /* 17 s */

struct draw_stratum {   /* zeroed: none yet */
	__u32 at, pick; /* how far it has come, and its point: parts of 2^32 */
	__u32 second;   /* 1 + its number */
	__u16 level;
	__u16 credit; /* of point 5 */
};

struct offcpu_draw {
	__u64 random; /* of xorshift64; never 0 once it is set */
	__u32 window; /* its number */
	__u32 drawn;  /* in it, so far */
	__u32 until;  /* the level rises when more are drawn */
	__u32 spent;  /* of point 5, in it */
	__u32 pad;
	__u32 level;
};

/* What a limit says: draws in a window (0: the level stays), the least level, and point 5. */
struct draw_limit {
	__u32 most, least, longs, behind;
};

/* The place of the highest bit, by a multiplication (de Bruijn's sequence B(2, 6)): six comparisons
 * would be guessed wrong too often. 0 of 0. */
static const __u8 draw_log2_table[64] = {
	0,  47, 1,  56, 48, 27, 2,  60, 57, 49, 41, 37, 28, 16, 3,  61, 54, 58, 35, 52, 50, 42,
	21, 44, 38, 32, 29, 23, 17, 11, 4,  62, 46, 55, 26, 59, 40, 36, 15, 53, 34, 51, 20, 43,
	31, 22, 10, 45, 25, 39, 14, 33, 19, 30, 9,  24, 13, 18, 8,  12, 7,  6,  5,  63};

static __always_inline __u32 draw_log2(__u64 v)
{
	v |= v >> 1;
	v |= v >> 2;
	v |= v >> 4;
	v |= v >> 8;
	v |= v >> 16;
	v |= v >> 32;
	return v ? draw_log2_table[v * 0x03f79d71b4cb0a89ull >> 58] : 0;
}

static __always_inline __u32 draw_level(__u32 level, __u32 least)
{
	return level < least ? least : level > DRAW_LEVEL_MAX ? DRAW_LEVEL_MAX : level;
}

/* The window ends: point 4. `gap`: others without a draw have passed since. */
static __always_inline void draw_turn(struct offcpu_draw *d, const struct draw_limit *l, int gap)
{
	__u32 drawn = gap || !d->drawn ? 1 : d->drawn, level = d->level;

	if (drawn > l->most) {
		level += draw_log2((drawn - 1) / l->most) + 1;
	} else {
		__u32 down = draw_log2(l->most / drawn);

		level = level > down ? level - down : 0;
	}
	d->level = draw_level(level, l->least);
	d->drawn = 0;
	d->spent = 0;
	d->until = 2 * l->most;
}

static __always_inline void draw_count(struct offcpu_draw *d, const struct draw_limit *l)
{
	if (++d->drawn <= d->until || !l->most)
		return;
	d->level = draw_level(d->level + 1, l->least);
	d->until += l->most;
}

static __always_inline __u32 draw_random(struct offcpu_draw *d)
{
	d->random ^= d->random << 13;
	d->random ^= d->random >> 7;
	d->random ^= d->random << 17;
	return (__u32)(d->random >> 32);
}

static __always_inline __u32 draw_shift(__u32 level, __u32 top)
{
	__u32 shift = level > top ? level - top : 0;

	return shift > DRAW_SHIFT_MAX ? DRAW_SHIFT_MAX : shift;
}

static __always_inline void draw_stratum_begin(struct offcpu_draw *d, struct draw_stratum *s,
					       __u32 at)
{
	s->at = at;
	s->pick = draw_random(d);
	s->level = (__u16)d->level;
}

/* A second begins. */
static __always_inline void draw_credit(struct draw_stratum *s, __u32 second)
{
	__u32 credit = s->second ? s->credit + (second - s->second) : DRAW_CREDIT;

	s->credit = (__u16)(credit > DRAW_CREDIT ? DRAW_CREDIT : credit);
	s->second = second;
}

/* Is this wait drawn whatever the level is? */
static __always_inline int draw_spend(struct offcpu_draw *d, struct draw_stratum *s,
				      const struct draw_limit *l, __u64 ns)
{
	__u32 others = l->behind * (s->credit > DRAW_CREDIT_YOUNG ? 2 : 1);

	if (!l->least || ns >> l->least == 0)
		return 0;
	if (d->spent >= l->longs) {
		if (!s->credit || d->spent >= l->longs + others)
			return 0;
		s->credit--;
	}
	d->spent++;
	return 1;
}

/* How many points fall into a wait that is drawn once in 2^shift, shift > 0. */
static __always_inline __u32 draw_points(struct offcpu_draw *d, struct draw_stratum *s, __u32 shift)
{
	__u64 to = (__u64)s->at + (1ull << (32 - shift));
	__u32 points = s->at <= s->pick && s->pick < to;

	if (!(to >> 32)) {
		s->at = (__u32)to;
		return points;
	}
	draw_stratum_begin(d, s, (__u32)to);
	return points + (s->pick < s->at);
}

/* A wait of `ns` ended at `now`: for how many it counts; 0: it is not drawn. d->random is set. */
static __always_inline __u32 draw_weight(struct offcpu_draw *d, struct draw_stratum *s,
					 const struct draw_limit *l, __u64 now, __u64 ns)
{
	__u32 window = (__u32)(now >> DRAW_WINDOW_SHIFT), top = draw_log2(ns), shift, points = 1;
	__u32 second = (__u32)(now >> DRAW_SECOND_SHIFT) + 1;

	if (l->most && d->window != window) {
		draw_turn(d, l, d->window + 1 != window);
		d->window = window;
	}
	if (s->second != second) {
		draw_credit(s, second);
		draw_stratum_begin(d, s, 0);
	} else if (!s->at) {
		s->level = (__u16)d->level; /* nothing is in it yet */
	}
	if (draw_spend(d, s, l, ns))
		return 1;
	shift = draw_shift(s->level, top);
	if (shift) {
		points = draw_points(d, s, shift);
	} else {
		shift = draw_shift(d->level, top);
		points = !(draw_random(d) & ((1u << shift) - 1));
	}
	if (!points)
		return 0;
	draw_count(d, l);
	return points << shift;
}

#endif
