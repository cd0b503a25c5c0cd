// SPDX-License-Identifier: MIT
// Turns the screen of a terminal, as tmux capture-pane -e prints it, into a page of HTML.
// usage: node screen.mjs <SCREEN >PAGE
import { readFileSync } from "node:fs";

const colours = ["#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dee9"];
const ground = "#1e222a";
const ink = "#d8dee9";

const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

// Applies the numbers of one escape sequence, ESC [ ... m.
function styled(style, numbers) {
	const next = { ...style };
	for (const number of numbers.length ? numbers : [0]) {
		if (number === 0) Object.keys(next).forEach((key) => delete next[key]);
		else if (number === 1) next.bold = true;
		else if (number === 2) next.dim = true;
		else if (number === 7) next.reverse = true;
		else if (number === 22) next.bold = next.dim = false;
		else if (number === 27) next.reverse = false;
		else if (number >= 30 && number <= 37) next.colour = colours[number - 30];
		else if (number === 39) next.colour = undefined;
		else if (number >= 40 && number <= 47) next.ground = colours[number - 40];
		else if (number === 49) next.ground = undefined;
		else if (number >= 90 && number <= 97) next.colour = colours[number - 90];
	}
	return next;
}

function css(style) {
	const [front, back] = style.reverse ? [style.ground ?? ground, style.colour ?? ink] : [style.colour, style.ground];
	return [front && `color:${front}`, back && `background:${back}`, style.bold && "font-weight:bold", style.dim && "opacity:.65"]
		.filter(Boolean)
		.join(";");
}

let style = {};
const parts = [];
for (const part of readFileSync(0, "utf8").trimEnd().split(/(\x1b\[[0-9;]*m)/)) {
	const sequence = /^\x1b\[([0-9;]*)m$/.exec(part);
	if (sequence) style = styled(style, sequence[1] ? sequence[1].split(";").map(Number) : []);
	else if (part) parts.push(`<span style="${css(style)}">${escaped(part)}</span>`);
}
process.stdout.write(`<!doctype html><meta charset="utf-8"><title>terminal</title>
<style>body{margin:0;background:${ground};color:${ink};display:inline-block}
pre{margin:12px;font:14px/1.25 "DejaVu Sans Mono","WenQuanYi Micro Hei Mono",monospace}</style>
<pre>${parts.join("")}</pre>
`);
