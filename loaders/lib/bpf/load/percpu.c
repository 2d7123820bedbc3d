/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/load/percpu.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdint.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

void percpu_sum_at(int fd, uint32_t key, void *sum, size_t size)
{
	const size_t fields = size / sizeof(uint64_t);
	int n = libbpf_num_possible_cpus();
	cleanup_free uint64_t *by_cpu =
		n > 0 ? mem_array((size_t)n * fields, sizeof(*by_cpu)) : NULL;
	uint64_t *out = sum;

	memset(sum, 0, size);
	if (!by_cpu || bpf_map_lookup_elem(fd, &key, by_cpu))
		return;
	for (size_t i = 0; i < (size_t)n * fields; i++)
		out[i % fields] += by_cpu[i];
}

void percpu_sum(int fd, void *sum, size_t size)
{
	percpu_sum_at(fd, 0, sum, size);
}
