/* SPDX-License-Identifier: Apache-2.0 */
/*
 * typedshim.so: for LD_PRELOAD. Simulates a kernel without type information: programs that need it
 * (tp_btf, iterators) fail to load with EINVAL.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <sys/syscall.h>

static int refused(const long a[6])
{
	return a[0] == BPF_PROG_LOAD &&
	       ((const union bpf_attr *)a[1])->prog_type == BPF_PROG_TYPE_TRACING;
}

long syscall(long number, ...)
{
	static long (*real)(long, ...);
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_bpf && refused(a)) {
		errno = EINVAL;
		return -1;
	}
	if (!real)
		real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
