// SPDX-License-Identifier: Apache-2.0
// throws: exceptions through several frames, destructors on the way, one rethrown.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline))

static volatile unsigned long sink;

struct Guard {
	~Guard() { sink = sink + 1; }
};

NOINLINE static void thrower(int n)
{
	Guard g;
	if (!n)
		throw std::runtime_error("enough");
	thrower(n - 1);
	sink = sink + 2;
}

NOINLINE static void again(int n)
{
	std::vector<std::string> v(3, "a string that is too long for the small buffer");
	try {
		thrower(n);
	} catch (const std::runtime_error &) {
		sink = sink + v.size();
		throw;
	}
}

int main()
{
	for (int i = 0; i < 2; i++)
		try {
			again(4 + i);
		} catch (const std::exception &e) {
			sink = sink + std::string(e.what()).size();
		}
	std::printf("{\"sink\": %lu}\n", sink);
}
