// SPDX-License-Identifier: MIT
// The page: which view is shown, and what stands around it. The part of the address behind # says
// which view.
import { render } from "preact";
import { useEffect, useErrorBoundary, useRef, useState } from "preact/hooks";
import { Advice } from "./advice.jsx";
import { Devices } from "./devices.jsx";
import { Events } from "./events.jsx";
import { clock, duration, units_set } from "./format.js";
import { Limits } from "./limits.jsx";
import { live, live_begin, live_listen, token } from "./live.js";
import { Overview } from "./overview.jsx";
import "./style.css";
import { Tenant } from "./tenant.jsx";
import { language, language_switch, t } from "./texts.js";

const VIEWS = {
	overview: () => <Overview />,
	tenant: ([name]) => <Tenant name={name ?? ""} />,
	devices: () => <Devices />,
	events: () => <Events />,
	advice: () => <Advice />,
	limits: ([section, wish]) => <Limits section={section} wish={wish} />,
};

function route_read() {
	const [, view, ...rest] = location.hash.split("/").map((part) => {
		try {
			return decodeURIComponent(part);
		} catch {
			return part;
		}
	});
	return { view: view in VIEWS ? view : "overview", rest };
}

function useRoute() {
	const [route, setRoute] = useState(route_read);
	useEffect(() => {
		const changed = () => setRoute(route_read());
		addEventListener("hashchange", changed);
		return () => removeEventListener("hashchange", changed);
	}, []);
	return route;
}

// Renders again whenever what the page knows has changed.
function useLive() {
	const [, again] = useState(0);
	useEffect(() => live_listen(() => again((count) => count + 1)), []);
}

function Connection() {
	const [state, word] =
		live.connected === null ? ["", "connecting"] : !live.connected ? ["bad", "lost"] : live.problem ? ["bad", "collector_down"] : ["good", "live"];
	return (
		<span class={`connection ${state}`} role="status" data-state={word}>
			<span aria-hidden="true">{state === "good" ? "●" : state === "bad" ? "✕" : "○"}</span> {t(word)}
		</span>
	);
}

function Trouble() {
	const since = live.seen ? clock(live.seen) : "–";
	if (live.connected === false) return <p class="trouble" role="alert">{t("lost_long", since)}</p>;
	if (live.connected && live.problem) return <p class="trouble" role="alert">{t("collector_down_long", live.problem, since)}</p>;
	return null;
}

function About() {
	const { collector } = live;
	if (!collector) return null;
	return (
		<footer>
			<span>{t("collector", collector.version, collector.pid, duration(collector.uptime_seconds))}</span>
			<span>{collector.policy ? t("policy", collector.policy) : t("no_policy")}</span>
			<span>{collector.monitor.mode === "none" ? t("monitor_none") : t("monitor", collector.monitor.mode)}</span>
		</footer>
	);
}

function View({ route }) {
	const [error] = useErrorBoundary((thrown) => console.error(thrown));
	if (error) return <p class="failure" role="alert">{String(error)}</p>;
	return VIEWS[route.view](route.rest);
}

function App() {
	const route = useRoute();
	const main = useRef(null);
	const first = useRef(true);
	const [, again] = useState(0);

	useLive();
	document.documentElement.lang = language();
	document.title = `${route.view === "tenant" ? route.rest[0] : t(route.view)} · ${t("title")}`;
	useEffect(() => {
		if (!first.current) {
			main.current.focus();
			scrollTo(0, 0);
		}
		first.current = false;
	}, [route.view, route.rest[0]]);
	return (
		<>
			<a
				class="skip"
				href="#main"
				onClick={(event) => {
					event.preventDefault();
					main.current.focus();
				}}
			>
				{t("skip")}
			</a>
			<header>
				<span class="name">{t("title")}</span>
				<nav aria-label={t("views")}>
					{["overview", "devices", "events", "advice", "limits"].map((view) => (
						<a key={view} href={`#/${view}`} aria-current={route.view === view ? "page" : undefined}>
							{t(view)}
						</a>
					))}
				</nav>
				<span class="tools">
					<Connection />
					<a class="chip" href="#/limits" data-state={token.get() ? "may_change" : "read_only"}>
						{t(token.get() ? "may_change" : "read_only")}
					</a>
					<button
						type="button"
						class="language"
						lang={language() === "en" ? "zh-CN" : "en"}
						aria-label={`${t("language")}: ${t("language_name")}`}
						onClick={() => {
							language_switch();
							again((count) => count + 1);
						}}
					>
						{t("language")}
					</button>
				</span>
			</header>
			<Trouble />
			<main id="main" ref={main} tabIndex={-1}>
				<View key={`${route.view} ${route.rest[0]}`} route={route} />
			</main>
			<About />
		</>
	);
}

live_begin(units_set);
render(<App />, document.getElementById("app"));
