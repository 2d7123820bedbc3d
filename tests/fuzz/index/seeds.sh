#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: seeds for the fuzzers of this folder, of real files: OUTDIR/{elfindex,cfi,knowncode,pclntab,gotables,debuglink,image}/.
# Small programs are built here with what the build needs anyway (gcc, binutils); Go's table is the machine's own where
# a Go program is there, and one written by hand for each generation.
set -eu
out=$(realpath -m "$1")
here=$(dirname "$(realpath "$0")")
mkdir -p "$out/elfindex" "$out/cfi" "$out/knowncode" "$out/pclntab" "$out/gotables" "$out/debuglink" "$out/image"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Programs in C++: functions, weak ones, labels, cold parts, PLT stubs.
cat > a.cc <<'END'
#include <cstdio>
#include <string>
namespace ns { template <class T> struct box { T v; __attribute__((noinline)) T get(const T &d) { return v + d; } }; }
__attribute__((weak)) int weakling(int a) { return a * 3; }
static __attribute__((noinline, cold)) void seldom() { std::puts("x"); }
asm(".text\n.globl by_hand\nby_hand:\n nop\n ret\n");
int main(int n, char **v) { ns::box<std::string> b{v[0]}; if (n > 9) seldom(); return weakling((int)b.get("x").size()); }
END
g++ -O1 -g0 -o full a.cc
g++ -O1 -g0 -o now -Wl,-z,now -fcf-protection=none a.cc
gcc -m32 -shared -nostdlib -x c -o lib32 - 2>/dev/null <<'END' || true
int f(int a) { return a; }
END
cp full plain && strip plain
cp full dyn && strip dyn
# no section table
cp dyn bare
printf '\0\0\0\0\0\0\0\0' | dd of=bare bs=1 seek=40 conv=notrunc 2>/dev/null
printf '\0\0\0\0' | dd of=bare bs=1 seek=60 conv=notrunc 2>/dev/null
# .hash instead of .gnu.hash
g++ -O1 -g0 -shared -fPIC -Wl,--hash-style=sysv -o sysv a.cc
strip sysv
printf '\0\0\0\0\0\0\0\0' | dd of=sysv bs=1 seek=40 conv=notrunc 2>/dev/null
printf '\0\0\0\0' | dd of=sysv bs=1 seek=60 conv=notrunc 2>/dev/null
# debuglink, and the debug file behind the program
objcopy --only-keep-debug full full.debug
cp plain linked && objcopy --add-gnu-debuglink=full.debug linked
cat linked full.debug > pair
# the same without a build-id, so that the link is what counts
objcopy -R .note.gnu.build-id full nobid
objcopy --only-keep-debug nobid nobid.debug 2>/dev/null
cp nobid nolinked && strip nolinked && objcopy --add-gnu-debuglink=nobid.debug nolinked
cat nolinked nobid.debug > pair2
# .gnu_debugdata
if command -v xz >/dev/null; then
	xz -k full.debug
	cp plain mini && objcopy --add-section .gnu_debugdata=full.debug.xz mini
	head -c 1000000 /dev/zero | xz > zeros.xz
	cp plain zeros && objcopy --add-section .gnu_debugdata=zeros.xz zeros
fi
# Rust's manglings and other long names
cat > names.s <<'END'
.text
.macro f n
.globl \n
.type \n, @function
\n: ret
.size \n, 1
.endm
f _ZN4core3fmt9Formatter3pad17h0123456789abcdefE
f _RNvNtCs1234_7mycrate3foo3bar
f _RINvNtC3std3mem8align_ofNtNtC3std3mem12DiscriminantE
f _ZNSt6vectorIiSaIiEE9push_backEOi
f _ZN3foo3barEv.cold
END
gcc -shared -nostdlib -o names names.s 2>/dev/null || true

# libraries with the symbols of CPython's, stripped: of 3.9 (a loop with a cold part), 2.7 and 3.13
python() { # name, version, own symbols
	cat <<END
int snprintf(char *, unsigned long, const char *, ...);
char PyCode_Type[400], PyFrame_Type[400], text[99];
$3
const char *Py_GetVersion(void) { snprintf(text, 99, "%.80s (%.80s)", "$2", "x"); return text; }
__attribute__((cold, noinline)) void rare(int x) { text[x & 63]++; }
__attribute__((noinline)) void other(int x) { text[x & 15] ^= 1; if (x > 3) rare(x); }
int $4(int x) {
	for (int i = 0; i < x; i++) { if (__builtin_expect(text[i & 31] == 3, 0)) { rare(i); other(i); rare(x); if (x == 77) rare(3); } other(i); }
	if (__builtin_expect(text[5] == 9, 0)) { rare(1); other(2); }
	return x; }
END
}
common='char PyUnicode_Type[400], PyBytes_Type[400];'
python py39 3.9.2 "$common char _PyRuntime[4096];" _PyEval_EvalFrameDefault | gcc -O2 -shared -fPIC -s -o py39 -x c -
python py27 2.7.18 'char PyString_Type[400]; static void *interp_head; void *PyInterpreterState_Head(void) { return interp_head; } void began(void *p) { interp_head = p; }' PyEval_EvalFrameEx |
	gcc -O2 -shared -fPIC -s -o py27 -x c -
python py313 3.13.1 "$common const unsigned long Py_Version = 0x030d01f0; unsigned long _PyRuntime[200] = {0x7970677562656478, 0x030d01f0, 0, 8, 8, 8};" \
	_PyEval_EvalFrameDefault | gcc -O2 -shared -fPIC -s -o py313 -x c -
# Engines and tables of other runtimes
gcc -O2 -shared -fPIC -s -o php -x c - <<'END'
char executor_globals[2000];
__attribute__((used)) const char build[] = "API20220829,NTS";
int execute_ex(int a) { return a * 3; }
void cold(void) __asm__("execute_ex.cold");
void cold(void) { executor_globals[3]++; }
END
{
	echo 'const char ruby_version[] = "3.1.2"; __thread long *ec; struct { long last, a, ids; } symbols;'
	echo 'long rb_thread_current(void) { return ec[3]; } long rb_id2str(long id) { return id > symbols.last ? 0 : symbols.ids; }'
	echo 'long vm_exec_core(long n) { static const void *const table[] = {'
	for i in $(seq 200); do echo "&&l$i,"; done
	echo '}; goto *table[n % 200];'
	for i in $(seq 200); do echo "l$i: n += $i * n; if (n == $i) goto *table[n % 200];"; done
	echo 'return n; }'
} | gcc -O1 -shared -fPIC -s -w -o ruby -x c -
{
	echo 'static long word; static struct { const char *type, *member, *of; unsigned is_static; long offset; void *address; } structs[] = {'
	sed -n 's/.*{HOTSPOT_\(VERSION\|THREADS\|HEAPS\|LOW\|HIGH\|INTERPRETER\|CALL_RETURN\), STRUCTS, \("[^"]*"\), \("[^"]*"\)},.*/{\2, \3, "x", 1, 0, \&word},/p; t
		s/.*{HOTSPOT_[A-Z_]*, STRUCTS, \("[^"]*"\), \("[^"]*"\)},.*/{\1, \2, "x", 0, 8, 0},/p' "$here/../../../loaders/index/runtimes/hotspotpart.c"
	echo '{0}}; void *gHotSpotVMStructs = structs; static struct { const char *name, *super; unsigned a, b, c, d; long size; } types[] = {'
	sed -n 's/.*{HOTSPOT_[A-Z_]*, TYPES, \("[^"]*"\), NULL},.*/{\1, 0, 0, 0, 0, 0, 16},/p' "$here/../../../loaders/index/runtimes/hotspotpart.c"
	echo '{0}}; void *gHotSpotVMTypes = types; static struct { const char *name; int value; } constants[] = {'
	sed -n 's/.*{HOTSPOT_[A-Z_]*, CONSTANTS, \("[^"]*"\), NULL},.*/{\1, 1},/p' "$here/../../../loaders/index/runtimes/hotspotpart.c"
	echo '{0}}; void *gHotSpotVMIntConstants = constants;'
} | gcc -O2 -shared -fPIC -s -o hotspot -x c -
{
	sed -n 's/^\t{"\([a-z][A-Za-z0-9_]*\)", V8_\([A-Z_]*\)},/int v8dbg_\1 = 8;/p' "$here/../../../loaders/index/runtimes/v8part.c" | grep -v napi
	echo 'int v8dbg_TaggedSize = 8, v8dbg_SmiShiftSize = 31; static int node[3] = {20, 1, 2}; static const char *text = "11.3.244.8-node.38"; static void *block;'
	echo 'static unsigned size; const char *version(void) __asm__("_ZN2v82V810GetVersionEv"); const char *version(void) { return text; }'
	echo 'static __attribute__((noipa)) long a(void) { return (long)block; } static __attribute__((noipa)) unsigned b(void) { return size; }'
	echo 'void range(void **, long *) __asm__("_ZN2v87Isolate20GetEmbeddedCodeRangeEPPKvPm"); void change(void *p) { block = p; size++; text++; }'
	echo 'void range(void **p, long *n) { b(); b(); *n = b(); *p = (void *)a(); } int napi_get_node_version(void *env, int **v) { *v = node; return 0; }'
} | gcc -O1 -shared -fPIC -s -w -o v8 -x c -
mkdir -p "$out/pypart"
objcopy -O binary --only-section=.data py313 data && tail -c +33 data > "$out/pypart/offsets"
objcopy -O binary --only-section=.text py39 "$out/pypart/code"

# Go's table, by hand: $1 generation, $2 magic, $3 word (long, quad)
go_table() {
	cat <<END
table:
.long $2
.byte 0, 0, 1, $4
.$3 2
END
	case $1 in
	2) ;;
	16) printf '.%s 0, names - table, 0, 0, 0, funcs - table\n' "$3" ;;
	*) printf '.%s 0, %s, names - table, 0, 0, 0, funcs - table\n' "$3" "$5" ;;
	esac
	[ "$1" = 2 ] || printf 'names: .asciz "main.a"\n.asciz "main.b"\n.align 8\nfuncs:\n'
	case $1 in
	2) printf '.%s fa, f1 - table, fb, f2 - table, fe\nf1: .%s fa\n.long n1 - table\nf2: .%s fb\n.long n2 - table\nn1: .asciz "main.a"\nn2: .asciz "main.b"\n' "$3" "$3" "$3" ;;
	16) printf '.%s fa, f1 - funcs, fb, f2 - funcs, fe\nf1: .%s fa\n.long 0\nf2: .%s fb\n.long 7\n' "$3" "$3" "$3" ;;
	*) printf '.long 0, f1 - funcs, fb - fa, f2 - funcs, fe - fa\nf1: .long 0, 0\nf2: .long fb - fa, 7\n' ;;
	esac
}
code='.text\n.globl fa\nfa: nop\nret\nfb: nop\nret\nfe: ret\n'
note='.section .note.go.buildid,"a",@note\n.long 4, 4, 4\n.ascii "Go\\0\\0abcd"\n'
for g in 2:0xfffffffb 16:0xfffffffa 18:0xfffffff0 20:0xfffffff1; do
	magic=${g#*:} gen=${g%%:*}
	text=0
	[ "$gen" = 18 ] && text=fa
	{ printf "$code"; printf '.section .gopclntab,"aw"\n'; go_table "$gen" "$magic" quad 8 "$text"; } > go.s
	gcc -nostdlib -no-pie -Wl,-e,fa -o "go$gen" go.s
	gcc -nostdlib -pie -Wl,-e,fa -o "gopie$gen" go.s
	# its bytes alone, for the parser
	objcopy -O binary --only-section=.gopclntab "go$gen" "$out/pclntab/hand$gen"
	{ printf "$code"; printf '.section .rodata\n.quad 0x1122334455667788\n'; go_table "$gen" "$magic" quad 8 "$text" ; printf "$note"
	  printf '.data\nmodule: .quad table\n.fill 21, 8, 0\n.quad fa\n'; } > go.s
	gcc -nostdlib -no-pie -Wl,-e,fa -o "gomagic$gen" go.s && strip "gomagic$gen"
	{ printf "$code"; printf '.data\n.globl runtime.pclntab\nruntime.pclntab:\n'; go_table "$gen" "$magic" quad 8 "$text"
	  printf '.section .go.module,"aw"\n.quad table\n.fill 21, 8, 0\n.quad fa\n'; } > go.s
	gcc -nostdlib -pie -Wl,-e,fa -o "gosym$gen" go.s
done
for go in $(command -v go || true) /usr/bin/runc /usr/sbin/runc; do
	[ -f "$go" ] || continue
	objcopy -O binary --only-section=.gopclntab "$(realpath "$go")" table 2>/dev/null || continue
	[ -s table ] && head -c 60000 table > "$out/pclntab/$(basename "$go")"
done

# Call-frame information: of real files (a first byte says what the rest is), and what no compiler writes.
cat > frames.s <<'END'
.macro body
.cfi_startproc
push %rbp
.cfi_def_cfa_offset 16
.cfi_offset 6, -16
.cfi_remember_state
nop
.cfi_def_cfa_register 6
nop
.cfi_restore_state
nop
.cfi_restore 6
.cfi_def_cfa 10, 0
nop
.cfi_register 16, 5
nop
.cfi_undefined 16
nop
.cfi_same_value 16
.cfi_val_offset 6, -16
.cfi_escape 0x2e,0x10,0x2f,0x03,0x02,0x10,0x6,0x2,0x76,0x0,0xf,0x3,0x76,0x78,0x6
nop
.cfi_escape 0x16,0x6,0x2,0x76,0x0,0x11,0x6,0x7f,0x12,0x7,0x7f,0x13,0x7f,0x15,0x6,0x1,0x5,0x6,0x2,0x6,0x6
nop
.cfi_escape 0x0f,0x0b,0x77,0x08,0x80,0x00,0x3f,0x1a,0x3b,0x2a,0x33,0x24,0x22
nop
.cfi_escape 0x0f,0x0a,0x73,0x00,0x33,0x24,0x77,0x10,0x22,0x06,0x23,0x08
nop
.cfi_escape 0x0f,0x0d,0x38,0x92,0x3,0x0,0x1e,0x76,0x0,0x22,0x8,0x1,0x1c,0x6,0x96
nop
.cfi_escape 0x0f,0x1f,0x77,0,0x9,1,0x22,0xb,1,0,0x22,0xd,1,0,0,0,0x22,0xe,1,0,0,0,0,0,0,0,0x22,0x10,1,0x22,0x11,1,0x22
.fill 300, 1, 0x90
.cfi_escape 0x10,0x6,0x9,0x9c,0xa,0x1,0x0,0x22,0xc,0x1,0x0,0x0
.fill 70000, 1, 0x90
.cfi_def_cfa 7, 8
ret
.cfi_endproc
.endm
.text
.globl fa
fa: body
.fill 64, 1, 0x90
fb: .cfi_startproc
.cfi_signal_frame
.cfi_escape 0x0f,0x04,0x77,0xa0,0x01,0x06
mov $15, %rax
syscall
.cfi_endproc
.cfi_startproc
.cfi_signal_frame
nop
.cfi_endproc
END
for kind in eh_frame debug_frame; do
	{ printf '.cfi_sections .%s\n' "$kind"; cat frames.s; } > f.s
	gcc -shared -nostdlib -o "f_$kind" f.s
	objcopy -O binary --only-section=".$kind" --set-section-flags ".$kind=alloc" "f_$kind" raw
	{ [ $kind = eh_frame ] && printf '\004' || printf '\001'; cat raw; } > "$out/cfi/made_$kind"
done
for f in /bin/bash /lib/x86_64-linux-gnu/libc.so.6 /lib64/ld-linux-x86-64.so.2 full; do
	objcopy -O binary --only-section=.eh_frame "$(realpath "$f")" raw 2>/dev/null || continue
	{ printf '\002'; head -c 12000 raw; } > "$out/cfi/$(basename "$f")"
done
# enough functions for packing to be worth it
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "int f$i(int a) { char v[64]; for (int i = 0; i < 64; i++) v[i] = a; return v[a]; }"; done > many.c
for form in zlib zlib-gnu; do
	gcc -shared -nostdlib -fPIC -fno-asynchronous-unwind-tables -g "-gz=$form" -o "packed_$form" many.c
done
printf '.globl _start\n_start: mov %%rsp, %%rdi\ncall _start\njmp *%%r12\nmov $15, %%rax\nsyscall\n' > start.s
gcc -static -nostdlib -o start start.s
cp packed_zlib packed_strip && strip packed_strip && objcopy --only-keep-debug packed_zlib packed.debug
cat packed_strip packed.debug > packed_pair

# Known code, printed rows (the section as an index has it), packed bytes.
code_seed() { printf '\000'; cat; }
printf '\110\061\355\110\211\347\110\215\065....\110\203\344\360\350....' | code_seed > "$out/knowncode/start"
printf '\110\211\347\350....\101\377\344' | code_seed > "$out/knowncode/ld"
printf '\110\307\300\017\000\000\000\017\005\270\017\000\000\000\017\005' | code_seed > "$out/knowncode/return"
printf '\061\300\260\070\111\211\373....\061\355\137\101\377\321\211\307\364\303' | code_seed > "$out/knowncode/clone"
printf '\377\065....\377\045....1234\377\045....\150....\351....\363\017\036\372\150....\362\351....12' |
	code_seed > "$out/knowncode/plt"
printf '\150....\362\351....123456\362\377\045....123456789' | code_seed > "$out/knowncode/bnd"

# tables with all that hangs on them: pc tables, files, trees, code
/usr/bin/python3 "$here/goseeds.py" "$out/gotables"

cat > way.s <<'END'
.globl _start
_start: push %rbp
push %rbx
mov %rsp, %rbp
sub $0x18, %rsp
sub $0x1000, %rsp
call 2f
lea 2f(%rip), %rax
push $1
push $0x1000
pushq 8(%rax)
popq 8(%rax)
pushf
popf
lea 8(%rsp), %rsp
lea -0x100(%rsp), %rsp
lea -8(%rbp), %rsp
and $-64, %rsp
test %eax, %eax
jne 1f
jmp *%rax
mov %rbp, %rsp
pop %rbx
pop %rbp
ret
1: call 3f
nop
2: push %rbp
mov %rsp, %rbp
add $-128, %rsp
xor %ebp, %ebp
imul $3, %rbx, %rsp
ret
3: hlt
ret
4: movabs $0x1122334455667788, %rax
movabs %al, 0x1122334455667788
vpaddd %ymm8, %ymm9, %ymm10
vpermq $1, %ymm1, %ymm2
vaddpd %zmm1, %zmm2, %zmm3
testb $1, 0x12345678(%rax,%rbx,4)
testw $0x1234, %ax
enter $16, $1
leave
loop 4b
ud2
END
gcc -nostdlib -static -o way way.s
objcopy -O binary --only-section=.text way raw
{ printf '\000'; cat raw; } > "$out/knowncode/way"
{ printf '\000'; objcopy -O binary --only-section=.text full /dev/stdout | head -c 3000; } > "$out/knowncode/code"

for f in way f_eh_frame f_debug_frame packed_zlib packed_zlib-gnu packed_pair start full now lib32 plain bare sysv pair pair2 mini zeros names py39 py27 py313 php ruby hotspot v8 go2 go16 go18 go20 gopie* gomagic* gosym*; do
	[ -f "$f" ] && cp "$f" "$out/elfindex/$f"
done

# debug information of every version: inlined functions, ranges, compressed, shared by dwz
mkdir -p "$out/dwarf"
cat > lines.c <<'END'
static inline int in(int a) { for (int i = 0; i < a; i++) a ^= i * 3; return a; }
static inline int mid(int a) { return in(a) + in(a + 1); }
__attribute__((cold, noinline)) static int seldom(int a) { return mid(a) - 1; }
int f(int a) { return a > 9 ? seldom(a) : mid(a); }
int g(int a) { return in(a) + f(a); }
END
dwarf() {
	name=$1
	shift
	"$@" -O2 -shared -nostdlib -fPIC -Wl,--build-id=none -Wl,-z,noseparate-code -o "$name" lines.c 2>/dev/null || return 0
	objcopy -R .comment -R .eh_frame -R .eh_frame_hdr -R .note.gnu.property -R .debug_loc -R .debug_loclists \
		-R .debug_aranges "$name" "$out/dwarf/$name" 2>/dev/null || true
}
for v in 2 3 4 5; do
	dwarf "gcc$v" gcc -g "-gdwarf-$v"
done
dwarf gcc64 gcc -g -gdwarf64
dwarf packed gcc -g -gz=zlib
dwarf packed32 gcc -m32 -g -gz=zlib
dwarf flto gcc -g -flto -ffunction-sections
if command -v clang >/dev/null; then
	dwarf clang4 clang -g -gdwarf-4
	dwarf clang5 clang -g -gdwarf-5
	dwarf split clang -g -gdwarf-5 -gsplit-dwarf
fi
objcopy --compress-debug-sections=zlib-gnu "$out/dwarf/gcc4" "$out/dwarf/zdebug" 2>/dev/null || true
if command -v dwz >/dev/null; then
	cp gcc4 one && cp one two
	if dwz -l none -L none -m both.dwz one two 2>/dev/null && [ -f both.dwz ]; then
		cat one both.dwz > "$out/dwarf/shared"
	fi
fi

objcopy -O binary --only-section=.gnu_debuglink --set-section-flags .gnu_debuglink=alloc linked "$out/debuglink/link"
objcopy -O binary --only-section=.note.gnu.build-id full "$out/debuglink/note"
objcopy -O binary --only-section=.note.gnu.property full "$out/debuglink/property"
printf '\004\000\000\000\004\000\000\000\004\000\000\000Go\000\000abcd' > "$out/debuglink/go"
printf '../x\000\000\000\000\001\002\003\004' > "$out/debuglink/path"

# indexes, by the program itself where it is built
index=$here/../../../build/bin/sonde-index
if [ -x "$index" ]; then
	for f in full bare names go20 gcc4 clang5; do
		[ -f "$f" ] && "$index" "$f" -o "$out/image/$f" >/dev/null || true
	done
	if command -v go >/dev/null; then # an index with a part of Go
		printf 'package main\nfunc main() { println(1) }\n' > one.go
		CGO_ENABLED=0 go build -ldflags '-s -w' -o gomain one.go && "$index" gomain -o "$out/image/gomain" >/dev/null || true
	fi
	for f in full f_eh_frame; do
		"$index" "$f" -o index >/dev/null
		python3 - index "$out/knowncode/rows_$f" <<'END' || true
import struct, sys
index = open(sys.argv[1], "rb").read()
for i in range(struct.unpack_from("<I", index, 12)[0]):
    kind, _, offset, size = struct.unpack_from("<IIQQ", index, 48 + 24 * i)
    if kind == 16:
        open(sys.argv[2], "wb").write(b"\1" + index[offset:offset + size])
END
	done
fi
