// SPDX-License-Identifier: MIT
// A browser that obeys the lines on standard input and answers each by one line of JSON, so that
// a script can look at the page. usage: node browser.mjs NODE_MODULES USER_DATA_DIRECTORY
//   goto ADDRESS           opens it
//   eval EXPRESSION        its value in the page; a promise is awaited
//   fill SELECTOR TEXT     (a blank after the selector, which has none)
//   click SELECTOR         also: keys KEYS
//   look WIDTH light|dark  the size of the window and the colours
//   size WIDTH HEIGHT      of the window
//   shot FILE              a picture of the whole page
//   axe                    the rules of axe-core that the page breaks
//   quit                   ends the browser and this program
//   errors                 what the console and the page complained of since the last time
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const [modules, directory] = process.argv.slice(2);
const require = createRequire(join(modules, "any"));
const { chromium } = require("playwright-core");
const axe = require.resolve("axe-core/axe.min.js");

const context = await chromium.launchPersistentContext(directory, {
	executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
	headless: true,
	args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"],
	locale: "en-US",
	viewport: { width: 1280, height: 800 },
	bypassCSP: false,
});
context.setDefaultTimeout(30000);
const page = context.pages()[0] ?? (await context.newPage());
let errors = [];
page.on("console", (message) => {
	if (["error", "warning"].includes(message.type())) errors.push(`${message.text()} ${message.location().url}`);
});
page.on("pageerror", (error) => errors.push(String(error)));
await page.emulateMedia({ reducedMotion: "reduce" });

const commands = {
	goto: async (address) => {
		await page.goto(address);
	},
	eval: (expression) => page.evaluate(expression),
	fill: async (rest) => {
		const at = rest.indexOf(" ");
		await page.fill(rest.slice(0, at), rest.slice(at + 1));
	},
	click: (selector) => page.click(selector),
	keys: (keys) => page.keyboard.press(keys),
	look: async (rest) => {
		const [width, colours] = rest.split(" ");
		await page.setViewportSize({ width: Number(width), height: width < 600 ? 844 : 800 });
		await page.emulateMedia({ colorScheme: colours, reducedMotion: "reduce" });
	},
	size: async (rest) => {
		const [width, height] = rest.split(" ").map(Number);
		await page.setViewportSize({ width, height });
	},
	shot: async (file) => {
		await page.screenshot({ path: file, fullPage: true });
	},
	// By the protocol of the browser, since the policy of the page lets no other script in.
	axe: async () => {
		await page.evaluate(require("node:fs").readFileSync(axe, "utf8"));
		const { violations } = await page.evaluate("axe.run(document, { resultTypes: ['violations'] })");
		return violations.map((rule) => `${rule.id}: ${rule.nodes.map((node) => `${node.html} ${node.failureSummary}`).join(" | ")}`);
	},
	errors: () => {
		const now = errors;
		errors = [];
		return now;
	},
};

for await (const line of createInterface({ input: process.stdin })) {
	if (line === "quit") break;
	const at = line.indexOf(" ");
	const [name, rest] = at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1)];
	let answer;
	try {
		answer = { ok: (await commands[name](rest)) ?? null };
	} catch (error) {
		answer = { error: String(error) };
	}
	process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await context.close();
process.exit(0);
