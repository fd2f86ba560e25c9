/** How the console becomes files: into the host's package, under names that change with their content. */
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  base: "./",
  build: {
    outDir: "../src/paddock/console_assets",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy knows no data: addresses
    modulePreload: { polyfill: false },
    target: "es2022",
    // One file: a page that is fetched later is missing when the host is away or was exchanged, and saves a tenth at most.
    chunkSizeWarningLimit: 700,
  },
  // `npx vite` beside a running host, for work on the console itself
  server: { proxy: { "/api": { target: "http://127.0.0.1:8484", changeOrigin: true } } },
});
