/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reads: page faults that read: maps FILE, whose pages it has the kernel forget, and touches each
 * page of it in touched(), the last one first. Says how many major faults the kernel counted then.
 * reads FILE
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096

__attribute__((noinline, noclone)) static unsigned touched(const volatile unsigned char *p,
							   size_t size)
{
	unsigned sum = 0;

	for (size_t at = size; at >= PAGE; at -= PAGE)
		sum += p[at - PAGE];
	return sum;
}

static long majors(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return r.ru_majflt;
}

int main(int argc, char **argv)
{
	int fd = open(argv[argc - 1], O_RDONLY);
	struct stat st;
	unsigned char *p;
	long before;

	if (fd < 0 || fstat(fd, &st) || fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		return 1;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED || madvise(p, (size_t)st.st_size, MADV_RANDOM))
		return 1;
	before = majors();
	touched(p, (size_t)st.st_size);
	printf("%ld\n", majors() - before);
	fflush(stdout);
	getchar();
	return 0;
}
