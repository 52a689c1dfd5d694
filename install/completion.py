"""Completion for bash, made of what the command says of itself: completion.py WEFT OUT

Options, and what values they take, are those of --help-all: `--weights embed|file` has two words, `--inputs FILE` a file. Names of targets
are asked for when they are completed.
"""
import re
import subprocess
import sys

weft, out = sys.argv[1:]
PATHS = {"FILE", "OUT", "MODEL", "DIR", "LIBRARY", "ENV", "COMMAND"}


def helped(*args):
    return subprocess.run([weft, *args], check=True, capture_output=True, text=True).stdout


def values(option, what):
    """How the words after an option are completed: words of its own, `@files`, `@targets`, or nothing that is known."""
    if re.fullmatch(r"[a-z][\w-]*(\|[a-z][\w-]*)+(\|NAME)?", what):  # or a name that is not known here
        return what.removesuffix("|NAME").replace("|", " ")
    if option == "--target":
        return "@targets"
    return "@files" if PATHS & set(what.split("|")) else ""


def options(text):
    """Of a command's help: pairs of an option and its values; None: it takes none."""
    for line in text.splitlines():
        if not line.startswith("  -"):
            continue
        for part in re.split(r"\s{2,}", line.strip())[0].split(", "):
            option, _, what = part.partition(" ")
            option = option.partition("[")[0]  # --grad[=LIST]: what follows = may be left out
            yield option, values(option, what) if what else None


def listed(text):
    """`--emit LIST  what to write, of: so, obj, ...`: a list of these words."""
    text = re.sub(r"\n {20,}", " ", text)  # texts are broken into lines
    return {m[1]: " ".join(re.split(r",\s*", m[2])) for m in re.finditer(r"^  (-\S+) LIST\s+.*?\bof:? ([a-z0-9, ]+)$", text, re.M)}


cases = []
commands = re.findall(r"^  (\w+) ", helped("--help"), re.M)
assert commands
for command in commands:
    text = helped(command, "--help-all")
    taken = dict(options(text)) | {"--help": None, "--help-all": None}
    lists = listed(text)
    lines = [f'\t\toptions="{" ".join(sorted(taken))}"', '\t\tcase $previous in']
    for option, value in sorted(taken.items()):
        if option in lists:
            lines.append(f'\t\t{option}) list="{lists[option]}" ;;')
        elif value is not None:
            lines.append(f'\t\t{option}) value="{value or "@none"}" ;;')
    cases.append("\n".join([f"\t{command})", *lines, "\t\tesac", "\t\t;;"]))

TEXT = r'''# Completion of weft for bash, made by install/completion.py of what `weft COMMAND --help-all` says.
_weft()
{
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} options= value= list= before=
	COMPREPLY=()
	# --option=value is three words, and = the middle one
	if [[ $current == = ]]; then
		current=
	elif [[ $previous == = ]]; then
		previous=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	if ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W '@COMMANDS@ --help --version' -- "$current"))
		return
	fi
	case ${COMP_WORDS[1]} in
@CASES@
	esac
	case $value in
	@targets)
		value=$("${COMP_WORDS[0]}" show --targets 2>/dev/null | awk 'NR > 1 { print $1 }')
		COMPREPLY=($(compgen -W "native $value" -- "$current") $(compgen -f -X '!*.json' -- "$current"))
		return
		;;
	@none) return ;;
	@files) ;;
	?*)
		COMPREPLY=($(compgen -W "$value" -- "$current"))
		return
		;;
	esac
	if [[ $list ]]; then
		[[ $current == *,* ]] && before=${current%,*},
		COMPREPLY=($(compgen -P "$before" -W "$list" -- "${current##*,}"))
		compopt -o nospace 2>/dev/null
	elif [[ ! $value && $current == -* ]]; then
		COMPREPLY=($(compgen -W "$options" -- "$current"))
	else
		compopt -o filenames 2>/dev/null
		local IFS=$'\n'
		COMPREPLY=($(compgen -f -- "$current"))
	fi
}
complete -F _weft weft
'''
with open(out, "w", encoding="utf-8") as f:
    f.write(TEXT.replace("@COMMANDS@", " ".join(commands)).replace("@CASES@", "\n".join(cases)))
