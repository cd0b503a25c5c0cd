// SPDX-License-Identifier: MIT
// Bundles the page and writes it as a C file: a table of files, compressed, with their types and
// ETags (src/dashboard/page.h). usage: node build.mjs NODE_MODULES OUTPUT_DIRECTORY
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const MOST = 100 * 1024; // of the whole page, compressed
const [modules, output] = process.argv.slice(2);
const sources = join(dirname(fileURLToPath(import.meta.url)), "src");
const { buildSync } = createRequire(join(modules, "any"))("esbuild");

const bundle = join(output, "bundle");
mkdirSync(bundle, { recursive: true });
buildSync({
	entryPoints: [join(sources, "main.jsx")],
	outdir: bundle,
	entryNames: "app",
	bundle: true,
	minify: true,
	format: "iife",
	target: ["es2020"],
	charset: "utf8",
	legalComments: "none",
	jsx: "automatic",
	jsxImportSource: "preact",
	nodePaths: [modules],
});

const files = [
	["/", "text/html; charset=utf-8", join(sources, "index.html")],
	["/app.js", "text/javascript; charset=utf-8", join(bundle, "app.js")],
	["/app.css", "text/css; charset=utf-8", join(bundle, "app.css")],
	["/icon.svg", "image/svg+xml", join(sources, "icon.svg")],
].map(([path, type, file]) => {
	const plain = readFileSync(file);
	return {
		path,
		type,
		data: gzipSync(plain, { level: 9 }),
		etag: createHash("sha256").update(plain).digest("hex").slice(0, 16),
	};
});

const total = files.reduce((sum, file) => sum + file.data.length, 0);
if (total > MOST) {
	console.error(`the page has ${total} bytes: expected at most ${MOST}`);
	process.exit(1);
}

const bytes = (data) =>
	[...data].map((byte, i) => byte + (i % 24 === 23 ? ",\n" : ",")).join("");
writeFileSync(
	join(output, "page_files.c"),
	`/* Made by web/build.mjs: ${total} bytes. */
#include "dashboard/page.h"

${files.map((file, i) => `static const unsigned char data_${i}[] = {\n${bytes(file.data)}\n};\n`).join("")}
const struct page_file page_files[] = {
${files
	.map(
		(file, i) =>
			`	{ "${file.path}", "${file.type}", "\\"${file.etag}\\"", data_${i}, sizeof(data_${i}) },\n`,
	)
	.join("")}};
const unsigned page_files_count = ${files.length};
`,
);
