#!/bin/sh
# What is written where: links, devices, FIFOs, names that meet, inputs that must stay, a full disk, a damaged cache.
# outputs.sh WEFT SOURCE_ROOT
weft=$1
root=$2
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
model=$root/examples/digits/digits_cnn.pt2
ref=$root/examples/digits/digits_cnn.safetensors
bad=0

. "$(dirname "$0")/../help/expect.sh"

wrong() {
	echo "FAIL: $*"
	bad=1
}

# same FILE FILE
same() {
	cmp "$1" "$2" || bad=1
}

# only FOLDER NAME...: what the folder holds, in the order of ls.
only() {
	folder=$1
	shift
	held=$(ls -A "$folder" | tr '\n' ' ')
	[ "${held% }" = "$*" ] || wrong "$folder holds $held, expected $*"
}

backends=c
"$weft" compile "$model" --backend llvm -o "$out/probe.so" >/dev/null 2>&1 && backends='c llvm'
export WEFT_CACHE=$out/cache
cp "$model" "$out/m.pt2"

# ---- the cache ----
mkdir "$out/c"
expect 0 ' 0 of 3 units from the cache' "$weft" compile "$model" --backend c -o "$out/c/a.so" -j 2
entries=$(ls "$WEFT_CACHE" | wc -l)
expect 0 ' 3 of 3 units from the cache' "$weft" compile "$model" --backend c -o "$out/c/b.so"
same "$out/c/a.so" "$out/c/b.so"
for how in empty half bit; do
	for f in "$WEFT_CACHE"/*; do
		case $how in
		empty) : >"$f" ;;
		half) head -c $(($(wc -c <"$f") / 2)) "$f" >"$out/half" && cp "$out/half" "$f" ;;
		bit) python3 -c 'import sys; f = open(sys.argv[1], "r+b"); f.seek(900); b = f.read(1); f.seek(900); f.write(bytes([b[0] ^ 1]))' "$f" ;;
		esac
	done
	expect 0 ' 0 of 3 units from the cache' "$weft" compile "$model" --backend c -o "$out/c/b.so"
	same "$out/c/a.so" "$out/c/b.so"
	expect 0 ' 3 of 3 units from the cache' "$weft" compile "$model" --backend c -o "$out/c/b.so"
	[ "$(ls "$WEFT_CACHE" | wc -l)" -eq "$entries" ] || wrong "the cache grew"
done
only "$out/c" a.so b.so
expect 0 '^1 passed' "$weft" check "$out/c/b.so" "$ref"
# A folder that others may write, or that cannot be made, is not used, and a sentence says so.
for mode in 770 707 777; do
	rm -rf "$out/open"
	mkdir "$out/open" && chmod $mode "$out/open"
	WEFT_CACHE=$out/open expect 0 'warning: no cache of objects: other users may write' "$weft" compile "$model" --backend c -o "$out/c/b.so"
	only "$out/open" ''
	WEFT_CACHE=$out/open expect 0 '' "$weft" compile "$model" --backend c -o "$out/c/b.so" --no-cache
	! grep -q warning "$out/log" || wrong "a warning of a cache that is not asked for"
done
WEFT_CACHE=$out/none/cache expect 0 'none/cache: warning: no cache of objects: the folder cannot be made: No such file' "$weft" compile "$model" --backend c -o "$out/c/b.so"
WEFT_CACHE=$out/m.pt2 expect 0 'warning: no cache of objects: it is not a folder' "$weft" compile "$model" --backend c -o "$out/c/b.so"
if [ "$(id -u)" = 0 ]; then
	rm -rf "$out/open"
	mkdir -m 700 "$out/open" && chown 12345 "$out/open"
	WEFT_CACHE=$out/open expect 0 'belongs to another user (12345)' "$weft" compile "$model" --backend c -o "$out/c/b.so"
fi
WEFT_CACHE= XDG_CACHE_HOME=$out/xdg expect 0 '' "$weft" compile "$model" --backend c -o "$out/c/b.so"
[ "$(stat -c %a "$out/xdg/weft")" = 700 ] || wrong "others may look into a new cache"
rm -rf "$out/xdg"

# ---- what a linker leaves ----
mkdir "$out/l"
cat >"$out/spoil_cc" <<'END'
#!/bin/sh
${CC:-cc} "$@" || exit
case " $* " in
*' -shared '*)
	while [ "$1" != -o ]; do shift; done
	python3 "${0%/*}/spoil.py" "$2"
	;;
esac
END
chmod +x "$out/spoil_cc"
# spoiled: what spoil.py leaves of an object is refused.
spoiled() {
	expect 1 'left no complete shared object that defines weft_model$' "$weft" compile "$model" --cc "$out/spoil_cc" -o "$out/l/a.so"
	only "$out/l"
}
echo 'import os, sys; os.truncate(sys.argv[1], os.path.getsize(sys.argv[1]) * 9 // 10)' >"$out/spoil.py"
spoiled
# The names of symbols in a section that the file does not hold, far away.
cat >"$out/spoil.py" <<'END'
import struct, sys
SHT_NOBITS, SHT_DYNSYM = 8, 11
f = open(sys.argv[1], 'r+b')
data = f.read()
headers, = struct.unpack_from('<Q', data, 40)
count, = struct.unpack_from('<H', data, 60)
section = [struct.unpack_from('<IIQQQQI', data, headers + 64 * k) for k in range(count)]
names, = (s[6] for s in section if s[1] == SHT_DYNSYM)
f.seek(headers + 64 * names + 4)
f.write(struct.pack('<I', SHT_NOBITS))
f.seek(headers + 64 * names + 24)
f.write(struct.pack('<Q', 1 << 44))
END
spoiled
for backend in $backends; do
	# A library that ends the process: not this one.
	mkdir -p "$out/bin"
	echo '__attribute__((constructor)) static void stop(void) { __builtin_trap(); }' >"$out/trap.c"
	${CC:-cc} -fPIC -c "$out/trap.c" -o "$out/trap.o"
	for tool in cc ld ld.lld ld.lld-19; do
		real=$(command -v $tool) || continue
		printf '#!/bin/sh\ncase " $* " in *" -shared "*) exec %s "$@" %s ;; esac\nexec %s "$@"\n' "$real" "$out/trap.o" "$real" >"$out/bin/$tool"
		chmod +x "$out/bin/$tool"
	done
	expect 1 'ends a process that loads it (signal' env -u CC PATH="$out/bin:$PATH" "$weft" compile "$model" --backend $backend -o "$out/l/a.so"
	only "$out/l"
done

# A linker that crashes beside its output.
mkdir "$out/crash"
cat >"$out/crash/cc" <<END
#!/bin/sh
case " \$* " in *' -shared '*) ;; *) PATH='$PATH' exec ${CC:-cc} "\$@" ;; esac
while [ "\$1" != -o ]; do shift; done
: >"\$2.tmp5ebc17f"
kill -BUS \$\$
END
chmod +x "$out/crash/cc"
for tool in ld.lld ld.lld-19 ld; do
	ln -s cc "$out/crash/$tool"
done
for backend in $backends; do
	expect 1 'was killed by signal 7' env PATH="$out/crash:$PATH" CC="$out/crash/cc" "$weft" compile "$model" --backend $backend -o "$out/l/a.so"
	only "$out/l"
done

# ---- links ----
for backend in $backends; do
	mkdir "$out/link" "$out/link/far"
	ln -s far/real.so "$out/link/m.so"
	for time in new old; do
		expect 0 'operators in' "$weft" compile "$model" --backend $backend --weights file -o "$out/link/m.so"
		[ -L "$out/link/m.so" ] || wrong "$time: the link was replaced"
		only "$out/link" far m.so
		only "$out/link/far" real.so real.weights
		expect 0 '^1 passed' "$weft" check "$out/link/m.so" "$ref"
	done
	# Both names are links: the weights lie beside the link, under the name that the object knows.
	mkdir "$out/link/store"
	mv "$out/link/far/real.so" "$out/link/store/1"
	mv "$out/link/far/real.weights" "$out/link/store/2"
	ln -s ../store/1 "$out/link/far/real.so"
	ln -s ../store/2 "$out/link/far/real.weights"
	expect 0 '^1 passed' "$weft" check "$out/link/far/real.so" "$ref"
	rm -r "$out/link"
done
mkdir "$out/link"
ln -s real "$out/link/y.npz"
expect 0 seconds "$weft" run "$model" --inputs "$ref" --outputs "$out/link/y.npz" --json
only "$out/link" real y.npz
ln -s loop "$out/link/loop"
expect 1 'loop: error: cannot write: Too many levels of symbolic links' "$weft" compile "$model" --emit ir -o "$out/link/loop"
rm "$out/link/loop"
for emit in so header ir c obj; do
	[ "$emit" = obj ] && [ "$backends" = c ] && continue
	ln -s real "$out/link/$emit"
	[ "$emit" = c ] && rm "$out/link/real" && mkdir "$out/link/real"
	expect 0 'operators in' "$weft" compile "$model" --emit $emit -o "$out/link/$emit"
	[ -L "$out/link/$emit" ] || wrong "--emit $emit: the link was replaced"
	[ "$emit" = c ] && rm -r "$out/link/real"
done

# ---- devices and FIFOs ----
# As root a rename would replace them: by copies of the nodes, not by those of the system.
null=$out/null
mknod "$null" c 1 3 2>/dev/null || null=
for emit in so header ir program loops obj a llvm asm; do
	case $emit in obj | a | llvm | asm) [ "$backends" = c ] && continue ;; esac
	"$weft" compile "$model" --emit $emit -o "$out/plain" >/dev/null || wrong "--emit $emit"
	if [ -n "$null" ]; then
		expect 0 'operators in' "$weft" compile "$model" --emit $emit -o "$null"
		[ -c "$null" ] || wrong "--emit $emit replaced a device"
	fi
	mkfifo "$out/fifo"
	cat "$out/fifo" >"$out/poured" &
	expect 0 'operators in' "$weft" compile "$model" --emit $emit -o "$out/fifo"
	wait
	[ -p "$out/fifo" ] || wrong "--emit $emit replaced a FIFO"
	same "$out/plain" "$out/poured"
	rm "$out/fifo"
done
if [ -n "$null" ]; then
	expect 1 'null: error: is no regular file: no file of weights can lie beside it' "$weft" compile "$model" --weights file -o "$null"
	ls "$out" | grep -q 'null\.' && wrong "something lies beside a device"
fi
# What a process has open already, by name.
"$weft" compile "$model" --emit ir -o "$out/plain" >/dev/null
ln -s /proc/self/fd/1 "$out/stdout" # what /dev/stdout is
for name in - "$out/stdout" /proc/self/fd/1; do
	"$weft" compile "$model" --emit ir -o "$name" | cat >"$out/pipe"
	grep -q 'graph @' "$out/pipe" || wrong "$name as a pipe"
	{
		echo before
		"$weft" compile "$model" --emit ir -o "$name"
		echo after
	} >"$out/all"
	head -1 "$out/all" | grep -q before || wrong "$name as a file: its beginning is gone"
	grep -q 'graph @' "$out/all" || wrong "$name as a file"
	tail -1 "$out/all" | grep -q after || wrong "$name as a file: its end is gone"
done
[ -L "$out/stdout" ] || wrong "a link to a descriptor was replaced"
"$weft" compile "$model" --emit ir -o - | cmp - "$out/plain" || wrong "-o - adds something"
expect 2 'standard output takes one file' "$weft" compile "$model" --emit ir,header -o -
expect 2 'standard output takes one file' "$weft" compile "$model" --emit c -o -
expect 2 'standard output takes one file' "$weft" compile "$model" --emit ir -o - --json
expect 2 'beside standard output' "$weft" compile "$model" --weights file -o -
[ ! -e - ] || wrong "a file named -"

# ---- a full disk ----
# full FORMAT COMMAND...: the reason, in one line that names the output.
full() {
	expect 1 'error: cannot write: No space left on device \[W0010\]$' "$@"
	[ "$(wc -l <"$out/log")" -eq 1 ] || wrong "$*: more than one line: $(cat "$out/log")"
}
for extension in safetensors npz npy; do
	ln -s /dev/full "$out/full.$extension"
	full "$weft" run "$model" --inputs "$ref" --outputs "$out/full.$extension"
done
for emit in so header ir program loops obj a llvm asm; do
	case $emit in obj | a | llvm | asm) [ "$backends" = c ] && continue ;; esac
	full "$weft" compile "$model" --emit $emit -o /dev/full
done
# A real one; only root may mount.
mkdir "$out/small"
if mount -t tmpfs -o size=64k none "$out/small" 2>/dev/null; then
	trap 'umount "$out/small"; rm -rf "$out"' EXIT
	for room in 16 1; do
		dd if=/dev/zero of="$out/small/fill" bs=1k count=$((64 - room)) status=none
		for backend in $backends; do
			full "$weft" compile "$model" --backend $backend -o "$out/small/m.so"
			grep -q 'm.so: error' "$out/log" || wrong "another name: $(cat "$out/log")"
			full "$weft" compile "$model" --backend $backend --weights file -o "$out/small/m.so"
			full env TMPDIR="$out/small" WEFT_CACHE="$out/none" "$weft" compile "$model" --backend $backend -o "$out/m.so"
			only "$out/small" fill
		done
		for emit in c ir loops obj a llvm asm; do
			case $emit in
			obj | a | llvm | asm) [ "$backends" = c ] && continue ;;
			ir) [ $room -gt 1 ] && continue ;;
			esac
			full "$weft" compile "$model" --emit $emit -o "$out/small/m"
			only "$out/small" fill
		done
		rm "$out/small/fill"
	done
	umount "$out/small"
	trap 'rm -rf "$out"' EXIT
else
	echo "not checked: a full file system (needs the right to mount)"
fi
# A limit on the size of files ends programs by a signal.
for backend in $backends; do
	for emit in so c; do
		(
			ulimit -f 8
			[ $emit = c ] && backend=c
			expect 1 'error: cannot write: File too large \[W0010\]$' "$weft" compile "$model" --backend $backend --emit $emit -o "$out/limit"
			exit $bad
		) || bad=1
	done
done

# ---- names that meet ----
mkdir "$out/n"
"$weft" compile "$model" --weights file -o "$out/n/m.v2" >/dev/null
"$weft" compile "$root/tests/data/mlp.pt2" --weights file -o "$out/n/m.v3" >/dev/null
only "$out/n" m.v2 m.v2.weights m.v3 m.v3.weights
expect 0 '^1 passed' "$weft" check "$out/n/m.v2" "$ref"
expect 0 'operators in' "$weft" compile "$model" --weights file -o "$out/n/z.weights"
expect 0 '^1 passed' "$weft" check "$out/n/z.weights" "$ref"
ln -s z2.so "$out/n/z2.weights"
: >"$out/n/z2.so"
expect 1 'the weights would be written to .*z2.so' "$weft" compile "$model" --weights file -o "$out/n/z2.so"
ln -s z2.so "$out/n/z.so"
expect 1 'the weights would be written to .*z.so' "$weft" compile "$model" --weights file -o "$out/n/z.so"
expect 0 'operators in' "$weft" compile "$model" --emit so,ir -o "$out/n/x.v1"
[ -f "$out/n/x.v1.ir" ] || wrong "no x.v1.ir beside x.v1"
expect 2 'ir and so would both be written to' "$weft" compile "$model" --emit so,ir -o "$out/n/x.ir"
expect 0 'operators in' "$weft" compile "$model" --emit c -o "$out/n/folder/"
[ -f "$out/n/folder/Makefile" ] || wrong "no folder"

# ---- inputs ----
mkdir "$out/i"
cp "$model" "$out/i/m.pt2"
cp "$ref" "$out/i/x.safetensors"
ln -s m.pt2 "$out/i/link.pt2"
ln "$out/i/m.pt2" "$out/i/hard.pt2"
ln "$out/i/x.safetensors" "$out/i/hard.safetensors"
before=$(ls -A "$out/i")
for name in m.pt2 link.pt2 hard.pt2; do
	for emit in so header ir obj; do
		[ "$emit" = obj ] && [ "$backends" = c ] && continue
		expect 1 'cannot write: this file is an input' "$weft" compile "$out/i/m.pt2" --emit $emit -o "$out/i/$name"
		expect 1 'cannot write: this file is an input' "$weft" compile "$out/i/$name" --emit $emit -o "$out/i/m.pt2"
	done
	expect 1 'cannot write: this file is an input' "$weft" show "$out/i/m.pt2" --svg "$out/i/$name"
done
expect 1 'hard.safetensors: cannot write: this file is an input' "$weft" run "$out/i/m.pt2" --inputs "$out/i/x.safetensors" --outputs "$out/i/hard.safetensors"
"$weft" compile "$model" -o "$out/i/run.npz" >/dev/null
expect 1 'run.npz: cannot write: this file is an input' "$weft" run "$out/i/run.npz" --inputs "$ref" --outputs "$out/i/run.npz"
rm "$out/i/run.npz"
# The second of two outputs.
"$weft" show "$model" --graph >"$out/i/g.ir"
cp "$out/i/g.ir" "$out/g.ir"
expect 1 'g.ir: cannot write: this file is an input' "$weft" compile "$out/i/g.ir" --emit header,ir -o "$out/i/g.so"
same "$out/g.ir" "$out/i/g.ir"
rm "$out/i/g.ir"
printf '{"name": "mine", "base": "x86-64-v3"}' >"$out/t.json"
cp "$out/t.json" "$out/t2.json"
expect 1 't.json: cannot write: this file is an input' "$weft" compile "$model" --target "$out/t.json" --emit ir -o "$out/t.json"
same "$out/t.json" "$out/t2.json"
if command -v dot >/dev/null; then
	"$weft" show "$root/tests/data/mlp.pt2" --svg "$out/stdout" | grep -q '<svg' || wrong "show --svg to standard output"
fi
same "$model" "$out/i/m.pt2"
same "$ref" "$out/i/x.safetensors"
[ "$(ls -A "$out/i")" = "$before" ] || wrong "inputs: $(ls "$out/i")"
exit $bad
