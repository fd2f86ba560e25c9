/** What is written into the form of an agent stays until it is saved, whatever else is looked at. */
import { expect, test } from "vitest";
import { changed, draftOf, modeOf, namedIn, toSend, withRunner, withUnread } from "../src/agents/draft";

test("whoever looks at another runner and comes back finds the settings as they were", () => {
  const begun = changed(draftOf("helper", { runner: "a", config: { model: "demo" } }), { label: "Helper" });
  const there = withRunner(begun, "b");
  expect(there.definition).toEqual({ runner: "b", config: {}, label: "Helper" });
  const written = changed(there, { config: { url: "x" } });
  const back = withRunner(written, "a");
  expect(back.definition["config"]).toEqual({ model: "demo" });
  expect(withRunner(back, "b").definition["config"]).toEqual({ url: "x" });
});

test("what has no value is not sent", () => {
  expect(toSend(draftOf("helper", { runner: "a", label: null, tools: undefined, description: "" }))).toEqual({ runner: "a", description: "" });
});

test("a policy is the plain choice that it is", () => {
  expect([undefined, "all", ["a"], [], { a: ["invoke"] }].map((value) => modeOf(value, "all"))).toEqual(["default", "default", "these", "none", "fine"]);
  expect([{}, { a: null, b: null }].map((value) => modeOf(value, "all"))).toEqual(["none", "these"]);
  expect([["a"], { a: null, b: null }, { a: ["call"] }, "all"].map(namedIn)).toEqual([["a"], ["a", "b"], null, null]);
  expect(["read_only", "all"].map((value) => modeOf(value, "read_only"))).toEqual(["default", "all"]);
});

test("a text that is no JSON yet is kept beside the settings, and is not sent", () => {
  const half = withUnread(draftOf("helper", { runner: "a", config: {} }), "extra", "{half");
  expect(half.unread).toEqual({ extra: "{half" });
  expect(toSend(half)).toEqual({ runner: "a", config: {} });
  expect(withUnread(half, "extra", null).unread).toEqual({});
});
