#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Makes docs/images/page.png and top.png, the pictures of the README and the guide, from a real run: a collector with
# a policy, programs of four users that make and free objects on the stand-in libibverbs, a browser,
# and a terminal (tmux). Needs root, for the users. Not a test.
# usage: tests/web/pictures.sh [SECONDS]
# shellcheck disable=SC2154 # variables of the fixture
# shellcheck source=tests/web/browser.sh
. "$(dirname "$0")/browser.sh"
[ "$(id -u)" -eq 0 ] || { echo "pictures.sh: not root: expected root, which can start programs of other users" >&2; exit 1; }
images=$here/../docs/images

# as USER NAME QPS MRS MILLISECONDS: a program of that user
as() {
	background setpriv --reuid "$1" --clear-groups env LD_PRELOAD="$preload" RDMA_INTERCEPT_QUIET=1 \
		RDMA_INTERCEPT_LOG_FILE_PATH="$work/as.log" "$build/tests/web_load" "${@:2}" >>"$work/as.out" 2>&1 &
	workers+=($!)
}

cat >"$work/policy.conf" <<-END
	[host]
	qp = 120
	mr_bytes = 64M
	[tenant ml-train]
	match = uid=4000001
	qp = 48
	mr = 40
	process.qp = 32
	[tenant storage]
	match = uid=4000002
	qp = 64
	mr_bytes = 8M
	[tenant analytics]
	match = uid=4000003
	mode = warn
	qp = 24
	mr = 16
	[tenant web]
	match = uid=4000004
	qp = 6
	guarantee.qp = 4
END
chmod 755 "$work"
: >"$work/as.log"
chmod 666 "$work/as.log"
collector_begin
dashboard_begin
as 4000001 trainer-0 20 24 700
as 4000001 trainer-1 31 14 900
as 4000002 osd-3 40 60 1100
as 4000003 report 26 18 1300
as 4000004 web-rpc 9 4 1500
browser_begin
browse goto "$address/"
sleep "${1:-30}"
mkdir -p "$images"
browse look 1280 light
eventually true_there "document.querySelector('[data-tenant=web]')"
browse shot "$images/page.png"

# The terminal's screen becomes a page, of which the browser takes the picture.
in_tmux() { tmux -S "$work/tmux" -f /dev/null "$@"; }
trap 'in_tmux kill-server 2>/dev/null; browser_end; clean_up' EXIT
in_tmux new-session -d -x 100 -y 16 "env TERM=screen-256color $command top"
top_shows() { in_tmux capture-pane -e -p | tee "$work/screen" | grep -q "$1"; }
eventually top_shows web
sleep 3 # rates need two looks
top_shows web
node "$here/web/screen.mjs" <"$work/screen" >"$work/screen.html"
browse goto "file://$work/screen.html"
browse look 880 dark
browse eval "document.body.getBoundingClientRect().height"
browse size 880 "${answer%.*}"
browse shot "$images/top.png"
stat -c '%n: %s bytes' "$images"/*.png
