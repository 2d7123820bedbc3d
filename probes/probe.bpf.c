/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * probe: any one probe (probe/plan.h): a tracepoint, a system call from its begin to its end, a
 * place in a program's code, or a pair of two such hooks. `plan` says what of it is wanted; all
 * that it does not say is a constant that the verifier removes with the code behind it.
 *
 * 1. Fields are read by bpf_probe_read_kernel from the context: older kernels refuse a context
 *    pointer that has been moved, and all let a helper read behind it.
 * 2. Texts of a system call are read at its end: by then its pages are there. A call that replaces
 *    its process (execve) has lost them by then.
 * 3. Uprobes run with preemption on in some kernels (5.19 to 6.14): a second run on the same CPU
 * finds the scratch in use, and is counted as such.
 * 4. Texts of a pair's first hook are read there: at the second one they may be freed.
 * 5. A program at a tracepoint does not run where it interrupts another such program on its CPU:
 * the kernel leaves that hit out; newer ones count it.
 */
#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/lib/arch_x86.h"
#include "probes/lib/passon.bpf.h"
#include "probes/lib/preempt.bpf.h"
#include "probes/lib/sample.bpf.h"
#include "probes/lib/slots.bpf.h"
#include "probes/lib/who.bpf.h"
#include "probes/probe/plan.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define CALL_NR   8 /* where the record of a system call's tracepoint has what */
#define CALL_ARGS 16
#define CALL_RET  16
#define CALLS     8192
#define WINDOW    30 /* 2^this ns: the second that a rate is about */

const volatile struct probe_plan plan = {};
const volatile struct probe_site sites[PROBE_SITES] = {};
const volatile __u8 site_at[PROBE_PAGE] = {}; /* by place in the page; without cookies */
const volatile __u32 use_cookie = 0;

volatile __u32 probe_epoch; /* the loader's */
volatile __u32
	probe_every; /* the loader's: one of this number of hits goes into the ring; 0: each */

__u64 probe_second, probe_sent; /* without locks: a few more may go through */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2048);
	__type(key, struct probe_key);
	__type(value, struct probe_sum);
} sums SEC(".maps");

struct { /* by epoch, of two: what found no room there. The loader clears it */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct probe_sum);
} rest SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct probe_counts);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1024 * 1024);
} hits SEC(".maps");

struct call { /* a system call that a thread is in */
	__u64 begin_ns;
	__s64 nr;
	__s64 args[6];
};

struct hit {
	struct who_id who;
	__s64 value[PROBE_ARGS];
	__s64 ret;
	__u64 ns;
	__u32 missing, unused;
};

struct begun_key {
	__u64 whose;
	__s64 n[PROBE_BY];
};

struct begun { /* what the first hook of a pair had */
	__u64 begin_ns;
	__u64 back; /* return address; 0 */
	struct who_id who;
	__u32 tid, missing;
	char comm[PROBE_COMM];
	__s64 value[PROBE_ARGS];
	char text[PROBE_KEPT][PROBE_STR]; /* by argument, in their order */
};

#define REGS 32      /* words; struct pt_regs has 21 */
struct hit_scratch { /* older kernels give little stack */
	__u64 in_use;
	__u64 regs[REGS];
	struct begun_key pair_key;
	struct begun begun;
	struct hit hit;
	struct probe_key key;
	struct probe_event ev;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hit_scratch);
} hit_scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CALLS);
	__type(key, __u64); /* pid_tgid */
	__type(value, struct call);
} calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PROBE_BEGUN);
	__type(key, struct begun_key);
	__type(value, struct begun);
} begins SEC(".maps");

static const struct probe_sum nothing;

/* ---- arguments ---- */

static __always_inline __s64 narrow(__u64 v, const volatile struct probe_fetch *f)
{
	__u32 bits = 64 - 8 * (f->size & 15);

	if (f->size == 8 || !f->size)
		return (__s64)v;
	return f->is_signed ? (__s64)(v << bits) >> bits : (__s64)(v << bits >> bits);
}

static __always_inline long fetch(void *ctx, const struct call *call,
				  const volatile struct probe_fetch *f, __s64 *out)
{
	__u64 v = 0;
	__u32 size = f->deref ? 8 : f->size;
	long err = 0;

	if (size > sizeof(v))
		size = sizeof(v);
	if (f->from == PROBE_FROM_CONTEXT)
		err = bpf_probe_read_kernel(&v, size, ctx + f->offset);
	else if (f->from == PROBE_FROM_CALL && call)
		v = (__u64)call->args[f->offset < 6 ? f->offset : 5];
	else if (f->from == PROBE_FROM_CALL_NR && call)
		v = (__u64)call->nr;
	else if (f->from == PROBE_FROM_CONSTANT)
		v = (__u64)f->more;
	else if (f->from == PROBE_FROM_PID)
		v = bpf_get_current_pid_tgid() >> 32;
	else if (f->from == PROBE_FROM_TID)
		v = (__u32)bpf_get_current_pid_tgid();
	else if (f->from == PROBE_FROM_CPU)
		v = bpf_get_smp_processor_id();
	if (!err && f->deref) {
		const void *at = (const void *)(v + (__u64)f->more);

		v = 0;
		size = f->size > sizeof(v) ? sizeof(v) : f->size;
		err = bpf_probe_read_user(&v, size, at);
	}
	*out = narrow(v, f);
	return err;
}

/* All of its bytes may be in use, without a final 0. */
static __always_inline long chars_read(char *to, __u32 size, void *ctx,
				       const volatile struct probe_fetch *f)
{
	__u32 n = (__u32)f->more < size - 1 ? (__u32)f->more : size - 1;

	if (bpf_probe_read_kernel(to, n, ctx + f->offset))
		return -1;
	to[n] = 0;
	return bpf_probe_read_kernel_str(to, n + 1, to);
}

static __always_inline long counted_read(char *to, __u32 size, void *ctx,
					 const volatile struct probe_fetch *f, __s64 value)
{
	__u64 n = 0;

	if (bpf_probe_read_kernel(&n, sizeof(n), ctx + (__u32)f->more))
		return -1;
	if (n > size - 1)
		n = size - 1;
	barrier_var(n);
	n &= PROBE_STR - 1;
	if (n > size - 1 || bpf_probe_read_user(to, n, (const void *)value))
		return -1;
	to[n] = 0;
	return (long)n + 1;
}

static __always_inline long text_here(char *to, __u32 size, void *ctx,
				      const volatile struct probe_fetch *f, __s64 value)
{
	switch (f->text) {
	case PROBE_TEXT_USER:
		return bpf_probe_read_user_str(to, size, (const void *)value);
	case PROBE_TEXT_CONTEXT:
		return chars_read(to, size, ctx, f);
	case PROBE_TEXT_COUNTED:
		return counted_read(to, size, ctx, f, value);
	case PROBE_TEXT_DATA_LOC:
		return bpf_probe_read_kernel_str(to, size, ctx + ((__u64)value & 0xffff));
	case PROBE_TEXT_REL_LOC:
		return bpf_probe_read_kernel_str(to, size,
						 ctx + f->offset + 4 + ((__u64)value & 0xffff));
	default:
		return -1;
	}
}

/* That of a pair's first hook was read there: `value` is its copy's address; 0: it could not be. */
static __always_inline long text_read(char *to, __u32 size, void *ctx,
				      const volatile struct probe_fetch *f, __s64 value)
{
	if (f->begun)
		return value ? bpf_probe_read_kernel_str(to, size, (const void *)value) : -1;
	return text_here(to, size, ctx, f, value);
}

static __always_inline __s64 value_of(const struct hit *h, __u32 arg)
{
	if (arg == PROBE_RET)
		return h->ret;
	if (arg == PROBE_NS)
		return (__s64)h->ns;
	return arg < PROBE_ARGS ? h->value[arg] : 0;
}

/* ---- conditions ---- */

static __always_inline bool number_holds(const volatile struct probe_cond *c, __s64 v)
{
	__s64 n = c->number;

	switch (c->op) {
	case PROBE_EQ:
		return v == n;
	case PROBE_NE:
		return v != n;
	case PROBE_LT:
		return c->is_signed ? v < n : (__u64)v < (__u64)n;
	case PROBE_LE:
		return c->is_signed ? v <= n : (__u64)v <= (__u64)n;
	case PROBE_GT:
		return c->is_signed ? v > n : (__u64)v > (__u64)n;
	case PROBE_GE:
		return c->is_signed ? v >= n : (__u64)v >= (__u64)n;
	case PROBE_BITS:
		return v & n;
	default:
		return false;
	}
}

/* A text that cannot be read equals none. */
static __always_inline bool text_holds(void *ctx, const volatile struct probe_cond *c,
				       const volatile struct probe_fetch *f, __s64 v)
{
	__u32 length = c->op == PROBE_BEGINS ? c->length : c->length + 1;
	char text[PROBE_COND] = {};
	bool same = text_read(text, sizeof(text), ctx, f, v) > 0;

	for (__u32 i = 0; i < PROBE_COND; i++)
		if (i < length && text[i] != c->text[i])
			same = false;
	return c->op == PROBE_NE ? !same : same;
}

static __always_inline bool cond_holds(void *ctx, const volatile struct probe_cond *c,
				       const struct hit *h)
{
	__u32 arg = c->arg;

	if (arg == PROBE_NONE)
		return true;
	if (arg < PROBE_ARGS && plan.args[arg].text)
		return text_holds(ctx, c, &plan.args[arg], h->value[arg]);
	if (arg < PROBE_ARGS && h->missing >> arg & 1)
		return false;
	return number_holds(c, value_of(h, arg));
}

/* ---- sums ---- */

static __always_inline bool failed(const struct hit *h)
{
	return plan.errors && h->ret < 0 && h->ret >= -4095;
}

static __always_inline void key_fill(struct probe_key *key, void *ctx, const struct hit *h)
{
	__builtin_memset(key, 0, sizeof(*key));
	key->who = h->who;
	key->epoch = probe_epoch;
#pragma unroll
	for (int i = 0; i < PROBE_BY; i++) {
		__u32 arg = plan.by[i];

		if (arg == PROBE_NONE)
			continue;
		if (arg < PROBE_ARGS && plan.args[arg].text)
			text_read(key->text, sizeof(key->text), ctx, &plan.args[arg],
				  h->value[arg]);
		else
			key->number[i] = plan.errors && arg == PROBE_RET && !failed(h) ?
						 0 :
						 value_of(h, arg);
	}
}

static __always_inline struct probe_sum *sum_get(const struct probe_key *key)
{
	struct probe_sum *s = bpf_map_lookup_elem(&sums, key);

	if (s)
		return s;
	bpf_map_update_elem(&sums, key, &nothing, BPF_NOEXIST);
	return bpf_map_lookup_elem(&sums, key);
}

static __always_inline struct probe_sum *sum_of(const struct probe_key *key, struct probe_counts *c)
{
	struct probe_sum *s = sum_get(key);
	__u32 slot = key->epoch & 1;

	if (s)
		return s;
	c->crowded++;
	return bpf_map_lookup_elem(&rest, &slot);
}

/* A call that failed returned no amount. */
static __always_inline bool has_amount(const struct hit *h, __u32 arg)
{
	return arg != PROBE_NONE && !(arg == PROBE_RET && failed(h));
}

static __always_inline void sum_add(void *ctx, struct hit_scratch *own, struct probe_counts *c)
{
	const struct hit *h = &own->hit;
	struct probe_sum *s;
	__s64 shown;

	key_fill(&own->key, ctx, h);
	s = sum_of(&own->key, c);
	if (!s)
		return;
	__sync_fetch_and_add(&s->hits, 1);
	if (plan.ends) {
		__sync_fetch_and_add(&s->ns, h->ns);
		if (failed(h))
			__sync_fetch_and_add(&s->errors, 1);
	}
	if (has_amount(h, plan.sum))
		__sync_fetch_and_add(&s->sum, value_of(h, plan.sum));
	if (!has_amount(h, plan.hist))
		return;
	shown = value_of(h, plan.hist);
	__sync_fetch_and_add(&s->hist[slot_of(shown < 0 ? 0 : (__u64)shown) & (PROBE_SLOTS - 1)],
			     1);
}

/* ---- single hits ---- */

/* By lot; 0: it is passed over. */
static __always_inline __u32 weight_of(__u64 now)
{
	__u64 second = now >> WINDOW, n;
	__u32 every = probe_every;

	if (every > 1 && bpf_get_prandom_u32() % every)
		return 0;
	if (probe_second != second) {
		probe_second = second;
		probe_sent = 0;
	}
	n = probe_sent;
	if (n >= plan.rate)
		return 0;
	probe_sent = n + 1;
	return every > 1 ? every : 1;
}

static __always_inline void texts_fill(struct probe_event *ev, void *ctx, const struct hit *h)
{
	__u32 at = 0;

#pragma unroll
	for (int i = 0; i < PROBE_ARGS; i++) {
		__u64 to = at;
		long n;

		ev->value[i] = h->value[i];
		if (!plan.args[i].text)
			continue;
		ev->value[i] = at;
		barrier_var(to); /* as in event_send */
		n = at < PROBE_TEXT ? text_read(ev->text + (to & (PROBE_TEXT - 1)), PROBE_STR, ctx,
						&plan.args[i], h->value[i]) :
				      -1;
		if (n > 0 && n <= PROBE_STR)
			at += (__u32)n;
		else
			ev->missing |= 1 << i;
	}
	ev->n_text = (__u16)at;
}

static __always_inline long event_send(void *ctx, struct probe_event *ev, const struct hit *h,
				       const struct begun *begun, __u64 now, __u32 weight)
{
	__u64 size;

	ev->who = h->who;
	ev->time_ns = now;
	ev->ns = h->ns;
	ev->ret = h->ret;
	ev->tid = begun ? begun->tid : (__u32)bpf_get_current_pid_tgid();
	ev->weight = weight;
	ev->missing = (__u16)h->missing;
	ev->index = plan.index;
	ev->flags = (plan.ends ? PROBE_F_ENDS : 0) | (plan.returns ? PROBE_F_RETURNS : 0);
	ev->unused = 0;
	if (begun)
		__builtin_memcpy(ev->comm, begun->comm, sizeof(ev->comm));
	else
		bpf_get_current_comm(ev->comm, sizeof(ev->comm));
	texts_fill(ev, ctx, h);
	size = ev->n_text;
	barrier_var(size); /* else the compiler removes a check that older verifiers need (6.1) */
	if (size > PROBE_TEXT + PROBE_STR)
		return -1;
	return bpf_ringbuf_output(&hits, ev, __builtin_offsetof(struct probe_event, text) + size,
				  BPF_RB_NO_WAKEUP);
}

static __always_inline void stack_send(void *ctx, struct task_struct *task, const struct hit *h,
				       __u64 now, __u32 weight)
{
	__u32 zero = 0;
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &zero);
	struct sample_tally *t = bpf_map_lookup_elem(&tally, &zero);
	__u64 ns = h->ns > PROBE_TAG_NS(~0ull) ? PROBE_TAG_NS(~0ull) : h->ns, n;

	if (!s || !t)
		return;
	if (weight > PROBE_TAG_WEIGHT(~0ull))
		weight = PROBE_TAG_WEIGHT(~0ull);
	n = (__u64)weight << plan.ends;
	stack_fill_task(&s->ev, task, now);
	s->ev.tag = (__u64)plan.index << 58 | (__u64)weight << 40 | ns;
	t->seen += n;
	if (stack_fill(s, task, ctx, NULL))
		t->late += n;
	else if (sample_send(s))
		t->ring_full += n;
	else
		t->sent += n;
}

static __always_inline void single_send(void *ctx, struct task_struct *task,
					struct hit_scratch *own, const struct begun *begun,
					struct probe_counts *c, bool stack)
{
	__u64 now = bpf_ktime_get_boot_ns();
	__u32 weight = weight_of(now);

	if (!weight)
		c->passed_over++;
	else if (event_send(ctx, &own->ev, &own->hit, begun, now, weight))
		c->ring_full++;
	else if (stack)
		stack_send(ctx, task, &own->hit, now, weight);
}

/* ---- hits ---- */

static __always_inline bool is_wanted(struct task_struct *task)
{
	return bpf_get_current_pid_tgid() >> 32 != plan.self && task_in_scope(task);
}

static __always_inline void kept_take(struct hit *h, const struct begun *begun, __u32 i, __u32 text)
{
	h->missing |= begun->missing & 1u << i;
	h->value[i] = begun->value[i];
	if (plan.args[i].text)
		h->value[i] = begun->missing >> i & 1 ?
				      0 :
				      (__s64)(long)&begun->text[text & (PROBE_KEPT - 1)];
}

static __always_inline bool holds(void *ctx, const struct call *call, const struct begun *begun,
				  struct hit *h)
{
	bool all = true;
	__u32 text = 0;

#pragma unroll
	for (int i = 0; i < PROBE_ARGS; i++) {
		const volatile struct probe_fetch *f = &plan.args[i];

		if (begun && f->begun) {
			kept_take(h, begun, i, text);
			text += f->text != 0;
		} else if (f->from == PROBE_FROM_RETURNED) {
			h->value[i] = h->ret;
		} else if (f->from && fetch(ctx, call, f, &h->value[i])) {
			h->missing |= 1u << i;
		}
	}
#pragma unroll
	for (int i = 0; i < PROBE_CONDS; i++)
		all = all && cond_holds(ctx, &plan.conds[i], h);
	return all;
}

/* What holds of it goes into the sums, and may be sent. */
static __always_inline void hit_add(void *ctx, struct task_struct *task, struct hit_scratch *own,
				    const struct call *call, const struct begun *begun,
				    struct probe_counts *c, bool stack)
{
	if (!holds(ctx, call, begun, &own->hit))
		return;
	c->hits++;
	if (begun)
		own->hit.who = begun->who;
	else
		who_id_fill(&own->hit.who, task);
	sum_add(ctx, own, c);
	single_send(ctx, task, own, begun, c, stack);
}

static __always_inline int hit(void *ctx, const struct call *call, __s64 ret, __u64 ns, bool stack)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u32 zero = 0;
	struct probe_counts *c = bpf_map_lookup_elem(&counts, &zero);
	struct hit_scratch *own = bpf_map_lookup_elem(&hit_scratch, &zero);

	if (!c || !own)
		return 0;
	c->runs++;
	if (!is_wanted(task))
		return 0;
	if (own->in_use) {
		c->busy++;
		return 0;
	}
	own->in_use = 1;
	__builtin_memset(&own->hit, 0, sizeof(own->hit));
	own->hit.ret = ret;
	own->hit.ns = ns;
	hit_add(ctx, task, own, call, NULL, c, stack);
	own->in_use = 0;
	return 0;
}

SEC("?tracepoint")
int probe_tracepoint(void *ctx)
{
	hit(ctx, NULL, 0, 0, false);
	return PASS_ON;
}

SEC("?tracepoint")
int probe_tracepoint_stack(void *ctx)
{
	hit(ctx, NULL, 0, 0, true);
	return PASS_ON;
}

PREEMPT_PAIR("kprobe", probe_code, hit(ctx, NULL, 0, 0, false))
PREEMPT_PAIR("kprobe", probe_code_stack, hit(ctx, NULL, 0, 0, true))

SEC("?tracepoint")
int probe_call_begin(void *ctx)
{
	__u64 me = bpf_get_current_pid_tgid();
	struct probe_counts *c;
	struct call call = {};
	__u32 zero = 0;

	if (!is_wanted((struct task_struct *)bpf_get_current_task()))
		return PASS_ON;
	bpf_probe_read_kernel(&call.nr, 4, ctx + CALL_NR);
	if (call.nr == ARCH_CALL_EXIT || call.nr == ARCH_CALL_EXIT_GROUP) /* they do not end */
		return PASS_ON;
	bpf_probe_read_kernel(call.args, sizeof(call.args), ctx + CALL_ARGS);
	call.begin_ns = bpf_ktime_get_boot_ns();
	if (!bpf_map_update_elem(&calls, &me, &call, BPF_ANY))
		return PASS_ON;
	c = bpf_map_lookup_elem(&counts, &zero);
	if (c)
		c->unfollowed++;
	return PASS_ON;
}

static __always_inline int call_end(void *ctx, bool stack)
{
	__u64 me = bpf_get_current_pid_tgid(), now = bpf_ktime_get_boot_ns();
	struct call *call = bpf_map_lookup_elem(&calls, &me);
	struct probe_counts *c;
	__u32 zero = 0;
	__s32 nr = 0;
	__s64 ret = 0;

	if (!call) {
		c = bpf_map_lookup_elem(&counts, &zero);
		if (c && is_wanted((struct task_struct *)bpf_get_current_task()))
			c->unpaired++;
		return PASS_ON;
	}
	bpf_probe_read_kernel(&nr, sizeof(nr), ctx + CALL_NR);
	bpf_probe_read_kernel(&ret, sizeof(ret), ctx + CALL_RET);
	if (nr == call->nr)
		hit(ctx, call, ret, now - call->begin_ns, stack);
	bpf_map_delete_elem(&calls, &me);
	return PASS_ON;
}

SEC("?tracepoint")
int probe_call_end(void *ctx)
{
	return call_end(ctx, false);
}

SEC("?tracepoint")
int probe_call_end_stack(void *ctx)
{
	return call_end(ctx, true);
}

/* ---- pairs ---- */

static __always_inline __u64 reg_at(const struct hit_scratch *own, __u32 offset)
{
	return own->regs[(offset >> 3) & (REGS - 1)];
}

static __always_inline __s64 value_read(const struct hit_scratch *own,
					const volatile struct probe_value *v)
{
	__u64 x = 0;

	if (v->place == PROBE_KNOWN)
		return v->at;
	if (v->place == PROBE_REGISTER)
		x = reg_at(own, v->reg);
	else if (v->place == PROBE_STACK)
		bpf_probe_read_user(
			&x, sizeof(x),
			(const void *)(reg_at(own, __builtin_offsetof(struct arch_regs, sp)) +
				       (__u64)(__s64)v->at));
	return v->bytes == 4 ? (__s32)x : (__s64)x;
}

/* Which hook of a function's call was hit. */
static __always_inline const volatile struct probe_site *site_of(void *ctx,
								 const struct hit_scratch *own)
{
	__u64 n;

	if (use_cookie)
		n = bpf_get_attach_cookie(ctx);
	else
		n = site_at[reg_at(own, __builtin_offsetof(struct arch_regs, ip)) &
			    (PROBE_PAGE - 1)];
	return &sites[n & (PROBE_SITES - 1)];
}

static __always_inline bool site_holds(const struct hit_scratch *own,
				       const volatile struct probe_site *s)
{
	__u64 flags = reg_at(own, __builtin_offsetof(struct arch_regs, flags));

	if (s->when == PROBE_ALWAYS)
		return true;
	return arch_condition(flags, s->condition) == (s->when == PROBE_TAKEN);
}

/* plan.h, 4. *back: the return address. */
static __always_inline void frame_key(struct hit_scratch *own, const volatile struct probe_site *s,
				      __u64 *back)
{
	__u64 frame = reg_at(own, s->base) + (__u64)(__s64)s->frame, high = 0;
	__u64 g = reg_at(own, __builtin_offsetof(struct arch_regs, r14));

	own->pair_key.whose = bpf_get_current_pid_tgid() >> 32;
	bpf_probe_read_user(back, sizeof(*back), (const void *)frame);
	if (plan.go && !bpf_probe_read_user(&high, sizeof(high), (const void *)(g + 8))) {
		own->pair_key.n[0] = (__s64)g;
		own->pair_key.n[1] = (__s64)(high - frame);
		return;
	}
	own->pair_key.n[0] = (__s64)frame;
	own->pair_key.n[1] = 0;
}

static __always_inline bool named_key(void *ctx, struct hit_scratch *own, __u32 end)
{
	bool found = true;

	__builtin_memset(&own->pair_key, 0, sizeof(own->pair_key));
#pragma unroll
	for (int i = 0; i < PROBE_BY; i++)
		if (plan.key[end][i].from &&
		    fetch(ctx, NULL, &plan.key[end][i], &own->pair_key.n[i]))
			found = false;
	return found;
}

static __always_inline void begun_fill(void *ctx, struct task_struct *task, struct begun *b)
{
	__u32 text = 0;

	b->missing = 0;
	who_id_fill(&b->who, task);
	b->tid = (__u32)bpf_get_current_pid_tgid();
	bpf_get_current_comm(b->comm, sizeof(b->comm));
#pragma unroll
	for (int i = 0; i < PROBE_ARGS; i++) {
		b->value[i] = 0;
		if (!plan.args[i].from || !plan.args[i].begun)
			continue;
		if (fetch(ctx, NULL, &plan.args[i], &b->value[i]))
			b->missing |= 1u << i;
		if (!plan.args[i].text)
			continue;
		if (text_here(b->text[text & (PROBE_KEPT - 1)], PROBE_STR, ctx, &plan.args[i],
			      b->value[i]) < 0)
			b->missing |= 1u << i;
		text++;
	}
}

static __always_inline int begin(void *ctx, struct task_struct *task, struct hit_scratch *own,
				 struct probe_counts *c)
{
	struct begun *b;

	if (!is_wanted(task))
		return 0;
	begun_fill(ctx, task, &own->begun);
	own->begun.begin_ns = bpf_ktime_get_boot_ns(); /* another CPU may end it at once */
	if (bpf_map_update_elem(&begins, &own->pair_key, &own->begun, BPF_NOEXIST)) {
		if (bpf_map_update_elem(&begins, &own->pair_key, &own->begun, BPF_ANY)) {
			c->unfollowed++;
			return 0;
		}
		c->unpaired++; /* the one before never ended */
	}
	b = bpf_map_lookup_elem(&begins, &own->pair_key);
	if (b)
		b->begin_ns = bpf_ktime_get_boot_ns(); /* after all that this program does */
	return 0;
}

/* Takes what the first hook left into the scratch. Threads on two CPUs may have hit the second hook
 * of one key: it belongs to the one that deletes it. */
static __always_inline bool begun_take(struct hit_scratch *own, __u64 back)
{
	struct begun *b = bpf_map_lookup_elem(&begins, &own->pair_key);

	return b && b->back == back && !bpf_probe_read_kernel(&own->begun, sizeof(own->begun), b) &&
	       !bpf_map_delete_elem(&begins, &own->pair_key);
}

/* `others`: functions that others call, too, where no begin is no loss. */
static __always_inline int end(void *ctx, struct task_struct *task, struct hit_scratch *own,
			       struct probe_counts *c, __u64 now, __u64 back, __s64 ret,
			       bool others, bool stack)
{
	const struct begun *b = &own->begun;

	if (!begun_take(own, back)) {
		c->unpaired += !others && is_wanted(task);
		return 0;
	}
	__builtin_memset(&own->hit, 0, sizeof(own->hit));
	own->hit.ret = ret;
	own->hit.ns = now > b->begin_ns ? now - b->begin_ns : 0;
	hit_add(ctx, task, own, NULL, b, c, stack);
	return 0;
}

static __always_inline __s64 returned(const struct hit_scratch *own,
				      const volatile struct probe_site *s)
{
	__u64 v = (__u64)value_read(own, &s->value[0]);
	__u32 bits = 64 - 8 * (plan.ret_size & 15);

	if (s->value[1].place)
		v += (__u64)value_read(own, &s->value[1]);
	if (plan.ret_size == 8 || !plan.ret_size)
		return (__s64)v;
	return plan.ret_signed ? (__s64)(v << bits) >> bits : (__s64)(v << bits >> bits);
}

static __always_inline int frame_hook(void *ctx, struct task_struct *task, struct hit_scratch *own,
				      struct probe_counts *c, __u64 now, bool stack)
{
	const volatile struct probe_site *s;
	__u64 back = 0;

	if (bpf_probe_read_kernel(own->regs, sizeof(struct arch_regs), ctx))
		return 0;
	s = site_of(ctx, own);
	if (!site_holds(own, s))
		return 0;
	if (plan.pair == PROBE_ALONE) { /* a function's begin, at a jcc */
		__builtin_memset(&own->hit, 0, sizeof(own->hit));
		if (is_wanted(task))
			hit_add(ctx, task, own, NULL, NULL, c, stack);
		return 0;
	}
	frame_key(own, s, &back);
	own->begun.back = back;
	if (s->begins)
		return begin(ctx, task, own, c);
	return end(ctx, task, own, c, now, back, returned(own, s), s->others, stack);
}

static __always_inline int key_hook(void *ctx, struct task_struct *task, struct hit_scratch *own,
				    struct probe_counts *c, __u64 now, bool ends, bool stack)
{
	if (!named_key(ctx, own, ends))
		return 0;
	own->begun.back = 0;
	if (!ends)
		return begin(ctx, task, own, c);
	return end(ctx, task, own, c, now, 0, 0, false, stack);
}

enum hook { HOOK_FRAME, HOOK_BEGIN, HOOK_END };

static __always_inline int pair_hook(void *ctx, enum hook hook, bool stack)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 now = bpf_ktime_get_boot_ns();
	__u32 zero = 0;
	struct probe_counts *c = bpf_map_lookup_elem(&counts, &zero);
	struct hit_scratch *own = bpf_map_lookup_elem(&hit_scratch, &zero);

	if (!c || !own)
		return 0;
	c->runs++;
	if (own->in_use) {
		c->busy++;
		return 0;
	}
	own->in_use = 1;
	if (hook == HOOK_FRAME)
		frame_hook(ctx, task, own, c, now, stack);
	else
		key_hook(ctx, task, own, c, now, hook == HOOK_END, stack);
	own->in_use = 0;
	return 0;
}

PREEMPT_PAIR("kprobe", probe_frame, pair_hook(ctx, HOOK_FRAME, false))
PREEMPT_PAIR("kprobe", probe_frame_stack, pair_hook(ctx, HOOK_FRAME, true))
PREEMPT_PAIR("kprobe", probe_first_code, pair_hook(ctx, HOOK_BEGIN, false))
PREEMPT_PAIR("kprobe", probe_last_code, pair_hook(ctx, HOOK_END, false))
PREEMPT_PAIR("kprobe", probe_last_code_stack, pair_hook(ctx, HOOK_END, true))

SEC("?tracepoint")
int probe_first_event(void *ctx)
{
	pair_hook(ctx, HOOK_BEGIN, false);
	return PASS_ON;
}

SEC("?tracepoint")
int probe_last_event(void *ctx)
{
	pair_hook(ctx, HOOK_END, false);
	return PASS_ON;
}

SEC("?tracepoint")
int probe_last_event_stack(void *ctx)
{
	pair_hook(ctx, HOOK_END, true);
	return PASS_ON;
}

TRACEPOINT(sched_process_fork, probe_fork, struct task_struct *parent, struct task_struct *child)
{
	sample_fork(parent, child);
	return 0;
}

TRACEPOINT(sched_process_exit, probe_exit, struct task_struct *task)
{
	scope_exit(task);
	return 0;
}
