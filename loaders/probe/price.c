/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/probe/price.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/types.h>

#include "loaders/lib/host/proc/proc.h"
#include "loaders/probe/asked.h"
#include "loaders/probe/hooks.h"
#include "loaders/probe/insn.h"
#include "loaders/probe/plan.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/cli/options.h"

#define ROUNDS 40
#define TIMES  100

/* Two functions whose first instructions are known: the kernel carries out the one itself, and
 * steps over the other. */
__asm__(".pushsection .text\n"
	".type price_pushes, @function\n"
	"price_pushes: push %rbp\n pop %rbp\n ret\n"
	".type price_tests, @function\n"
	"price_tests: test %eax, %eax\n nop\n ret\n"
	".popsection\n");
void price_pushes(void) __attribute__((visibility("hidden")));
void price_tests(void) __attribute__((visibility("hidden")));

static void run_call(void)
{
	syscall(SYS_getppid);
}

/* ns of one run: the least of all rounds. */
static double round_ns(void (*run)(void))
{
	double least = 0;

	for (int i = 0; i < ROUNDS; i++) {
		int64_t begin = clock_boot_ns(), took;

		for (int k = 0; k < TIMES; k++)
			run();
		took = clock_boot_ns() - begin;
		if (!i || (double)took / TIMES < least)
			least = (double)took / TIMES;
	}
	return least;
}

/* 0: it cannot be measured. */
static uint64_t hook_price(struct asked_probe *p, void (*run)(void))
{
	static const struct family_target anyone;
	const struct family_config c = {.target = &anyone};
	const struct asked asked = {.v = p, .n = 1};
	double with = 0, without = round_ns(run);
	struct hooks k;

	p->plan.self = 0;
	if (hooks_open(&k, &c, &asked, NULL, NULL, NULL))
		return 0;
	if (!hooks_attach(&k, NULL))
		with = round_ns(run);
	hooks_close(&k);
	return with > without ? (uint64_t)(with - without) : 0;
}

static uint64_t spec_price(const char *spec)
{
	const char *items[] = {spec};
	const struct option_list list = {.items = items, .n = 1};
	struct asked asked;
	uint64_t ns = 0;

	if (!asked_find(&asked, &list, NULL))
		ns = hook_price(&asked.v[0], run_call);
	asked_release(&asked);
	return ns;
}

/* Where in its file this function is. false: nothing says so. */
static bool place_of(void (*function)(void), struct asked_hook *out)
{
	const uint64_t at = (uint64_t)(uintptr_t)function;
	cleanup_free char *maps = NULL;
	size_t len = 0, pos = 0;
	struct proc_map m;

	if (proc_read((uint32_t)getpid(), "maps", PROC_FILE_MAX, &maps, &len))
		return false;
	while (proc_next_map(maps, len, &pos, &m)) {
		if (at < m.start || at >= m.end)
			continue;
		snprintf(out->path, sizeof(out->path), "/proc/self/exe");
		out->offset[0] = at - m.start + m.offset;
		out->n_sites = 1;
		return true;
	}
	return false;
}

static uint64_t code_price(void (*function)(void))
{
	static const struct plan_source none;
	struct asked_probe p = {.spec = {.at = {.kind = PROBESPEC_FUNC, .chosen = true}}};

	if (!place_of(function, &p.at) || plan_make(&p.spec, NULL, &none, &p.plan, NULL))
		return 0;
	return hook_price(&p, function);
}

void prices_measure(struct prices *out)
{
	*out = (struct prices){.tracepoint =
				       spec_price("tracepoint:syscalls:sys_enter_getppid() rate 0"),
			       .call = spec_price("syscall:getppid rate 0"),
			       .emulated = code_price(price_pushes),
			       .stepped = code_price(price_tests),
			       .measured = true};
	if (!out->tracepoint || !out->call || !out->emulated || !out->stepped)
		*out = (struct prices){.tracepoint = PRICE_TRACEPOINT,
				       .call = PRICE_CALL,
				       .emulated = INSN_EMULATED_NS,
				       .stepped = INSN_STEPPED_NS};
}

uint64_t prices_code(const struct prices *p, uint64_t estimate)
{
	return estimate == INSN_EMULATED_NS ? p->emulated : p->stepped;
}
