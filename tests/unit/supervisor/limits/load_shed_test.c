/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load_shed: over a limit the dear family does less, step by step, before anything stops; under it
 * what is worth most comes back first, and what would be over the limit again stays away. Played on
 * traces: what each family takes at each step, look by look, as it was measured on real hosts.
 */
#include <stdio.h>
#include <string.h>

#include "supervisor/limits/load_limit.h"
#include "supervisor/limits/load_shed.h"
#include "tests/unit/test.h"

#define S      1000000000ll
#define LOOK_S 10
#define CPU    0 /* places in the lists of these tests, in the order that the user gave */
#define OFFCPU 1

struct play {
	struct shed r;
	struct load_limit g;
	struct shed_family f[FAMILIES_MAX];
	unsigned int n;
	double limit, others, switches;
	int64_t now_s;
	char said[1024]; /* "70 offcpu 1, 100 offcpu 2": second, family, its step from then on; "-":
			    it is stopped */
	unsigned int n_steps;
};

static void play_begin(struct play *p, const char *const *names, unsigned int n, double limit)
{
	*p = (struct play){.n = n, .limit = limit};
	for (unsigned int i = 0; i < n; i++)
		p->f[i] = (struct shed_family){
			.family = family_named(names[i]), .wanted = true, .settled = true};
}

static const char *const both[] = {"cpu", "offcpu"};

static void step_note(struct play *p, const struct shed_step *s)
{
	const struct probe_family *f = p->f[s->family].family;
	size_t len = strlen(p->said);
	char step[16];

	snprintf(step, sizeof(step), "%u", shed_step(&p->r, s->family, f));
	snprintf(p->said + len, sizeof(p->said) - len, "%s%lld %s %s", len ? ", " : "",
		 (long long)p->now_s, f->name, shed_stopped(&p->r, s->family, f) ? "-" : step);
	p->n_steps++;
	p->f[s->family].settled = false;
}

/* `cores`: of each family at each step; one that is stopped takes nothing. */
static void play_look(struct play *p, const double cores[][SHED_STEPS + 1])
{
	struct shed_look l = {.f = p->f,
			      .n = p->n,
			      .limit = p->limit,
			      .used = p->others,
			      .switches = p->switches,
			      .while_ns = LOAD_LIMIT_WHILE_NS};
	struct shed_step step;
	int which;

	p->now_s += LOOK_S;
	l.now_ns = p->now_s * S;
	for (unsigned int i = 0; i < p->n; i++) {
		bool stopped = shed_stopped(&p->r, i, p->f[i].family);

		p->f[i].cores = stopped || !p->f[i].wanted ?
					0 :
					cores[i][shed_step(&p->r, i, p->f[i].family)];
		l.used += p->f[i].cores;
	}
	which = load_limit_look(&p->g, l.used, l.limit, l.while_ns, l.now_ns);
	shed_note(&p->r, &l);
	for (unsigned int i = 0; i < p->n; i++)
		p->f[i].settled = true;
	if (which > 0 ? shed_more(&p->r, &l, &step) : shed_less(&p->r, &l, &step))
		step_note(p, &step);
}

static void play_for(struct play *p, int64_t seconds, const double cores[][SHED_STEPS + 1])
{
	for (int64_t s = 0; s < seconds; s += LOOK_S)
		play_look(p, cores);
}

/* off-CPU 6 %, cpu 1 %: who is dear does less, and the other goes on as it was. */
static const double dear[][SHED_STEPS + 1] = {{0.010, 0.005, 0.0025, 0.00125},
					      {0.060, 0.035, 0.022, 0.014}};

TEST(the_dear_family_does_less_and_the_cheap_one_goes_on)
{
	struct play p;

	play_begin(&p, both, 2, 0.03);
	play_for(&p, 1800, dear);
	assert_string_equal(p.said, "70 offcpu 2, 100 offcpu 3");
	assert_int_equal(shed_count(&p.r, p.f, 2, SHED_CPU), 3);
}

/* As it was found: cpu at 2 Hz, off-CPU away, 0.36 % of a core, for 29 minutes. */
TEST(what_was_slowed_is_back_within_minutes_when_there_is_room)
{
	static const double quiet[][SHED_STEPS + 1] = {{0.010, 0.005, 0.0025, 0.00125},
						       {0.009, 0.006, 0.004, 0.003}};
	struct play p;

	play_begin(&p, both, 2, 0.05);
	p.others = 0.0023;
	p.r.of[CPU].step = 3;
	p.r.of[OFFCPU].step = 4;
	p.r.of[OFFCPU].cores[3] = 0.003;
	play_for(&p, 29 * 60, quiet);
	/* cpu first, at once to its whole rate, then off-CPU */
	assert_string_equal(p.said, "70 cpu 0, 140 offcpu 0");
}

/* It takes 9 % at every step: it is stopped, and not restarted every few minutes to exceed the
 * limit again. */
TEST(what_would_break_the_limit_again_stays_away_as_long_as_the_host_switches_as_much)
{
	static const double storm[][SHED_STEPS + 1] = {{0.010, 0.005, 0.0025, 0.00125},
						       {0.12, 0.11, 0.10, 0.09}};
	static const double calm[][SHED_STEPS + 1] = {{0.010, 0.005, 0.0025, 0.00125},
						      {0.012, 0.010, 0.009, 0.008}};
	struct play p;

	play_begin(&p, both, 2, 0.03);
	p.switches = 120000;
	play_for(&p, 3600, storm);
	assert_string_equal(p.said, "70 offcpu 2, 100 offcpu 3, 130 offcpu -");
	p.switches = 12000;
	play_for(&p, 600, calm);
	assert_string_equal(p.said, "70 offcpu 2, 100 offcpu 3, 130 offcpu -, 3670 offcpu 0");
}

/* A busy host on which even the sums take a little more than the limit: they go on. */
TEST(one_that_does_as_little_as_it_can_goes_on_where_that_is_not_far_over)
{
	static const double busy[][SHED_STEPS + 1] = {{0.010, 0.005, 0.0025, 0.00125},
						      {0.063, 0.055, 0.045, 0.041}};
	struct play p;

	play_begin(&p, both, 2, 0.03);
	p.switches = 60000;
	play_for(&p, 3600, busy);
	assert_null(strstr(p.said, "offcpu -"));
	assert_int_equal(shed_step(&p.r, 1, p.f[1].family), p.f[1].family->steps);
}

/* If nothing showed in advance that it would not fit, each failure makes the next try wait longer.
 */
TEST(one_that_breaks_the_limit_each_time_comes_back_ever_more_seldom)
{
	struct play p;
	unsigned int in_hour[4];

	play_begin(&p, both, 2, 0.03);
	for (int hour = 0; hour < 4; hour++) {
		unsigned int before = p.n_steps;

		for (int i = 0; i < 360; i++) {
			/* it is forgotten what it takes: as if each time it had been another load
			 */
			static const double bad[][SHED_STEPS + 1] = {
				{0.002, 0.001, 0.0005, 0.00025}, {0.05, 0.05, 0.05, 0.05}};

			memset(p.r.of[OFFCPU].cores, 0, sizeof(p.r.of[OFFCPU].cores));
			play_look(&p, bad);
		}
		in_hour[hour] = p.n_steps - before;
	}
	assert_true(in_hour[0] > 2 * in_hour[3]);
	assert_true(in_hour[3] <= 10); /* two tries */
	assert_int_equal(p.r.of[CPU].step, 0);
}

/* Short peaks over the limit, a minute or more apart, call for nothing. */
TEST(peaks_that_do_not_last_a_minute_change_nothing)
{
	static const double low[][SHED_STEPS + 1] = {{0.005, 0, 0, 0}, {0.02, 0, 0, 0}};
	static const double high[][SHED_STEPS + 1] = {{0.005, 0, 0, 0}, {0.15, 0, 0, 0}};
	struct play p;

	play_begin(&p, both, 2, 0.03);
	for (int i = 0; i < 360; i++)
		play_look(&p, i % 7 < 4 ? high : low);
	assert_string_equal(p.said, "");
}

TEST(the_dearest_may_be_the_one_that_is_valued_most)
{
	static const double fast[][SHED_STEPS + 1] = {{0.060, 0.030, 0.015, 0.008},
						      {0.010, 0.008, 0.006, 0.005}};
	struct play p;

	play_begin(&p, both, 2, 0.03);
	play_for(&p, 1800, fast);
	assert_string_equal(p.said, "70 cpu 2");
	assert_int_equal(shed_freq(&p.r, CPU, p.f[CPU].family, 19), 4);
	assert_int_equal(shed_freq(&p.r, CPU, p.f[CPU].family, 1), 1);
}

/* The expensive family is at its last step, and the excess is no more than the others can spare. */
TEST(before_the_dear_one_is_stopped_others_do_less_where_that_is_enough)
{
	static const double tight[][SHED_STEPS + 1] = {{0.012, 0.006, 0.003, 0.0015},
						       {0.040, 0.034, 0.030, 0.022}};
	struct play p;

	play_begin(&p, both, 2, 0.03);
	play_for(&p, 1800, tight);
	assert_string_equal(p.said, "70 offcpu 1, 100 offcpu 2, 130 offcpu 3, 160 cpu 1");
}

/* As it was found at load 100: off-CPU, at its last step, took most, and cpu went to 2 Hz for a
 * third of a percent. */
TEST(what_takes_little_is_not_slowed_to_next_to_nothing_for_one_that_takes_most)
{
	static const double load[][SHED_STEPS + 1] = {{0.012, 0.0085, 0.0075, 0.007},
						      {0.060, 0.035, 0.025, 0.0235}};
	struct play p;

	play_begin(&p, both, 2, 0.03);
	play_for(&p, 3600, load);
	assert_string_equal(p.said, "70 offcpu 2, 100 offcpu 3, 130 cpu 1");
}

/* When the step is due, cpu has just read the names of a large file. */
TEST(which_one_takes_most_is_seen_over_the_minute_and_not_at_its_last_look)
{
	static const double steady[][SHED_STEPS + 1] = {{0.010, 0.005, 0.0025, 0.00125},
							{0.030, 0.020, 0.015, 0.010}};
	static const double burst[][SHED_STEPS + 1] = {{0.050, 0.025, 0.0125, 0.006},
						       {0.030, 0.020, 0.015, 0.010}};
	struct play p;

	play_begin(&p, both, 2, 0.035);
	for (int i = 0; i < 12; i++)
		play_look(&p, i == 6 ? burst : steady);
	assert_string_equal(p.said, "70 offcpu 2");
}

TEST(a_step_says_which_family_takes_most)
{
	struct shed_family f[] = {{family_named("cpu"), true, true, 0.010},
				  {family_named("offcpu"), true, true, 0.024}};
	struct shed_look l = {.f = f, .n = 2, .used = 0.034, .limit = 0.03, .while_ns = S};
	struct shed_step step;
	struct shed r = {0};

	shed_note(&r, &l);
	assert_true(shed_more(&r, &l, &step) && step.family == OFFCPU && step.dearest == OFFCPU);
	r.of[OFFCPU].step = f[OFFCPU].family->steps;
	shed_note(&r, &l);
	assert_true(shed_more(&r, &l, &step) && step.family == CPU && step.dearest == OFFCPU);
	assert_true(step.dearest_cores > 0.0239 && step.dearest_cores < 0.0241);
	assert_int_equal(r.of[CPU].step, 1);
}

TEST(under_a_limit_that_nothing_can_keep_the_most_valued_is_stopped_last)
{
	static const double any[][SHED_STEPS + 1] = {
		{0.02, 0.02, 0.02, 0.02}, {0.01, 0.01, 0.01, 0.01}, {0.001, 0, 0, 0}};
	static const char *const three[] = {"cpu", "offcpu", "goheap"};
	struct play p;

	play_begin(&p, three, 3, 1e-6);
	play_for(&p, 600, any);
	assert_string_equal(
		p.said,
		"70 cpu 2, 100 cpu 3, 130 offcpu 2, 160 offcpu 3, 190 offcpu -, 220 goheap -, 250 cpu -");
	p.said[0] = 0;
	p.limit = 0; /* none: all is back, look by look, what is valued most first */
	play_for(&p, 600, any);
	assert_string_equal(p.said, "610 cpu 0, 620 offcpu 0, 630 goheap 0");
	assert_int_equal(shed_count(&p.r, p.f, 3, SHED_CPU), 0);
}

TEST(one_that_nobody_wants_any_more_is_neither_slowed_nor_brought_back)
{
	struct play p;

	play_begin(&p, both, 2, 0.03);
	play_for(&p, 300, dear);
	p.f[OFFCPU].wanted = false;
	p.said[0] = 0;
	play_for(&p, 600, dear);
	assert_string_equal(p.said, "");
	assert_int_equal(shed_count(&p.r, p.f, 2, SHED_CPU), 0);
	p.f[OFFCPU].wanted = true;
	assert_int_equal(shed_count(&p.r, p.f, 2, SHED_CPU), 3);
}

TEST(memory_stops_all_but_the_first_from_the_end_and_brings_them_back_in_reverse)
{
	static const char *const three[] = {"cpu", "offcpu", "goheap"};
	struct shed_step s;
	struct play p;

	play_begin(&p, three, 3, 0.03);
	assert_true(shed_more_memory(&p.r, p.f, 3, &s) && s.family == 2 && s.stop);
	assert_true(shed_more_memory(&p.r, p.f, 3, &s) && s.family == 1);
	assert_false(shed_more_memory(&p.r, p.f, 3, &s));
	assert_int_equal(shed_count(&p.r, p.f, 3, SHED_MEMORY), 2);
	play_for(&p, 600, dear); /* each limit takes back its own */
	assert_true(shed_stopped(&p.r, 1, p.f[1].family));
	assert_true(shed_less_memory(&p.r, p.f, 3, &s) && s.family == 1);
	assert_true(shed_less_memory(&p.r, p.f, 3, &s) && s.family == 2);
	assert_false(shed_less_memory(&p.r, p.f, 3, &s));
}

TEST(no_family_has_more_steps_than_there_is_room_for)
{
	for (const struct probe_family *f = FAMILIES; f->name; f++)
		assert_true(f->steps < SHED_STEPS + 1 && (!f->has_freq || f->steps));
}
