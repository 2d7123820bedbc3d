/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions whose calls a probe follows from begin to end: results below 0, texts, recursion, a
 * jump to another function, returns that never come (longjmp), threads, and a duration that the
 * function measures itself. A line on standard input starts it; what it did is a line of JSON; it
 * ends with the input.
 *
 *   probed [FOREVER]    with an argument: it calls `half` until the input ends, and checks each
 * result
 */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
#define SLOW  40

int half(int n);
long fact(long n);
long onward(long n);
const char *word(int n);
void leap(int n);
int64_t slow(int64_t us);
int named(const char *name, int n);

static volatile int sink;
static jmp_buf back;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

APART int half(int n)
{
	if (n & 1)
		return -n;
	sink += n;
	return n / 2;
}

APART long fact(long n)
{
	long r;

	if (n < 2)
		return 1;
	r = n * fact(n - 1);
	sink++;
	return r;
}

APART long onward(long n) /* ends in a jump */
{
	sink++;
	return fact(n + 1);
}

APART const char *word(int n)
{
	static const char *const words[] = {"zero", "one", "two", "three"};

	sink++;
	return words[n & 3];
}

APART void leap(int n)
{
	sink++;
	if (n)
		longjmp(back, n);
	sink++;
}

APART int64_t slow(int64_t us) /* how long it took, as it saw itself */
{
	const int64_t begin = now_ns();

	while (now_ns() - begin < us * 1000)
		;
	return now_ns() - begin;
}

APART int named(const char *name, int n)
{
	char copy[64];

	snprintf(copy, sizeof(copy), "%s", name);
	sink += copy[0];
	return 2 * n;
}

static void *threads_work(void *p)
{
	for (int i = 0; i < 10; i++)
		fact(5);
	return p;
}

static void work(void)
{
	pthread_t threads[4];
	char name[32];

	for (int i = 0; i < 100; i++)
		half(i);
	onward(4);
	for (int i = 0; i < 8; i++)
		word(i);
	for (volatile int i = 0; i < 20; i++)
		if (!setjmp(back))
			leap(i & 1);
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "name %d", i);
		named(name, i);
		memset(name, 'x', sizeof(name) - 1);
	}
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, threads_work, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("{\"slow\":[");
	for (int i = 0; i < SLOW; i++)
		printf("%s%lld", i ? "," : "", (long long)slow(20 + i));
	printf("]}\n");
}

/* How many results were wrong, of how many. */
static void forever(void)
{
	struct pollfd in = {.fd = 0, .events = POLLIN};
	long calls = 0, wrong = 0;

	for (int i = 0; calls % 1000 || poll(&in, 1, 0) == 0; i++, calls++)
		wrong += half(i & 1023) != (i & 1 ? -(i & 1023) : (i & 1023) / 2);
	printf("{\"calls\":%ld,\"wrong\":%ld}\n", calls, wrong);
}

int main(int argc, char **argv)
{
	(void)argv;
	puts("ready");
	fflush(stdout);
	if (argc > 1) {
		forever();
	} else if (getchar() != EOF) {
		work();
		fflush(stdout);
		getchar();
	}
	return 0;
}
