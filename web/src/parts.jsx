// SPDX-License-Identifier: MIT
// What several views show: bars, states, tables of resources, events with their explanations.
import { useEffect, useState } from "preact/hooks";
import { amount, moment } from "./format.js";
import { ask, live } from "./live.js";
import { t, t_has } from "./texts.js";

export const tenant_path = (name) => `#/tenant/${encodeURIComponent(name)}`;
export const limits_path = (section, key) =>
	`#/limits/${encodeURIComponent(section)}${key ? `/${encodeURIComponent(key)}` : ""}`;

// A document that is asked for again and again while the view is shown; [document, Error].
export function useAsked(path, every_ms) {
	const [answer, setAnswer] = useState([null, null]);

	useEffect(() => {
		let timer = 0;
		let gone = false;
		const again = async () => {
			try {
				const document = await ask(path);
				if (!gone) setAnswer([document, null]);
			} catch (error) {
				// What was known stays, and is marked as old by the state of the connection.
				if (!gone) setAnswer(([document]) => [error.status === 404 ? null : document, error]);
			}
			if (!gone) timer = setTimeout(again, document.hidden ? 4 * every_ms : every_ms);
		};
		setAnswer([null, null]);
		again();
		return () => {
			gone = true;
			clearTimeout(timer);
		};
	}, [path, every_ms]);
	return answer;
}

// ---- bars

export const fill = (share) =>
	share.limit === null || share.limit === undefined ? 0 : share.limit === 0 ? (share.used ? 1 : 0) : share.used / share.limit;
const level_of = (part) => (part >= 1 ? "full" : part >= 0.8 ? "high" : "");

export function Bar({ share, name }) {
	const part = fill(share);
	return (
		<span
			class={`bar ${level_of(part)}`}
			role="meter"
			aria-label={name}
			aria-valuemin={0}
			aria-valuemax={share.limit}
			aria-valuenow={Math.min(share.used, share.limit)}
			aria-valuetext={share.text}
		>
			<span style={{ width: `${Math.min(100, part * 100)}%` }} />
		</span>
	);
}

// Used, limit, bar, and in words what colours say.
export function Usage({ kind, share, owner }) {
	const used = amount(kind, share.used);
	const limit = amount(kind, share.limit);
	const level = level_of(fill(share));
	const less = share.limit !== null && share.configured !== undefined && share.limit !== share.configured;
	const text = t("meter", kind, used, limit);
	return (
		<span class="usage">
			<span class="numbers">
				{level && <span class={`word ${level}`}>{t(level)} </span>}
				<b>{used}</b>
				{share.limit !== null && <span class="limit"> / {limit}</span>}
			</span>
			{share.limit !== null && <Bar share={{ ...share, text }} name={owner ? `${owner} ${kind}` : kind} />}
			{less && (
				<span class="word share" title={t(`reason_${share.reason}`)}>
					{t("share", amount(kind, share.configured))}
				</span>
			)}
		</span>
	);
}

export const matters = (share) => share && (share.used > 0 || share.limit !== null || share.kernel > 0 || share.refused > 0 || share.tolerated > 0);
// Kinds that any of the owners has something of: first those with a limit, each in the order of the
// command.
export function kinds_of(owners) {
	const shown = live.kinds.filter((kind) => owners.some((owner) => matters(owner.kinds[kind])));
	const is_limited = (kind) => owners.some((owner) => owner.kinds[kind].limit !== null);
	return [...shown.filter(is_limited), ...shown.filter((kind) => !is_limited(kind))];
}

const GLYPHS = { uncovered: "◌", draining: "▼", drift: "≠", runtime: "+", pattern: "∗", removed: "−", orphan: "◇", inactive: "◌" };
export const States = ({ states }) =>
	states.map((state) => (
		<span key={state} class={`chip ${state}`}>
			<span aria-hidden="true">{GLYPHS[state] ?? "·"}</span> {state}
		</span>
	));
export const Mode = ({ mode }) => <span class={`chip mode ${mode}`}>{mode}</span>;

// What an owner holds, as one line of numbers.
export function Holds({ kinds }) {
	const held = live.kinds.filter((kind) => kinds[kind]?.used > 0 || kinds[kind]?.kernel > 0);
	return held.length ? (
		<span class="holds">
			{held.map((kind) => (
				<span key={kind}>
					{kind} <b>{amount(kind, kinds[kind].used)}</b>
					{kinds[kind].kernel > kinds[kind].used && ` (${amount(kind, kinds[kind].kernel)})`}
				</span>
			))}
		</span>
	) : (
		<span class="dim">–</span>
	);
}

// Long lists are shown in steps, so that a thousand tenants do not slow the page down.
export function useSome(list, step = 100) {
	const [most, setMost] = useState(step);
	const rest = list.length - most;
	const button = rest > 0 && (
		<button type="button" class="more" onClick={() => setMost(most + 5 * step)}>
			{t("more", Math.min(rest, 5 * step))}
		</button>
	);
	return [list.slice(0, most), button];
}

// ---- events

// Where the limit of a scope stands in a policy: the section, and the key before the kind.
function limit_place(event) {
	const [who, where] = event.scope.split(" on the ");
	const device = where ?? (who === "device" || who === "port" ? who : null);
	return {
		section: ["host", "device", "port"].includes(who) ? "host" : `tenant ${event.tenant}`,
		key: `${who === "process" ? "process." : ""}${device ? `${device}.${event.device}.` : ""}${event.kind}`,
	};
}

// Sentences that explain an event, and the change that would help.
export function explanation(event) {
	const sentences = [];
	let change = null;

	if (["refused", "tolerated", "overrun"].includes(event.type) && event.scope) {
		const shared = event.configured !== null && event.configured !== event.limit;

		sentences.push(t(event.ring === "kernel" ? "x_kernel" : "x_library"));
		if (event.type === "overrun") sentences.push(t("x_overrun"));
		if (event.own) sentences.push(t("x_own"));
		else if (event.forbidden) sentences.push(t("x_forbidden"));
		else if (shared) sentences.push(t(event.scope.startsWith("tenant") ? "x_shared" : "x_reserved"));
		else {
			const place = limit_place(event);
			change = { ...place, value: event.used + event.wanted };
			sentences.push(t("x_raise"));
		}
	} else if (t_has(`x_${event.type}`)) {
		sentences.push(t(`x_${event.type}`));
	}
	return { sentences, change };
}

function event_sentence(event) {
	if (event.type === "share" && event.kind)
		return `${t("s_share", event.kind, amount(event.kind, event.limit))} ${t_has(`reason_${event.text}`) ? `(${t(`reason_${event.text}`)})` : (event.text ?? "")}`;
	if (event.scope)
		return t(
			"s_limit",
			amount(event.kind, event.wanted),
			event.kind,
			amount(event.kind, event.used),
			amount(event.kind, event.limit),
			t(`scope_${event.scope.replaceAll(" ", "_")}`),
		);
	return event.text ?? "";
}

export const event_is_bad = (event) =>
	["refused", "overrun", "killed", "uncovered", "reload_failed", "drift"].includes(event.type);
const EVENT_GLYPHS = { refused: "✕", tolerated: "!", overrun: "!", killed: "✕", uncovered: "◌", drift: "≠", reload_failed: "!", limits: "✎", joined: "→", left: "←", died: "†" };

function EventRow({ event, of_tenant }) {
	const { sentences, change } = explanation(event);
	return (
		<li class={event_is_bad(event) ? "bad" : ""}>
			<time dateTime={event.time}>{moment(event.time)}</time>
			<span class={`type ${event.type}`}>
				<span aria-hidden="true">{EVENT_GLYPHS[event.type] ?? "·"}</span> {t(`e_${event.type}`)}
			</span>
			<span class="what">
				{event.tenant && !of_tenant && <a href={tenant_path(event.tenant)}>{event.tenant}</a>}
				{event.device && <span class="dim"> {event.device}</span>}
				{event.pid !== null && <span class="dim"> pid {event.pid}</span>} <span>{event_sentence(event)}</span>
				{event.count > 1 && <b> ×{event.count}</b>}
				{sentences.length > 0 && (
					<details>
						<summary>{t("explain")}</summary>
						<p>{sentences.join(" ")}</p>
						{change && (
							<p>
								<code>
									rdma_intercept limit set {change.section} {change.key}={change.value}
								</code>{" "}
								<a href={limits_path(change.section, `${change.key}=${change.value}`)}>{t("open_editor")}</a>
							</p>
						)}
					</details>
				)}
			</span>
		</li>
	);
}

export function EventList({ events, of_tenant, label }) {
	const [shown, more] = useSome(events, 60);
	if (!events.length) return <p class="dim">{t("no_events")}</p>;
	return (
		<>
			<ol class="events" aria-label={label}>
				{shown.map((event) => (
					<EventRow key={`${event.sequence} ${event.type} ${event.pid}`} event={event} of_tenant={of_tenant} />
				))}
			</ol>
			{more}
		</>
	);
}
