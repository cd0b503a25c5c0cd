// SPDX-License-Identifier: MIT
// One tenant: its resources, charts, processes, devices, queue pairs, latencies and events.
import { Charts } from "./chart.jsx";
import { amount, nanoseconds } from "./format.js";
import { live } from "./live.js";
import { EventList, Holds, Mode, States, Usage, kinds_of, limits_path, useAsked, useSome } from "./parts.jsx";
import { t, t_has } from "./texts.js";

const Number_ = ({ kind, value, none = "–" }) =>
	value === null || value === undefined || value === 0 ? <span class="dim">{value === 0 ? "0" : none}</span> : amount(kind, value);

const COUNTS = ["refused", "tolerated"]; // of requests, not amounts

function Resources({ tenant }) {
	const kinds = kinds_of([tenant]);
	const columns = ["peak", "leased", "kernel", "configured", "guarantee", "process_limit", ...COUNTS];
	if (!kinds.length) return <p class="dim">{t("nothing_used")}</p>;
	return (
		<div class="scroll" role="group" aria-labelledby="resources" tabIndex={0}>
			<table class="cards">
				<thead>
					<tr>
						<th scope="col">{t("kind")}</th>
						<th scope="col" class="number">
							{t("used")} / {t("limit_now")}
						</th>
						{columns.map((column) => (
							<th key={column} scope="col" class="number">
								{t(column)}
							</th>
						))}
						<th scope="col">{t("reason")}</th>
					</tr>
				</thead>
				<tbody>
					{kinds.map((kind) => {
						const share = tenant.kinds[kind];
						return (
							<tr key={kind} data-kind={kind}>
								<th scope="row" title={live.meanings?.[kind]}>
									{kind}
								</th>
								<td class="number" data-label={t("used")}>
									<Usage kind={kind} share={{ ...share, configured: share.limit }} owner={tenant.name} />
								</td>
								{columns.map((column) => (
									<td key={column} class={`number ${column === "refused" && share.refused ? "hot" : ""} ${share[column] ? "" : "idle"}`} data-label={t(column)}>
										{COUNTS.includes(column) ? share[column] || <span class="dim">0</span> : <Number_ kind={kind} value={share[column]} />}
									</td>
								))}
								<td data-label={t("reason")} class={share.limit === null ? "idle" : ""}>{share.limit === null ? <span class="dim">{t("no_limit")}</span> : t(`reason_${share.reason}`)}</td>
							</tr>
						);
					})}
				</tbody>
			</table>
		</div>
	);
}

function Processes({ processes }) {
	const [shown, more] = useSome(processes, 50);
	if (!processes.length) return <p class="dim">{t("no_processes")}</p>;
	return (
		<>
			<div class="scroll" role="group" aria-labelledby="processes" tabIndex={0}>
				<table class="cards">
					<thead>
						<tr>
							<th scope="col">{t("pid")}</th>
							<th scope="col">{t("command")}</th>
							<th scope="col" class="number">
								{t("user")}
							</th>
							<th scope="col">{t("holds")}</th>
							<th scope="col">{t("state")}</th>
						</tr>
					</thead>
					<tbody>
						{shown.map((process) => (
							<tr key={process.pid} data-pid={process.pid}>
								<th scope="row" class="pid">
									{process.pid}
								</th>
								<td data-label={t("command")}>
									<code>{process.command ?? "–"}</code>
								</td>
								<td class="number" data-label={t("user")}>
									{process.uid}
								</td>
								<td data-label={t("holds")}>
									<Holds kinds={process.kinds} />
								</td>
								<td data-label={t("state")} class={process.state.length ? "" : "idle"}>
									<States states={process.state} />
								</td>
							</tr>
						))}
					</tbody>
				</table>
			</div>
			{more}
		</>
	);
}

// Groups of numbers that are not 0, as terms and values.
function Groups({ groups, names }) {
	const shown = names
		.map((name) => [name, Object.entries(groups[name] ?? {}).filter(([, value]) => value)])
		.filter(([, values]) => values.length);
	return (
		<dl class="groups">
			{shown.map(([name, values]) => (
				<div key={name}>
					<dt>{t_has(name) ? t(name) : name.replaceAll("_", " ")}</dt>
					{values.map(([of, value]) => (
						<dd key={of}>
							{of} <b>{/_ns$/.test(of) || /_ns$/.test(name) ? nanoseconds(value) : value}</b>
						</dd>
					))}
				</div>
			))}
		</dl>
	);
}

// The upper bound below which this part of the calls was, from buckets by their upper bounds.
function below(buckets, part) {
	const bounds = Object.entries(buckets).map(([bound, count]) => [Number(bound), count]);
	const all = bounds.reduce((sum, [, count]) => sum + count, 0);
	let seen = 0;
	for (const [bound, count] of bounds) {
		seen += count;
		if (seen >= part * all) return Number.isNaN(bound) ? "…" : nanoseconds(bound);
	}
	return "…";
}
const LATENCY = "latency_";
function Latencies({ counters }) {
	const classes = Object.entries(counters).filter(([name, buckets]) => name.startsWith(LATENCY) && Object.values(buckets).some(Boolean));
	if (!classes.length) return null;
	return (
		<section aria-labelledby="latencies">
			<h2 id="latencies">{t("latencies")}</h2>
			<dl class="groups">
				{classes.map(([name, buckets]) => (
					<div key={name}>
						<dt>{name.slice(LATENCY.length)}</dt>
						<dd>
							{t(
								"latency_line",
								Object.values(buckets).reduce((sum, count) => sum + count, 0),
								below(buckets, 0.5),
								below(buckets, 0.99),
							)}
						</dd>
					</div>
				))}
			</dl>
		</section>
	);
}

function Details({ name }) {
	const [answer, error] = useAsked(`/api/tenant?tenant=${encodeURIComponent(name)}`, 2000);
	if (!answer) return <p class={error ? "failure" : "dim"}>{error ? error.message : t("loading")}</p>;
	const plain = Object.keys(answer.counters).filter((group) => !group.startsWith(LATENCY));
	const pairs = answer.queue_pairs.filter((device) => Object.values(device.qp_states ?? {}).some(Boolean));
	return (
		<>
			<section aria-labelledby="processes">
				<h2 id="processes">{t("processes")}</h2>
				<Processes processes={answer.processes} />
			</section>
			<div class="columns">
				<section aria-labelledby="devices">
					<h2 id="devices">{t("devices")}</h2>
					<dl class="groups">
						{answer.devices.map((device) => (
							<div key={device.device}>
								<dt>{device.device}</dt>
								<dd>
									<Holds kinds={device.kinds} />
								</dd>
							</div>
						))}
					</dl>
					{!answer.devices.length && <p class="dim">{t("no_devices")}</p>}
				</section>
				<section aria-labelledby="pairs">
					<h2 id="pairs">{t("queue_pairs")}</h2>
					{pairs.map(({ device, ...groups }) => (
						<div key={device}>
							<h3>{device}</h3>
							<Groups groups={groups} names={Object.keys(groups)} />
						</div>
					))}
					{!pairs.length && <p class="dim">{t("no_queue_pairs")}</p>}
				</section>
				{plain.some((group) => Object.values(answer.counters[group]).some(Boolean)) && (
					<section aria-labelledby="counters">
						<h2 id="counters">{t("counters")}</h2>
						<Groups groups={answer.counters} names={plain} />
					</section>
				)}
				<Latencies counters={answer.counters} />
			</div>
		</>
	);
}

export function Tenant({ name }) {
	const tenant = live.tenants.get(name);
	const events = live.events.filter((event) => event.tenant === name).reverse();

	if (!tenant)
		return (
			<>
				<h1>{name}</h1>
				<p class="dim">{live.tenants.size ? t("no_tenant", name) : t("loading")}</p>
			</>
		);
	return (
		<>
			<div class="headline">
				<h1>
					<span class="dim">{t("tenant")}</span> {name}
				</h1>
				<Mode mode={tenant.mode} />
				<States states={tenant.state} />
				<span class="dim">
					{t("processes")} <b>{tenant.processes}</b>
				</span>
				<span class="dim">
					{t("weight")} <b>{tenant.weight}</b>
				</span>
				<a class="button" href={limits_path(`tenant ${name}`)}>
					{t("change_limits")}
				</a>
			</div>
			<section aria-labelledby="resources">
				<h2 id="resources">{t("resources")}</h2>
				<Resources tenant={tenant} />
			</section>
			<Charts key={name} tenant={name} />
			<Details key={name} name={name} />
			<section aria-labelledby="events">
				<h2 id="events">{t("events")}</h2>
				<EventList events={events} of_tenant={true} label={t("events")} />
			</section>
		</>
	);
}
