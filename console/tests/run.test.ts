/** The reducer of runs: every prefix of a stream is a true picture, and nothing that comes can break it. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { FrameReader } from "../src/api/sse";
import { readEvent, type AgUiEvent } from "../src/model/events";
import { hasEnded, isUnfinished, newRun, reduceRun, type Run, type TextPart, type ToolPart } from "../src/model/run";

function recorded(name: string): AgUiEvent[] {
  const text = readFileSync(new URL(`./streams/${name}.txt`, import.meta.url), "utf8");
  return new FrameReader().push(text).flatMap((frame) => readEvent(frame.data) ?? []);
}

const fold = (events: AgUiEvent[]): Run => events.reduce(reduceRun, newRun("t"));
const words = (run: Run): string => run.parts.flatMap((part) => (part.kind === "text" ? [part.text] : [])).join("\n");

const STREAMS = ["echo", "tools", "steps", "cancelled", "crashed", "interrupt"];

describe.each(STREAMS)("the recorded stream %s", (name) => {
  const events = recorded(name);

  test("ends exactly once, and only with its last event", () => {
    const ends = events.map((_, count) => hasEnded(fold(events.slice(0, count + 1))));
    expect(ends.filter(Boolean)).toHaveLength(1);
    expect(ends.at(-1)).toBe(true);
  });

  test("has in every prefix the beginning of its words, and never other ones", () => {
    const whole = words(fold(events));
    for (let count = 0; count <= events.length; count += 1) expect(whole.startsWith(words(fold(events.slice(0, count))))).toBe(true);
  });

  test("leaves nothing open at its end", () => {
    expect(fold(events).parts.filter((part) => "open" in part && part.open)).toEqual([]);
  });

  test("changes nothing when it is told on after its end", () => {
    const run = fold(events);
    expect(events.reduce(reduceRun, run)).toBe(run);
  });

  test("comes to the same when frames arrive cut at any place", () => {
    const text = readFileSync(new URL(`./streams/${name}.txt`, import.meta.url), "utf8");
    for (const size of [1, 7, 64]) {
      const reader = new FrameReader();
      const frames = [];
      for (let at = 0; at < text.length; at += size) frames.push(...reader.push(text.slice(at, at + size)));
      expect(fold(frames.flatMap((frame) => readEvent(frame.data) ?? []))).toEqual(fold(events));
    }
  });
});

test("a tool is shown with its arguments and its result", () => {
  const tool = fold(recorded("tools")).parts.find((part): part is ToolPart => part.kind === "tool");
  expect(tool).toMatchObject({ name: "calculate", open: false, failed: false });
  expect(JSON.parse(tool?.args ?? "")).toEqual({ expression: "19 * 23" });
  expect(tool?.result).toContain("437");
});

test("a cancelled and a crashed run are what they are, with the words they got to", () => {
  expect(fold(recorded("cancelled"))).toMatchObject({ status: "cancelled", error: null });
  const crashed = fold(recorded("crashed"));
  expect(crashed.status).toBe("failed");
  expect(crashed.error?.code).toBeTruthy();
  expect(words(crashed)).toContain("half a");
});

test("words that break off are told from words that were finished before the run failed", () => {
  const said = (id: string, cut: boolean): AgUiEvent[] => [
    { type: "TEXT_MESSAGE_START", messageId: id },
    { type: "TEXT_MESSAGE_CONTENT", messageId: id, delta: id },
    { type: "TEXT_MESSAGE_END", messageId: id, ...(cut ? { metadata: { partial: true, turnId: "t" } } : {}) },
  ];
  const run = fold([{ type: "RUN_STARTED" }, ...said("whole", false), ...said("half", true), { type: "RUN_ERROR", code: "runner.crashed", message: "gone" }]);
  expect(run.parts.map((part) => (part as TextPart).cut ?? false)).toEqual([false, true]);
  expect([isUnfinished(run), isUnfinished(fold(recorded("echo"))), isUnfinished(fold(recorded("cancelled")))]).toEqual([true, false, true]);
});

test("a question that a run ends with is kept with its schema", () => {
  const run = fold(recorded("interrupt"));
  expect(run.interrupts).toHaveLength(1);
  expect(run.interrupts[0]?.responseSchema).toHaveProperty("properties.approved");
});

test("a message that ended otherwise than it was streamed has its last words", () => {
  const run = fold([
    { type: "RUN_STARTED" },
    { type: "TEXT_MESSAGE_START", messageId: "m" },
    { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "wrnog" },
    { type: "TEXT_MESSAGE_END", messageId: "m" },
    { type: "CUSTOM", name: "paddock.message.revised", value: { messageId: "m", content: "wrong" } },
  ]);
  expect((run.parts[0] as TextPart).text).toBe("wrong");
});

test("chunks without a beginning, unknown events and odd values are read kindly", () => {
  const odd: AgUiEvent[] = [
    { type: "TEXT_MESSAGE_CHUNK", messageId: "a", delta: "x" },
    { type: "TEXT_MESSAGE_CHUNK", delta: "y" },
    { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: "{}" },
    { type: "TOOL_CALL_RESULT", toolCallId: "d", content: [{ type: "text", text: "z" }] },
    { type: "SOMETHING_NEW", deep: { er: 1 } },
    { type: "TEXT_MESSAGE_CONTENT", messageId: 7, delta: null },
    { type: "ACTIVITY_SNAPSHOT", messageId: "u", activityType: "ui-schema", content: "no object" },
    { type: "RUN_FINISHED", outcome: "odd", usage: "odd" },
  ];
  const run = fold(odd);
  expect(run.status).toBe("completed");
  expect((run.parts[0] as TextPart).text).toBe("xy");
});

test("what is not an event is none", () => {
  expect([readEvent("no json"), readEvent("[]"), readEvent("null"), readEvent('{"type":7}')]).toEqual([null, null, null, null]);
});
