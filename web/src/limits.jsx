// SPDX-License-Identifier: MIT
// The editor of limits: what is in force, what would change, and the change itself, which needs
// the token.
import { useEffect, useRef, useState } from "preact/hooks";
import { amount, amount_parse } from "./format.js";
import { ask, live, token } from "./live.js";
import { Usage, kinds_of, limits_path, useAsked } from "./parts.jsx";
import { t } from "./texts.js";

// ---- the token

export function Token() {
	const [text, setText] = useState("");
	const [problem, setProblem] = useState(null);
	const have = token.get() !== "";

	const use = async (event) => {
		event.preventDefault();
		const given = text.trim();
		if (!given) return setProblem(t("token_empty"));
		try {
			const answer = await ask("/api/token", { headers: token.header(given) });
			setProblem(answer.valid ? null : t("token_wrong", answer.problem));
			if (answer.valid) token.set(given);
			if (answer.valid) setText("");
		} catch (error) {
			setProblem(error.message);
		}
	};
	if (have)
		return (
			<p class="token">
				<span aria-hidden="true">✎</span> {t("token_have")}{" "}
				<button type="button" onClick={() => token.set("")}>
					{t("token_forget")}
				</button>
			</p>
		);
	return (
		<form class="token" onSubmit={use}>
			<p id="token-help">{t("token_help")}</p>
			<label>
				{t("token")}{" "}
				<input
					type="password"
					name="token"
					autocomplete="off"
					spellcheck={false}
					value={text}
					aria-describedby="token-help token-problem"
					aria-invalid={problem !== null}
					onInput={(e) => setText(e.currentTarget.value)}
				/>
			</label>{" "}
			<button type="submit">{t("token_use")}</button>
			<p id="token-problem" class="failure" role="alert">
				{problem}
			</p>
		</form>
	);
}

// ---- what is in force

function owner_of(section) {
	if (section === "host") return live.host;
	return live.tenants.get(section === "default" ? "default" : section.replace(/^tenant /, ""));
}

// The values of a section that the rows of the collector tell, by key.
function values_of(section) {
	const owner = owner_of(section);
	const values = {};
	for (const [kind, share] of Object.entries(owner?.kinds ?? {})) {
		values[kind] = { kind, value: share.configured, used: share.used };
		if (section === "host") continue;
		values[`process.${kind}`] = { kind, value: share.process_limit };
		values[`guarantee.${kind}`] = { kind, value: share.guarantee || undefined };
	}
	if (section !== "host" && owner) {
		values.mode = { value: owner.mode };
		values.weight = { value: String(owner.weight) };
	}
	return values;
}
const value_text = (known) =>
	!known || known.value === undefined ? t("not_set") : known.kind ? (known.value === null ? t("no_limit") : amount(known.kind, known.value)) : known.value;

// What a new value of a limit means for what is in use now.
function Consequence({ known, text, section }) {
	const value = amount_parse(text);
	const sentences = [];
	if (!known?.kind) return null;
	if (value === undefined) sentences.push(t("c_invalid"));
	else if (known.used === undefined) sentences.push("");
	else if (value === null) sentences.push(t("c_unlimited"));
	else if (known.used > value)
		sentences.push(t("c_below", amount(known.kind, known.used), amount(known.kind, known.used - value), amount(known.kind, value)));
	else sentences.push(t("c_room", amount(known.kind, known.used), amount(known.kind, value - known.used)));
	const processes = owner_of(section)?.processes;
	if (processes && value !== undefined) sentences.push(t("c_processes", processes));
	return <span class="dim"> {sentences.join(" ")}</span>;
}

function Preview({ draft, values, section }) {
	const lines = Object.entries(draft);
	return (
		<section class="preview" aria-labelledby="would">
			<h2 id="would">{t("would_change")}</h2>
			{!lines.length && <p class="dim">{t("would_nothing")}</p>}
			<ul>
				{lines.map(([key, text]) => (
					<li key={key}>
						<b>{text === null ? t("would_unset", key, value_text(values[key])) : t("would_set", key, value_text(values[key]), text)}</b>
						{text !== null && <Consequence known={values[key]} text={text} section={section} />}
					</li>
				))}
			</ul>
		</section>
	);
}

// ---- fields

function Field({ name, label, draft, values, failure, change }) {
	const text = draft[name];
	const bad = failure?.key === name;
	return (
		<>
			<input
				type="text"
				aria-label={label}
				data-key={name}
				class={text !== undefined ? "changed" : ""}
				placeholder={value_text(values[name])}
				value={text ?? ""}
				aria-invalid={bad}
				aria-describedby={bad ? "failure" : undefined}
				autocomplete="off"
				spellcheck={false}
				onInput={(e) => change(name, e.currentTarget.value.trim() === "" ? undefined : e.currentTarget.value.trim())}
			/>
			{bad && <span class="failure">✕</span>}
		</>
	);
}

// The file and line that set a value; if another one holds, a command set that.
function Source({ sources, values, keys }) {
	const is_same = (known, text) => amount_parse(text) === known.value;
	return keys.map((key) => {
		const known = values[key];
		const line = sources?.[key];
		const is_set = known?.value !== undefined && known?.value !== null;
		if (!line && !is_set) return null;
		return (
			<span key={key} class="source" title={key}>
				{key !== known.kind && <b>{key} </b>}
				{line ? line.source : t("by_command")}
				{line && !is_same(known, line.value) && ` (${t("by_command_over", line.value)})`}
			</span>
		);
	});
}

function Fields({ section, values, draft, failure, change, all, sources }) {
	const owner = owner_of(section);
	const of_tenant = section !== "host";
	const first = owner ? kinds_of([owner]) : ["qp", "mr", "mr_bytes"];
	const kinds = all || !first.length ? [...first, ...live.kinds.filter((kind) => !first.includes(kind))] : first;
	const field = { draft, values, failure, change };
	return (
		<div class="scroll" role="group" aria-label={t("limits")} tabIndex={0}>
			<table class="cards fields">
				<thead>
					<tr>
						<th scope="col">{t("kind")}</th>
						<th scope="col" class="number">
							{t("used")} / {t("limit_now")}
						</th>
						<th scope="col">{t("limit")}</th>
						{of_tenant && <th scope="col">{t("process_limit")}</th>}
						{of_tenant && <th scope="col">{t("guarantee")}</th>}
						<th scope="col">{t("source")}</th>
					</tr>
				</thead>
				<tbody>
					{kinds.map((kind) => (
						<tr key={kind} data-kind={kind}>
							<th scope="row" title={live.meanings?.[kind]}>
								{kind}
							</th>
							<td class="number" data-label={t("used")}>
								{owner ? <Usage kind={kind} share={owner.kinds[kind]} owner={section} /> : "–"}
							</td>
							<td data-label={t("limit")}>
								<Field name={kind} label={t("input_limit", kind)} {...field} />
							</td>
							{of_tenant && (
								<td data-label={t("process_limit")}>
									<Field name={`process.${kind}`} label={t("input_process", kind)} {...field} />
								</td>
							)}
							{of_tenant && (
								<td data-label={t("guarantee")}>
									<Field name={`guarantee.${kind}`} label={t("input_guarantee", kind)} {...field} />
								</td>
							)}
							<td data-label={t("source")} class={sources ? "" : "idle"}>
								{sources && <Source sources={sources} values={values} keys={[kind, `process.${kind}`, `guarantee.${kind}`]} />}
							</td>
						</tr>
					))}
				</tbody>
			</table>
		</div>
	);
}

function OtherKey({ change }) {
	const [key, setKey] = useState("");
	const [value, setValue] = useState("");
	const add = (event) => {
		event.preventDefault();
		if (!key.trim() || !value.trim()) return;
		change(key.trim(), value.trim());
		setKey("");
		setValue("");
	};
	return (
		<form class="other" onSubmit={add}>
			<fieldset>
				<legend>{t("other_key")}</legend>
				<label>
					{t("key")} <input type="text" value={key} placeholder="process.device.mlx5_0.qp" onInput={(e) => setKey(e.currentTarget.value)} />
				</label>{" "}
				<label>
					{t("value")} <input type="text" value={value} placeholder="64" onInput={(e) => setValue(e.currentTarget.value)} />
				</label>{" "}
				<button type="submit">{t("add")}</button>
			</fieldset>
		</form>
	);
}

// ---- the view

// The key that a sentence of the collector begins with, so that its field can be marked.
const failure_of = (error, draft) => ({ text: error.message, key: Object.keys(draft).find((key) => error.message.startsWith(`${key}:`)) });

// "qp=6" of a link as a draft.
const draft_of = (wish) => {
	const at = wish?.indexOf("=") ?? -1;
	return at > 0 ? { [wish.slice(0, at)]: wish.slice(at + 1) } : {};
};

export function Limits({ section = "host", wish }) {
	const [draft, setDraft] = useState(draft_of(wish));
	const [failure, setFailure] = useState(null);
	const [done, setDone] = useState(null);
	const [all, setAll] = useState(false);
	const [busy, setBusy] = useState(false);
	const [asked] = useAsked(`/api/limits?section=${encodeURIComponent(section)}`, 3000);
	const message = useRef(null);
	const values = values_of(section);
	const names = [...live.tenants.keys()].sort();
	const sources = asked?.sources && Object.fromEntries(asked.sources.map((one) => [one.key, one]));

	useEffect(() => {
		setDraft(draft_of(wish));
		setFailure(null);
		setDone(null);
	}, [section, wish]);
	const change = (key, text) => {
		setFailure(null);
		setDone(null);
		setDraft((before) => {
			const after = { ...before };
			if (text === undefined) delete after[key];
			else after[key] = text;
			return after;
		});
	};
	const apply = async (event) => {
		event.preventDefault();
		const entries = Object.entries(draft);
		setBusy(true);
		try {
			await ask("/api/limits", {
				method: "POST",
				headers: { "Content-Type": "application/json", ...token.header(token.get()) },
				body: JSON.stringify({
					section,
					set: Object.fromEntries(entries.filter(([, text]) => text !== null)),
					unset: entries.filter(([, text]) => text === null).map(([key]) => key),
				}),
			});
			setDone(t("applied", entries.map(([key, text]) => (text === null ? key : `${key} = ${text}`)).join(", ")));
			setDraft({});
			setFailure(null);
		} catch (error) {
			if (error.status === 401) token.set("");
			setFailure(failure_of(error, draft));
		}
		setBusy(false);
	};
	const ready = Object.keys(draft).length > 0;

	return (
		<>
			<div class="headline">
				<h1>{t("limits")}</h1>
				<label>
					{t("section")}{" "}
					<select value={section} onChange={(e) => (location.hash = limits_path(e.currentTarget.value))}>
						<option value="host">{t("section_host")}</option>
						<option value="default">{t("section_default")}</option>
						{names.map((name) => (
							<option key={name} value={`tenant ${name}`}>
								{t("section_tenant", name)}
							</option>
						))}
					</select>
				</label>
				<label class="check">
					<input type="checkbox" checked={all} onChange={(e) => setAll(e.currentTarget.checked)} /> {t("all_kinds")}
				</label>
			</div>
			<p class="dim">{t("limits_help")}</p>
			{section !== "host" && (
				<p class="small-fields">
					<label>
						{t("mode")}{" "}
						<select data-key="mode" value={draft.mode ?? values.mode?.value ?? ""} onChange={(e) => change("mode", e.currentTarget.value === values.mode?.value ? undefined : e.currentTarget.value)}>
							{["enforce", "warn", "audit"].map((mode) => (
								<option key={mode}>{mode}</option>
							))}
						</select>
					</label>
					<label>
						{t("weight")} <Field name="weight" label={t("weight")} draft={draft} values={values} failure={failure} change={change} />
					</label>
				</p>
			)}
			<section aria-label={t("limits")}>
				<Fields section={section} values={values} draft={draft} failure={failure} change={change} all={all} sources={sources} />
				<OtherKey change={change} />
			</section>
			<details class="back">
				<summary>{t("take_back")}</summary>
				{Object.entries(values)
					.filter(([key, known]) => known.value !== undefined && known.value !== null && key !== "weight")
					.map(([key]) => (
						<button key={key} type="button" onClick={() => change(key, null)}>
							{t("take_back_key", key)}
						</button>
					))}
			</details>
			<Preview draft={draft} values={values} section={section} />
			<Token />
			<form class="apply" onSubmit={apply}>
				<button type="submit" class="strong" disabled={!ready || busy || !token.get()}>
					{t("apply")}
				</button>{" "}
				<button type="button" disabled={!ready} onClick={() => setDraft({})}>
					{t("discard")}
				</button>
				<p id="failure" class="failure" role="alert" ref={message}>
					{failure && t("failed", failure.text)}
				</p>
				<p class="success" role="status">
					{done}
				</p>
			</form>
		</>
	);
}
