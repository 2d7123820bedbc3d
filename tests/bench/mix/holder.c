/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holder: so many processes, each with so many of the files that its standard input names mapped
 * to be executed, in turn; they last until its descriptor 3 ends.
 * usage: holder PROCESSES FILES_EACH < lines of "PATH SIZE OFFSET"; it says "held" once all are.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define FILES_MAX 8192

static struct file {
	char path[200];
	size_t size;
	off_t offset;
} files[FILES_MAX];

static void hold(const struct file *f)
{
	int fd = open(f->path, O_RDONLY);

	if (fd < 0 ||
	    mmap(NULL, f->size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, f->offset) == MAP_FAILED)
		_exit(1);
	close(fd);
}

int main(int argc, char **argv)
{
	int processes = argc == 3 ? atoi(argv[1]) : 0, each = argc == 3 ? atoi(argv[2]) : 0, n = 0;
	char c;

	while (n < FILES_MAX &&
	       scanf("%199s %zu %ld", files[n].path, &files[n].size, &files[n].offset) == 3)
		n++;
	if (!processes || !n)
		return 2;
	for (int i = 0; i < processes; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int k = 0; k < each; k++)
			hold(&files[(i * each + k) % n]);
		for (;;)
			pause();
	}
	printf("held\n");
	fflush(stdout);
	while (read(3, &c, 1) > 0)
		;
	return 0;
}
