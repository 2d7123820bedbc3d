/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/become.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "schema/base/log.h"
#include "schema/store/files/mend.h"

#define USER     "sonde" /* supervisor/systemd/sysusers.conf */
#define BIT(cap) (1ull << (cap))
/* CapabilityBoundingSet of the unit */
#define RIGHTS                                                                              \
	(BIT(CAP_BPF) | BIT(CAP_PERFMON) | BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH) | \
	 BIT(CAP_SYSLOG))

/* Keeps only RIGHTS of the capabilities, for this process and what it executes. */
static int keep_rights(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	uint64_t kept;

	if (syscall(SYS_capget, &head, data))
		return -errno;
	kept = (data[0].permitted | (uint64_t)data[1].permitted << 32) & RIGHTS;
	for (int i = 0; i < 2; i++)
		data[i].permitted = data[i].effective = data[i].inheritable =
			(uint32_t)(kept >> 32 * i);
	if (syscall(SYS_capset, &head, data))
		return -errno;
	for (int cap = 0; cap < 64; cap++)
		if (kept & BIT(cap) && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0))
			return -errno;
	return 0;
}

static int change_user(const struct passwd *pw)
{
	struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};

	setrlimit(RLIMIT_MEMLOCK, &all); /* kernels before 5.11 count BPF's memory against it */
	for (int cap = 0; cap < 64; cap++)
		if (!(RIGHTS & BIT(cap)))
			prctl(PR_CAPBSET_DROP, cap, 0, 0,
			      0); /* EINVAL: of a newer kernel than this one */
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || initgroups(pw->pw_name, pw->pw_gid) ||
	    setgid(pw->pw_gid) || setuid(pw->pw_uid))
		return -errno;
	return keep_rights();
}

int become_store_user(const char *store, char **argv, struct err *e)
{
	const struct passwd *pw;
	char self[PATH_MAX];
	struct stat st;
	ssize_t len;
	int rc;

	if (geteuid() != 0 || stat(store, &st) < 0 || st.st_uid == 0)
		return 0;
	pw = getpwuid(st.st_uid);
	if (!pw || strcmp(pw->pw_name, USER))
		return 0; /* another user's: lock.c refuses it */
	rc = folder_mend(store);
	if (rc < 0)
		log_warn("cannot give root's files in %s to %s: %s", store, USER, strerror(-rc));
	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	rc = len > 0 ? change_user(pw) : -ENOENT;
	if (rc)
		return err_set(e, rc, EXIT_PERMISSION,
			       "cannot switch to user %s, who owns the store %s: %s", USER, store,
			       strerror(-rc));
	self[len] = '\0';
	setenv("HOME", pw->pw_dir, 1);
	setenv("SONDE_STORE", store, 1);
	execv(self,
	      argv); /* so that every part of the process, /proc included, belongs to that user */
	return err_set(e, -errno, EXIT_RUNTIME, "cannot execute %s: %s", self, strerror(errno));
}
