/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps: does what makes stacks hard, a little of each: leaves, prologues, alloca, realignment,
 * calls through the PLT, a callback out of libc, 300 frames, tail calls, longjmp, coroutines, a
 * signal on a separate stack, vfork.
 */
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#ifdef __GLIBC__
#include <ucontext.h>
#endif
#include <unistd.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static volatile uint64_t sink;

NOINLINE static uint64_t leaf(uint64_t x)
{
	return x * 2654435761u + 12345;
}

NOINLINE static uint64_t with_alloca(size_t n)
{
	volatile char *p = alloca(n);

	memset((char *)p, (int)n, n);
	return leaf(p[n / 2]);
}

NOINLINE static uint64_t with_vla(size_t n)
{
	uint64_t a[n];

	for (size_t i = 0; i < n; i++)
		a[i] = leaf(i);
	return a[n - 1];
}

/* needs more alignment than the ABI gives: the prologue realigns, CFA becomes an expression */
NOINLINE static uint64_t realigned(uint64_t x, size_t n)
{
	uint64_t a[4] __attribute__((aligned(64)));
	volatile char *p = alloca(n);

	memset(a, 0, sizeof(a));
	p[0] = 1;
	a[1] = leaf(x);
	return a[1] + with_alloca(n) + (uint64_t)p[0];
}

NOINLINE static uint64_t deep(int n)
{
	uint64_t below = n ? deep(n - 1) : leaf(1);

	return below + leaf((uint64_t)n);
}

NOINLINE static uint64_t tail_end(uint64_t x, int n)
{
	return leaf(x) + (uint64_t)n;
}

NOINLINE static uint64_t tail(uint64_t x, int n)
{
	return tail_end(x + 1, n);
}

NOINLINE static uint64_t many(long a, long b, long c, long d, long e, long f, long g, long h,
			      double x)
{
	char text[64];

	snprintf(text, sizeof(text), "%ld %ld %.3f", a + b + c + d, e + f + g + h, x);
	return strlen(text);
}

static int by_value(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (int)leaf(0) * 0 + (x > y) - (x < y);
}

static jmp_buf back;

NOINLINE static void jump(int n)
{
	if (!n)
		longjmp(back, 1);
	jump(n - 1);
	sink++;
}

static volatile int handled;

static void handler(int sig)
{
	handled += sig + (int)(leaf(3) & 0);
	sink += with_alloca(40);
}

NOINLINE static void signals(void)
{
	static char other[65536];
	stack_t ss = {.ss_sp = other, .ss_size = sizeof(other)};
	struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_ONSTACK};

	sigaltstack(&ss, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	raise(SIGUSR1);
	sa.sa_flags = 0;
	sigaction(SIGUSR2, &sa, NULL);
	raise(SIGUSR2);
}

#ifdef __GLIBC__
static ucontext_t home, away;

static void coroutine(void)
{
	sink += with_alloca(24);
	swapcontext(&away, &home);
	sink += deep(5);
}

NOINLINE static void coroutines(void)
{
	static char stack[65536];

	getcontext(&away);
	away.uc_stack.ss_sp = stack;
	away.uc_stack.ss_size = sizeof(stack);
	away.uc_link = &home;
	makecontext(&away, coroutine, 0);
	swapcontext(&home, &away);
	sink += leaf(7);
	swapcontext(&home, &away);
}
#endif

NOINLINE static void children(void)
{
	int status;
	pid_t pid = vfork();

	if (!pid)
		_exit(0);
	waitpid(pid, &status, 0);
}

int main(void)
{
	int values[] = {5, 3, 9, 1, 7, 2, 8};

	sink += leaf(1) + with_alloca(100) + with_vla(9) + realigned(3, 33) + deep(300) +
		tail(4, 2);
	sink += many(1, 2, 3, 4, 5, 6, 7, 8, 1.5);
	qsort(values, sizeof(values) / sizeof(*values), sizeof(*values), by_value);
	if (!setjmp(back))
		jump(5);
	signals();
#ifdef __GLIBC__
	coroutines();
#endif
	children();
	printf("{\"sink\": %llu, \"handled\": %d}\n", (unsigned long long)sink, handled);
	return 0;
}
