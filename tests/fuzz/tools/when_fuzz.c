/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: tools/print/when.c, schema/base/cli/quantity.c
 *
 * Any text is a time, a duration or neither; what it is can be printed, and what was printed is
 * read back the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "schema/base/cli/quantity.h"
#include "schema/base/clock.h"
#include "schema/base/units.h"
#include "tools/print/when.h"

#define NOW_NS (1795183803ll * NSEC_PER_SEC)

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	setenv("TZ", "Europe/Berlin", 1);
	tzset();
	return 0;
}

static void check_time(const char *text)
{
	char utc[32], local[32];
	int64_t t, again;

	if (when_parse(text, NOW_NS, &t))
		return;
	when_local(t, NOW_NS, local, sizeof(local));
	/* printed to the millisecond, read from 1970 to 2200 */
	if (t < 0 || t >= 4102444800ll * NSEC_PER_SEC)
		return;
	when_utc(t, utc, sizeof(utc));
	if (when_parse(utc, NOW_NS, &again) || again != t - t % 1000000)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[128], printed[32];
	int64_t d;

	if (size >= sizeof(text))
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	check_time(text);
	if (!quantity_ns(text, &d)) {
		if (d <= 0)
			abort();
		units_ns(d, printed, sizeof(printed));
	}
	return 0;
}
