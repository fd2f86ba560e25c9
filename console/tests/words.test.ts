/** Both languages say everything, and fill in the same things. */
import { expect, test } from "vitest";
import { safeLink } from "../src/ui/Markdown";
import { placeOf } from "../src/ui/router";
import { en } from "../src/words/en";
import { zh } from "../src/words/zh";

const filled = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map((found) => found[1]).sort();

test("every sentence is there in both languages, with the same things to fill in", () => {
  expect(Object.keys(zh).sort()).toEqual(Object.keys(en).sort());
  for (const [key, text] of Object.entries(en)) expect([key, filled(zh[key as keyof typeof en])]).toEqual([key, filled(text)]);
});

test("only links to the open web are links", () => {
  for (const bad of ["javascript:alert(1)", "data:text/html,x", "//evil", "vbscript:x", "https://a:b@evil.example/", "file:///etc/passwd", " javascript:x", ""]) expect(safeLink(bad)).toBeNull();
  expect(safeLink("https://example.org/a")?.href).toBe("https://example.org/a");
});

test("an address that makes no sense leads to a new conversation", () => {
  for (const odd of ["", "#", "#/", "#/nowhere", "#/run/", "#/run/<script>", "#/%E0%A4%A"]) expect(placeOf(odd).page).toBe("chat");
  expect(placeOf("#/run/abc?with=def")).toEqual({ page: "run", run: "abc", other: "def" });
});
