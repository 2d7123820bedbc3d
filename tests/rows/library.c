/* SPDX-License-Identifier: Apache-2.0 */
/* library: goes through many functions of the C library, one thread, the same way each time; for
 * stepper. */
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>
static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}
static int twice(int a)
{
	return a ? twice(a - 1) + 2 : 0;
}
int main(int n, char **v)
{
	int x[40];
	char text[256];
	regex_t r;
	time_t t = 1000000000;
	for (int i = 0; i < 40; i++)
		x[i] = i * 7919 % 101;
	qsort(x, 40, sizeof(*x), by_value);
	snprintf(text, sizeof(text), "%d %s %8.3f %g %a %lc %p %-10ld|", x[7], v[0], sqrt(n + 2.0),
		 strtod("1.25e-7", 0), 0.1, L'x', (void *)v, 5L);
	if (!regcomp(&r, "([0-9]+) (.*)x", REG_EXTENDED)) {
		regexec(&r, text, 0, 0, 0);
		regfree(&r);
	}
	char *m = malloc(100000), *k = strdup(text);
	m = realloc(m, 300000);
	memset(m, 1, 300000 > 500 ? 500 : 1);
	free(k);
	free(m);
	strftime(text, sizeof(text), "%c", gmtime(&t));
	printf("%s %d %f\n", text, twice(50), pow(1.1, 12.5) + sin(3e9));
	FILE *f = fopen("/proc/self/stat", "r");
	if (f) {
		int pid;
		if (fscanf(f, "%d %63s", &pid, text) == 2)
			fprintf(stderr, "%s %ls\n", text, L"wide");
		fclose(f);
	}
	return getenv("HOME") && strtol("0x12", 0, 0) == 18 ? 0 : 3;
}
