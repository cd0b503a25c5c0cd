// SPDX-License-Identifier: MIT
// Charts of what was used: one for each resource, all with the same time. Lines differ by shape as
// well as by colour, and each chart says its numbers in words.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { amount, clock, is_bytes } from "./format.js";
import { live } from "./live.js";
import { useAsked } from "./parts.jsx";
import { t } from "./texts.js";

const HEIGHT = 128;
const POWERS = Array.from({ length: 60 }, (_, i) => 2 ** i);
// How long, the step in seconds (0: as the dashboard has it), and how often it is asked for again.
const SPANS = {
	"10m": { seconds: 600, step: 0, every_ms: 3000 },
	"2h": { seconds: 7200, step: 0, every_ms: 10000 },
	"24h": { seconds: 86400, step: 120, every_ms: 60000 },
	"30d": { seconds: 30 * 86400, step: 3600, every_ms: 120000 },
};

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Columns of points, with a gap wherever a step is missing.
function columns_of(points, step) {
	const columns = [[], [], [], [], []];
	let before = null;
	for (const point of points) {
		if (before !== null && point[0] - before > 2.5 * step) {
			columns[0].push(before + step);
			for (let i = 1; i < 5; i++) columns[i].push(null);
		}
		for (let i = 0; i < 5; i++) columns[i].push(point[i]);
		before = point[0];
	}
	return columns;
}

function summary(resource, [, used, most, limit, refused]) {
	const words = [t("chart_now", amount(resource, used.at(-1))), t("chart_most", amount(resource, Math.max(0, ...most)))];
	const sum = refused.reduce((all, one) => all + (one ?? 0), 0);
	if (limit.at(-1) !== null && limit.at(-1) !== undefined) words.push(t("chart_limit", amount(resource, limit.at(-1))));
	if (sum) words.push(t("chart_refused", sum));
	return words.join(" · ");
}
function at_cursor(resource, [time, used, , limit, refused], i) {
	const words = [clock(new Date(time[i] * 1000)), amount(resource, used[i] ?? 0)];
	if (limit[i] !== null) words.push(t("chart_limit", amount(resource, limit[i])));
	if (refused[i]) words.push(t("chart_refused", refused[i]));
	return words.join(" · ");
}

// Triangles at the upper edge where something was refused.
function refusals_draw(plot, refused, fill_colour) {
	const { ctx, bbox } = plot;
	const half = 4 * devicePixelRatio;
	ctx.save();
	ctx.fillStyle = fill_colour;
	refused.forEach((count, i) => {
		if (!count) return;
		const x = plot.valToPos(plot.data[0][i], "x", true);
		ctx.beginPath();
		ctx.moveTo(x - half, bbox.top);
		ctx.lineTo(x + half, bbox.top);
		ctx.lineTo(x, bbox.top + 1.8 * half);
		ctx.fill();
	});
	ctx.restore();
}

function options_of(resource, columns, words, width, range) {
	const dim = colour("--dim");
	const line = colour("--line");
	const axis = { stroke: dim, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
	const state = { columns };
	return [
		{
			width,
			height: HEIGHT,
			legend: { show: false },
			cursor: { sync: { key: "time" }, points: { size: 5 }, drag: { x: false, y: false } },
			scales: {
				x: { time: true, range: () => state.range },
				y: { range: (_, least, most) => [0, Math.max(1, (most ?? 0) * 1.08)] },
			},
			axes: [
				{ ...axis, size: 22, space: 60, values: (plot, splits) => splits.map((at) => axis_time(at, state.range)) },
				{ ...axis, size: 44, space: 28, ...(is_bytes(resource) ? { incrs: POWERS } : {}), values: (plot, splits) => splits.map((value) => (value % 1 ? "" : amount(resource, value))) },
			],
			series: [
				{},
				{ stroke: colour("--accent"), fill: colour("--accent-soft"), width: 1.5, points: { show: false } },
				{ stroke: colour("--accent"), width: 0.5, points: { show: false } },
				{ stroke: colour("--limit"), width: 1.5, dash: [5, 4], paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } },
			],
			hooks: {
				draw: [(plot) => refusals_draw(plot, state.columns[4], colour("--bad"))],
				setCursor: [
					(plot) => {
						const i = plot.cursor.idx;
						words.textContent =
							i === null || i === undefined || plot.cursor.left < 0 || state.columns[1][i] === undefined
								? summary(resource, state.columns)
								: at_cursor(resource, state.columns, i);
					},
				],
			},
		},
		Object.assign(state, { range }),
	];
}
const two = (number) => String(number).padStart(2, "0");
function axis_time(seconds, [from, to]) {
	const date = new Date(seconds * 1000);
	return to - from > 2 * 86400 ? `${two(date.getMonth() + 1)}-${two(date.getDate())}` : `${two(date.getHours())}:${two(date.getMinutes())}`;
}

function Chart({ resource, points, step, range, theme }) {
	const box = useRef(null);
	const words = useRef(null);
	const made = useRef(null);
	const columns = columns_of(points, step);

	useEffect(() => {
		const [options, state] = options_of(resource, columns, words.current, box.current.clientWidth, range);
		const plot = new uPlot(options, columns.slice(0, 4), box.current);
		const observer = new ResizeObserver(() => box.current && plot.setSize({ width: box.current.clientWidth, height: HEIGHT }));
		observer.observe(box.current);
		made.current = { plot, state };
		return () => {
			observer.disconnect();
			plot.destroy();
		};
	}, [resource, theme]);
	useEffect(() => {
		const { plot, state } = made.current;
		Object.assign(state, { columns, range });
		plot.setData(columns.slice(0, 4));
		words.current.textContent = summary(resource, columns);
	}, [points, theme]);
	return (
		<figure class="chart" data-resource={resource}>
			<figcaption>
				<b>{resource}</b> <span ref={words} />
			</figcaption>
			<div ref={box} role="img" aria-label={`${resource}: ${summary(resource, columns)}`} />
		</figure>
	);
}

// Changes when the colours do.
function useTheme() {
	const query = matchMedia("(prefers-color-scheme: dark)");
	const [dark, setDark] = useState(query.matches);
	useEffect(() => {
		const changed = () => setDark(query.matches);
		query.addEventListener("change", changed);
		return () => query.removeEventListener("change", changed);
	}, []);
	return dark;
}

const has_limit = (series) => series.points.some(([, , , limit]) => limit !== null);
const has_something = (series) => series.points.some(([, used, most, limit, refused]) => used || most || refused || limit !== null);

export function Charts({ tenant }) {
	const [name, setName] = useState("10m");
	const theme = useTheme();
	const span = SPANS[name];
	const [answer, error] = useAsked(
		`/api/history?tenant=${encodeURIComponent(tenant)}&since=${name}${span.step ? `&step=${span.step}` : ""}`,
		span.every_ms,
	);
	const now = Date.now() / 1000;
	const order = (series) => live.kinds.indexOf(series.resource) + (has_limit(series) ? 0 : 100);
	const shown = (answer?.series ?? [])
		.filter((series) => series.tenant === tenant && has_something(series))
		.sort((a, b) => order(a) - order(b));

	return (
		<section aria-labelledby="charts">
			<div class="headline">
				<h2 id="charts">{t("charts")}</h2>
				<fieldset class="choice">
					<legend class="unseen">{t("span")}</legend>
					{Object.keys(SPANS).map((one) => (
						<label key={one} class={one === name ? "chosen" : ""}>
							<input type="radio" name="span" value={one} checked={one === name} onChange={() => setName(one)} />
							{t(`span_${one}`)}
						</label>
					))}
				</fieldset>
				<span class="dim key">{t("chart_key")}</span>
			</div>
			{error && !answer && <p class="failure">{error.message}</p>}
			{answer && !shown.length && <p class="dim">{t("chart_none")}</p>}
			<div class="charts">
				{shown.map((series) => (
					<Chart key={series.resource} resource={series.resource} points={series.points} step={answer.step} range={[now - span.seconds, now]} theme={theme} />
				))}
			</div>
		</section>
	);
}
