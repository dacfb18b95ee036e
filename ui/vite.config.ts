/// <reference types="vitest/config" />
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// The node behind `npm run dev`; FRAZIL_URL overrides it.
const node = process.env.FRAZIL_URL ?? "http://127.0.0.1:4320";

export default defineConfig({
  // Relative addresses, so that the page works below any path.
  base: "./",
  plugins: [svelte(), { name: "base", apply: "serve", transformIndexHtml: atRoot }],
  build: {
    outDir: "../src/frazil/serve/built",
    emptyOutDir: true,
    target: "es2022",
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // Names without hashes: the build is kept in git, and a change of one component then changes
    // one file. The node puts a digest of all files into their address.
    rolldownOptions: {
      checks: { bundlerTimings: false },
      output: {
        entryFileNames: "assets/[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
  server: { proxy: { "/api": node } },
  // Without isolation, modules are loaded once instead of once per test file.
  test: { include: ["src/**/*.test.ts"], pool: "threads", isolate: false },
});

/** Set the base, as the node does for the built page. */
function atRoot(page: string): string {
  return page.replace('<base href="./" />', '<base href="/" />');
}
