#!/bin/sh
# Which folder may include which: base <- ir <- {frontend, passes, codegen} <- driver <- tools; runtime stands alone.
# Also: files of at most 900 lines, a runtime of less than 1,200, of which a quarter are threads of its own instead of OpenMP's
# library: of what every model carries. serial.c is another one, linked
# instead of this; steps.c has what not all models call; plain.c is for models without state.c; op_call.c is for models with operators of the user, state.c, replace.c and relayout.c for those with state or
# replaceable weights.
cd "$(dirname "$0")/.." || exit 1
bad=0
rule() {
	found=$(grep -nE "^#include \"($2)/" "$1"/*.c "$1"/*.h "$1"/*/*.c "$1"/*/*.h 2>/dev/null)
	[ -z "$found" ] || { echo "$1 may not include: $found"; bad=1; }
}
rule base 'ir|frontend|passes|lower|transform|codegen|driver|runtime|tools'
rule ir 'frontend|passes|lower|transform|codegen|driver|runtime|tools'
rule frontend 'passes|lower|transform|codegen|driver|runtime|tools'
rule passes 'lower|transform|frontend|codegen|driver|runtime|tools'
rule lower 'transform|frontend|codegen|driver|runtime|tools'
rule transform 'frontend|codegen|driver|runtime|tools'
rule codegen 'frontend|passes|lower|transform|driver|tools'
rule driver 'tools'
rule runtime 'base|ir|frontend|passes|lower|transform|codegen|driver|tools'
rule tools 'base|ir|frontend|passes|lower|transform|codegen|runtime'
for f in base/*.[ch] ir/*/*.[ch] frontend/*.[ch] passes/*.[ch] lower/*.[ch] transform/*.[ch] codegen/*.[ch] codegen/*/*.[ch] driver/*.[ch] runtime/*.[ch] tools/*.[ch]; do
	n=$(wc -l <"$f")
	[ "$n" -le 900 ] || { echo "$f has $n lines: split by noun at 900"; bad=1; }
done
[ "$(ls runtime/*.c | grep -v -e serial.c -e steps.c -e plain.c -e op_call.c -e state.c -e replace.c -e rooms.c -e relayout.c | xargs cat | grep -c .)" -lt 1200 ] || { echo "the runtime has 1,200 lines (blank ones not counted) or more"; bad=1; }
exit $bad
