// SPDX-License-Identifier: MIT
// Numbers, sizes and times as people read them. Sizes have the letters of the command: 12K, 1.5G.
import { language } from "./texts.js";

const LETTERS = ["", "K", "M", "G", "T", "P", "E"];
let units = {}; // by kind: "count" or "bytes"

export const units_set = (kinds) => {
	units = Object.fromEntries(kinds.map((kind) => [kind.name, kind.unit]));
};

function size(bytes) {
	let power = 0;
	let value = bytes;
	while (value >= 1024 && power < LETTERS.length - 1) {
		value /= 1024;
		power++;
	}
	const digits = power && value < 100 && value % 1 ? 1 : 0;
	return value.toFixed(digits) + LETTERS[power];
}

export const is_bytes = (kind) => units[kind] === "bytes";

const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");

// The amount of a kind; null is no limit.
export function amount(kind, value) {
	if (value === null || value === undefined) return "∞";
	return units[kind] === "bytes" ? size(value) : grouped(Math.round(value));
}

// "512M" as a number; undefined if it is none, null if it is unlimited.
export function amount_parse(text) {
	const match = /^(\d+(?:\.\d+)?)([KMGTPE]?)(?:i?B)?$/i.exec(text.trim());
	if (text.trim() === "unlimited") return null;
	if (!match) return undefined;
	return Number(match[1]) * 1024 ** LETTERS.indexOf(match[2].toUpperCase());
}

const two = (number) => String(number).padStart(2, "0");
export function clock(date) {
	return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}
export function moment(text) {
	const date = new Date(text);
	const today = new Date().toDateString() === date.toDateString();
	return today ? clock(date) : `${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(date)}`;
}
export function duration(seconds) {
	const zh = language() !== "en";
	const [d, h, m] = zh ? ["天", "时", "分"] : ["d", "h", "min"];
	if (seconds < 3600) return `${Math.floor(seconds / 60)} ${m}`;
	if (seconds < 86400) return `${Math.floor(seconds / 3600)} ${h}`;
	return `${Math.floor(seconds / 86400)} ${d}`;
}
export function nanoseconds(ns) {
	if (ns < 1e6) return `${Math.round(ns / 1e3)} µs`;
	return ns < 1e9 ? `${Math.round(ns / 1e6)} ms` : `${(ns / 1e9).toFixed(1)} s`;
}
