/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/load/sampler.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "loaders/lib/bpf/load/load.h"
#include "loaders/lib/bpf/start/preflight.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

/*
 * The program decides that no perf sample is written (it returns 0), so the only records in an
 * event's buffer are those of throttling: one page is plenty. Reference:
 * include/uapi/linux/perf_event.h.
 */
#define RING_PAGES 2 /* the control page and one of data */

#define WAIT_NS 25000000 /* for the phases of all CPUs: not at the price of a late start */

static struct perf_event_attr clock_attr(bool cycles, uint32_t freq)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = cycles ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
		.config = cycles ? PERF_COUNT_HW_CPU_CYCLES : PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = freq,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
		.freq = 1,
		.disabled = 1,
		.exclude_idle = 1,
		.use_clockid = 1,
		.clockid = CLOCK_BOOTTIME,
	};
}

/* Each `period`-th page fault, or each of those that had to read, with its address. */
static struct perf_event_attr faults_attr(uint64_t period, bool major)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = major ? PERF_COUNT_SW_PAGE_FAULTS_MAJ : PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = period,
		.sample_type = PERF_SAMPLE_ADDR,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
		.disabled = 1,
		.use_clockid = 1,
		.clockid = CLOCK_BOOTTIME,
	};
}

static int event_open(const struct perf_event_attr *attr, uint32_t cpu)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int clock_open(bool cycles, uint32_t freq, uint32_t cpu)
{
	struct perf_event_attr attr = clock_attr(cycles, freq);

	return event_open(&attr, cpu);
}

static int sampler_open(const struct sampler *s, uint32_t cpu)
{
	struct perf_event_attr attr =
		s->period ? faults_attr(s->period, s->major) : clock_attr(s->cycles, s->freq);

	return event_open(&attr, cpu);
}

uint32_t sampler_allowed(uint32_t freq)
{
	int64_t limit = sysctl_kernel("perf_event_max_sample_rate", freq);

	return limit > 0 && limit < freq ? (uint32_t)limit : freq;
}

static int sampler_refused(int err, struct err *e)
{
	if (err == -EMFILE || err == -ENFILE)
		return load_error(err, "perf_event_open", e);
	if (err == -EACCES || err == -EPERM) {
		err_set(e, err, EXIT_PERMISSION,
			"cannot sample any CPU: perf_event_open: %s (kernel.perf_event_paranoid=%lld; need CAP_PERFMON)",
			strerror(-err), (long long)sysctl_kernel("perf_event_paranoid", -1));
		err_fix(e,
			"%sin a container: cap_add: [PERFMON] and a seccomp profile that allows perf_event_open",
			geteuid() ? "run it as root; " : "");
		return err;
	}
	return err_set(e, err, EXIT_PREREQUISITE,
		       "this kernel offers no such perf event: perf_event_open: %s",
		       strerror(-err));
}

static uint32_t cpu_first(void)
{
	static struct cpulist online;

	if (!cpulist_online(&online))
		for (uint32_t cpu = 0; cpu < CPULIST_MAX; cpu++)
			if (online.has[cpu])
				return cpu;
	return 0;
}

int sampler_probe(uint32_t freq, bool *cycles, struct err *e)
{
	uint32_t cpu = cpu_first();

	freq = sampler_allowed(freq);
	for (int hardware = 1; hardware >= 0; hardware--) {
		int fd = clock_open(hardware, freq, cpu);

		if (fd >= 0) {
			close(fd);
			*cycles = hardware;
			return 0;
		}
		if (fd == -EACCES || fd == -EPERM || !hardware)
			return sampler_refused(fd, e);
	}
	return 0;
}

static int cpu_start(struct sampler *s, uint32_t cpu)
{
	struct sampler_cpu *c = &s->cpus[cpu];
	void *ring;
	int fd, err;

	fd = sampler_open(s, cpu);
	if (fd < 0)
		return fd;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, s->prog_fd)) {
		err = -errno;
		close(fd);
		return err;
	}
	ring = mmap(NULL, RING_PAGES * (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
		    MAP_SHARED, fd, 0);
	*c = (struct sampler_cpu){.fd = fd, .ring = ring == MAP_FAILED ? NULL : ring};
	if (s->n_cpus <= cpu)
		s->n_cpus = cpu + 1;
	return 0;
}

static void cpu_stop(struct sampler *s, uint32_t cpu)
{
	struct sampler_cpu *c = &s->cpus[cpu];

	if (c->ring)
		munmap(c->ring, RING_PAGES * (size_t)sysconf(_SC_PAGESIZE));
	if (c->fd >= 0)
		close(c->fd); /* waits for a sample that is under way */
	if (c->throttled_at)
		s->throttled_ns += (uint64_t)clock_boot_ns() - c->throttled_at;
	*c = (struct sampler_cpu){.fd = -1};
}

/* Until the clock has that phase; on a busy host, where we wake late, a later turn of it. Not for
 * longer than WAIT_NS in all. */
static void phase_wait(int64_t begun, int64_t at, int64_t period)
{
	int64_t now;

	while (period && at < WAIT_NS) {
		clock_sleep_until(begun + at);
		now = clock_mono_ns();
		if (now - begun - at < period / 8)
			return;
		at += period;
	}
}

/*
 * Start all events, each CPU's at its own phase. Clocks that start together would always stop all
 * CPUs at the same moment, and each CPU would be seen only in the state caused by the stop of its
 * peers (a server whose client has just been stopped), all of them at the ring's lock.
 */
static int cpus_enable(struct sampler *s, uint32_t count)
{
	int64_t period = (int64_t)sampler_period_ns(s), begun = clock_mono_ns();
	uint32_t nth = 0;

	for (uint32_t cpu = 0; cpu < s->n_cpus; cpu++) {
		if (s->cpus[cpu].fd < 0)
			continue;
		phase_wait(begun, period * nth++ / count, period);
		if (ioctl(s->cpus[cpu].fd, PERF_EVENT_IOC_ENABLE, 0))
			return -errno;
	}
	return 0;
}

static int sampler_begin(struct sampler *s, struct sampler *new, struct err *e)
{
	static struct cpulist online;
	int err = cpulist_online(&online);
	uint32_t count = 0;

	if (err)
		return err_set(e, err, EXIT_RUNTIME, "cannot read which CPUs are online: %s",
			       strerror(-err));
	new->cpus = mem_array(CPULIST_MAX, sizeof(*new->cpus));
	for (uint32_t cpu = 0; cpu < CPULIST_MAX; cpu++) {
		new->cpus[cpu].fd = -1;
		if (!err && online.has[cpu]) {
			err = cpu_start(new, cpu);
			count++;
		}
	}
	if (!err)
		err = cpus_enable(new, count);
	if (err) {
		sampler_stop(new);
		return sampler_refused(err, e);
	}
	*s = *new;
	return 0;
}

int sampler_start(struct sampler *s, uint32_t freq, int prog_fd, struct err *e)
{
	struct sampler new = {.freq = sampler_allowed(freq), .prog_fd = prog_fd};
	int err = sampler_probe(freq, &new.cycles, e);

	if (err)
		return err;
	if (new.freq < freq)
		log_warn(
			"the kernel allows %u samples a second, not %u (kernel.perf_event_max_sample_rate)",
			new.freq, freq);
	return sampler_begin(s, &new, e);
}

int sampler_start_faults(struct sampler *s, uint64_t period, bool major, int prog_fd, struct err *e)
{
	struct sampler new = {.period = period, .major = major, .prog_fd = prog_fd};

	return sampler_begin(s, &new, e);
}

int sampler_probe_faults(struct err *e)
{
	const struct perf_event_attr attr = faults_attr(1 << 20, false);
	int fd = event_open(&attr, cpu_first());

	if (fd < 0)
		return sampler_refused(fd, e);
	close(fd);
	return 0;
}

void sampler_set_period(struct sampler *s, uint64_t period)
{
	if (s->period == period)
		return;
	s->period = period;
	for (uint32_t cpu = 0; cpu < s->n_cpus; cpu++)
		if (s->cpus[cpu].fd >= 0)
			ioctl(s->cpus[cpu].fd, PERF_EVENT_IOC_PERIOD, &period);
}

/* Read what the kernel says about throttling. Each record is a header, then {time, id, stream_id}.
 */
static void ring_read(struct sampler *s, struct sampler_cpu *c)
{
	struct perf_event_mmap_page *page = c->ring;
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	const uint8_t *data = (const uint8_t *)c->ring + size;
	uint64_t head, at;

	if (!page)
		return;
	head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	at = page->data_tail;
	while (at < head) {
		struct perf_event_header h;
		uint64_t time;

		memcpy(&h, data + at % size,
		       sizeof(h)); /* records are 8-aligned: a header never wraps */
		if (h.size < sizeof(h))
			break;
		memcpy(&time, data + (at + sizeof(h)) % size, sizeof(time));
		if (h.type == PERF_RECORD_THROTTLE && !c->throttled_at) {
			c->throttled_at = time;
		} else if (h.type == PERF_RECORD_UNTHROTTLE && c->throttled_at) {
			s->throttled_ns += time > c->throttled_at ? time - c->throttled_at : 0;
			c->throttled_at = 0;
		}
		at += h.size;
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}

static void cpu_come(struct sampler *s, uint32_t cpu)
{
	int err = cpu_start(s, cpu);

	if (!err && ioctl(s->cpus[cpu].fd, PERF_EVENT_IOC_ENABLE, 0)) {
		err = -errno;
		cpu_stop(s, cpu);
	}
	if (err)
		log_warn("cannot sample CPU %u: %s", cpu, strerror(-err));
	else
		log_info("CPU %u came online", cpu);
}

/*
 * When a CPU goes offline, its event dies and does not come back with the CPU. If both happen
 * between two checks, only the event's time shows it: it no longer advances.
 */
static bool cpu_dead(struct sampler_cpu *c)
{
	struct {
		uint64_t count, enabled_ns;
	} now = {0};
	bool dead =
		read(c->fd, &now, sizeof(now)) != sizeof(now) || now.enabled_ns == c->enabled_ns;

	c->enabled_ns = now.enabled_ns;
	return dead;
}

void sampler_tick(struct sampler *s)
{
	static struct cpulist online;

	if (!s->cpus || cpulist_online(&online))
		return;
	for (uint32_t cpu = 0; cpu <= online.last || cpu < s->n_cpus; cpu++) {
		if (s->cpus[cpu].fd >= 0) {
			ring_read(s, &s->cpus[cpu]);
			if (online.has[cpu] && cpu_dead(&s->cpus[cpu]))
				cpu_stop(s, cpu);
		}
		if (online.has[cpu] && s->cpus[cpu].fd < 0) {
			cpu_come(s, cpu);
		} else if (!online.has[cpu] && s->cpus[cpu].fd >= 0) {
			cpu_stop(s, cpu);
			log_info("CPU %u went offline", cpu);
		}
	}
}

uint64_t sampler_period_ns(const struct sampler *s)
{
	return s->freq ? 1000000000ull / s->freq : 0;
}

uint64_t sampler_throttled(struct sampler *s)
{
	for (uint32_t cpu = 0; cpu < s->n_cpus; cpu++)
		if (s->cpus[cpu].fd >= 0)
			ring_read(s, &s->cpus[cpu]);
	return s->freq ? s->throttled_ns / sampler_period_ns(s) : 0;
}

void sampler_stop(struct sampler *s)
{
	for (uint32_t cpu = 0; cpu < s->n_cpus; cpu++)
		if (s->cpus[cpu].fd >= 0) {
			ring_read(s, &s->cpus[cpu]);
			cpu_stop(s, cpu);
		}
	free(s->cpus);
	s->cpus = NULL;
	s->n_cpus = 0;
}
