/* SPDX-License-Identifier: Apache-2.0 */
/* pcapng: see the header. */
#include "loaders/replay/pcapng.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

#define ORDER     0x1a2b3c4dU
#define ORDER_BIG 0x4d3c2b1aU
#define TAIL      4 /* the size again */
#define NSEC      1000000000
#define TIME_MOST (4000000000ll * NSEC) /* the year 2096 */

enum { BLOCK_INTERFACE = 1, BLOCK_OLD = 2, BLOCK_SIMPLE = 3, BLOCK_PACKET = 6 };
enum { OPTION_RESOLUTION = 9, OPTION_OFFSET = 14 };

struct interface {
	int link;
	uint32_t snap;      /* 0: no limit */
	uint8_t resolution; /* as the option has it */
	int64_t offset_s;
};

struct pcapng {
	bool begun, big;
	struct interface *of;
	size_t n, cap;
	int64_t last_ns;
};

struct pcapng *pcapng_new(void)
{
	return mem_alloc(sizeof(struct pcapng));
}

void pcapng_free(struct pcapng *x)
{
	if (!x)
		return;
	free(x->of);
	free(x);
}

static uint32_t word(const uint8_t *p, bool big)
{
	const uint32_t little =
		(uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];

	return big ? __builtin_bswap32(little) : little;
}

static uint16_t half(const uint8_t *p, bool big)
{
	return (uint16_t)(big ? p[0] << 8 | p[1] : p[1] << 8 | p[0]);
}

/* The byte order of a section; false: this does not begin one. */
static bool order_of(const uint8_t *head, bool *big)
{
	const uint32_t order = word(head + 8, false);

	*big = order == ORDER_BIG;
	return order == ORDER || order == ORDER_BIG;
}

size_t pcapng_size(const struct pcapng *x, const uint8_t head[PCAPNG_HEAD])
{
	bool big = x->big;
	uint32_t size;

	if (word(head, false) == PCAPNG_MAGIC ? !order_of(head, &big) : !x->begun)
		return 0;
	size = word(head + 4, big);
	return size < PCAPNG_HEAD || size > PCAPNG_BLOCK || size % 4 ? 0 : size;
}

static void interface_options(struct interface *i, const uint8_t *p, size_t n, bool big)
{
	while (n >= 4) {
		const uint16_t code = half(p, big), len = half(p + 2, big);
		const size_t whole = 4 + (((size_t)len + 3) & ~(size_t)3);

		if (!code || whole > n)
			return;
		if (code == OPTION_RESOLUTION && len == 1)
			i->resolution = p[4];
		if (code == OPTION_OFFSET && len == 8) /* its low half is first in little endian */
			i->offset_s = (int64_t)((uint64_t)word(p + (big ? 4 : 8), big) << 32 |
						word(p + (big ? 8 : 4), big));
		p += whole;
		n -= whole;
	}
}

static int interface_add(struct pcapng *x, const uint8_t *p, size_t n)
{
	struct interface i = {.resolution = 6};

	if (n < 8 || x->n == PCAPNG_INTERFACES)
		return -EPROTO;
	i.link = half(p, x->big);
	i.snap = word(p + 4, x->big);
	interface_options(&i, p + 8, n - 8, x->big);
	if (x->n == x->cap) {
		x->cap = x->cap ? 2 * x->cap : 4;
		x->of = mem_realloc(x->of, x->cap * sizeof(*x->of));
	}
	x->of[x->n++] = i;
	return 0;
}

static int64_t time_of(const struct interface *i, uint64_t at)
{
	__extension__ typedef __int128 wide;
	wide ns = (wide)at * NSEC;

	if (i->resolution & 0x80)
		ns >>= i->resolution & 0x7f;
	else
		for (int d = 0; d < i->resolution && ns; d++)
			ns /= 10;
	ns += (wide)i->offset_s * NSEC;
	return ns < 0 ? 0 : ns > TIME_MOST ? TIME_MOST : (int64_t)ns;
}

/* `p`: what follows the number of the interface: TIME:64 LEN:32 SIZE:32 BYTES. */
static int packet(struct pcapng *x, uint32_t number, const uint8_t *p, size_t n,
		  struct pcapng_packet *out)
{
	uint32_t len;

	if (n < 16 || number >= x->n)
		return -EPROTO;
	len = word(p + 8, x->big);
	if (len > n - 16)
		return -EPROTO;
	x->last_ns = time_of(&x->of[number], (uint64_t)word(p, x->big) << 32 | word(p + 4, x->big));
	*out = (struct pcapng_packet){.link = x->of[number].link,
				      .at_ns = x->last_ns,
				      .bytes = p + 16,
				      .len = len,
				      .size = word(p + 12, x->big)};
	return 1;
}

static int simple(struct pcapng *x, const uint8_t *p, size_t n, struct pcapng_packet *out)
{
	size_t size, len;

	if (n < 4 || !x->n)
		return -EPROTO;
	size = word(p, x->big);
	len = x->of[0].snap && x->of[0].snap < size ? x->of[0].snap : size;
	if (len > n - 4)
		return -EPROTO;
	*out = (struct pcapng_packet){.link = x->of[0].link,
				      .at_ns = x->last_ns,
				      .bytes = p + 4,
				      .len = len,
				      .size = size};
	return 1;
}

int pcapng_block(struct pcapng *x, const uint8_t *block, size_t size, struct pcapng_packet *out)
{
	const uint8_t *body = block + 8;
	size_t n;

	if (size < PCAPNG_HEAD || pcapng_size(x, block) != size)
		return -EPROTO;
	n = size - 8 - TAIL;
	if (word(block, false) == PCAPNG_MAGIC) {
		x->begun = order_of(block, &x->big);
		x->n = 0;
		return 0;
	}
	if (word(block + size - TAIL, x->big) != size)
		return -EPROTO;
	switch (word(block, x->big)) {
	case BLOCK_INTERFACE:
		return interface_add(x, body, n);
	case BLOCK_PACKET:
		return n < 4 ? -EPROTO : packet(x, word(body, x->big), body + 4, n - 4, out);
	case BLOCK_OLD:
		return n < 4 ? -EPROTO : packet(x, half(body, x->big), body + 4, n - 4, out);
	case BLOCK_SIMPLE:
		return simple(x, body, n, out);
	default:
		return 0;
	}
}
