#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The man pages in Chinese follow those in English: the same sections, paragraphs, tags and examples, and every
# option, variable, file, key, error and other page that one of them names. groff finds no fault.
# usage: tests/manpages.sh [--list | --only CASE]
# shellcheck disable=SC2317 # functions that check calls
# shellcheck source=tests/cases.sh
. "$(dirname "$0")/cases.sh"
sources=${SOURCE_DIRECTORY:-$(cd "$(dirname "$0")/.." && pwd)}
cd "$sources/man" || exit 1

# outline PAGE: what has to be the same in every language, a line each: what it is, then the text
outline() {
	perl -CSD -e '
		use utf8;
		my (%named, $example, $tag);
		sub plain {
			my ($line) = @_;
			# Arguments of macros that alternate between fonts are joined.
			if ($line =~ /^\.(BR|RB|BI|IB|IR|RI|B|I) +(.*)/) {
				my ($macro, $rest, @parts) = ($1, $2);
				push @parts, defined $1 ? $1 : $2 while $rest =~ /"([^"]*)"|(\S+)/g;
				$line = join(length $macro == 2 ? "" : " ", @parts);
			}
			$line =~ s/\\f[BIRP]//g;
			$line =~ s/\\-/-/g;
			$line =~ s/\\~/ /g;
			$line =~ s/\\\((aq|dq|bu|en)/ /g;
			$line =~ s/\\[e&]//g;
			return $line;
		}
		while (my $line = <>) {
			chomp $line;
			next if $line =~ /^\.\\"|^\.TH/;
			print("$1\n"), next if $line =~ /^\.(SH|SS)/;
			print "paragraph\n" if $line =~ /^\.(PP|IP)/;
			$example = 1 if $line =~ /^\.(EX|nf)/;
			$example = 0 if $line =~ /^\.(EE|fi)/;
			if ($example) {
				# Comments are translated.
				print "example $line\n" unless $line =~ /^#(?! \\f)|^\.\w/;
				next;
			}
			my $text = plain($line);
			if ($tag && $text ne "") {
				my $kept = $text;
				# A tag of words is translated: its Chinese name, and the name in other places.
				print $kept =~ /\P{ASCII}|^[A-Z][a-z]|\(.*, / ? "tag\n" : "tag $kept\n";
			}
			$tag = $line =~ /^\.(TP|TQ)/;
			$named{"option $1"} = 1 while $text =~ /(?<![\w-])(--?[a-zA-Z][a-z-]*[a-z]|-[a-zA-Z])(?![\w-])/g;
			$named{"word $1"} = 1 while $text =~ /\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|E[A-Z0-9]{3,9}|SIG[A-Z]+)\b/g;
			$named{"page $1"} = 1 while $text =~ /\b([a-z][\w.-]*\([1-8]\))/g;
			while ($text =~ m{(?<![\w)])((?:/[\w.*:@+-]+){2,})}g) {
				my $path = $1; $path =~ s/\.+$//; $named{"file $path"} = 1;
			}
			$named{"key $1"} = 1 while $text =~ /(?<![\w\/.])([a-z][a-z0-9]*(?:_[a-z0-9]+)+)\b/g;
		}
		print "$_\n" for sort keys %named;' "$1"
}

# same PAGE: its outline in both languages
same() {
	outline "$1" >"$work/english"
	outline "zh_CN/$1" >"$work/chinese"
	diff "$work/english" "$work/chinese" >"$work/difference" || { head -40 "$work/difference" && false; }
}

pages() {
	local page
	for page in *.[1-8]; do
		check "man/zh_CN has $page" test -s "zh_CN/$page"
	done
	for page in zh_CN/*.[1-8]; do
		check "man has ${page#*/}" test -s "${page#*/}"
	done
}

contents() {
	local page
	for page in zh_CN/*.[1-8]; do
		check "${page#*/} says the same in both languages" same "${page#*/}"
	done
}

# renders PAGE: without a warning
renders() {
	preconv -e utf-8 "$1" | groff -man -Tutf8 -ww -z 2>"$work/faults"
	[ ! -s "$work/faults" ] || { head -5 "$work/faults" && false; }
}

rendering() {
	local page
	command -v groff >/dev/null && command -v preconv >/dev/null || { skip_part "groff is not installed" && return 0; }
	for page in *.[1-8] zh_CN/*.[1-8]; do
		grep -q '^\.so' "$page" || check "$page is rendered" renders "$page"
	done
}

run_cases "pages contents rendering" "$@"
