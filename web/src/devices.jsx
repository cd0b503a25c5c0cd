// SPDX-License-Identifier: MIT
// Devices: what is used of each, its ports, and by which tenants.
import { amount } from "./format.js";
import { live } from "./live.js";
import { Holds, Mode, Usage, kinds_of, matters, tenant_path, useAsked } from "./parts.jsx";
import { t } from "./texts.js";

function Ports({ ports }) {
	return (
		<ul class="ports">
			{ports.map((port) => (
				<li key={port.port}>
					<b>{t("port", port.port)}</b>{" "}
					{Object.entries(port.kinds).map(([kind, share]) => (
						<span key={kind}>
							{kind} <b>{amount(kind, share.used)}</b>
							{share.limit !== null && ` / ${amount(kind, share.limit)}`}{" "}
						</span>
					))}
				</li>
			))}
		</ul>
	);
}

function Device({ device, tenants }) {
	const kinds = kinds_of([device]);
	const here = tenants.filter((tenant) => Object.values(tenant.kinds).some(matters));
	const id = `device ${device.device}`;
	return (
		<section aria-labelledby={id} data-device={device.device}>
			<h2 id={id}>{device.device}</h2>
			<ul class="tiles">
				{kinds.map((kind) => (
					<li key={kind} title={live.meanings?.[kind]}>
						<h3>{kind}</h3>
						<Usage kind={kind} share={device.kinds[kind]} owner={device.device} />
						<span class="word">
							{t("peak")} {amount(kind, device.kinds[kind].peak)}
						</span>
					</li>
				))}
			</ul>
			{device.ports.length > 0 && <Ports ports={device.ports} />}
			{here.length > 0 && (
				<div class="scroll" role="group" aria-labelledby={id} tabIndex={0}>
					<table class="cards">
						<thead>
							<tr>
								<th scope="col">{t("tenant")}</th>
								<th scope="col">{t("mode")}</th>
								<th scope="col">{t("holds")}</th>
							</tr>
						</thead>
						<tbody>
							{here.map((tenant) => (
								<tr key={tenant.name}>
									<th scope="row">
										<a href={tenant_path(tenant.name)}>{tenant.name}</a>
									</th>
									<td data-label={t("mode")}>
										<Mode mode={tenant.mode} />
									</td>
									<td data-label={t("holds")}>
										<Holds kinds={tenant.kinds} />
									</td>
								</tr>
							))}
						</tbody>
					</table>
				</div>
			)}
		</section>
	);
}

export function Devices() {
	const [answer, error] = useAsked("/api/devices", 2000);
	return (
		<>
			<h1>{t("devices")}</h1>
			{!answer && <p class={error ? "failure" : "dim"}>{error ? error.message : t("loading")}</p>}
			{answer && !answer.devices.length && <p class="dim">{t("no_devices")}</p>}
			{answer?.devices.map(({ device, tenants }) => <Device key={device.device} device={device} tenants={tenants} />)}
		</>
	);
}
