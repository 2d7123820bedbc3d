/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * arch_x86: all that the unwinder knows of x86-64 apart from the rows: registers as the kernel
 * keeps them, a signal's frame, where a task's registers are. Another architecture needs another
 * file of this form (docs/decisions/0090).
 *
 * Sources: System V psABI for x86-64, figure 3.36 (DWARF numbers);
 * arch/x86/include/uapi/asm/ptrace.h (struct pt_regs, stable) and asm/sigcontext.h (struct
 * sigcontext, 40 bytes into struct ucontext).
 */
#ifndef SONDE_PROBES_ARCH_X86_H
#define SONDE_PROBES_ARCH_X86_H

#define ARCH_SIGCONTEXT 40 /* r8..r15 di si bp bx dx ax cx sp ip, from there on */
#define ARCH_SIG_IP     16
/* DWARF numbers of sigcontext's first 16 words */
#define ARCH_SIG_DWARF                                               \
	{                                                            \
		8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7 \
	}

#ifdef __bpf__

struct arch_regs { /* struct pt_regs */
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs,
		flags, sp, ss;
};

#define ARCH_REGS_BP 32  /* in struct pt_regs */
#define ARCH_IRET    128 /* the end of it, which the CPU writes */
struct arch_iret {
	__u64 ip, cs, flags, sp, ss;
};
_Static_assert(__builtin_offsetof(struct arch_regs, bp) == ARCH_REGS_BP, "layout");
_Static_assert(__builtin_offsetof(struct arch_regs, ip) == ARCH_IRET, "layout");

/* Does a conditional jump with this condition jump? `condition`: the low four bits of its opcode.
 */
static __always_inline bool arch_condition(__u64 flags, __u32 condition)
{
	bool cf = flags & 1, pf = flags & 4, zf = flags & 0x40, sf = flags & 0x80,
	     of = flags & 0x800, yes;

	switch (condition >> 1) {
	case 0:
		yes = of;
		break;
	case 1:
		yes = cf;
		break;
	case 2:
		yes = zf;
		break;
	case 3:
		yes = cf || zf;
		break;
	case 4:
		yes = sf;
		break;
	case 5:
		yes = pf;
		break;
	case 6:
		yes = sf != of;
		break;
	default:
		yes = zf || sf != of;
		break;
	}
	return yes != (condition & 1);
}

struct arch_perf_event_data { /* struct bpf_perf_event_data */
	struct arch_regs regs;
	__u64 sample_period, addr;
};

/* System calls that move messages (arch/x86/entry/syscalls/syscall_64.tbl) */
#define ARCH_CALL_READ         0
#define ARCH_CALL_WRITE        1
#define ARCH_CALL_READV        19
#define ARCH_CALL_WRITEV       20
#define ARCH_CALL_SENDFILE     40
#define ARCH_CALL_SENDTO       44
#define ARCH_CALL_RECVFROM     45
#define ARCH_CALL_SENDMSG      46
#define ARCH_CALL_RECVMSG      47
#define ARCH_CALL_SPLICE       275
#define ARCH_CALL_RECVMMSG     299
#define ARCH_CALL_POLL         7
#define ARCH_CALL_SELECT       23
#define ARCH_CALL_ACCEPT       43
#define ARCH_CALL_EPOLL_WAIT   232
#define ARCH_CALL_PSELECT6     270
#define ARCH_CALL_PPOLL        271
#define ARCH_CALL_EPOLL_PWAIT  281
#define ARCH_CALL_ACCEPT4      288
#define ARCH_CALL_EPOLL_PWAIT2 441
#define ARCH_CALL_SENDMMSG     307
#define ARCH_CALL_EXIT         60
#define ARCH_CALL_EXIT_GROUP   231

#define ARCH_THREAD_SIZE 16384 /* of 5.10 to 5.14, where there is no helper; not with KASAN */
#define ARCH_USER32_CS   0x23

static __always_inline bool arch_user(const struct arch_regs *r)
{
	return (r->cs & 3) == 3;
}

/* By what was the kernel entered: a system call keeps its number there, all else -1. */
static __always_inline bool arch_syscall(const struct arch_regs *r)
{
	return (__s64)r->orig_ax >= 0;
}

/* By DWARF number. */
#define ARCH_DWARF_FIRST 5 /* of those: a system call's first argument */
static __always_inline void arch_dwarf(const struct arch_regs *r, __u64 *to)
{
	to[0] = r->ax;
	to[1] = r->dx;
	to[2] = r->cx;
	to[3] = r->bx;
	to[4] = r->si;
	to[5] = r->di;
	to[6] = r->bp;
	to[7] = r->sp;
	to[8] = r->r8;
	to[9] = r->r9;
	to[10] = r->r10;
	to[11] = r->r11;
	to[12] = r->r12;
	to[13] = r->r13;
	to[14] = r->r14;
	to[15] = r->r15;
}

/* Address of the registers with which the current task entered the kernel from user space. */
static __always_inline void *arch_current_entry(struct task_struct *task)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return (char *)BPF_CORE_READ(task, stack) + ARCH_THREAD_SIZE - sizeof(struct arch_regs);
}

/* Those registers. 0: read. */
static __always_inline long arch_task_regs(struct task_struct *task, struct arch_regs *to)
{
	return bpf_probe_read_kernel(to, sizeof(*to), arch_current_entry(task));
}

/* How a task entered the kernel, as far as it tells what it waits for. */
struct arch_entry {
	__u64 first; /* first argument */
	__s64 call;  /* number of the system call, < 0: none */
};

/* false: not from 64-bit user code. `regs`: address of the task's registers. */
static __always_inline bool arch_entry_read(const void *regs, struct arch_entry *to)
{
	struct {
		__u64 di, orig_ax, ip, cs;
	} part = {};

	if (bpf_probe_read_kernel(&part, sizeof(part),
				  (const char *)regs + __builtin_offsetof(struct arch_regs, di)))
		return false;
	if ((part.cs & 3) != 3 || part.cs == ARCH_USER32_CS)
		return false;
	to->first = part.di;
	to->call = (__s64)part.orig_ax;
	return true;
}

struct arch_call { /* a system call */
	__s64 number;
	__u64 first, second; /* arguments */
};

/* The one that the registers at this address entered the kernel by. false: none of 64-bit user
 * code. */
static __always_inline bool arch_call_read(const void *regs, struct arch_call *to)
{
	struct {
		__u64 si, di, orig_ax, ip, cs;
	} part = {};

	if (bpf_probe_read_kernel(&part, sizeof(part),
				  (const char *)regs + __builtin_offsetof(struct arch_regs, si)))
		return false;
	to->number = (__s64)part.orig_ax;
	to->first = part.di;
	to->second = part.si;
	return (part.cs & 3) == 3 && part.cs != ARCH_USER32_CS && to->number >= 0;
}

/* The same for a task that the verifier trusts (an argument of tp_btf, or of an iterator): by plain
 * loads if the kernel offers the registers' address (5.15). */
static __always_inline bool arch_task_entry_read(struct task_struct *task, struct arch_entry *to)
{
	const volatile struct arch_regs *regs;

	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return arch_entry_read(
			(char *)task->stack + ARCH_THREAD_SIZE - sizeof(struct arch_regs), to);
	regs = (const volatile struct arch_regs *)bpf_task_pt_regs(task);
	if ((regs->cs & 3) != 3 || regs->cs == ARCH_USER32_CS)
		return false;
	to->first = regs->di;
	to->call = (__s64)regs->orig_ax;
	return true;
}

#endif
#endif
