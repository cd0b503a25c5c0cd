#!/bin/sh
# SPDX-License-Identifier: MIT
# The messages of the command, and their translations in po/*.po.
#   po/catalog.sh            prints a template of all messages, from the sources
#   po/catalog.sh update     brings every catalog up to date with the sources: new messages are
#                            empty in it, changed ones fuzzy, and those that are gone are removed
# tests/catalogs.sh checks that no message lacks a translation.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
source=$(dirname "$here")

# The rooms whose texts the command shows. Each function below translates a format or a text that
# it is given, so that its callers mark nothing; other texts are in _() or, in tables, in N_().
rooms="base terms proto ledger policy history output view advice cli fleet"
# Of the services only the command line is for people.
mains="src/collector/main.c src/dashboard/main.c src/monitor/tool/main.c"
functions="cli_fail:3 ask_fail:3 page_sentence:3 problem_set:3 policy_fail:3 policy_report_add:5 missing_found:2
	call_fail:3 finding_set:4 rule_say:2 text_line:3 command_line_fail:1"
keywords="$functions _ N_ page_lines:2 when_fail:3 COLUMN:4 COMMAND:6 OPTION:5 TOP_KEY:4 KIND:7
	CONDITION:4 FLEET_SETTING:4"
second="finding_set:3 when_fail:4" # xgettext takes one place of a function at a time

# Prints the sources' text with macros of strings in the place of their names: xgettext does not
# know macros. Those of other headers, such as PRIu64, it knows.
literal()
{
	perl -0777 -e '
		my %macro;
		for my $file (@ARGV) {
			open(my $in, "<", $file) or die "$file: $!";
			local $/; my $text = <$in>;
			while ($text =~ /^#define (\w+)((?: |\\\n|\t)+"(?:[^"\\\n]|\\.)*")$/mg) {
				my ($name, $value) = ($1, $2);
				$value =~ s/\\\n//g;
				$macro{$name} //= $value;
			}
		}
		my $file = shift @ARGV;
		open(my $in, "<", $file) or die "$file: $!";
		my $text = <$in>;
		$text =~ s/^#define .*//mg if $file =~ /\.c$/;
		$text =~ s/("(?:[^"\\\n]|\\.)*")|\b([A-Z][A-Z_]+)\b/
			defined $1 ? $1 : defined $macro{$2} ? $macro{$2} : $2/ge;
		# A column without a title, which is no message.
		$text =~ s/, "",/, NULL,/g;
		print $text;
	' "$@"
}

template()
{
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	cd "$source"
	headers=$(for room in $rooms; do find "src/$room" -name '*.h'; done | sort)
	for file in $(for room in $rooms; do
		find "src/$room" -name '*.c' -o -name '*.def'
	done | sort) $mains; do
		mkdir -p "$work/$(dirname "$file")"
		# shellcheck disable=SC2086 # words are files
		literal "$file" $headers >"$work/$file"
	done
	# Of the rows of this table some are made by another one.
	cpp -P -undef -I src "-DKEY_COLLECTOR(f,n,t,i,help)=N_(help)" "-DKEY_HOST(f,n,t,i,help)=N_(help)" \
		"-DKEY_TENANT(f,n,t,i,help)=N_(help)" -x c src/policy/keys.def >"$work/src/policy/keys.def"
	cd "$work"
	files=$(find src -type f | sort)
	collect "$keywords" >first.pot
	collect "$second" >second.pot
	# Formats without a word of their own need no translation.
	msgcat --add-location=file --sort-by-file --no-wrap first.pot second.pot |
		perl -00 -ne '
			my ($text) = /^msgid (.*?)^msgstr/ms;
			$text =~ s/%[-0-9.*]*(<\w+>|[hlz]*\w)|\\n//g;
			print if /^"Project-Id-Version/m || $text =~ /[a-z]/i;'
}

# The messages of $files at the places of these functions.
collect()
{
	# shellcheck disable=SC2046,SC2086 # words are options and files
	xgettext --language=C --from-code=UTF-8 --add-location=file --no-wrap -o - \
		--package-name=rdma_intercept --add-comments=TRANSLATORS -k \
		$(for word in $1; do echo "--keyword=$word"; done) \
		$(for word in $functions; do echo "--flag=$word:c-format"; done) $files |
		sed '/^"POT-Creation-Date/d'
}

case ${1:-} in
"") template ;;
update)
	template=$(mktemp)
	template >"$template"
	for catalog in "$here"/*.po; do
		msgmerge --quiet --update --backup=none --no-wrap --add-location=file --sort-by-file \
			"$catalog" "$template"
		msgattrib --no-obsolete --no-wrap --add-location=file --sort-by-file -o "$catalog" "$catalog"
	done
	rm -f "$template"
	;;
*)
	echo "usage: po/catalog.sh [update]" >&2
	exit 2
	;;
esac
