#!/bin/sh
# Which folder may include which, as the table of HACKING.md says (folders.py compares that). Also: at most 900 lines in a file, at most 30
# files in a room, and a runtime of at most 1,320 lines (1,240 before calls had deadlines and counters), of what every model carries: serial.c is
# linked instead of threads.c; device.c, flight.c, graph.c, cuda*.c, cublas.c and lines for WEFT_DEVICES are for models on devices; steps.c
# has what not all models call; plain.c is for models without state.c; op_call.c is for models with operators of the user; lapack.c and jacobi.c are for those with eigenvalues; state.c, stored.c, replace.c and
# relayout.c are for those with state or replaceable weights.
cd "$(dirname "$0")/../.." || exit 1
bad=0
# rule ROOM 'PATTERN': no file in the folder, or in folders in it, includes a path that begins so.
rule() {
	found=$(grep -rnE "^#include \"($2)/" "$1" --include='*.[ch]')
	[ -z "$found" ] || { echo "$1 may not include: $found"; bad=1; }
}
above_ops='frontend|passes|lower|transform|codegen|driver|runtime|tools'
rule base "ir|ops|$above_ops"
rule ir "ops|$above_ops"
rule ir/sym 'ir/(graph|op|scalar|build|interp|kernel|loop|target)'
rule ir/graph 'ir/(op|scalar|build|interp|kernel|loop|target)'
rule ir/op 'ir/(scalar|build|interp|kernel|loop|target)'
rule ir/scalar 'ir/(build|interp|kernel|loop|target)'
rule ir/build 'ir/(interp|kernel|loop|target)'
rule ops 'frontend|passes|lower|transform|codegen|driver|tools'
# Of the runtime the header of functions that are the compiler's own operators.
found=$(grep -rnE '^#include "runtime/' ops --include='*.[ch]' | grep -v -e '^ops/user/builtin.c:[0-9]*:#include "runtime/lapack.h"' -e '^ops/user/comm.c:[0-9]*:#include "runtime/comm/comm.h"')
[ -z "$found" ] || { echo "ops may not include: $found"; bad=1; }
rule ops/prim 'ops/(aten|quant|vision|onnx|ml|contrib|user)'
rule ops/aten 'ops/(quant|vision|onnx|ml|contrib|user)'
rule frontend 'passes|lower|transform|codegen|driver|runtime|tools'
rule frontend/files 'frontend/(graph|onnx|pt2)'
rule frontend/graph 'ops|frontend/(onnx|pt2)'
rule passes 'lower|transform|frontend|codegen|driver|runtime|tools'
rule passes/common 'passes/(fold|quantize|simplify)'
rule passes/fold 'passes/(quantize|simplify)'
rule passes/quantize 'passes/simplify'
rule passes/simplify 'passes/(fold|quantize)'
rule lower 'transform|frontend|codegen|driver|runtime|tools'
rule lower/factor 'lower/graph'
rule transform 'frontend|codegen|driver|runtime|tools'
rule transform/pattern 'passes|lower|transform/(model|partition)'
rule transform/partition 'transform/(model|pattern)'
rule transform/quantize 'lower|transform/(model|partition|pattern)'
rule codegen 'frontend|passes|lower|transform|driver|tools'
rule codegen/schedule 'codegen/(legal|plan|eval|cpu|gpu|program|print)'
rule codegen/legal 'codegen/(schedule|plan|eval|cpu|gpu|program|print)'
rule codegen/plan 'codegen/(legal|eval|cpu|gpu|program|print)'
rule codegen/eval 'codegen/(legal|cpu|gpu|program|print)'
rule codegen/cpu 'codegen/(gpu|program|print)'
rule codegen/gpu 'codegen/(cpu|program|print)'
rule codegen/program 'codegen/print'
rule codegen/print 'codegen/(schedule|plan|eval|cpu|gpu)'
rule codegen/print/cuda 'codegen/print/llvm'
rule driver 'tools'
rule driver/targets 'driver/(api|artifact|jit|output)'
rule driver/api 'driver/(artifact|jit|nodes|output)'
rule driver/artifact 'driver/(gpu|jit|output)'
rule driver/elf 'driver/(api|artifact|gpu|jit|nodes|output|targets)'
rule driver/gpu 'tools|driver/(jit|nodes|output)'
rule driver/jit 'driver/output'
rule driver/nodes 'driver/(artifact|jit|output|targets)'
rule runtime "base|ir|ops|$above_ops"
rule python 'base|ir|ops|frontend|passes|lower|transform|codegen|driver|runtime|tools'
rule tools 'base|ir|ops|frontend|passes|lower|transform|codegen|runtime'
# Which back end it is knows its row alone (driver/artifact/backend.h).
found=$(grep -rniE 'llvm' driver --include='*.[ch]' | grep -vE '^driver/artifact/(backend|llvm)[a-z_]*\.[ch]:')
[ -z "$found" ] || { echo "the LLVM back end is named outside of its row: $found"; bad=1; }
# Who has a graph asks for names of sizes by graph_syms, which makes the graph's scope the current one.
found=$(grep -rnE '\b(g|src|dst)->ir->syms\b' base ir ops frontend passes transform driver tools --include='*.[ch]' | grep -v '^ir/graph/graph.h:')
[ -z "$found" ] || { echo "the scope of a graph may be forgotten: $found"; bad=1; }
found=$(grep -rnE '\b(sym_(nvars|var_at|find|var|rename)\((\w+->)*ir->syms|graph_new\()' lower codegen --include='*.[ch]')
[ -z "$found" ] || { echo "the scope of a graph may be forgotten: $found"; bad=1; }
# A plan is made before code: nothing there can write any.
found=$(grep -rnwE 'LoopFn|Eval|Cpu' codegen/plan --include='*.[ch]')
[ -z "$found" ] || { echo "codegen/plan writes code: $found"; bad=1; }
for f in $(find base ir ops frontend passes lower transform codegen driver runtime tools python -name '*.[ch]'); do
	n=$(wc -l <"$f")
	[ "$n" -le 900 ] || { echo "$f has $n lines: split by noun at 900"; bad=1; }
done
for room in $(find base ir ops frontend passes lower transform codegen driver runtime tools tests -type d); do
	case $room in
	ops/aten | tests/unit | tests/data* | tests/text/* | tests/recorded* | tests/golden*) continue ;;
	esac
	n=$(find "$room" -maxdepth 1 -type f | wc -l)
	[ "$n" -le 30 ] || { echo "$room has $n files: split by trade at 30"; bad=1; }
done
[ "$(ls runtime/*.c | grep -v -e serial.c -e device.c -e flight.c -e graph.c -e cublas.c -e cuda.c -e cuda_driver.c -e steps.c -e plain.c -e op_call.c -e lapack.c -e jacobi.c -e state.c -e stored.c -e replace.c -e rooms.c -e relayout.c | xargs cat | sed '/^#ifdef WEFT_DEVICES/,/^#e/d' | sed 's|/\*.*\*/||; /\/\*/,/\*\//d' | grep -c '[^[:space:]]')" -le 1320 ] ||
	{ echo "the runtime has more than 1,320 lines, comments and blank lines not counted"; bad=1; }
exit $bad
