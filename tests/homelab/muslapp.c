/* SPDX-License-Identifier: Apache-2.0 */

/* muslapp: sorts and prints numbers a tenth of the time, by musl's own functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "schema/base/array.h"

static int by_value(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

__attribute__((noinline)) static size_t sort_and_print(void)
{
	static int numbers[20000];
	static char text[32];
	size_t length = 0;

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		numbers[i] = rand();
	qsort(numbers, ARRAY_SIZE(numbers), sizeof(*numbers), by_value);
	for (size_t i = 0; i < 2000; i++) {
		memset(text, 0, sizeof(text));
		length += (size_t)snprintf(text, sizeof(text), "%d %s", numbers[i], "x");
	}
	return length;
}

int main(void)
{
	for (;;) {
		if (!sort_and_print())
			return 1;
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	}
}
