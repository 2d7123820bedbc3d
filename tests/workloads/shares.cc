/* SPDX-License-Identifier: Apache-2.0 */
/* shares-cpp SECONDS: as shares.c, in C++: methods, templates, namespaces, so that names need demangling. */
#include <cstdio>
#include <cstdlib>
#include <sys/resource.h>
#include <unistd.h>

#include "work.h"

static volatile uint64_t sink;

namespace shop {
template <typename T> struct Basket {
	NOINLINE void leaf(uint64_t turns) { sink = sink + work_turns(turns, sink); }
	NOINLINE void middle(uint64_t turns) { leaf(turns); sink = sink + 1; }
	NOINLINE void outer(uint64_t turns) { middle(turns); sink = sink + 1; }
};
struct Apple {};
struct Pear {};
struct Plum {};
struct Fig {};
} // namespace shop

static NOINLINE void work_loop(uint64_t until, uint64_t *spent, uint64_t *done)
{
	uint64_t seed = 88172645463325252u;
	shop::Basket<shop::Apple> a;
	shop::Basket<shop::Pear> b;
	shop::Basket<shop::Plum> c;
	shop::Basket<shop::Fig> d;

	while (work_now_ns() < until) {
		int i = work_next(done);
		uint64_t began = work_cpu_ns();
		uint64_t turns = work_slice(&seed);

		switch (i) {
		case 0: a.outer(turns); break;
		case 1: b.outer(turns); break;
		case 2: c.outer(turns); break;
		default: d.outer(turns); break;
		}
		done[i] += turns;
		spent[i] += work_cpu_ns() - began;
	}
}

int main(int argc, char **argv)
{
	static const char *const names[WORK_CHAINS] = {"Apple", "Pear", "Plum", "Fig"};
	uint64_t spent[WORK_CHAINS] = {0}, turns[WORK_CHAINS] = {0};
	struct rusage ru;

	work_loop(work_now_ns() + (uint64_t)(atof(argc > 1 ? argv[1] : "5") * 1e9), spent, turns);
	getrusage(RUSAGE_SELF, &ru);
	printf("{\"pid\": %d, \"cpu_ns\": %lld, \"chains\": {", getpid(),
	       (ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000000ll +
		       (ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1000ll);
	for (int i = 0; i < WORK_CHAINS; i++)
		printf("%s\"main;work_loop(unsigned long, unsigned long*, unsigned long*);shop::Basket<shop::%s>::outer(unsigned long);"
		       "shop::Basket<shop::%s>::middle(unsigned long);shop::Basket<shop::%s>::leaf(unsigned long)\": %llu",
		       i ? ", " : "", names[i], names[i], names[i], (unsigned long long)spent[i]);
	printf("}, \"turns\": [%llu, %llu, %llu, %llu]}\n", (unsigned long long)turns[0], (unsigned long long)turns[1],
	       (unsigned long long)turns[2], (unsigned long long)turns[3]);
	return 0;
}
