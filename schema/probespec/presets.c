/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/probespec/presets.h"

#include <string.h>

/* clang-format off */
const struct probespec_preset PROBESPEC_PRESETS[] = {
	{"exec", "tracepoint:sched:sched_process_exec(filename, pid)", "programs that are started", NULL},
	{"exit", "tracepoint:sched:sched_process_exit(comm, pid)", "threads that end", NULL},
	{"fork", "tracepoint:sched:sched_process_fork(parent_comm, child_pid)", "processes and threads that are made", NULL},
	{"signals", "tracepoint:signal:signal_generate(sig, comm, pid, code) by sig", "signals that are sent, by number", NULL},
	{"openfail", "syscall:openat(path=str $2, flags=int32 $3) ret<0 by path,ret", "opens that fail, by path and error", NULL},
	{"unlink", "syscall:unlinkat(path=str $2)", "files that are removed", NULL},
	{"mount", "syscall:mount(source=str $1, target=str $2, type=str $3)", "mounts", NULL},
	{"umount", "syscall:umount2(target=str $1)", "file systems that are taken away", NULL},
	{"syscalls", "syscall:* by call,ret rate 10", "all system calls: counts, errors and time of each, as strace -c of the whole host", NULL},
	{"slowcalls", "syscall:* ns>10000000 by call rate 50", "system calls of 10 ms and more", NULL},
	{"kill", "syscall:kill(pid=int32 $1, sig=int32 $2)", "calls of kill, with what they returned", NULL},
	{"ptrace", "syscall:ptrace(request=int64 $1, pid=int32 $2)", "calls of ptrace", NULL},
	{"setuid", "syscall:setuid(uid=uint32 $1)", "programs that change their user", NULL},
	{"bpf", "syscall:bpf(cmd=int32 $1) by cmd", "calls of bpf", NULL},
	{"modules", "tracepoint:module:module_load(name)", "kernel modules that are loaded", NULL},
	{"clockset", "syscall:clock_settime(clock=int32 $1)", "clocks that are set", NULL},
	{"softirq", "tracepoint:irq:softirq_entry(vec) by vec rate 10", "soft interrupts, by number", NULL},
	{"hardirq", "tracepoint:irq:irq_handler_entry(irq, name) by name rate 10", "interrupts, by device", NULL},
	{"timers", "tracepoint:timer:hrtimer_expire_entry(function) by function rate 10", "timers of the kernel that expire, by function's address", NULL},
	{"faults", "tracepoint:exceptions:page_fault_user(address, ip, error_code) rate 10", "page faults of programs", NULL},
	{"caps", "tracepoint:capability:cap_capable(cap, ret) ret<0 by cap", "capabilities that were asked for and refused (from Linux 6.18 on)", NULL},
	{"retransmits", "tracepoint:tcp:tcp_retransmit_skb(sport, dport, state) by dport", "TCP segments that are sent again", NULL},
	{"drops", "tracepoint:skb:kfree_skb(protocol, reason) by reason rate 10", "packets that the kernel dropped, by reason", NULL},
	{"migrations", "tracepoint:sched:sched_migrate_task(comm, orig_cpu, dest_cpu) rate 10", "threads that change their CPU", NULL},
	{"mmap", "syscall:mmap(len=uint64 $2, prot=int32 $3) hist len sum len rate 10", "mappings, by size", NULL},
	{"fsync", "syscall:fsync(fd=int32 $1)", "fsync, with how long it took", NULL},
	{"connect", "syscall:connect(fd=int32 $1) by ret", "calls of connect, by result", NULL},
	{"softirqtime", "latency from tracepoint:irq:softirq_entry to tracepoint:irq:softirq_exit by cpu,vec by vec rate 10", "how long soft interrupts run, by number", NULL},
	{"hardirqtime", "latency from tracepoint:irq:irq_handler_entry(irq, name) to tracepoint:irq:irq_handler_exit(irq) by cpu,irq by name rate 10", "how long interrupts are handled, by device", NULL},
	{"malloc", "func:{}:malloc(size=uint64 $1) hist size sum size rate 0", "calls of malloc, by size", "libc[.-]*so*"},
	{"getaddrinfo", "func:{}:getaddrinfo%return(host=str $1, ret=int32) by host", "lookups of hosts' names, with result and time", "libc[.-]*so*"},
	{"readline", "func:{}:readline%return(ret=str)", "lines that people type into a shell", "bash"},
	{"throws", "usdt:{}:throw stack rate 100", "exceptions that C++ throws, with stacks", "libstdc++.so.6"},
	{"pygc", "latency from usdt:{}:gc__start(generation=int32 $1) to usdt:{}:gc__done(found=int64 $1) by tid by generation", "collections of CPython, by generation: how long, how much", "*python3*"},
	{"pyimports", "latency from usdt:{}:import__find__load__start(module=str $1) to usdt:{}:import__find__load__done(found=int32 $2) by tid by module", "imports of CPython: the innermost, and how long", "*python3*"},
	{"rubygc", "latency from usdt:{}:gc__mark__begin to usdt:{}:gc__mark__end by tid", "Ruby marks what lives", "*ruby*"},
	{"rubysweep", "latency from usdt:{}:gc__sweep__begin to usdt:{}:gc__sweep__end by tid", "Ruby sweeps what is dead", "*ruby*"},
	{"javagc", "latency from usdt:{}:gc__begin(full=bool $1) to usdt:{}:gc__end by pid by full", "collections of the JVM that stop it", "libjvm.so"},
	{"nodegc", "func:{}:_ZN2v88internal4Heap14CollectGarbageE*%return rate 100", "collections of Node.js", "*node*"},
	{"gopause", "latency from go:{}:runtime.stopTheWorldWithSema to go:{}:runtime.startTheWorldWithSema by pid", "pauses in which a Go program's goroutines stop", ""},
	{"gogc", "latency from go:{}:runtime.gcStart to go:{}:runtime.gcMarkTermination by pid", "collections of a Go program, from begin to the end of marking", ""},
	{"gorecv", "go:{}:runtime.chanrecv%return hist ns rate 10", "a Go program receives from channels, and waits", ""},
	{"gosend", "go:{}:runtime.chansend%return hist ns rate 10", "a Go program sends on channels, and waits", ""},
	{"gosema", "go:{}:runtime.semacquire1%return hist ns rate 10", "goroutines wait for mutexes and wait groups", ""},
	{"pgquery", "latency from usdt:{}:query__start(query=str $1) to usdt:{}:query__done by pid", "queries of PostgreSQL", "postgres"},
	{"pglock", "latency from usdt:{}:lock__wait__start(relation=uint32 $2, kind=uint32 $5, mode=uint32 $6) to usdt:{}:lock__wait__done by pid by relation", "waits for locks of PostgreSQL, by relation", "postgres"},
	{"pgcheckpoint", "latency from usdt:{}:checkpoint__start(flags=int32 $1) to usdt:{}:checkpoint__done by pid", "checkpoints of PostgreSQL", "postgres"},
	{"libvirt", "latency from usdt:{}:rpc_server_client_msg_rx(client=uint64 $1, program=uint32 $3, call=uint32 $5, serial=uint32 $8) to usdt:{}:rpc_server_client_msg_tx_queue(client=uint64 $1, serial=uint32 $8) by client,serial by call", "calls that a daemon of libvirt answers, by the call's number, and how long each took", "libvirt.so.0"},
	{"cudalaunch", "func:{}:cuLaunchKernel(grid=uint32 $2, blocks=uint32 $5) by grid", "kernels that programs start on a GPU", "libcuda.so*"},
	{NULL, NULL, NULL, NULL},
};
/* clang-format on */

const struct probespec_preset *probespec_preset(const char *word, size_t len)
{
	for (const struct probespec_preset *p = PROBESPEC_PRESETS; p->name; p++)
		if (strlen(p->name) == len && !memcmp(p->name, word, len))
			return p;
	return NULL;
}
