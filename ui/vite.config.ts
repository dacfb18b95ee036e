/// <reference types="vitest/config" />
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// `npm run dev` asks this node; FRAZIL_URL names another.
const node = process.env.FRAZIL_URL ?? "http://127.0.0.1:4320";

export default defineConfig({
  // All addresses are relative, so that the page works below any path.
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
  },
  server: { proxy: { "/api": node } },
  test: { include: ["src/**/*.test.ts", "tests/**/*.test.ts"] },
});

/** What the node does for the built page: say where the root is. */
function atRoot(page: string): string {
  return page.replace('<base href="./" />', '<base href="/" />');
}
