# For the shell tests: sourced, with $out a folder; failures set $bad.

# expect STATUS PATTERN COMMAND...: exit status, and a line of the output (stdout and stderr) that matches.
expect() {
	status=$1
	pattern=$2
	shift 2
	"$@" >"$out/log" 2>&1 </dev/null
	got=$?
	if [ $got -ne "$status" ] || ! grep -q -e "$pattern" "$out/log"; then
		echo "FAIL: $*: status $got, expected $status and '$pattern':"
		head -5 "$out/log"
		bad=1
	fi
}
