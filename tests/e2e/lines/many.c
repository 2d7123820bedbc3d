/* SPDX-License-Identifier: Apache-2.0 */
/* many: functions inlined into one another, loops unrolled, cold parts. It is only looked at, not
 * run. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline unsigned mix(unsigned h, unsigned v)
{
	h ^= v;
	h *= 0x9e3779b1u;
	return h ^ h >> 15;
}

static inline unsigned word(const char *s, size_t n)
{
	unsigned h = 7;

	for (size_t i = 0; i < n; i++)
		h = mix(h, (unsigned char)tolower(s[i]));
	return h;
}

struct table {
	unsigned slots[1024];
	size_t used;
};

static inline int put(struct table *t, unsigned h)
{
	for (size_t i = h % 1024, n = 0; n < 1024; i = (i + 1) % 1024, n++) {
		if (t->slots[i] == h)
			return 0;
		if (!t->slots[i]) {
			t->slots[i] = h;
			t->used++;
			return 1;
		}
	}
	return -1;
}

__attribute__((cold, noinline)) static void complain(const char *what)
{
	fprintf(stderr, "many: %s\n", what);
	exit(1);
}

#define STEP(n)                                                                           \
	__attribute__((noinline)) static unsigned step##n(struct table *t, const char *s) \
	{                                                                                 \
		size_t len = strlen(s);                                                   \
		unsigned h = word(s, len / (n + 1));                                      \
                                                                                          \
		if (put(t, h) < 0)                                                        \
			complain(s);                                                      \
		return mix(h, n) + word(s + len / 2, len - len / 2);                      \
	}
/* clang-format off */
STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)

int main(int argc, char **argv)
{
	static struct table t;
	unsigned sum = 0;

	for (int i = 0; i < argc; i++)
		sum += step0(&t, argv[i]) ^ step1(&t, argv[i]) ^ step2(&t, argv[i]) ^ step3(&t, argv[i]) ^
		       step4(&t, argv[i]) ^ step5(&t, argv[i]) ^ step6(&t, argv[i]) ^ step7(&t, argv[i]);
	printf("%u %zu\n", sum, t.used);
	return 0;
}
