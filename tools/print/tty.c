/* SPDX-License-Identifier: Apache-2.0 */
/* tty: What runs in signal handlers is write, tcsetattr, sigaction and raise: all
 * async-signal-safe. */
#include "tools/print/tty.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "tools/print/keys.h"

#define ENTER     "\033[?1049h\033[?25l\033[H\033[2J"
#define LEAVE     "\033[?25h\033[?1049l"
#define ESCAPE_MS 50 /* what follows an ESC within that is part of one key */

static struct termios before, raw;
static volatile sig_atomic_t entered, changed, drawn;
static unsigned char bytes[256];
static size_t n_bytes;

static void put(const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(STDOUT_FILENO, text, len);

		if (n < 0 && errno != EINTR)
			return;
		text += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
}

static void enter(void)
{
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	put(ENTER, strlen(ENTER));
	entered = 1;
	changed = 1;
}

void tty_leave(void)
{
	if (!entered)
		return;
	entered = 0;
	put(LEAVE, strlen(LEAVE));
	tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void on_end(int sig)
{
	tty_leave();
	if (sig == SIGINT && drawn)
		_exit(EXIT_OK);
	raise(sig); /* by default (SA_RESETHAND), as soon as this returns */
}

static void on_stop(int sig)
{
	int error = errno;

	(void)sig;
	tty_leave();
	raise(SIGSTOP);
	enter();
	errno = error;
}

/* Also after a SIGSTOP, which cannot be caught. */
static void on_change(int sig)
{
	int error = errno;

	if (sig == SIGCONT && entered)
		enter();
	changed = 1;
	errno = error;
}

static void on(int sig, void (*handler)(int), int flags)
{
	struct sigaction act = {.sa_handler = handler, .sa_flags = flags}, was;

	sigemptyset(&act.sa_mask);
	if (!sigaction(sig, NULL, &was) && was.sa_handler != SIG_IGN)
		sigaction(sig, &act, NULL);
}

int tty_enter(struct err *e)
{
	static const int ends[] = {SIGINT,  SIGTERM, SIGHUP, SIGQUIT, SIGABRT,
				   SIGSEGV, SIGBUS,  SIGFPE, SIGILL,  SIGXCPU};

	if (tcgetattr(STDIN_FILENO, &before))
		return err_set(e, -errno, EXIT_RUNTIME,
			       "cannot read keys: standard input is not a terminal");
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
	raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		on(ends[i], on_end, (int)SA_RESETHAND);
	on(SIGTSTP, on_stop, SA_RESTART);
	on(SIGCONT, on_change, SA_RESTART);
	on(SIGWINCH, on_change, SA_RESTART);
	atexit(tty_leave);
	enter();
	return 0;
}

void tty_size(unsigned *rows, unsigned *columns)
{
	struct winsize w = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) || !w.ws_row || !w.ws_col)
		w = (struct winsize){.ws_row = 24, .ws_col = 80};
	*rows = w.ws_row;
	*columns = w.ws_col;
}

void tty_draw(const char *text, size_t len)
{
	put(text, len);
	drawn = 1;
}

static bool take_key(bool last, uint32_t *key)
{
	while (n_bytes) {
		size_t used = keys_decode(bytes, n_bytes, last, key);

		if (!used)
			return false;
		memmove(bytes, bytes + used, n_bytes -= used);
		if (*key != KEY_NONE)
			return true;
	}
	return false;
}

/* Waits with the signals that change the picture let in only here, so that none is missed. 1: there
 * is input. */
static int wait_input(int64_t timeout_ms)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	struct timespec t = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000};
	sigset_t changes, was;
	int ret = 0;

	sigemptyset(&changes);
	sigaddset(&changes, SIGWINCH);
	sigaddset(&changes, SIGCONT);
	sigaddset(&changes, SIGTSTP);
	sigprocmask(SIG_BLOCK, &changes, &was);
	if (!changed)
		ret = ppoll(&in, 1, &t, &was);
	sigprocmask(SIG_SETMASK, &was, NULL);
	return ret > 0 ? 1 : 0;
}

enum tty_event tty_wait(int64_t timeout_ms, uint32_t *key)
{
	const int64_t end_ms = clock_boot_ns() / 1000000 + timeout_ms;

	for (;;) {
		int64_t left = end_ms - clock_boot_ns() / 1000000;
		ssize_t n;

		if (changed) {
			changed = 0;
			return TTY_RESIZED;
		}
		if (take_key(false, key))
			return TTY_KEY;
		if (!n_bytes && left <= 0)
			return TTY_TIMEOUT;
		if (!wait_input(n_bytes ? ESCAPE_MS : left)) {
			if (!changed && n_bytes && take_key(true, key))
				return TTY_KEY;
			continue;
		}
		n = read(STDIN_FILENO, bytes + n_bytes, sizeof(bytes) - n_bytes);
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
			return TTY_GONE;
		n_bytes += n > 0 ? (size_t)n : 0;
	}
}
