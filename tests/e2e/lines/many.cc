// SPDX-License-Identifier: Apache-2.0
// many: much that is inlined, from templates, lambdas, exceptions and the standard library. It is only looked at, not run.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>

namespace {
struct Row {
	int key;
	std::string text;
	bool operator<(const Row &o) const { return key < o.key || (key == o.key && text < o.text); }
};

template <class T> T twice(T v) { return v + v; }

template <int N> struct Tower {
	static inline int up(int v) { return Tower<N - 1>::up(twice(v) ^ N) + (v % (N + 1)); }
};
template <> struct Tower<0> {
	static inline int up(int v) { return v; }
};

int rows_sum(int n)
{
	std::map<std::string, int> by_name;
	std::unordered_map<int, Row> by_key;
	std::vector<Row> rows;

	for (int i = 0; i < n; i++) {
		by_name[std::to_string(i % 97)] += Tower<12>::up(i);
		by_key[i] = Row{i, "x"};
		rows.push_back({n - i, "y" + std::to_string(i)});
	}
	std::sort(rows.begin(), rows.end());
	std::function<int(int)> down = [&](int k) { return k ? down(k - 1) + rows[k % rows.size()].key : 0; };
	return down(10) + static_cast<int>(by_name.size() + by_key.size());
}
} // namespace

int main(int argc, char **argv)
{
	try {
		auto shared = std::make_shared<std::string>(argv[0]);
		std::regex pattern("(a|b)*c+");

		std::cout << rows_sum(argc * 1000) + std::regex_match(*shared, pattern) << "\n";
	} catch (const std::exception &e) {
		std::cerr << e.what() << "\n";
		return 1;
	}
}
