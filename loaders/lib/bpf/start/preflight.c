/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/start/preflight.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "loaders/lib/bpf/start/check.h"
#include "loaders/lib/bpf/start/environment.h"
#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/proc/engines.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/limits/memlimit.h"
#include "schema/base/strbuf.h"
#include "schema/store/write/writer.h"

#define BTF_PATH      "/sys/kernel/btf/vmlinux"
#define LOCKDOWN_PATH "/sys/kernel/security/lockdown"
#define OFFSETS_PATH  "/proc/self/timens_offsets"
/* lines: per-CPU data comes first, a few thousand symbols at most */
#define KALLSYMS_LOOK 20000
#define STORE_ROOM                                                                    \
	(1u << 20) /* less free space counts as a full disk: no store can begin there \
		    */
#define KERNEL_HALF  (1ull << 63)
#define FILES_LEAST  256
#define MEMORY_LEAST (64u << 20)
#define FILE_LEAST   (256u << 20) /* a segment and its log, and the cache of images */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF     39
#endif

/* A small text file's first line, "" if it cannot be read. */
static void line_read(const char *path, char *line, size_t size)
{
	cleanup_file FILE *f = fopen(path, "re");

	*line = '\0';
	if (f && fgets(line, (int)size, f))
		line[strcspn(line, "\n")] = '\0';
}

int64_t sysctl_kernel(const char *name, int64_t otherwise)
{
	char path[128], line[32], *end;
	int64_t v;

	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	line_read(path, line, sizeof(line));
	v = strtoll(line, &end, 10);
	return end == line ? otherwise : v;
}

static uint64_t caps_effective(void)
{
	cleanup_file FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	uint64_t caps = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %" SCNx64, &caps) == 1)
			break;
	return caps;
}

static bool cap_has(uint64_t caps, int cap)
{
	return caps >> cap & 1;
}

bool preflight_has(int cap)
{
	return cap_has(caps_effective(), cap);
}

/* The fix where rights are missing: another one for a user who is root already. */
static const char *as_root(void)
{
	return geteuid() ?
		       "run it as root" :
		       "this root lacks capabilities; in a container: cap_add: [SYS_PTRACE, DAC_READ_SEARCH, SYSLOG], pid: host";
}

/* "Seccomp:" of /proc/self/status: 2 is a filter. */
static bool is_filtered(void)
{
	cleanup_file FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	int mode = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Seccomp: %d", &mode) == 1)
			break;
	return mode == 2;
}

static unsigned int kernel_number(struct utsname *u);

const char *preflight_refused(char *why, size_t size)
{
	enum environment here = environment_here();
	char modules[128] = "";
	struct rlimit rl = {0};
	struct utsname u;

	getrlimit(RLIMIT_MEMLOCK, &rl);
	if (environment_fix(here)) {
		snprintf(why, size, "this environment restricts eBPF");
		return environment_fix(here);
	}
	if (kernel_number(&u) < 5011 && rl.rlim_cur != RLIM_INFINITY) {
		snprintf(why, size, "RLIMIT_MEMLOCK is %llu KiB and cannot be raised",
			 (unsigned long long)(rl.rlim_cur >> 10));
		return "ulimit -l unlimited    (systemd: LimitMEMLOCK=infinity; in a container: cap_add: [SYS_RESOURCE])";
	}
	if (is_filtered()) {
		snprintf(why, size, "a seccomp filter is in force here");
		return "in a container: a seccomp profile that allows bpf and perf_event_open";
	}
	line_read("/sys/kernel/security/lsm", modules, sizeof(modules));
	snprintf(why, size,
		 "the rights are there, so the kernel itself or a security module refuses it%s%s",
		 *modules ? ": " : "", modules);
	return "sudo dmesg | grep -iE 'apparmor|avc|lockdown' names a module that refuses; with -v libbpf says what the kernel refuses";
}

/* In another user namespace than the initial one capabilities do not count, whatever /proc says. */
static int namespace_rights(struct err *e)
{
	if (environment_here() != ENVIRONMENT_GUEST)
		return 0;
	err_set(e, -EPERM, EXIT_PERMISSION,
		"this needs privileges: loading eBPF, for which rights count in the first user namespace alone (/proc/self/uid_map)");
	err_fix(e, "%s", environment_fix(ENVIRONMENT_GUEST));
	return -EPERM;
}

/* `prog`: what is typed to run it is in the advice. */
static int rights(const char *prog, struct err *e)
{
	uint64_t caps = caps_effective();
	bool admin = cap_has(caps, CAP_SYS_ADMIN);
	bool bpf = admin || cap_has(caps, CAP_BPF), perfmon = admin || cap_has(caps, CAP_PERFMON);

	if (bpf && perfmon)
		return namespace_rights(e);
	err_set(e, -EPERM, EXIT_PERMISSION,
		"this needs privileges: loading eBPF (have: %s; need CAP_BPF + CAP_PERFMON; unprivileged_bpf_disabled=%" PRId64
		")",
		bpf     ? "CAP_BPF" :
		perfmon ? "CAP_PERFMON" :
			  "neither",
		sysctl_kernel("unprivileged_bpf_disabled", -1));
	if (geteuid() == 0 && environment_here() == ENVIRONMENT_LXC)
		err_fix(e, "%s", environment_fix(ENVIRONMENT_LXC));
	else if (geteuid() == 0)
		err_fix(e,
			"in a container: cap_add: [BPF, PERFMON, SYS_PTRACE, DAC_READ_SEARCH], pid: host");
	else
		err_fix(e, strstr(prog, "pstack") ? "sudo sonde pstack ..." :
						    "sudo sonde record ...    sudo sonde up");
	return -EPERM;
}

/* As 1000 * major + minor; one that cannot be read counts as new. */
static unsigned int kernel_number(struct utsname *u)
{
	unsigned int major, minor;

	return uname(u) || sscanf(u->release, "%u.%u", &major, &minor) != 2 ? UINT_MAX :
									      1000 * major + minor;
}

static int kernel_version(struct err *e)
{
	struct utsname u;

	if (kernel_number(&u) >= 5010)
		return 0;
	err_set(e, -ENOTSUP, EXIT_PREREQUISITE, "kernel %s is too old (needs 5.10 or newer)",
		u.release);
	err_fix(e, "%s",
		environment_here() == ENVIRONMENT_GVISOR ? environment_fix(ENVIRONMENT_GVISOR) :
							   "boot a newer kernel");
	return -ENOTSUP;
}

static int type_information(struct err *e)
{
	struct utsname u;

	if (!access(BTF_PATH, R_OK))
		return 0;
	uname(&u);
	err_set(e, -ENOTSUP, EXIT_PREREQUISITE,
		"this kernel has no type information (BTF): %s is missing (kernel %s)", BTF_PATH,
		u.release);
	err_fix(e, "%s",
		environment_here() == ENVIRONMENT_WSL ?
			environment_fix(ENVIRONMENT_WSL) :
			"install a stock kernel of your distribution, built with CONFIG_DEBUG_INFO_BTF");
	return -ENOTSUP;
}

static int lockdown(struct err *e)
{
	char line[128];

	line_read(LOCKDOWN_PATH, line, sizeof(line));
	if (!strstr(line, "[confidentiality]"))
		return 0;
	err_set(e, -EPERM, EXIT_PREREQUISITE,
		"the kernel is locked down: %s = [confidentiality], which forbids eBPF reads of kernel memory",
		LOCKDOWN_PATH);
	err_fix(e, "boot with lockdown=integrity (Secure Boot can stay on)");
	return -EPERM;
}

/* Kernel events carry the kernel's boot clock: ours must be the same. */
int preflight_clock(const char *prog, struct err *e)
{
	cleanup_file FILE *f = fopen(OFFSETS_PATH, "re");
	char line[128];
	long long seconds = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "boottime %lld", &seconds) == 1)
			break;
	if (!seconds)
		return 0;
	err_set(e, -ENOTSUP, EXIT_PREREQUISITE,
		"in this time namespace the boot clock is %lld s from the kernel's (%s): all that is recorded would have wrong times",
		seconds, OFFSETS_PATH);
	err_fix(e, "nsenter --time=/proc/1/ns/time %s ... (outside of the container)", prog);
	return -ENOTSUP;
}

/* Each program, map, link, CPU's event and store file is one. */
static int open_files(struct err *e)
{
	struct rlimit rl = {0};

	if (getrlimit(RLIMIT_NOFILE, &rl) || rl.rlim_max >= FILES_LEAST)
		return 0;
	err_set(e, -EMFILE, EXIT_PREREQUISITE,
		"this process may open %llu files (RLIMIT_NOFILE), which is too few: %d are needed",
		(unsigned long long)rl.rlim_max, FILES_LEAST);
	err_fix(e, "ulimit -n 4096    (systemd: LimitNOFILE=4096)");
	return -EMFILE;
}

static int memory_room(struct err *e)
{
	struct memlimit limit;

	memlimit_read(&limit);
	if (limit.bytes >= MEMORY_LEAST)
		return 0;
	err_set(e, -ENOMEM, EXIT_PREREQUISITE, "%s, which is too little: %u MiB are needed",
		limit.what, MEMORY_LEAST >> 20);
	err_fix(e, "%s", limit.fix);
	return -ENOMEM;
}

static int file_room(struct err *e)
{
	struct rlimit rl = {0};

	if (getrlimit(RLIMIT_FSIZE, &rl) || rl.rlim_cur >= FILE_LEAST)
		return 0;
	err_set(e, -EFBIG, EXIT_PREREQUISITE,
		"a file of this process may have %llu bytes (RLIMIT_FSIZE), which is too few: a file of the store has up to %u MiB",
		(unsigned long long)rl.rlim_cur, FILE_LEAST >> 20);
	err_fix(e, "ulimit -f unlimited    (systemd: LimitFSIZE=infinity)");
	return -EFBIG;
}

int preflight_limits(struct err *e)
{
	int err = open_files(e);

	if (!err)
		err = memory_room(e);
	return err ? err : file_room(e);
}

int preflight(const char *prog, struct err *e)
{
	int err = kernel_version(e);

	if (!err)
		err = type_information(e);
	if (!err)
		err = lockdown(e);
	if (!err)
		err = preflight_clock(prog, e);
	if (!err)
		err = rights(prog, e);
	return err ? err : preflight_limits(e);
}

/* Programs need it, and it is missing. */
static void check_missing(struct check *c, const char *name, const struct err *e, bool needed)
{
	if (needed)
		check_add_err(c, name, e);
	else
		check_add(c, name, CHECK_WARN, e->fix[0] ? e->fix : NULL, "%s", e->what);
}

static void check_kernel(struct check *c, const char *prog, bool needed)
{
	struct err e = {0};
	struct utsname u;
	struct stat st;

	uname(&u);
	if (kernel_version(&e))
		check_missing(c, "kernel", &e, needed);
	else
		check_add(c, "kernel", CHECK_OK, NULL, "%s %s", u.release, u.machine);
	e = (struct err){0};
	if (type_information(&e))
		check_missing(c, "BTF", &e, needed);
	else
		check_add(c, "BTF", CHECK_OK, NULL, "%s (%.1f MiB)", BTF_PATH,
			  stat(BTF_PATH, &st) ? 0 : (double)st.st_size / 1048576);
	e = (struct err){0};
	if (lockdown(&e))
		check_missing(c, "lockdown", &e, needed);
	e = (struct err){0};
	if (preflight_clock(prog, &e))
		check_add_err(c, "boot clock", &e);
	e = (struct err){0};
	if (preflight_limits(&e))
		check_add_err(c,
			      e.code == -EMFILE ? "open files" :
			      e.code == -EFBIG  ? "file size" :
						  "memory limit",
			      &e);
}

bool preflight_lacks(bool kernel_stacks, char *text, size_t size, const char **fix)
{
	static const struct {
		int cap;
		const char *name, *without;
	} helpful[] = {
		{CAP_SYS_PTRACE, "SYS_PTRACE",
		 "processes of other users, and those with more rights than this one, cannot be looked into: their frames have no names"},
		{CAP_DAC_READ_SEARCH, "DAC_READ_SEARCH",
		 "files that only their owner may read have no names"},
		{CAP_SYSLOG, "SYSLOG", "kernel addresses may be hidden"},
	};
	cleanup_strbuf struct strbuf missing = STRBUF_INIT;
	uint64_t caps = caps_effective();

	for (size_t i = 0; i < ARRAY_SIZE(helpful); i++)
		if (!cap_has(caps, helpful[i].cap) &&
		    (kernel_stacks || helpful[i].cap != CAP_SYSLOG))
			strbuf_addf(&missing, "%sno CAP_%s: %s", missing.len ? "; " : "",
				    helpful[i].name, helpful[i].without);
	snprintf(text, size, "%s", strbuf_str(&missing));
	*fix = as_root();
	return missing.len;
}

static void check_rights(struct check *c, const char *prog, bool needed)
{
	struct err e = {0};
	const char *fix;
	char text[512];

	if (rights(prog, &e)) {
		check_missing(c, "privileges", &e, needed);
		if (needed)
			return;
	}
	if (preflight_lacks(true, text, sizeof(text), &fix))
		check_add(c, "privileges", CHECK_WARN, fix, "%s", text);
	else if (!e.code)
		check_add(c, "privileges", CHECK_OK, NULL, "%s",
			  geteuid() ? "capabilities" : "root");
}

/* Are there any kernel symbols, and does one have an address? Per-CPU data, which comes first, may
 * really be at address 0. */
static void symbols_look(bool *any, bool *address)
{
	cleanup_file FILE *f = fopen("/proc/kallsyms", "re");
	char line[1024];

	*any = *address = false;
	for (int i = 0; i < KALLSYMS_LOOK && !*address && f && fgets(line, sizeof(line), f); i++) {
		*any = true;
		*address = strtoull(line, NULL, 16) >= KERNEL_HALF;
	}
}

/* kptr_restrict 2 hides them from everyone, 1 from processes without CAP_SYSLOG; 0 too, unless
 * perf_event_paranoid is 1 or less. */
const char *preflight_hidden(char *why, size_t size)
{
	long long restricted = sysctl_kernel("kptr_restrict", -1);

	if (restricted < 2 && preflight_has(CAP_SYSLOG) &&
	    environment_here() != ENVIRONMENT_GUEST) {
		snprintf(why, size, "CAP_SYSLOG is there, kptr_restrict=%lld", restricted);
		return "a security module or lockdown hides them: cat /sys/kernel/security/lockdown";
	}
	if (restricted > 0)
		snprintf(why, size, "kptr_restrict=%lld%s", restricted,
			 restricted == 1 ? ", no CAP_SYSLOG" : "");
	else
		snprintf(why, size, "no CAP_SYSLOG, perf_event_paranoid=%lld",
			 (long long)sysctl_kernel("perf_event_paranoid", -1));
	if (restricted >= 2)
		return "sudo sysctl kernel.kptr_restrict=1";
	return geteuid() ? "run it with sudo (CAP_SYSLOG)" :
			   "give it CAP_SYSLOG; in a container: cap_add: [SYSLOG]";
}

static void check_symbols(struct check *c)
{
	bool any, address;
	const char *fix;
	char why[64];

	symbols_look(&any, &address);
	if (!any) {
		check_add(c, "kernel symbols", CHECK_WARN, NULL,
			  "no /proc/kallsyms: kernel frames have no names");
	} else if (!address) {
		fix = preflight_hidden(why, sizeof(why));
		check_add(c, "kernel symbols", CHECK_WARN, fix,
			  "hidden (%s): kernel frames have no names", why);
	} else {
		check_add(c, "kernel symbols", CHECK_OK, NULL, "kptr_restrict=%" PRId64,
			  sysctl_kernel("kptr_restrict", -1));
	}
	if (access("/proc/modules", R_OK))
		check_add(c, "modules", CHECK_OFF, NULL,
			  "no /proc/modules: this kernel loads none");
}

static void check_memlock(struct check *c)
{
	struct rlimit rl = {0};
	struct utsname u;

	getrlimit(RLIMIT_MEMLOCK, &rl);
	if (rl.rlim_cur == RLIM_INFINITY)
		check_add(c, "memlock", CHECK_OK, NULL, "unlimited");
	else if (kernel_number(&u) < 5011)
		check_add(
			c, "memlock", CHECK_OK, NULL,
			"RLIMIT_MEMLOCK %llu KiB; raised at load (before 5.11 BPF memory counts against it)",
			(unsigned long long)(rl.rlim_cur >> 10));
	else
		check_add(
			c, "memlock", CHECK_OK, NULL,
			"RLIMIT_MEMLOCK %llu KiB; not raised (since 5.11 BPF memory is charged to the cgroup)",
			(unsigned long long)(rl.rlim_cur >> 10));
}

static void check_cgroups(struct check *c)
{
	bool v2 = !access("/sys/fs/cgroup/cgroup.controllers", F_OK);
	bool hybrid = !access("/sys/fs/cgroup/unified/cgroup.controllers", F_OK);

	if (v2)
		check_add(c, "cgroups", CHECK_OK, NULL, "v2");
	else if (hybrid)
		check_add(c, "cgroups", CHECK_OK, NULL, "v1, and v2 at /sys/fs/cgroup/unified");
	else if (!access("/sys/fs/cgroup/memory", F_OK))
		check_add(c, "cgroups", CHECK_OK, NULL, "v1");
	else
		check_add(c, "cgroups", CHECK_WARN, "mount -t cgroup2 none /sys/fs/cgroup",
			  "no hierarchy is mounted: --cgroup and --container find nothing");
}

/* ---- containers ---- */

/* How an engine's containers get their names, or what prevents that. */
static void check_engine(struct check *c, const struct engine *e)
{
	static const char *const called[] = {[ENGINE_DOCKER] = "docker",
					     [ENGINE_STORAGE] = "podman, cri-o",
					     [ENGINE_CONTAINERD] = "containerd"};
	static const char *const files[] = {[ENGINE_DOCKER] = "/containers/ID/config.v2.json",
					    [ENGINE_STORAGE] = "/containers.json",
					    [ENGINE_CONTAINERD] = "/ID/config.json"};
	const char *folder = *e->folder ? e->folder : "/var/lib/docker";
	char path[600], who[32] = "";

	if (e->uid)
		snprintf(who, sizeof(who), " of user %u", e->uid);
	snprintf(path, sizeof(path), "/proc/%u/root%s", e->pid, folder);
	if (access(path, R_OK | X_OK))
		check_add(c, called[e->kind], CHECK_WARN, as_root(),
			  "process %u%s: %s: %s; its containers have no names", e->pid, who, folder,
			  strerror(errno));
	else
		check_add(c, called[e->kind], CHECK_OK, NULL, "process %u%s: names come from %s%s",
			  e->pid, who, folder, files[e->kind]);
}

struct container_count {
	size_t n, nameless;
	const char *runtime; /* of one without a name */
	char id[13];
};

static void count_container(void *ctx, const struct container_ref *ref, const char *name)
{
	struct container_count *count = ctx;

	count->n++;
	if (*name)
		return;
	count->nameless++;
	count->runtime = ref->runtime;
	snprintf(count->id, sizeof(count->id), "%.12s", ref->id);
}

static void check_containers(struct check *c)
{
	struct engine engines[ENGINES_MAX];
	size_t n = engines_find(engines);
	struct container_count count = {0};

	for (size_t i = 0; i < n; i++)
		check_engine(c, &engines[i]);
	container_each(count_container, &count);
	if (count.nameless)
		check_add(
			c, "containers", CHECK_WARN,
			geteuid() ? "run it as root" : "nothing to do: their ids are shown instead",
			"%zu of %zu have no name, as %s %s: no file of a known engine describes them",
			count.nameless, count.n, count.runtime, count.id);
	else if (count.n)
		check_add(c, "containers", CHECK_OK, NULL, "%zu, all with names", count.n);
	else
		check_add(c, "containers", CHECK_OFF, NULL,
			  n ? "none runs" : "no container and no engine runs here");
}

static void check_inspect(struct check *c)
{
	char target[PATH_MAX];

	if (readlink("/proc/1/exe", target, sizeof(target)) < 0)
		check_add(c, "PID 1", CHECK_WARN, NULL,
			  "not inspectable (%s): its user frames stay without names",
			  strerror(errno));
	else
		check_add(c, "PID 1", CHECK_OK, NULL, "inspectable");
}

/* Helpers are in the same folder as this program, both installed and in a build. */
static void check_helper(struct check *c, const char *name)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	path[n < 0 ? 0 : n] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		slash = path;
	snprintf(slash, sizeof(path) - (size_t)(slash - path), "/%s", name);
	if (access(path, X_OK))
		check_add(c, name, CHECK_FAIL, "install all of sonde, or run make", "%s is missing",
			  path);
	else
		check_add(c, name, CHECK_OK, NULL, "%s", path);
}

/* Checks the folder, or its nearest parent that exists: a check must not create anything. */
static void check_store(struct check *c, const char *dir)
{
	char path[PATH_MAX];
	struct statvfs fs;
	char *slash;

	snprintf(path, sizeof(path), "%s", dir ? dir : store_default_dir());
	dir = dir ? dir : store_default_dir();
	while (access(path, F_OK) && (slash = strrchr(path, '/')) && slash > path)
		*slash = '\0';
	if (access(path, F_OK))
		snprintf(path, sizeof(path), "%s", *dir == '/' ? "/" : ".");
	if (access(path, W_OK) || statvfs(path, &fs))
		check_add(c, "store", CHECK_FAIL, "name a folder that can be written: --store DIR",
			  "%s: %s", dir, strerror(errno));
	else if ((uint64_t)fs.f_bavail * fs.f_frsize < STORE_ROOM)
		check_add(c, "store", CHECK_FAIL,
			  "sudo sonde prune --budget 100M, or make room on that disk",
			  "%s: the disk is full, %.1f MiB free", dir,
			  (double)fs.f_bavail * (double)fs.f_frsize / 1048576.0);
	else
		check_add(c, "store", CHECK_OK, NULL, "%s, %.1f GiB free", dir,
			  (double)fs.f_bavail * (double)fs.f_frsize / 1073741824.0);
}

void preflight_check(struct check *c, const char *prog, const char *store_dir, bool needed)
{
	check_kernel(c, prog, needed);
	check_rights(c, prog, needed);
	check_symbols(c);
	check_memlock(c);
	check_cgroups(c);
	check_containers(c);
	check_inspect(c);
	check_helper(c, "sonde-maps");
	check_helper(c, "sonde-index");
	check_store(c, store_dir);
}
