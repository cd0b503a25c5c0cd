// SPDX-License-Identifier: MIT
// What the page knows, and how it learns it: the stream of the dashboard, which begins again by
// itself after any end, and documents that views ask for.
const EVENTS_KEPT = 2000;
const RETRY_MS = 2000;

const listeners = new Set();
let announced = false;

// The state; views read it and never change it.
export const live = {
	connected: null, // null: not yet
	seen: null, // Date of the last good answer of the collector
	problem: null, // of the collector
	collector: null,
	host: null,
	tenants: new Map(),
	events: [], // the oldest first
	kinds: [], // names, in the order of the command
};

function announce() {
	if (announced) return;
	announced = true;
	setTimeout(() => {
		announced = false;
		for (const listener of listeners) listener();
	}, 30);
}
export function live_listen(listener) {
	listeners.add(listener);
	return () => listeners.delete(listener);
}

// A document; an Error with the sentence of the dashboard if there is none.
export async function ask(path, options) {
	const response = await fetch(path, { cache: "no-store", ...options });
	const document = await response.json().catch(() => ({}));
	if (response.ok) return document;
	const error = new Error(document.error ?? `HTTP ${response.status}`);
	error.status = response.status;
	throw error;
}

// ---- events: one that repeats comes again with a higher count

const event_key = (event) => `${event.sequence} ${event.type} ${event.pid} ${event.tenant} ${event.kind}`;
let places = new Map();

function event_take(event) {
	const key = event_key(event);
	const at = places.get(key);
	if (at !== undefined && live.events[at]) {
		live.events[at] = event;
		return;
	}
	live.events.push(event);
	places.set(key, live.events.length - 1);
	if (live.events.length > EVENTS_KEPT + 200) {
		live.events = live.events.slice(-EVENTS_KEPT);
		places = new Map(live.events.map((kept, i) => [event_key(kept), i]));
	}
}
async function events_ask() {
	const { events } = await ask("/api/events");
	const later = live.events;
	live.events = [];
	places = new Map();
	for (const event of events) event_take(event);
	for (const event of later) if (!places.has(event_key(event))) event_take(event);
	live.events.sort((a, b) => (a.time < b.time ? -1 : 1));
	places = new Map(live.events.map((kept, i) => [event_key(kept), i]));
	announce();
}

// ---- the stream

let all_follow = true; // the next tenants are all of them

function status_take(status) {
	live.problem = status.problem;
	if (status.problem || !status.collector) {
		all_follow = true;
	} else {
		live.seen = new Date(status.time * 1000);
		live.collector = status.collector;
		live.host = status.host;
	}
}
function tenants_take({ changed, removed }) {
	if (all_follow) live.tenants = new Map();
	all_follow = false;
	for (const tenant of changed) live.tenants.set(tenant.name, tenant);
	for (const name of removed) live.tenants.delete(name);
}

function stream_open() {
	const stream = new EventSource("/api/live");
	const take = (name, function_of) =>
		stream.addEventListener(name, (message) => {
			function_of(JSON.parse(message.data));
			announce();
		});

	stream.onopen = () => {
		live.connected = true;
		all_follow = true;
		events_ask().catch(() => {});
		if (!live.kinds.length) kinds_ask();
		announce();
	};
	stream.onerror = () => {
		live.connected = false;
		announce();
		// A refused connection is tried again by the browser, another answer is not.
		if (stream.readyState === EventSource.CLOSED) setTimeout(stream_open, RETRY_MS);
	};
	take("status", status_take);
	take("tenants", tenants_take);
	take("event", event_take);
}

let kinds_listener = () => {};
async function kinds_ask() {
	try {
		const { kinds } = await ask("/api/kinds");
		live.kinds = kinds.map((kind) => kind.name);
		live.meanings = Object.fromEntries(kinds.map((kind) => [kind.name, kind.meaning]));
		kinds_listener(kinds);
		announce();
	} catch {
		setTimeout(kinds_ask, RETRY_MS);
	}
}

export function live_begin(on_kinds) {
	kinds_listener = on_kinds;
	kinds_ask();
	stream_open();
}

// ---- the token: of this tab only

export const token = {
	get: () => sessionStorage.getItem("token") ?? "",
	set: (text) => {
		if (text) sessionStorage.setItem("token", text);
		else sessionStorage.removeItem("token");
		announce();
	},
	header: (text) => ({ Authorization: `Bearer ${text}` }),
};
