// SPDX-License-Identifier: Apache-2.0
// leak: keeps KIB more each 20 ms in a vector of strings, SECONDS long; says how many bytes. leak KIB SECONDS [none]: drops it each 16 MiB
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

static std::vector<std::string> kept;

__attribute__((noinline)) void leaky(size_t bytes)
{
	kept.push_back(std::string(bytes, 'x'));
}

int main(int argc, char **argv)
{
	size_t bytes = (size_t)atol(argv[1]) << 10;

	for (int i = 0; i < atoi(argv[2]) * 50; i++) {
		leaky(bytes);
		if (argc > 3 && kept.size() * bytes > 16 << 20)
			kept.clear();
		std::this_thread::sleep_for(std::chrono::milliseconds(20));
	}
	printf("%zu\n", kept.size() * bytes);
	fflush(stdout);
	getchar();
}
