/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-java: what Java programs (HotSpot) allocate, which monitors they wait for, and which
 * exceptions they make, by stack, from the flight recorder that each machine has. It loads no BPF
 * program; only with --tls on it puts code into another process, the agent of loaders/java/agent.
 * This file is the family's translation between the common loop of loaders/lib/bpf and the programs
 * that are recorded.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/java/agentjar.h"
#include "loaders/java/javaprocs.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/start/check.h"
#include "loaders/lib/bpf/start/preflight.h"
#include "loaders/lib/host/names/rules.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define INTERVAL_RECORD_NS (5 * NSEC_PER_SEC)
#define INTERVAL_ALWAYS_NS (10 * NSEC_PER_SEC)
#define INTERVAL_MIN_NS    NSEC_PER_SEC
#define LAST_NS            (3 * NSEC_PER_SEC)

enum tls_mode { TLS_OFF, TLS_ON, TLS_ONLY };

static struct java_opts {
	const char *choose, *record_dir, *tls_dir;
	int64_t interval_ns; /* 0: by the store's time step */
	int tls;             /* enum tls_mode */
} opts = {.record_dir = JHELPER_DIR, .tls_dir = JHELPER_TLS_DIR};

struct java {
	struct jhelper helper, tls;
	struct subreader reader;
	struct javaprocs *programs; /* NULL: not begun */
	struct err unchosen;        /* why no program is chosen; a check of the host needs none */
};

static const struct option java_options[] = {
	{"choose", 0, OPTION_STRING, "RULES",
	 "which Java programs: container:, image:, command:, user: or unit: with a pattern each",
	 OPTION_AT(struct java_opts, choose)},
	{"interval", 0, OPTION_DURATION, "TIME",
	 "time between readings of a program (default 5s, with --bucket 10s 10s)",
	 OPTION_AT(struct java_opts, interval_ns), .min = INTERVAL_MIN_NS},
	{"tls", 0, OPTION_ENUM, "off|on|only",
	 "load an agent that shows the requests inside their TLS to family l7 (default off); only: and record nothing else",
	 OPTION_AT(struct java_opts, tls)},
	{"tls-dir", 0, OPTION_STRING, "DIR",
	 "where programs with such an agent are noted (default " JHELPER_TLS_DIR ")",
	 OPTION_AT(struct java_opts, tls_dir)},
	{"record-dir", 0, OPTION_STRING, "DIR",
	 "where programs that are recorded are noted (default " JHELPER_DIR ")",
	 OPTION_AT(struct java_opts, record_dir)},
	{0}};

static int java_rights(const char *prog, struct err *e)
{
	return preflight_clock(prog, e);
}

static int chosen(const struct family_target *t, struct err *e)
{
	if (opts.choose && rules_check(opts.choose))
		return err_set(
			e, -EINVAL, EXIT_USAGE,
			"--choose %.80s is not a list of container:, image:, command:, user: or unit: with a pattern each",
			opts.choose);
	if (opts.choose || t->n_pids || t->n_cgroups || t->n_comms)
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE,
		"family java records only the Java programs that you choose: it makes them record themselves, of which something stays until they end");
	err_fix(e,
		"sudo sonde record --families java --container NAME    or, for sonded, in sonde.conf: java = container:NAME");
	return -EINVAL;
}

static int java_open(const struct family_config *c, void **state, struct bpf_object **obj,
		     struct err *e)
{
	struct java *j = mem_alloc(sizeof(*j));

	(void)e;
	*obj = NULL;
	*j = (struct java){.helper.fd = -1, .tls.fd = -1, .reader.sock = -1};
	(void)chosen(c->target, &j->unchosen);
	*state = j;
	return 0;
}

/* Both are forked here: before the loader gives up starting processes. */
static int java_attach(void *state, struct err *e)
{
	struct java *j = state;
	int rc;

	if (j->unchosen.what[0]) {
		*e = j->unchosen;
		return -EINVAL;
	}
	rc = jfrread_open(&j->reader);
	if (rc)
		return err_set(e, rc, EXIT_RUNTIME, "cannot start a process that reads: %s",
			       strerror(-rc));
	rc = jhelper_open(&j->helper, opts.record_dir, false, e);
	return rc || !opts.tls ? rc : jhelper_open(&j->tls, opts.tls_dir, true, e);
}

static void begin(struct java *j, const struct family_host *h)
{
	const struct javaprocs_opts o = {.helper = &j->helper,
					 .reader = &j->reader,
					 .tls = opts.tls ? &j->tls : NULL,
					 .tls_only = opts.tls == TLS_ONLY,
					 .choose = opts.choose,
					 .interval_ns = opts.interval_ns ? opts.interval_ns :
							h->bucket_s > 1  ? INTERVAL_ALWAYS_NS :
									   INTERVAL_RECORD_NS};

	if (!j->programs)
		j->programs = javaprocs_new(&o);
}

static void java_poll(void *state, struct family_host *h, int64_t now_ns)
{
	struct java *j = state;

	begin(j, h);
	javaprocs_poll(j->programs, h, now_ns);
}

static void java_last_read(void *state, struct family_host *h, int64_t patience_ns)
{
	struct java *j = state;

	/* a machine that was attached to a moment ago has yet to load classes for the stop */
	if (j->programs)
		javaprocs_finish(j->programs, h,
				 clock_boot_ns() + (patience_ns > LAST_NS ? patience_ns : LAST_NS));
}

static uint64_t java_period_ns(void *state)
{
	(void)state;
	return 0; /* values are themselves */
}

static const char *java_clock(void *state)
{
	(void)state;
	return "Java's flight recorder";
}

static void java_tally(void *state, struct family_tally *out)
{
	const struct java *j = state;

	*out = (struct family_tally){.helper = (uint32_t)j->helper.pid,
				     .helper_cpu_ns =
					     jhelper_cpu_ns(&j->helper) + jhelper_cpu_ns(&j->tls) +
					     (j->programs ? javaprocs_read_ns(j->programs) : 0)};
}

static void java_detach(void *state)
{
	struct java *j = state;

	javaprocs_free(j->programs);
	j->programs = NULL;
	jhelper_close(&j->helper);
	jhelper_close(&j->tls);
}

static void java_close(void *state)
{
	struct java *j = state;

	java_detach(j);
	subreader_close(&j->reader);
	free(j);
}

static void java_check(struct check *c, uint32_t freq)
{
	(void)freq;
	if (!preflight_has(CAP_SETUID) || !preflight_has(CAP_SETGID) ||
	    !preflight_has(CAP_SYS_PTRACE))
		check_add(
			c, "java", CHECK_WARN,
			geteuid() ? "run it as root" : "cap_add: [SETUID, SETGID, SYS_PTRACE]",
			"no CAP_SETUID, CAP_SETGID or CAP_SYS_PTRACE: only Java programs of this user can be recorded");
	else
		check_add(c, "java", CHECK_OK, NULL,
			  "Java programs of all users can be recorded, those that you choose");
	if (agentjar_size())
		check_add(c, "java, TLS", CHECK_OK, NULL,
			  "the requests inside Java's own TLS can be read, with --tls on");
	else
		check_add(
			c, "java, TLS", CHECK_WARN, NULL,
			"this build has no agent, because there was no JDK (javac and jar): the requests inside Java's own TLS are not read");
	check_add(
		c, "java, what stays", CHECK_OK, NULL,
		"a Java program that was recorded keeps four threads, 17 to 49 MB of memory, a socket and an empty folder in its /tmp until it ends");
}

static const struct family java_family = {
	.name = "java",
	.summary =
		"record what chosen Java programs allocate, wait for and throw, by their flight recorder",
	.options = {java_options, &opts},
	.rights = java_rights,
	.open = java_open,
	.attach = java_attach,
	.poll = java_poll,
	.last_read = java_last_read,
	.period_ns = java_period_ns,
	.clock = java_clock,
	.tally = java_tally,
	.detach = java_detach,
	.close = java_close,
	.check = java_check,
};

int main(int argc, char **argv)
{
	return family_main(&java_family, argc, argv);
}
