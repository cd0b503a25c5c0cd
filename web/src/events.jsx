// SPDX-License-Identifier: MIT
// Events as they come, or from the history.
import { useState } from "preact/hooks";
import { live } from "./live.js";
import { EventList, useAsked } from "./parts.jsx";
import { t } from "./texts.js";

const TYPES = ["refused", "tolerated", "overrun", "killed", "uncovered", "drift", "limits", "share", "rule", "rate", "reloaded", "reload_failed", "joined", "left", "died", "orphaned"];

const found = (event, text) =>
	[event.tenant, event.device, event.kind, event.text, event.pid, event.id].some((part) => part !== null && String(part).toLowerCase().includes(text));

// Events of the history, while one is asked for.
function Past({ span, show }) {
	const [answer, error] = useAsked(`/api/events?since=${span}`, 30000);
	if (!answer) return <p class={error ? "failure" : "dim"}>{error ? error.message : t("loading")}</p>;
	return show(answer.events);
}

export function Events() {
	const [text, setText] = useState("");
	const [type, setType] = useState("");
	const [span, setSpan] = useState("");
	const show = (events) => {
		const wanted = events.filter((event) => (!type || event.type === type) && (!text || found(event, text.toLowerCase())));
		return <EventList events={wanted.reverse()} label={t("events")} />;
	};

	return (
		<>
			<div class="headline">
				<h1>{t("events")}</h1>
				<label>
					{t("filter")} <input type="search" value={text} onInput={(e) => setText(e.currentTarget.value)} />
				</label>
				<label>
					{t("type")}{" "}
					<select value={type} onChange={(e) => setType(e.currentTarget.value)}>
						<option value="">{t("all_types")}</option>
						{TYPES.map((one) => (
							<option key={one} value={one}>
								{t(`e_${one}`)}
							</option>
						))}
					</select>
				</label>
				<label>
					{t("span")}{" "}
					<select value={span} onChange={(e) => setSpan(e.currentTarget.value)}>
						<option value="">{t("latest")}</option>
						{["2h", "24h", "30d"].map((one) => (
							<option key={one} value={one}>
								{t(`span_${one}`)}
							</option>
						))}
					</select>
				</label>
			</div>
			<section aria-label={t("events")}>{span ? <Past span={span} show={show} /> : show(live.events)}</section>
		</>
	);
}
