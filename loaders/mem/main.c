/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-mem: which code made memory grow, and what of it is still there. This file is the family's
 * translation between its BPF program and the common loop of loaders/lib/bpf.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/load/leftout.h"
#include "loaders/lib/bpf/load/load.h"
#include "loaders/lib/bpf/load/percpu.h"
#include "loaders/lib/bpf/load/programs.h"
#include "loaders/lib/bpf/load/sampler.h"
#include "loaders/lib/bpf/load/sampling.h"
#include "loaders/lib/bpf/start/check.h"
#include "loaders/mem/held.h"
#include "loaders/mem/hostpages.h"
#include "loaders/mem/hugefaults.h"
#include "loaders/mem/major.h"
#include "loaders/mem/pages.h"
#include "loaders/mem/period.h"
#include "loaders/mem/pressure.h"
#include "loaders/mem/stall.h"
#include "probes/mem.h"
#include "probes/mem.skel.h"
#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define LINKS         12
#define STALL_LINKS   4 /* the first of them */
#define PAGE_LINKS    10
#define SLEEP_LINKS   2
#define RATE          1000 /* samples a second, while a person waits */
#define RATE_ALWAYS   40
#define LEAST_ALWAYS  64  /* page faults that a sample represents */
#define MAJORS        100 /* the same of faults that had to read */
#define MAJORS_ALWAYS 10
/* A fault of processes that are left out interrupts them for a tenth of a sample's time or less. */
#define OUTSIDE         32
#define INTERVAL_NS     (2 * NSEC_PER_SEC) /* between readings of a process */
#define INTERVAL_ALWAYS (60 * NSEC_PER_SEC)
#define INTERVAL_MIN_NS (NSEC_PER_SEC / 10)
#define CPUS_NTH        8 /* ticks until CPUs that come and go are looked for, which interrupts each */

static struct mem_opts {
	uint32_t period; /* 0: by the number of faults */
	int64_t interval_ns;
	uint32_t pages; /* 1: on */
} opts;

struct mem {
	struct mem_bpf *skel;
	struct sampler sampler, majors;
	struct period period, major_period;
	struct major *major;
	struct bpf_link *links[LINKS];
	struct bpf_link
		*sleeps[SLEEP_LINKS]; /* attached while a thread of the host waits for memory */
	bool watches;                 /* no person waits: only then */
	uint32_t ticks;
	bool sleepless; /* they could not be attached */
	struct hugefaults hugefaults;
	struct bpf_link *huge; /* attached while they are sampled */
	bool huge_apart;       /* they are, by that program alone */
	bool hugeless;         /* it could not be attached */
	struct pressure pressure;
	struct stall_notes notes;
	struct held *held;       /* NULL: not begun */
	struct hostpages *pages; /* NULL: not asked for, or not possible */
};

static const struct option mem_options[] = {
	{"period", 0, OPTION_UINT, "N",
	 "sample each Nth page fault of a CPU (default: by their number, 1000 samples a second; with --bucket 10s 40)",
	 OPTION_AT(struct mem_opts, period), .min = 1, .max = PERIOD_MAX},
	{"interval", 0, OPTION_DURATION, "TIME",
	 "time between two looks at what a process still holds (default 2s, with --bucket 10s 1m)",
	 OPTION_AT(struct mem_opts, interval_ns), .min = INTERVAL_MIN_NS},
	{"pages", 0, OPTION_ENUM, "off|on",
	 "also record all pages that are in use, the kernel's too, by stack (default off)",
	 OPTION_AT(struct mem_opts, pages)},
	{0}};

/* ---- open ---- */

static const struct leftout_program OPTIONAL[] = {
	{"mem_fault_vma",
	 "memory that is gone within a second is not told from files' pages (needs Linux 5.17)"},
	{"mem_mapped",
	 "memory that is freed and mapped again at the same place counts as held more than once"},
	{"mem_stall_begin", "waits for memory are not seen"},
	{"mem_stall_end", "waits for memory are not seen"},
	{"mem_sleep_switch",
	 "waits for memory that comes back from swap, and those above memory.high, are not seen"},
	{"mem_sleep_end", "waits for memory that comes back from swap have no stack"},
	{"mem_huge_alloc", "few of the faults that bring huge pages are seen"},
	{"mem_victim",
	 "what a process held that was killed for memory is that of the last look at it"},
	{"mem_page_alloc", "pages of the kernel are not recorded"},
	{"mem_page_free", "pages of the kernel are not recorded"},
	{"mem_major_vma",
	 "of page faults that read a file that is not mapped any more the file is not known (needs Linux 5.17)"},
	{"mem_major", "page faults that read a file or swap are not recorded"},
	{"mem_fork", "child processes of the command are not followed"},
	{"mem_exit",
	 "processes that ended keep their places in the set of those that are followed"},
	{0}};

SKELETON_OPEN(mem)

/* From 6.15 on a thread that goes on can be asked for its stack. */
static bool tells_end(void)
{
	return libbpf_find_vmlinux_btf_id("sched_exit_tp", BPF_TRACE_RAW_TP) > 0;
}

/* With --pages alone: both programs, or neither. */
static void pages_load(struct mem_bpf *skel)
{
	bool wanted = opts.pages && !leftout_is("mem_page_alloc") && !leftout_is("mem_page_free");
	uint32_t shift, groups = wanted ? hostpages_groups(&shift) : 0;

	bpf_program__set_autoload(skel->progs.mem_page_alloc, groups);
	bpf_program__set_autoload(skel->progs.mem_page_free, groups);
	if (!groups)
		return;
	skel->rodata->pages_groups = groups;
	skel->rodata->pages_shift = shift;
	bpf_map__set_max_entries(skel->maps.live, groups);
}

static int mem_load(const struct family_config *c, uint32_t kinds, void *out)
{
	struct mem_bpf *skel = skel_open(c->store_dir);
	int err;

	if (!skel)
		return -errno;
	bpf_program__set_autoload(skel->progs.mem_fork, c->target->follow_children);
	bpf_program__set_autoload(skel->progs.mem_exit, c->target->follow_children);
	bpf_program__set_autoload(skel->progs.mem_fault_vma, !leftout_is("mem_fault_vma"));
	bpf_program__set_autoload(skel->progs.mem_fault, leftout_is("mem_fault_vma"));
	bpf_program__set_autoload(skel->progs.mem_major_vma, !leftout_is("mem_major_vma"));
	bpf_program__set_autoload(skel->progs.mem_major,
				  leftout_is("mem_major_vma") && !leftout_is("mem_major"));
	skel->rodata->syscall_mremap = SYS_mremap;
	skel->rodata->at_end = tells_end() && !leftout_is("mem_sleep_end");
	bpf_program__set_autoload(skel->progs.mem_sleep_switch, true);
	bpf_program__set_autoload(skel->progs.mem_sleep_end, skel->rodata->at_end);
	pages_load(skel);
	skel->rodata->huge_order =
		leftout_is("mem_huge_alloc") || !pages_tell_frames() ? 0 : hugefaults_order();
	bpf_program__set_autoload(skel->progs.mem_huge_alloc, skel->rodata->huge_order);
	programs_keep_still(skel->obj);
	sampling_configure(skel->obj, c, kinds, SAMPLING_SETTINGS(skel));
	err = sampling_load(skel->skeleton, c);
	if (err)
		mem_bpf__destroy(skel);
	else
		*(struct mem_bpf **)out = skel;
	return err;
}

static int mem_open(const struct family_config *c, void **state, struct bpf_object **obj,
		    struct err *e)
{
	struct mem_bpf *skel = NULL;
	struct mem *m;
	int err = sampling_tries(mem_load, c, OPTIONAL, &skel);

	if (err)
		return load_error(err, "mem", e);
	m = mem_alloc(sizeof(*m));
	m->skel = skel;
	m->watches = c->bucket_s >= FAMILY_ALWAYS_S;
	pressure_open(&m->pressure);
	m->major = major_new();
	hugefaults_open(&m->hugefaults, !m->watches, m->watches ? RATE_ALWAYS : RATE);
	period_init(&m->period, opts.period, m->watches ? RATE_ALWAYS : RATE,
		    m->watches ? LEAST_ALWAYS : PERIOD_MIN);
	period_init(&m->major_period, 0, m->watches ? MAJORS_ALWAYS : MAJORS, 1);
	*state = m;
	*obj = skel->obj;
	return 0;
}

/* A kernel that lacks one of them (compaction and cgroups can be left out of it) has the others. */
static void stalls_attach(struct mem *m)
{
	static const char *const hooks[] = {"mm_vmscan_direct_reclaim", "mm_vmscan_memcg_reclaim",
					    "mm_compaction"};
	struct bpf_program *begin = programs_used(m->skel->obj, m->skel->progs.mem_stall_begin),
			   *end = programs_used(m->skel->obj, m->skel->progs.mem_stall_end);
	char name[64];

	if (bpf_program__fd(begin) < 0 || bpf_program__fd(end) < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(hooks); i++) {
		struct bpf_link **link = &m->links[STALL_LINKS + 2 * i];

		snprintf(name, sizeof(name), "%s_end", hooks[i]);
		link[0] = bpf_program__attach_raw_tracepoint(end, name);
		snprintf(name, sizeof(name), "%s_begin", hooks[i]);
		if (link[0])
			link[1] = bpf_program__attach_raw_tracepoint(begin, name);
		if (!link[1])
			log_warn(
				"this kernel has no tracepoint %s: waits for memory there are not seen",
				name);
	}
}

static void sleeps_detach(struct mem *m)
{
	for (size_t i = 0; i < SLEEP_LINKS; i++) {
		bpf_link__destroy(m->sleeps[i]);
		m->sleeps[i] = NULL;
	}
}

/* Of sleeps that were going on when they were detached nothing is known. */
static void sleeps_forget(const struct mem *m)
{
	int fd = bpf_map__fd(m->skel->maps.sleeps);
	uint32_t tid;

	while (!bpf_map_get_next_key(fd, NULL, &tid) && !bpf_map_delete_elem(fd, &tid))
		;
	m->skel->bss->sleepers = 0;
}

static void sleeps_attach(struct mem *m)
{
	struct bpf_program *const of[SLEEP_LINKS] = {
		programs_used(m->skel->obj, m->skel->progs.mem_sleep_end),
		m->skel->progs.mem_sleep_switch};
	struct err e = {0};

	sleeps_forget(m);
	for (size_t i = 0; i < SLEEP_LINKS && !m->sleepless; i++)
		m->sleepless = sampling_attach(of[i], &m->sleeps[i], &e);
	if (!m->sleepless)
		return;
	sleeps_detach(m);
	log_warn("%s: waits for memory that comes back from swap are not seen", e.what);
}

static void sleeps_follow(struct mem *m)
{
	bool wanted =
		m->pressure.fd >= 0 && (!m->watches || pressure_is(&m->pressure, clock_boot_ns()));

	if (wanted && !m->sleeps[1] && !m->sleepless)
		sleeps_attach(m);
	else if (!wanted && m->sleeps[1])
		sleeps_detach(m);
}

/* The free first: what is taken is seen to come back. Without it the rest is recorded. */
static void pages_attach(struct mem *m)
{
	struct mem_bpf__bss *v = m->skel->bss;
	const struct hostpages_program program = {.base = &v->pages_base,
						  .seen = &v->pages_seen,
						  .taken = &v->pages_taken,
						  .level = &v->pages_level,
						  .tid = &v->pages_tid,
						  .live_fd = bpf_map__fd(m->skel->maps.live)};
	struct bpf_program *const of[] = {
		programs_used(m->skel->obj, m->skel->progs.mem_page_free),
		programs_used(m->skel->obj, m->skel->progs.mem_page_alloc)};
	struct err e = {0};
	int err = 0;

	if (!m->skel->rodata->pages_groups) {
		if (opts.pages)
			log_warn(
				"pages of the kernel are not recorded: /proc/kpageflags cannot be read, or a program was refused");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(of) && !err; i++)
		err = sampling_attach(of[i], &m->links[PAGE_LINKS + i], &e);
	if (!err)
		m->pages = hostpages_new(&program, m->skel->rodata->pages_groups,
					 m->skel->rodata->pages_shift,
					 opts.interval_ns ? opts.interval_ns :
					 m->watches       ? INTERVAL_ALWAYS :
							    INTERVAL_NS,
					 &e);
	if (!m->pages)
		log_warn("%s", e.what);
}

/* The rest is recorded without them. */
static void majors_attach(struct mem *m)
{
	int vma = bpf_program__fd(m->skel->progs.mem_major_vma),
	    fd = vma >= 0 ? vma : bpf_program__fd(m->skel->progs.mem_major);
	struct err e = {0};

	if (fd >= 0 &&
	    sampler_start_faults(&m->majors, period_next(&m->major_period, 0, clock_boot_ns()),
				 true, fd, &e))
		log_warn("%s: page faults that read a file or swap are not recorded", e.what);
}

static void huge_follow(struct mem *m)
{
	struct bpf_program *prog = programs_used(m->skel->obj, m->skel->progs.mem_huge_alloc);
	struct hugefaults *x = &m->hugefaults;
	struct err e = {0};

	m->huge_apart = bpf_program__fd(prog) >= 0 && !m->hugeless;
	if (!m->huge_apart)
		return;
	hugefaults_tick(x, __atomic_load_n(&m->skel->bss->huge_seen, __ATOMIC_RELAXED),
			clock_boot_ns());
	m->skel->data->huge_every = x->every;
	m->skel->data->huge_turns = x->turns;
	if (x->on == (m->huge != NULL))
		return;
	if (!x->on) {
		bpf_link__destroy(m->huge);
		m->huge = NULL;
	} else if (sampling_attach(prog, &m->huge, &e)) {
		log_warn("%s: few of the faults that bring huge pages are seen", e.what);
		m->hugeless = true;
	}
}

static int mem_attach(void *state, struct err *e)
{
	struct mem *m = state;
	int vma = bpf_program__fd(m->skel->progs.mem_fault_vma),
	    err = sampling_attach(m->skel->progs.mem_fork, &m->links[0], e);

	stalls_attach(m);
	sleeps_follow(m);
	huge_follow(m);
	pages_attach(m);
	majors_attach(m);
	if (!err)
		err = sampling_attach(programs_used(m->skel->obj, m->skel->progs.mem_victim),
				      &m->links[3], e);

	if (!err)
		err = sampling_attach(m->skel->progs.mem_exit, &m->links[1], e);
	if (!err)
		err = sampling_attach(programs_used(m->skel->obj, m->skel->progs.mem_mapped),
				      &m->links[2], e);
	if (!err)
		err = sampler_start_faults(
			&m->sampler, period_next(&m->period, 0, clock_boot_ns()), false,
			vma >= 0 ? vma : bpf_program__fd(m->skel->progs.mem_fault), e);
	return err;
}

/* ---- while it records ---- */

static void mem_tick(void *state)
{
	struct mem *m = state;
	struct sample_tally sum = sampling_sum(m->skel->maps.tally);
	const bool asks = !m->watches || m->ticks++ % CPUS_NTH == 0;
	uint64_t outside = 0;

	if (asks)
		sampler_tick(&m->sampler);
	sleeps_follow(m);
	huge_follow(m);
	if (m->pages)
		hostpages_tick(m->pages, clock_boot_ns());
	percpu_sum(bpf_map__fd(m->skel->maps.outside), &outside, sizeof(outside));
	sampler_set_period(&m->sampler,
			   period_next(&m->period, sum.seen + outside / OUTSIDE, clock_boot_ns()));
	if (!m->majors.cpus)
		return;
	if (asks)
		sampler_tick(&m->majors);
	sampler_set_period(&m->majors,
			   period_next(&m->major_period,
				       __atomic_load_n(&m->skel->bss->majors, __ATOMIC_RELAXED),
				       clock_boot_ns()));
}

/* The programs' periods follow at the next tick. Of a process pages are looked at as often as ever:
 * what it holds is said by the minute. */
static void mem_reduce(void *state, uint32_t step)
{
	struct mem *m = state;

	period_reduce(&m->period, step);
	period_reduce(&m->major_period, step);
	period_reduce(&m->hugefaults.period, step);
}

static struct held *held_of(struct mem *m, const struct family_host *h)
{
	const bool always = h->bucket_s >= FAMILY_ALWAYS_S;

	if (!m->held)
		m->held = held_new(opts.interval_ns ? opts.interval_ns :
				   always           ? INTERVAL_ALWAYS :
						      INTERVAL_NS,
				   always ? HELD_PAGES_ALWAYS : HELD_PAGES);
	return m->held;
}

static void mem_poll(void *state, struct family_host *h, int64_t now_ns)
{
	struct mem *m = state;

	held_huge(held_of(m, h),
		  !m->huge_apart ||
			  hugefaults_met(&m->hugefaults, __atomic_load_n(&m->skel->bss->huge_seen,
									 __ATOMIC_RELAXED)));
	held_poll(held_of(m, h), h, now_ns);
	if (m->pages)
		hostpages_poll(m->pages, h, now_ns);
}

static void mem_store_record(void *state, struct family_host *h, const struct stack_event *record,
			     size_t size, struct naming_result *named)
{
	struct mem *m = state;

	if (record && record->end == MEM_RECORD_MAPPED)
		held_mapped(held_of(state, h), (const struct mem_mapped *)record);
	else if (record && record->end == MEM_RECORD_VICTIM)
		held_victim(held_of(state, h), h, (const struct mem_victim *)record);
	else if (record && record->end == MEM_RECORD_FILE)
		major_note(m->major, (const struct mem_file *)record);
	else if (record && record->end == MEM_RECORD_SERVES)
		stall_note(&m->notes, (const struct mem_serves *)record);
	else if (record && MEM_IS_STALL(record->tag))
		stall_store(&m->notes, h, record, named);
	else if (record && MEM_IS_FRAME(record->tag) && m->pages)
		hostpages_sample(m->pages, record, size);
	else if (record && MEM_IS_FRAME(record->tag))
		;
	else if (record && MEM_IS_MAJOR(record->tag))
		major_store(m->major, &m->notes, h, record, named);
	else if (record)
		held_sample(held_of(state, h), h, record, size, m->huge_apart, named);
}

static int mem_ring_fd(void *state)
{
	return bpf_map__fd(((struct mem *)state)->skel->maps.events);
}

static int mem_late_fd(void *state)
{
	return bpf_map__fd(((struct mem *)state)->skel->maps.late);
}

/* One record is one sample, if its counts and its size agree; it represents `period` faults. Of a
 * process that is being killed a note is taken at once: what it has left is not what it held. */
static int mem_record_amount(void *state, const void *record, size_t size, uint64_t *n)
{
	const struct stack_event *ev = record;
	struct mem *m = state;

	if (!sampling_fits(ev, size))
		return -EBADMSG;
	if (ev->end == MEM_RECORD_MAPPED) {
		*n = 0;
		return size < sizeof(struct mem_mapped) ? -EBADMSG : 0;
	}
	if (ev->end == MEM_RECORD_SERVES || ev->end == MEM_RECORD_FILE) {
		*n = 0;
		return size < (ev->end == MEM_RECORD_FILE ? sizeof(struct mem_file) :
							    sizeof(struct mem_serves)) ?
			       -EBADMSG :
			       0;
	}
	if (ev->end == MEM_RECORD_VICTIM) {
		const struct mem_victim *v = record;

		*n = 0;
		if (size < sizeof(*v))
			return -EBADMSG;
		if (m->held)
			held_dying(m->held, v);
		return 0;
	}
	*n = MEM_IS_STALL(ev->tag) ? MEM_STALL_N(ev->tag) :
	     MEM_IS_HUGE(ev->tag)  ? 0 :
				     MEM_PERIOD(ev->tag);
	return 0;
}

static uint64_t mem_period_ns(void *state)
{
	(void)state;
	return 0; /* values are themselves */
}

static const char *mem_clock(void *state)
{
	(void)state;
	return "page faults";
}

static void mem_tally(void *state, struct family_tally *out)
{
	const struct mem_bpf *skel = ((struct mem *)state)->skel;

	sampling_tally(skel->maps.tally, out);
	out->missed_apart = programs_missed(skel->obj, skel->progs.mem_page_alloc) +
			    programs_missed(skel->obj, skel->progs.mem_page_free);
}

static uint64_t mem_seen(void *state)
{
	return sampling_sum(((struct mem *)state)->skel->maps.tally).seen;
}

/* ---- end ---- */

static void links_detach(struct mem *m, bool pages_too)
{
	for (int i = LINKS - 1; i >= 0; i--) {
		if (i == PAGE_LINKS && !pages_too)
			continue;
		bpf_link__destroy(m->links[i]);
		m->links[i] = NULL;
	}
}

static void mem_detach(void *state)
{
	struct mem *m = state;

	sampler_stop(&m->sampler);
	sampler_stop(&m->majors);
	sleeps_detach(m);
	bpf_link__destroy(m->huge);
	m->huge = NULL;
	links_detach(m, true);
}

/* Pages that are freed are seen until the last reading: one that was not would look as if it were
 * still in use. */
static void mem_last_read(void *state, struct family_host *h, int64_t patience_ns)
{
	struct mem *m = state;

	links_detach(m, false);
	if (m->pages)
		hostpages_finish(m->pages, h);
	mem_detach(m);
	held_finish(held_of(state, h), h, clock_boot_ns() + patience_ns);
}

static void mem_close(void *state)
{
	struct mem *m = state;

	mem_detach(m);
	held_free(m->held);
	major_free(m->major);
	hostpages_free(m->pages);
	pressure_close(&m->pressure);
	hugefaults_close(&m->hugefaults);
	mem_bpf__destroy(m->skel);
	free(m);
}

static void mem_check(struct check *c, uint32_t freq)
{
	struct err e = {0};

	(void)freq;
	if (sampler_probe_faults(&e))
		check_add_err(c, "page faults", &e);
	else
		check_add(c, "page faults", CHECK_OK, NULL, "counted by the kernel");
	if (pages_tell_frames())
		check_add(
			c, "page frames", CHECK_OK, NULL,
			"the kernel says which frame a page is in: huge pages are known, and --pages works");
	else
		check_add(
			c, "page frames", CHECK_WARN, "sudo sonde record --families mem",
			"the kernel does not say which frame a page is in (that takes CAP_SYS_ADMIN): huge pages count as small ones, and --pages does not work");
}

static const struct family mem_family = {
	.name = "mem",
	.summary = "sample the page faults of all processes: which code makes memory grow",
	.options = {mem_options, &opts},
	.rests = true,
	.open = mem_open,
	.attach = mem_attach,
	.poll = mem_poll,
	.last_read = mem_last_read,
	.tick = mem_tick,
	.ring_fd = mem_ring_fd,
	.late_fd = mem_late_fd,
	.record_amount = mem_record_amount,
	.store_record = mem_store_record,
	.period_ns = mem_period_ns,
	.clock = mem_clock,
	.tally = mem_tally,
	.seen = mem_seen,
	.reduce = mem_reduce,
	.detach = mem_detach,
	.close = mem_close,
	.check = mem_check,
};

int main(int argc, char **argv)
{
	return family_main(&mem_family, argc, argv);
}
