/* SPDX-License-Identifier: Apache-2.0 */
/* progsyms: the loaded BPF programs, compared with /proc/kallsyms. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/types.h>

#include "loaders/lib/bpf/load/progsyms.h"
#include "loaders/lib/host/names/kallsyms.h"
#include "probes/cpu.h"
#include "probes/lib/scope.h"
#include "probes/cpu.skel.h"
#include "tests/unit/missing.h"
#include "tests/unit/test.h"

/* A program without types; the skeleton's programs have types and several functions. */
static int plain_load(void)
{
	const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};

	return bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "sonde_plain", "GPL", insns, 2, NULL);
}

/* Counts functions that both know, and those in /proc/kallsyms that progsyms lacks or names
 * differently. Other processes load and unload programs: a second look drops those that are gone.
 */
static void compare(struct progsyms *p, unsigned int *same, unsigned int *other)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	struct kallsyms_symbol sym;
	unsigned long long addr;
	char line[1024], name[512];

	*same = *other = 0;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strstr(line, "[bpf]") || sscanf(line, "%llx %*c %511s", &addr, name) != 2 ||
		    strncmp(name, "bpf_prog_", 9))
			continue;
		if (progsyms_find(p, addr, &sym) && sym.start == addr && sym.base == addr &&
		    !strcmp(sym.name, name) && !strcmp(sym.module, "bpf") &&
		    progsyms_find(p, addr + 1, &sym) && sym.start == addr)
			++*same;
		else
			print_message("%llx %s, not so\n", addr, name), ++*other;
	}
	fclose(f);
}

TEST(each_program_and_its_functions_are_named_as_in_kallsyms)
{
	struct cpu_bpf *skel = cpu_bpf__open_and_load();
	int plain = plain_load();
	struct progsyms *p = progsyms_new();
	struct kallsyms_symbol sym;
	unsigned int same, other;

	if (!skel || plain < 0)
		skip_missing("the right to load BPF programs");
	for (int i = 0; i < 3; i++) {
		compare(p, &same, &other);
		if (!other)
			break;
		progsyms_free(p);
		p = progsyms_new();
	}
	assert_int_equal(other, 0);
	assert_true(same >= 5); /* of ours alone */
	assert_false(progsyms_find(p, 0xffffffff81000000ull, &sym));
	assert_false(progsyms_find(p, 0, &sym));
	progsyms_free(p);
	close(plain);
	cpu_bpf__destroy(skel);
}
