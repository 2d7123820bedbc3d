/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/sandbox/confine.h"
#include "schema/base/array.h"

#include <errno.h>
#include <linux/bpf.h>
#include <seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define REFUSED   SCMP_ACT_ERRNO(EPERM)
#define ALL(list) list, ARRAY_SIZE(list)

static const int runs[] = {SCMP_SYS(execve), SCMP_SYS(execveat)};

static const int by_handle[] = {SCMP_SYS(open_by_handle_at)};

/* clang-format off */
static const int never[] = {
	/* other processes */
	SCMP_SYS(ptrace), SCMP_SYS(process_vm_writev), SCMP_SYS(process_madvise), SCMP_SYS(pidfd_getfd),
	/* file systems and namespaces */
	SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(pivot_root), SCMP_SYS(chroot), SCMP_SYS(move_mount), SCMP_SYS(open_tree), SCMP_SYS(fsopen),
	SCMP_SYS(fsconfig), SCMP_SYS(fsmount), SCMP_SYS(mount_setattr), SCMP_SYS(unshare), SCMP_SYS(setns),
	/* the kernel and the machine */
	SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(delete_module), SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load), SCMP_SYS(reboot),
	SCMP_SYS(swapon), SCMP_SYS(swapoff), SCMP_SYS(acct), SCMP_SYS(settimeofday), SCMP_SYS(clock_settime), SCMP_SYS(clock_adjtime),
	SCMP_SYS(adjtimex), SCMP_SYS(iopl), SCMP_SYS(ioperm), SCMP_SYS(modify_ldt), SCMP_SYS(quotactl), SCMP_SYS(sethostname),
	SCMP_SYS(setdomainname), SCMP_SYS(vhangup),
	/* what is rarely needed and often broken */
	SCMP_SYS(add_key), SCMP_SYS(keyctl), SCMP_SYS(request_key), SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter),
	SCMP_SYS(io_uring_register), SCMP_SYS(userfaultfd), SCMP_SYS(personality),
};

static const int another_user[] = {
	SCMP_SYS(setuid), SCMP_SYS(setgid), SCMP_SYS(setreuid), SCMP_SYS(setregid), SCMP_SYS(setresuid), SCMP_SYS(setresgid),
	SCMP_SYS(setgroups), SCMP_SYS(setfsuid), SCMP_SYS(setfsgid),
};
/* clang-format on */

static int refuse(scmp_filter_ctx ctx, const int *calls, size_t n)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i++)
		rc = seccomp_rule_add(ctx, REFUSED, calls[i], 0);
	return rc;
}

static int refuse_if(scmp_filter_ctx ctx, int call, unsigned int arg, enum scmp_compare op,
		     scmp_datum_t a, scmp_datum_t b)
{
	const struct scmp_arg_cmp c = {.arg = arg, .op = op, .datum_a = a, .datum_b = b};

	return seccomp_rule_add_array(ctx, REFUSED, call, 1, &c);
}

/* One rule compares an argument once: each family that is refused has its own. */
static int refuse_sockets(scmp_filter_ctx ctx)
{
	int rc = refuse_if(ctx, SCMP_SYS(socket), 0, SCMP_CMP_GT, AF_NETLINK, 0);

	for (int family = 0; !rc && family < AF_NETLINK; family++)
		if (family != AF_UNIX)
			rc = refuse_if(ctx, SCMP_SYS(socket), 0, SCMP_CMP_EQ, (scmp_datum_t)family,
				       0);
	return rc;
}

static int refuse_executable(scmp_filter_ctx ctx)
{
	const scmp_datum_t both = PROT_WRITE | PROT_EXEC;
	int rc = refuse_if(ctx, SCMP_SYS(mmap), 2, SCMP_CMP_MASKED_EQ, both, both);

	return rc ? rc : refuse_if(ctx, SCMP_SYS(mprotect), 2, SCMP_CMP_MASKED_EQ, both, both);
}

static int rules(scmp_filter_ctx ctx, unsigned int keeps)
{
	int rc = refuse(ctx, ALL(never));

	if (!rc && !(keeps & CONFINE_USERS))
		rc = refuse(ctx, ALL(another_user));
	if (!rc && !(keeps & CONFINE_EXECS))
		rc = refuse(ctx, ALL(runs));
	if (!rc && !(keeps & CONFINE_LOADS))
		rc = refuse_if(ctx, SCMP_SYS(bpf), 0, SCMP_CMP_EQ, BPF_PROG_LOAD, 0);
	if (!rc && !(keeps & CONFINE_HANDLES))
		rc = refuse(ctx, ALL(by_handle));
	if (!rc && !(keeps & CONFINE_OTHERS))
		rc = refuse_sockets(ctx);
	if (!rc && !(keeps & CONFINE_OTHERS))
		rc = refuse_executable(ctx);
	return rc ? rc :
		    refuse_if(ctx, SCMP_SYS(ioctl), 1, SCMP_CMP_MASKED_EQ, 0xffffffff, TIOCSTI);
}

int confine(unsigned int keeps, struct err *e)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int rc = ctx ? 0 : -ENOMEM;

	if (!rc)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1); /* all threads */
	if (!rc)
		(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE,
				       2); /* a tree: libseccomp 2.5; a list is as right */
	if (!rc)
		rc = rules(ctx, keeps);
	if (!rc && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		rc = -errno;
	if (!rc)
		rc = seccomp_load(ctx);
	if (ctx)
		seccomp_release(ctx);
	if (rc)
		return err_set(e, rc, EXIT_RUNTIME, "cannot filter own system calls: %s",
			       strerror(rc < 0 ? -rc : rc));
	return 0;
}
