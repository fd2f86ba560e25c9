/** Results of tools made of parts: files by reference, words as words; everything else is left as the text it is. */
import { expect, test } from "vitest";
import { errorOf, fileOf, partsOf, summed } from "../src/model/results";
import { fileIn, filesTold, type StoryEntry } from "../src/run/story";
import { speaker } from "../src/words";

const IMAGE = { type: "image", artifact_id: "art_1", mime_type: "image/png", size: 120, name: "chart.png", source: "tool" };
const FILE = { type: "file", artifact_id: "art_2", mime_type: "audio/wav", size: 5, problem: "no picture" };
const LOST = { type: "file", mime_type: "image/png", size: 7, problem: "it is not kept: full" };
const RESULT = [{ type: "text", text: "here it is" }, IMAGE, FILE, LOST];

test("parts are told from the text of a result and from its value alike", () => {
  const parts = partsOf(JSON.stringify(RESULT));
  expect(parts).toEqual(partsOf(RESULT));
  expect(parts?.map((part) => part.kind)).toEqual(["text", "image", "file", "file"]);
  expect(parts?.[1]).toEqual({ kind: "image", id: "art_1", name: "chart.png", mimeType: "image/png", size: 120, problem: "" });
  expect(parts?.[3]).toMatchObject({ id: null, problem: "it is not kept: full" });
  expect(summed(parts ?? [])).toEqual({ text: "here it is", pictures: 1, files: 2 });
});

test.each(["", "[", "[]", "[1]", "437", '{"type":"image","artifact_id":"a"}', '[{"type":"image"}]', '[{"type":"row"}]', '[{"type":"text"}]', "null"])("%j is not made of parts", (text) => {
  expect(partsOf(text)).toBeNull();
});

test("what is not known among the parts is kept as it is, and a text under an address is a text", () => {
  const note = { type: "resource", resource: { uri: "a://b/note", mimeType: "text/plain", text: "tea" } };
  const link = { type: "resource_link", uri: "a://b", name: "b" };
  expect(partsOf([IMAGE, note, link])?.slice(1)).toEqual([{ kind: "text", text: "tea" }, { kind: "other", value: link }]);
  expect(partsOf([link])).toBeNull();
});

test("why a call failed is a sentence", () => {
  expect(errorOf('{"error":"no such city"}')).toBe("no such city");
  expect(['{"error":{"code":1}}', '{"error":', "sunny", '{"a":{"error":"x"}}'].map(errorOf)).toEqual([null, null, null, null]);
});

test("a file that an agent announced is a picture when the host shows such pictures", () => {
  expect(fileOf({ artifact_id: "a", mime_type: "image/webp", size_bytes: 3 })).toMatchObject({ kind: "image", size: 3 });
  expect(fileOf({ artifact_id: "a", mime_type: "image/svg+xml" })).toMatchObject({ kind: "file", size: null });
  expect(fileOf({ artifact_type: "file" })).toBeNull();
});

test("of a run's files those are shown that tools gave back or that were mentioned", () => {
  const entry = (kind: StoryEntry["kind"], detail: Record<string, unknown>): StoryEntry => ({ time: "", kind, name: "n.png", detail });
  const entries = [entry("tool", { result: RESULT, artifactId: "art_whole" }), entry("artifact", { artifactId: "art_3", published: true }), entry("artifact", { artifactId: "art_4", published: false })];
  expect([...filesTold(entries)].toSorted()).toEqual(["art_1", "art_2", "art_3", "art_whole"]);
  expect(fileIn(entry("artifact", { artifactId: "art_3", mimeType: "image/png", size: 9 }))).toMatchObject({ kind: "image", name: "n.png", size: 9 });
});

test("sizes are said as people say them", () => {
  expect([0, 999, 1_500, 2_345_678].map(speaker("en").size)).toEqual(["0 bytes", "999 bytes", "2 kB", "2.3 MB"]);
  expect(speaker("zh").size(1_500)).toBe("2 kB");
});
