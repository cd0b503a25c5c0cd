// SPDX-License-Identifier: MIT
// The overview: what needs attention, the host, and all tenants.
import { useState } from "preact/hooks";
import { amount } from "./format.js";
import { live } from "./live.js";
import { Mode, States, Usage, fill, kinds_of, matters, tenant_path, useAsked, useSome } from "./parts.jsx";
import { t } from "./texts.js";

const RECENT_MS = 600e3;

// What was refused or tolerated lately, by tenant: { refused: {kind: count}, tolerated: {...} }
function recent_refusals() {
	const since = Date.now() - RECENT_MS;
	const tenants = new Map();

	for (let i = live.events.length - 1; i >= 0; i--) {
		const event = live.events[i];
		if (Date.parse(event.time) < since) break;
		if (event.type !== "refused" && event.type !== "tolerated") continue;
		const name = event.tenant ?? "";
		if (!tenants.has(name)) tenants.set(name, { refused: {}, tolerated: {} });
		const kinds = tenants.get(name)[event.type];
		kinds[event.kind] = (kinds[event.kind] ?? 0) + event.count;
	}
	return tenants;
}
const total = (kinds) => Object.values(kinds).reduce((sum, count) => sum + count, 0);
const listed = (kinds) =>
	Object.entries(kinds)
		.sort((a, b) => b[1] - a[1])
		.map(([kind, count]) => `${kind} ×${count}`)
		.join(", ");

function attention_items(tenants, refusals, rules) {
	const items = [];
	const add = (level, text, tenant) => items.push({ level, text, tenant });
	const { collector } = live;

	if (collector?.monitor.uncovered) add("bad", t("a_uncovered", collector.monitor.uncovered));
	for (const tenant of tenants)
		if (tenant.state.includes("uncovered")) add("bad", t("a_uncovered_tenant"), tenant.name);
	for (const [name, { refused }] of refusals)
		if (total(refused)) add("bad", t("a_refused", total(refused), listed(refused)), name);
	for (const [name, { tolerated }] of refusals)
		if (total(tolerated)) add("warn", t("a_tolerated", total(tolerated), listed(tolerated)), name);
	if (collector?.problem) add("bad", t("a_reload", collector.problem));
	for (const rule of rules) if (rule.problem) add("warn", t("a_rule", `${rule.source}: ${rule.problem}`));
	for (const tenant of tenants) {
		if (tenant.state.includes("draining")) add("warn", t("a_draining"), tenant.name);
		if (tenant.state.includes("drift")) add("warn", t("a_drift"), tenant.name);
	}
	if (collector?.monitor.lost_objects) add("warn", t("a_lost", collector.monitor.lost_objects));
	return items;
}

function Attention({ items }) {
	const [shown, more] = useSome(items, 12);
	return (
		<section class={`attention ${items.length ? "" : "calm"}`} aria-labelledby="attention">
			<h2 id="attention">{t("attention")}</h2>
			{items.length ? (
				<ul>
					{shown.map((item) => (
						<li key={`${item.tenant} ${item.text}`} class={item.level}>
							<span class="glyph" aria-hidden="true">
								{item.level === "bad" ? "✕" : "!"}
							</span>
							<span>
								{item.tenant && (
									<>
										<a href={tenant_path(item.tenant)}>{item.tenant}</a>{" "}
									</>
								)}
								{item.text}
							</span>
						</li>
					))}
				</ul>
			) : (
				<p>
					<span aria-hidden="true">✓</span> {t("attention_none")}
				</p>
			)}
			{more}
		</section>
	);
}

function Host() {
	const { host } = live;
	const kinds = host ? kinds_of([host]) : [];
	return (
		<section aria-labelledby="host">
			<h2 id="host">
				{t("host")} <small>{t("host_all")}</small>{" "}
				<small>
					· {t("processes")} <b>{host?.processes ?? "–"}</b>
				</small>
			</h2>
			<ul class="tiles">
				{kinds.map((kind) => (
					<li key={kind} title={live.meanings?.[kind]} data-kind={kind}>
						<h3>{kind}</h3>
						<Usage kind={kind} share={host.kinds[kind]} owner={t("host")} />
						<span class="word">
							{t("peak")} {amount(kind, host.kinds[kind].peak)}
						</span>
					</li>
				))}
			</ul>
		</section>
	);
}

const highest = (tenant) => Math.max(0, ...Object.values(tenant.kinds).map(fill));
const sum_of = (tenant, field) => Object.values(tenant.kinds).reduce((sum, share) => sum + share[field], 0);

function sorted(tenants, order, refusals) {
	const weight = (tenant) =>
		(tenant.state.includes("uncovered") ? 4 : 0) + (total(refusals.get(tenant.name)?.refused ?? {}) ? 2 : 0) + (tenant.state.includes("draining") ? 1 : 0);
	const by_name = (a, b) => (a.name < b.name ? -1 : 1);
	const orders = {
		attention: (a, b) => weight(b) - weight(a) || highest(b) - highest(a) || b.processes - a.processes || by_name(a, b),
		name: by_name,
		fill: (a, b) => highest(b) - highest(a) || by_name(a, b),
	};
	return [...tenants].sort(orders[order]);
}

function TenantRow({ tenant, kinds, recent }) {
	const refused = sum_of(tenant, "refused");
	const tolerated = sum_of(tenant, "tolerated");
	return (
		<tr data-tenant={tenant.name}>
			<th scope="row">
				<a href={tenant_path(tenant.name)}>{tenant.name}</a> <States states={tenant.state} />
			</th>
			<td data-label={t("mode")}>
				<Mode mode={tenant.mode} />
			</td>
			<td class="number" data-label={t("processes")}>
				{tenant.processes}
			</td>
			<td class={`number ${recent ? "hot" : ""}`} data-label={t("refused")} data-column="refused">
				{refused || <span class="dim">0</span>}
			</td>
			<td class="number" data-label={t("tolerated")} data-column="tolerated">
				{tolerated || <span class="dim">0</span>}
			</td>
			{kinds.map((kind) => (
				<td key={kind} class={`number ${matters(tenant.kinds[kind]) ? "" : "idle"}`} data-label={kind} data-kind={kind}>
					{matters(tenant.kinds[kind]) ? <Usage kind={kind} share={tenant.kinds[kind]} owner={tenant.name} /> : <span class="dim">–</span>}
				</td>
			))}
		</tr>
	);
}

function Tenants({ tenants, refusals }) {
	const [order, setOrder] = useState("attention");
	const [text, setText] = useState("");
	const wanted = sorted(tenants, order, refusals).filter((tenant) => tenant.name.toLowerCase().includes(text.toLowerCase()));
	const [shown, more] = useSome(wanted);
	const kinds = kinds_of(tenants);

	return (
		<section aria-labelledby="tenants">
			<div class="headline">
				<h2 id="tenants">{t("tenants")}</h2>
				<span class="dim" role="status">
					{t("shown", shown.length, tenants.length)}
				</span>
				<label>
					{t("filter")} <input type="search" value={text} onInput={(e) => setText(e.currentTarget.value)} />
				</label>
				<label>
					{t("sort")}{" "}
					<select value={order} onChange={(e) => setOrder(e.currentTarget.value)}>
						{["attention", "fill", "name"].map((one) => (
							<option key={one} value={one}>
								{t(`sort_${one}`)}
							</option>
						))}
					</select>
				</label>
			</div>
			<div class="scroll" role="group" aria-labelledby="tenants" tabIndex={0}>
				<table class="cards">
					<thead>
						<tr>
							<th scope="col">{t("tenant")}</th>
							<th scope="col">{t("mode")}</th>
							<th scope="col" class="number">
								{t("processes")}
							</th>
							<th scope="col" class="number">
								{t("refused")}
							</th>
							<th scope="col" class="number" title={t("tolerated_help")}>
								{t("tolerated")}
							</th>
							{kinds.map((kind) => (
								<th key={kind} scope="col" class="number" title={live.meanings?.[kind]}>
									{kind}
								</th>
							))}
						</tr>
					</thead>
					<tbody>
						{shown.map((tenant) => (
							<TenantRow key={tenant.name} tenant={tenant} kinds={kinds} recent={refusals.has(tenant.name) && sum_of(tenant, "refused") > 0} />
						))}
					</tbody>
				</table>
			</div>
			{more}
		</section>
	);
}

export function Overview() {
	const tenants = [...live.tenants.values()];
	const refusals = recent_refusals();
	const [rules] = useAsked("/api/limits", 10000);
	return (
		<>
			<h1 class="unseen">{t("overview")}</h1>
			<Attention items={attention_items(tenants, refusals, rules?.rules ?? [])} />
			<Host />
			<Tenants tenants={tenants} refusals={refusals} />
		</>
	);
}
