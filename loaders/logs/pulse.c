/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/logs/pulse.h"

#include "schema/base/clock.h"

#define USUAL_S 600.0
#define LEAST_S 60.0 /* before its usual rate is known */

void pulse_lines(struct pulse *p, uint64_t lines, uint64_t errors, bool bursts)
{
	p->lines += lines;
	p->errors += errors;
	p->bursts = p->bursts || bursts;
}

void pulse_hit(struct pulse *p, uint32_t pattern, uint64_t messages)
{
	if (messages <= p->most)
		return;
	p->most = messages;
	p->pattern = pattern;
}

/* Is it so now, and was not a while ago? */
static bool begins(bool now, int64_t *last_ns, int64_t now_ns)
{
	bool tell = now && (!*last_ns || now_ns - *last_ns > PULSE_AGAIN_NS);

	if (now)
		*last_ns = now_ns;
	return tell;
}

unsigned int pulse_beat(struct pulse *p, int64_t now_ns)
{
	double seconds = p->since_ns ? (double)(now_ns - p->since_ns) / NSEC_PER_SEC : 0;
	bool many = p->errors >= PULSE_ERRORS && p->known_s >= LEAST_S &&
		    (double)p->errors >= PULSE_TIMES * p->usual * seconds;
	unsigned int tells = 0;

	if (begins(p->bursts, &p->burst_ns, now_ns))
		tells |= PULSE_BURST;
	if (begins(many, &p->errors_ns, now_ns))
		tells |= PULSE_OF_ERRORS;
	if (seconds > 0) {
		double weight = seconds < USUAL_S ? seconds / USUAL_S : 1;

		p->usual += ((double)p->errors / seconds - p->usual) * weight;
	}
	p->known_s += seconds;
	p->since_ns = now_ns;
	return tells;
}

void pulse_clear(struct pulse *p)
{
	p->lines = p->errors = p->most = 0;
	p->pattern = 0;
	p->bursts = false;
}
