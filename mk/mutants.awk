# SPDX-License-Identifier: BSD-2-Clause
# mutants.awk - prints mutants of C files, one a line: the file, the number of
# the line, and the line as it becomes, separated by tabs.
#
# A mutant differs in one place: a comparison, a logical or arithmetic operator,
# a constant, or a statement that is left out. Comments, preprocessor lines,
# declarations and strings are left alone.

# Prints a line with the text at `at` of length n replaced.
function put(line, at, n, by)
{
	printf "%s\t%d\t%s\n", FILENAME, FNR,
	    substr(line, 1, at - 1) by substr(line, at + n)
}

# Every place where `from` occurs; it is plain text.
function swap(line, from, to,    at, done)
{
	for (done = 0; (at = index(substr(line, done + 1), from)) > 0;
	    done += at + length(from) - 1)
		put(line, done + at, length(from), to)
}

FNR == 1 { comment = body = 0 }

/^[ \t]*\/\*/ { comment = 1 }
comment {
	if ($0 ~ /\*\//)
		comment = 0
	next
}
/^\{/ { body = 1; next }
/^\}/ { body = 0; next }
!body || /^#/ || /"/ || /\/\*/ || /^[ \t]*(case|default|else|do|continue)/ {
	next
}
# a declaration, unless it computes something
/^\t(const |static |struct |enum |unsigned |uint|int|bool|size_t|double)/ {
	if ($0 !~ /[-+*<>&|?] .*;/)
		next
}

{
	swap($0, " < ", " <= "); swap($0, " <= ", " < ")
	swap($0, " > ", " >= "); swap($0, " >= ", " > ")
	swap($0, " == ", " != "); swap($0, " != ", " == ")
	swap($0, " && ", " || "); swap($0, " || ", " && ")
	swap($0, " + ", " - "); swap($0, " - ", " + ")
	swap($0, "++;", "--;"); swap($0, "--;", "++;")
	swap($0, " += ", " -= "); swap($0, " -= ", " += ")
	swap($0, " | ", " & "); swap($0, " & ", " | ")
	swap($0, " 0;", " 1;"); swap($0, " 1;", " 2;"); swap($0, " 1)", " 2)")
	swap($0, "return true;", "return false;")
	swap($0, "return false;", "return true;")
	swap($0, "if (!", "if ("); swap($0, "while (!", "while (")
}
# a call, or an assignment, on a line of its own
/^\t+[a-z_]+\([^;]*\);$/ || /^\t+[a-z][a-z_>.-]*(\[[a-z]+\])? [-+|&]?= [^;]*;$/ {
	match($0, /^\t+/)
	put($0, RLENGTH + 1, length($0) - RLENGTH, ";")
}
