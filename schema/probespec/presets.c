/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/probespec/presets.h"

#include <string.h>

/* clang-format off */
const struct probespec_preset PROBESPEC_PRESETS[] = {
	{"exec", "tracepoint:sched:sched_process_exec(filename, pid)", "programs that are started"},
	{"exit", "tracepoint:sched:sched_process_exit(comm, pid)", "threads that end"},
	{"fork", "tracepoint:sched:sched_process_fork(parent_comm, child_pid)", "processes and threads that are made"},
	{"signals", "tracepoint:signal:signal_generate(sig, comm, pid, code) by sig", "signals that are sent, by number"},
	{"openfail", "syscall:openat(path=str $2, flags=int32 $3) ret<0 by path,ret", "opens that fail, by path and error"},
	{"unlink", "syscall:unlinkat(path=str $2)", "files that are removed"},
	{"mount", "syscall:mount(source=str $1, target=str $2, type=str $3)", "mounts"},
	{"umount", "syscall:umount2(target=str $1)", "file systems that are taken away"},
	{"syscalls", "syscall:* by call,ret rate 10", "all system calls: counts, errors and time of each, as strace -c of the whole host"},
	{"slowcalls", "syscall:* ns>10000000 by call rate 50", "system calls of 10 ms and more"},
	{"kill", "syscall:kill(pid=int32 $1, sig=int32 $2)", "calls of kill, with what they returned"},
	{"ptrace", "syscall:ptrace(request=int64 $1, pid=int32 $2)", "calls of ptrace"},
	{"setuid", "syscall:setuid(uid=uint32 $1)", "programs that change their user"},
	{"bpf", "syscall:bpf(cmd=int32 $1) by cmd", "calls of bpf"},
	{"modules", "tracepoint:module:module_load(name)", "kernel modules that are loaded"},
	{"clockset", "syscall:clock_settime(clock=int32 $1)", "clocks that are set"},
	{"softirq", "tracepoint:irq:softirq_entry(vec) by vec rate 10", "soft interrupts, by number"},
	{"hardirq", "tracepoint:irq:irq_handler_entry(irq, name) by name rate 10", "interrupts, by device"},
	{"timers", "tracepoint:timer:hrtimer_expire_entry(function) by function rate 10", "timers of the kernel that expire, by function's address"},
	{"faults", "tracepoint:exceptions:page_fault_user(address, ip, error_code) rate 10", "page faults of programs"},
	{"caps", "tracepoint:capability:cap_capable(cap, ret) ret<0 by cap", "capabilities that were asked for and refused (from Linux 6.18 on)"},
	{"retransmits", "tracepoint:tcp:tcp_retransmit_skb(sport, dport, state) by dport", "TCP segments that are sent again"},
	{"drops", "tracepoint:skb:kfree_skb(protocol, reason) by reason rate 10", "packets that the kernel dropped, by reason"},
	{"migrations", "tracepoint:sched:sched_migrate_task(comm, orig_cpu, dest_cpu) rate 10", "threads that change their CPU"},
	{"mmap", "syscall:mmap(len=uint64 $2, prot=int32 $3) hist len sum len rate 10", "mappings, by size"},
	{"fsync", "syscall:fsync(fd=int32 $1)", "fsync, with how long it took"},
	{"connect", "syscall:connect(fd=int32 $1) by ret", "calls of connect, by result"},
	{NULL, NULL, NULL},
};
/* clang-format on */

const struct probespec_preset *probespec_preset(const char *word, size_t len)
{
	for (const struct probespec_preset *p = PROBESPEC_PRESETS; p->name; p++)
		if (strlen(p->name) == len && !memcmp(p->name, word, len))
			return p;
	return NULL;
}
