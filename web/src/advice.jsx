// SPDX-License-Identifier: MIT
// Advice: what to change, with the figures that led to it and the command that does it. The
// sentences are those of `rdma_intercept advise`.
import { tenant_path, useAsked } from "./parts.jsx";
import { t } from "./texts.js";

function Finding({ finding }) {
	return (
		<li data-rule={finding.rule}>
			<p>{finding.text}</p>
			<p>
				<code>{finding.command}</code>
			</p>
			<p class="dim">
				{t("advice_rule", finding.rule)}
				{finding.tenant && (
					<>
						{" · "}
						<a href={tenant_path(finding.tenant)}>{finding.tenant}</a>
					</>
				)}
				{finding.more > 0 && ` · ${t("advice_more", finding.more)}`}
			</p>
		</li>
	);
}

export function Advice() {
	const [answer, error] = useAsked("/api/advice", 10000);
	return (
		<>
			<h1>{t("advice")}</h1>
			<section aria-label={t("advice")}>
				{!answer && <p class={error ? "failure" : "dim"}>{error ? error.message : t("loading")}</p>}
				{answer && !answer.advice.length && <p class="dim">{t("advice_none")}</p>}
				<ul class="advice">
					{answer?.advice.map((finding, place) => (
						<Finding key={`${finding.rule} ${finding.tenant} ${place}`} finding={finding} />
					))}
				</ul>
			</section>
		</>
	);
}
