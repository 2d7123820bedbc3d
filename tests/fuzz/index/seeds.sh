#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUTDIR: seeds for the fuzzers of this folder, of real files: OUTDIR/{elfindex,pclntab,debuglink,image}/.
# Small programs are built here with what the build needs anyway (gcc, binutils); Go's table is the machine's own where
# a Go program is there, and one written by hand for each generation.
set -eu
out=$(realpath -m "$1")
here=$(dirname "$(realpath "$0")")
mkdir -p "$out/elfindex" "$out/pclntab" "$out/debuglink" "$out/image"
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

for f in full now lib32 plain bare sysv pair pair2 mini zeros names go2 go16 go18 go20 gopie* gomagic* gosym*; do
	[ -f "$f" ] && cp "$f" "$out/elfindex/$f"
done

objcopy -O binary --only-section=.gnu_debuglink --set-section-flags .gnu_debuglink=alloc linked "$out/debuglink/link"
objcopy -O binary --only-section=.note.gnu.build-id full "$out/debuglink/note"
objcopy -O binary --only-section=.note.gnu.property full "$out/debuglink/property"
printf '\004\000\000\000\004\000\000\000\004\000\000\000Go\000\000abcd' > "$out/debuglink/go"
printf '../x\000\000\000\000\001\002\003\004' > "$out/debuglink/path"

# indexes, by the program itself where it is built
index=$here/../../../build/bin/sonde-index
if [ -x "$index" ]; then
	for f in full bare names go20; do
		[ -f "$f" ] && "$index" "$f" -o "$out/image/$f" >/dev/null || true
	done
fi
