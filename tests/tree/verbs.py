"""Comments above functions, definitions and declarations: verbs.py SOURCE_ROOT [FOLDER | --bless].

Each begins with a verb in the third person ("Returns", "Adds") or with "Whether", so that a reader learns what the function does before
what it does it to. verbs.txt has how many do not, by folder (folders in it apart): a number may fall, not rise, and a folder without a
number has none. With a FOLDER, prints these comments; with --bless, writes the numbers that fell. `verbs.py --self` tests this script. A
verb that is missing in VERBS is added there."""
import collections
import pathlib
import re
import sys

TOPS = ("base", "ir", "ops", "frontend", "passes", "lower", "transform", "codegen", "driver", "runtime", "tools")
MOST = pathlib.Path(__file__).with_suffix(".txt")
VERBS = set("""Accepts Adds Adopts Aligns Allocates Allows Answers Appends Applies Arranges Asks Assigns Attaches Averages Batches Becomes Begins Binds Blocks
Brings Broadcasts Builds Calls Cancels Changes Checks Chooses Clamps Classifies Clears Closes Collects Combines Compares Compiles Completes Computes
Converts Convolves Copies Corrects Counts Creates Cuts Decides Declares Decodes Defines Dequantises Describes Detaches Differentiates Divides Draws Drops Emits
Encodes Ends Enters Erases Estimates Evaluates Exchanges Executes Expands Extends Fetches Fills Finds Finishes Fixes Flattens Folds Follows
Forces Forgets Forms Frees Gathers Gives Goes Groups Guards Handles Hands Hashes Holds Implements Imports Increments Inflates Inlines Inserts
Installs Interns Interpolates Interprets Inverts Joins Judges Keeps Lands Leaves Legalises Lets Lifts Limits Links Lists Loads Locates Locks Looks Lowers
Makes Maps Marks Masks Matches Measures Mends Merges Mirrors Moves Multiplies Names Narrows Negates Normalises Notes Numbers Offers Opens Orders Overwrites
Packs Pads Pairs Parses Passes Permutes Picks Places Plans Pools Posts Predicts Prepares Presents Prints Promotes Proves Puts Quantises Raises Reads Rearranges
Records Reduces Refers Refuses Registers Reinterprets Rejects Releases Remembers Removes Renames Repeats Replaces Reports Requires
Reserves Resets Resizes Resolves Restores Returns Reverses Rewrites Rounds Runs Samples Saves Says Scales Scans Scatters Schedules
Searches Sees Selects Sends Sets Shares Shifts Shows Shuffles Simplifies Sketches Skips Slices Solves Sorts Splits Spreads Squares Stacks
Starts States Stops Stores Strips Subtracts Sums Swaps Switches Takes Tells Tests Times Traces Transforms Translates Transposes Tries
Truncates Tunes Turns Unfolds Unifies Unites Unmaps Unpacks Unwinds Updates Uses Verifies Views Visits Waits Walks Whether Widens Wraps Writes""".split())
# Behind these words a plural was meant: "Notes of", "Counts are".
NOUN = set("of are is and do must".split())
FUNCTION = re.compile(r"^/\*((?:(?!\*/).)*)\*/\n(?=(?:static |const |inline |_Noreturn |struct |extern )*[A-Za-z_]\w*[ *]+(?:\w+|\(\w+\))"
                      r"\([^;{}]*?\)\s*(?:\{|;|__attribute__))", re.M | re.S)


def comments(text):
    """Pairs of a line and the text of the comment, of those above functions."""
    for m in FUNCTION.finditer(text):
        said = " ".join(re.sub(r"\n \*", " ", m.group(1)).split())
        if not said.startswith("----"):
            yield text.count("\n", 0, m.start()) + 1, said


def begins_well(said):
    """Whether the comment begins with a verb."""
    words = said.split() + [""]
    return words[0].rstrip(",:.") in VERBS and words[1] not in NOUN or said.startswith(("Does as ", "Does nothing"))


def count(files):
    """files: {path: text}. By folder: how many comments do not begin well."""
    counts = collections.Counter()
    for path, text in files.items():
        counts[path.rpartition("/")[0]] += sum(not begins_well(said) for _, said in comments(text))
    return counts


def check(counts, most):
    """What is wrong, a line each."""
    out = []
    for folder in sorted(set(counts) | set(most)):
        n, allowed = counts[folder], most.get(folder, 0)
        if n > allowed:
            out.append(f"{folder}: {n} comments above functions begin with no verb, at most {allowed}: verbs.py . {folder} prints them")
        elif n < allowed:
            out.append(f"{folder}: {n} comments above functions begin with no verb, not {allowed}: verbs.py . --bless writes that")
    return out


def test():
    """Fails if the rules do not see what they are for."""
    good = {"a/x.c": "/* Returns the sum\n * of two. */\nstatic int sum(int a)\n{\n}\n\n/* Whether it is. */\nbool is(int a);\n",
            "a/y.c": "/* ---- part ---- */\nint f(void);\n\n/* The size. */\nstruct S {\n\tint n;\n};\n\n/* A table. */\nstatic const int x[] = {1};\n"}
    assert not check(count(good), {}), check(count(good), {})
    for first in ("What is left", "The sum", "Of a node", "Notes of nodes", "Is n a sum?", "Does it add?"):
        bad = {"a/x.c": f"/* {first}. */\nstatic int *f(const int *a,\n\t\tint b)\n{{\n}}\n"}
        n = count(bad)
        assert check(n, {}) and not check(n, {"a": 1}) and check(n, {"a": 2}), first
    assert [line for line, _ in comments("\n\n/* The sum. */\nint f(void);\n")] == [3]


def main():
    if sys.argv[1:] == ["--self"]:
        return test()
    root = pathlib.Path(sys.argv[1])
    files = {}
    for top in TOPS:
        for p in sorted((root / top).glob("**/*.[ch]")):
            files[str(p.relative_to(root))] = p.read_text(encoding="utf-8")
    counts, most = count(files), {}
    for line in MOST.read_text(encoding="utf-8").splitlines():
        folder, n = line.split(": ")
        most[folder] = int(n)
    if sys.argv[2:] == ["--bless"]:
        most = {folder: min(n, counts[folder]) for folder, n in most.items()}
        MOST.write_text("".join(f"{folder}: {n}\n" for folder, n in sorted(most.items()) if n), encoding="utf-8")
    elif len(sys.argv) > 2:
        for path, text in files.items():
            for line, said in comments(text) if path.rpartition("/")[0] == sys.argv[2] else ():
                if not begins_well(said):
                    print(f"{path}:{line}: {said}")
        return 0
    bad = check(counts, most)
    print("\n".join(bad) if bad else f"{sum(most.values())} comments above functions begin with no verb")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
