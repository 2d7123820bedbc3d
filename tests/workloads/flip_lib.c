/* SPDX-License-Identifier: Apache-2.0 */
/* libred.so | libblue.so: the two libraries of flip-dl, of equal layout, from one source. flip-red
 * and flip-blue have it too. */
#include "work.h"

#define JOIN(a, b) a##b
#define NAME(a, b) JOIN(a, b)

static volatile uint64_t sink;

NOINLINE void NAME(COLOUR, _leaf)(uint64_t turns);
NOINLINE void NAME(COLOUR, _middle)(uint64_t turns);
NOINLINE void NAME(COLOUR, _outer)(uint64_t until);

NOINLINE void NAME(COLOUR, _leaf)(uint64_t turns)
{
	sink += work_turns(turns, sink);
}

NOINLINE void NAME(COLOUR, _middle)(uint64_t turns)
{
	NAME(COLOUR, _leaf)(turns);
	sink++;
}

NOINLINE void NAME(COLOUR, _outer)(uint64_t until)
{
	while (work_now_ns() < until)
		NAME(COLOUR, _middle)(20000);
}
