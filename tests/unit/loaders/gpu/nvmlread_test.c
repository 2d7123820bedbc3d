/* SPDX-License-Identifier: Apache-2.0 */
/* nvmlread: sums of NVML's samples, second by second, exact to the microsecond; failures; processes
 * that start and end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/gpu/gpuparse.h"
#include "loaders/gpu/nvmlread.h"
#include "schema/facts/gpu.h"
#include "tests/unit/test.h"

#define S 1000000000ll

/* The tests' own NVML: one device, or two. */
static struct fake {
	unsigned int devices, gpu[2];
	int fails, samples_fail;
	unsigned long long energy, newest_us;
	unsigned int pid[4], sm[4], listed, used;
} fake;
static char handles[2];

static int f_count(unsigned int *n)
{
	*n = fake.devices;
	return 0;
}
static int f_handle(unsigned int i, nvml_device *out)
{
	*out = &handles[i];
	return 0;
}
static int f_uuid(nvml_device d, char *out, unsigned int n)
{
	snprintf(out, n, "GPU-%d", (int)((char *)d - handles));
	return 0;
}
static int f_rates(nvml_device d, struct nvml_rates *r)
{
	r->gpu = fake.gpu[(char *)d - handles];
	r->memory = 1;
	return fake.fails ? 999 : 0;
}
static int f_energy(nvml_device d, unsigned long long *mj)
{
	(void)d;
	*mj = fake.energy;
	return fake.fails ? 999 : 0;
}

static int f_samples(nvml_device d, int kind, unsigned long long last, int *type, unsigned int *n,
		     struct nvml_sample *out)
{
	if (fake.samples_fail || kind != NVML_SAMPLES_GPU)
		return NVML_NOT_SUPPORTED;
	*type = NVML_VALUE_UINT;
	*n = 3; /* one of before, two new ones */
	out[0] = (struct nvml_sample){.us = last, .value.uint = 100};
	out[1] = (struct nvml_sample){.us = ++fake.newest_us,
				      .value.uint = fake.gpu[(char *)d - handles] - 10};
	out[2] = (struct nvml_sample){.us = ++fake.newest_us,
				      .value.uint = fake.gpu[(char *)d - handles] + 10};
	return 0;
}

static int f_compute(nvml_device d, unsigned int *n, struct nvml_process *out)
{
	if (fake.fails)
		return 999;
	*n = d == &handles[0] ? fake.listed : 0;
	for (unsigned int i = 0; i < *n; i++)
		out[i] = (struct nvml_process){.pid = fake.pid[i], .memory = 1000 + i};
	return 0;
}

static int f_use(nvml_device d, struct nvml_use *out, unsigned int *n, unsigned long long last)
{
	if (fake.fails)
		return 999;
	*n = d == &handles[0] ? fake.used : 0;
	for (unsigned int i = 0; i < *n; i++)
		out[i] = (struct nvml_use){.pid = fake.pid[i], .us = last + 1, .sm = fake.sm[i]};
	return *n ? 0 : NVML_NOT_FOUND;
}

static const struct nvmlapi API = {.count = f_count,
				   .handle = f_handle,
				   .uuid = f_uuid,
				   .rates = f_rates,
				   .energy = f_energy,
				   .samples = f_samples,
				   .compute = f_compute,
				   .use = f_use};

static struct nvmlread *begin(unsigned int devices)
{
	struct nvmlread *r = nvmlread_new(&API);

	fake = (struct fake){.devices = devices, .gpu = {50, 20}, .energy = 5000};
	assert_int_equal(nvmlread_look(r), devices);
	return r;
}

/* What it says, read back: device `nth`. */
static struct gpuparse_device *said(struct nvmlread *r, int64_t now_ns, int nth)
{
	static struct gpuparse_device d;
	char text[8192] = "", *at = text;
	size_t block, len;
	int saved = dup(STDOUT_FILENO);
	FILE *f = tmpfile();

	fflush(stdout);
	dup2(fileno(f), STDOUT_FILENO);
	nvmlread_say(r, now_ns);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	rewind(f);
	len = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	for (int i = 0; i <= nth; i++) {
		assert_int_equal(gpuparse_next(at, len - (size_t)(at - text), &block),
				 GPUPARSE_DEVICE);
		assert_true(gpuparse_device(at, block, &d));
		at += block;
	}
	return &d;
}

static int64_t busy(const struct gpuparse_device *d)
{
	return fact_has(&d->row, GPU_BUSY) ? d->row.v[GPU_BUSY].number : -1;
}

TEST(percent_times_time_is_summed_for_each_device_by_itself)
{
	struct nvmlread *r = begin(2);

	for (int64_t s = 1; s <= 4; s++)
		nvmlread_sample(r, s * S);
	assert_int_equal(busy(said(r, 4 * S, 0)),
			 1500000); /* three seconds at 50 %: the mean of the new samples */
	assert_int_equal(busy(said(r, 4 * S, 1)), -1); /* reported above already: nothing new */
	nvmlread_sample(r, 5 * S);
	assert_int_equal(busy(said(r, 5 * S, 1)), 800000);
	nvmlread_free(r);
}

TEST(where_the_driver_keeps_no_samples_what_it_says_of_the_moment_holds)
{
	struct nvmlread *r = begin(1);

	fake.samples_fail = 1;
	nvmlread_sample(r, 1 * S);
	fake.gpu[0] = 30;
	nvmlread_sample(r, 2 * S);
	assert_int_equal(busy(said(r, 2 * S, 0)), 300000);
	nvmlread_free(r);
}

TEST(time_in_which_nothing_was_told_is_in_no_sum)
{
	struct nvmlread *r = begin(1);

	nvmlread_sample(r, 1 * S);
	assert_int_equal(busy(said(r, 1 * S, 0)), 0);
	fake.fails = fake.samples_fail = 1;
	nvmlread_sample(r, 2 * S);
	nvmlread_sample(r, 3 * S);
	assert_int_equal(busy(said(r, 3 * S, 0)), -1);
	fake.fails = fake.samples_fail = 0;
	nvmlread_sample(r, 4 * S);
	assert_int_equal(busy(said(r, 4 * S, 0)), 500000);
	nvmlread_sample(r, 400 * S); /* the host slept */
	assert_int_equal(busy(said(r, 400 * S, 0)), 500000);
	nvmlread_free(r);
}

TEST(a_counter_of_the_drivers_begins_at_0_and_goes_on_where_it_is_reset)
{
	struct nvmlread *r = begin(1);
	struct gpuparse_device *d;

	d = said(r, 1 * S, 0);
	assert_int_equal(d->row.v[GPU_ENERGY].number, 0);
	fake.energy = 5300;
	assert_int_equal(said(r, 2 * S, 0)->row.v[GPU_ENERGY].number, 300);
	fake.energy = 10;
	assert_int_equal(said(r, 3 * S, 0)->row.v[GPU_ENERGY].number, 300);
	fake.energy = 60;
	assert_int_equal(said(r, 4 * S, 0)->row.v[GPU_ENERGY].number, 350);
	nvmlread_free(r);
}

TEST(a_process_is_summed_said_once_more_when_it_is_gone_and_then_another_one)
{
	struct nvmlread *r = begin(1);
	struct gpuparse_device *d;

	fake.pid[0] = 7;
	fake.pid[1] = 8;
	fake.sm[0] = 40;
	fake.listed = 2;
	fake.used = 1; /* 8 does nothing */
	nvmlread_sample(r, 1 * S);
	nvmlread_sample(r, 2 * S);
	d = said(r, 2 * S, 0);
	assert_int_equal(d->n, 2);
	assert_int_equal(d->processes[0].pid, 7);
	assert_int_equal(d->processes[0].row.v[GPU_PROCESS_MEM].number, 1000);
	assert_int_equal(d->processes[0].row.v[GPU_PROCESS_BUSY].number, 400000);
	assert_true(fact_has(&d->processes[1].row, GPU_PROCESS_BUSY));
	assert_int_equal(d->processes[1].row.v[GPU_PROCESS_BUSY].number, 0);
	fake.listed = 0;
	nvmlread_sample(r, 3 * S);
	d = said(r, 3 * S, 0);
	assert_int_equal(d->n, 2);
	assert_false(fact_has(&d->processes[0].row, GPU_PROCESS_MEM));
	assert_int_equal(d->processes[0].row.v[GPU_PROCESS_BUSY].number, 800000);
	fake.used = 0;
	assert_int_equal(said(r, 3 * S, 0)->n, 0);
	fake.listed = 1;
	nvmlread_sample(r, 4 * S);
	d = said(r, 4 * S, 0);
	assert_int_equal(d->n, 1);
	assert_int_equal(d->processes[0].nth, 3);
	assert_int_equal(d->processes[0].row.v[GPU_PROCESS_BUSY].number, 0);
	nvmlread_free(r);
}

TEST(a_list_that_cannot_be_read_ends_no_process)
{
	struct nvmlread *r = begin(1);

	fake.pid[0] = 7;
	fake.listed = 1;
	nvmlread_sample(r, 1 * S);
	fake.fails = 1;
	nvmlread_sample(r, 2 * S);
	assert_int_equal(said(r, 2 * S, 0)->n, 1);
	assert_int_equal(said(r, 2 * S, 0)->n, 1);
	nvmlread_free(r);
}
